# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A kernel and a ramdisk that say what reached them and end: Debian's kernel, busybox and one script."""

from __future__ import annotations

import pathlib
import subprocess
import tempfile

from lab import CACHE, sh

INIT = """#!/bin/busybox sh
/bin/busybox mkdir -p /proc /dev
/bin/busybox mount -t proc proc /proc
/bin/busybox mount -t devtmpfs dev /dev 2>/dev/null
exec >/dev/console 2>&1
echo "CMDLINE<$(/bin/busybox cat /proc/cmdline)>"
echo "OVERLAY<$(/bin/busybox cat /overlay 2>/dev/null)>"
echo "PAYLOAD DONE"
/bin/busybox reboot -f
"""


def _download(package: str, into: pathlib.Path) -> None:
    """A Debian package, unpacked and not installed."""
    with tempfile.TemporaryDirectory(dir=CACHE) as place:
        sh("apt-get", "-o", "APT::Sandbox::User=root", "download", package, cwd=place)
        sh("dpkg-deb", "-x", next(pathlib.Path(place).glob("*.deb")), into)


def _archive() -> str:
    """Where this host takes Debian from."""
    listed = sh("apt-get", "indextargets", "--format", "$(REPO_URI) $(CODENAME)", "Created-By: Packages")
    return next(uri for uri, codename in map(str.split, listed.splitlines()) if "-" not in codename)


def newer_ipxe() -> pathlib.Path:
    """snponly.efi of the Debian release after the one that the boot server runs."""
    own = CACHE / "trixie"
    if not (own / "usr/lib/ipxe/snponly.efi").exists():
        (own / "lists/partial").mkdir(parents=True, exist_ok=True)
        keyring = "/usr/share/keyrings/debian-archive-keyring.gpg"
        (own / "sources.list").write_text(f"deb [signed-by={keyring}] {_archive()} trixie main\n")
        options = [f"Dir::Etc::sourcelist={own}/sources.list", "Dir::Etc::sourceparts=/dev/null"]
        options += [f"Dir::State::lists={own}/lists", f"Dir::Cache={own}/cache", "APT::Sandbox::User=root"]
        apt = ["apt-get", *(word for option in options for word in ("-o", option))]
        sh(*apt, "update")
        sh(*apt, "download", "ipxe", cwd=own)
        sh("dpkg-deb", "-x", next(own.glob("ipxe_*.deb")), own)
    return own / "usr/lib/ipxe/snponly.efi"


def kernel_package() -> str:
    for line in sh("apt-cache", "depends", "linux-image-amd64").splitlines():
        if "Depends: linux-image" in line:
            return line.split(":")[1].strip()
    raise RuntimeError("apt knows no kernel; run apt-get update")


def cpio(files: dict[str, tuple[bytes, int]]) -> bytes:
    with tempfile.TemporaryDirectory() as place:
        for name, (data, mode) in files.items():
            path = pathlib.Path(place, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
            path.chmod(mode)
        names = "\n".join(["dev", *sorted({p for n in files for p in [str(pathlib.PurePath(n).parent), n]} - {"."})])
        pathlib.Path(place, "dev").mkdir(exist_ok=True)
        done = subprocess.run(
            ["cpio", "-o", "-H", "newc", "--quiet"], input=names.encode(), cwd=place, capture_output=True, check=True
        )
        return done.stdout


def payload() -> tuple[pathlib.Path, pathlib.Path]:
    """The kernel and the ramdisk."""
    unpacked = CACHE / "payload"
    if not (unpacked / "initrd.img").exists():
        unpacked.mkdir(parents=True, exist_ok=True)
        _download(kernel_package(), unpacked)
        _download("busybox-static", unpacked)
        busybox = (unpacked / "bin/busybox").read_bytes()
        (unpacked / "initrd.img").write_bytes(cpio({"init": (INIT.encode(), 0o755), "bin/busybox": (busybox, 0o755)}))
    return next((unpacked / "boot").glob("vmlinuz-*")), unpacked / "initrd.img"
