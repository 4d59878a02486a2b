# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Build a raw GPT disk image of Debian or Ubuntu with mmdebstrap: build_image.py SPEC.json OUTPUT.raw

Neither loop devices nor mounts of the image are needed: the EFI system partition is filled by mtools, the root file
system by mke2fs, so this runs in a container and in CI. The image appears under its name only when it is complete.
"""

from __future__ import annotations

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import typing as t
import uuid

MIB = 1 << 20
ESP_MIB = 64
# Where the first partition begins, and room for the second partition table.
HEAD_MIB, TAIL_MIB = 1, 1
ESP_TYPE = "C12A7328-F81F-11D2-BA4B-00A0C93EC93B"
# https://uapi-group.org/specifications/specs/discoverable_partitions_specification/
ROOT_TYPE = {"amd64": "4F68BCE3-E8CD-4DB1-96E7-FBCAF984B709", "arm64": "B921B045-1DF0-41C3-AF44-4C6F280D3FAE"}
EFI_NAME = {"amd64": "x64", "arm64": "aa64"}

GRUB_STUB = """\
search.fs_uuid {root} root
set prefix=($root)'/boot/grub'
configfile $prefix/grub.cfg
"""

# What Debian's own update-grub replaces on the running system; /vmlinuz and /initrd.img follow kernel upgrades.
GRUB_CFG = """\
set timeout=0
# Servers without a screen: GRUB would look for a video mode first.
terminal_output console
set gfxpayload=text
search --no-floppy --fs-uuid --set=root {root}
linux /vmlinuz root=UUID={root} ro {arguments}
initrd /initrd.img
boot
"""


# cloud-init's stage behind the network, under the names it had and has. A seed of h200.rack is complete on the disk and
# applied before the network, so neither SSH nor the login waits for a stage that has nothing left to do.
NETWORK_STAGE = ("cloud-init.service", "cloud-init-network.service")
NOT_HELD_UP = ("sshd.service", "sshd-keygen.service", "sysinit.target", "systemd-user-sessions.service")


def run(*command: str, **options: t.Any) -> None:
    subprocess.run(command, check=True, **options)


def identifier(spec: dict[str, t.Any], what: str) -> str:
    """The same image has the same identifiers, whenever it is built."""
    return str(uuid.uuid5(uuid.NAMESPACE_URL, f"h200.rack/{spec['name']}/{spec['version']}/{what}"))


def own_sources(suite: str) -> list[str]:
    """The build host's package sources, with the suite that is wanted in the place of the host's own."""
    release = dict(
        line.split("=", 1) for line in pathlib.Path("/etc/os-release").read_text().splitlines() if "=" in line
    )
    own = release.get("VERSION_CODENAME", "").strip('"')
    listed = subprocess.run(
        ["apt-get", "indextargets", "--format", "$(REPO_URI) $(CODENAME) $(COMPONENT)", "Created-By: Packages"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    sources = set()
    for line in listed.splitlines():
        uri, codename, component = line.split()
        # backports and the like are not part of a release
        if own and codename in (own, f"{own}-updates", f"{own}-security"):
            sources.add(f"deb {uri} {suite}{codename[len(own) :]} {component}")
    if not sources:
        raise SystemExit("build_image: the host names no package sources of its release; set os_image_apt_sources")
    return sorted(sources)


def bootstrap(spec: dict[str, t.Any], tree: pathlib.Path, work: pathlib.Path) -> None:
    """Fill the tree with the distribution, its packages and the files of the role."""
    sources = work / "sources.list"
    sources.write_text("\n".join(spec["apt_sources"] or own_sources(spec["suite"])) + "\n")
    command = [
        "mmdebstrap",
        "--variant=minbase",
        f"--architectures={spec['arch']}",
        f"--include={','.join(spec['packages'])}",
        "--dpkgopt=path-exclude=/usr/share/man/*",
        "--dpkgopt=path-exclude=/usr/share/locale/*",
        # The archive's own expiry date says nothing about a mirror that is frozen on purpose.
        "--aptopt=Acquire::Check-Valid-Until false",
        # The file system is there before any package, so that what they find and make fits it.
        '--essential-hook=mkdir -p "$1/etc/initramfs-tools/conf.d" "$1/boot/grub"',
        f"--essential-hook=copy-in {work}/rack.conf /etc/initramfs-tools/conf.d",
        # One datasource is configured: what looks for others in a shell script at every boot has nothing to find.
        '--customize-hook=chroot "$1" dpkg-statoverride --update --add root root 0644 /usr/lib/cloud-init/ds-identify',
    ]
    if spec["initramfs_modules"]:
        (work / "rack-modules").write_text("\n".join(spec["initramfs_modules"]) + "\n")
        command += [
            '--essential-hook=mkdir -p "$1/usr/share/initramfs-tools/modules.d"',
            f"--essential-hook=copy-in {work}/rack-modules /usr/share/initramfs-tools/modules.d",
        ]
    for number, package in enumerate(spec["debs"]):
        command += [
            f"--customize-hook=upload {package} /var/tmp/{number}.deb",
            f'--customize-hook=chroot "$1" apt-get install --yes --no-install-recommends /var/tmp/{number}.deb',
            f'--customize-hook=rm "$1/var/tmp/{number}.deb"',
        ]
    initramfs = work / "rack.conf"
    initramfs.write_text(f"COMPRESS=zstd\nCOMPRESSLEVEL=6\nMODULES={'list' if spec['initramfs_modules'] else 'most'}\n")
    run(*command, spec["suite"], str(tree), str(sources))


def put(tree: pathlib.Path, path: str, content: str, mode: int = 0o644) -> None:
    target = tree / path.lstrip("/")
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(content)
    target.chmod(mode)


def configure(spec: dict[str, t.Any], tree: pathlib.Path, root: str, esp: str) -> None:
    """Make the tree a system that has never been started: no identity, no keys, everything by its seed."""
    put(tree, "/etc/fstab", f"UUID={root} / ext4 defaults 0 1\nUUID={esp} /boot/efi vfat umask=0077,nofail 0 1\n")
    (tree / "boot/efi").mkdir(exist_ok=True)
    put(tree, "/etc/hostname", "localhost\n")
    put(tree, "/etc/machine-id", "")
    for path, content in spec["files"].items():
        put(tree, path, content)
    put(tree, "/boot/grub/grub.cfg", GRUB_CFG.format(root=root, arguments=spec["kernel_arguments"]))
    put(
        tree,
        "/etc/default/grub.d/50-h200-rack.cfg",
        f'GRUB_TIMEOUT=0\nGRUB_CMDLINE_LINUX_DEFAULT="{spec["kernel_arguments"]}"\nGRUB_DISABLE_OS_PROBER=true\n',
    )
    release_login(tree)
    for key in (tree / "etc/ssh").glob("ssh_host_*"):
        key.unlink()
    # A key that every copy of an image shares is no secret.
    (tree / "etc/munge/munge.key").unlink(missing_ok=True)
    for verb, units in (("enable", spec["enable"]), ("disable", spec["disable"]), ("mask", spec["mask"])):
        for unit in units:
            run("systemctl", f"--root={tree}", "--quiet", verb, unit)
    for path in ("var/cache/apt/archives", "var/lib/apt/lists", "var/log"):
        for left in (tree / path).glob("*"):
            if left.is_file():
                left.unlink()


def release_login(tree: pathlib.Path) -> None:
    """Copies of the units of cloud-init's network stage that come before nothing but the network's users."""
    early = {f"Before={unit}" for unit in NOT_HELD_UP}
    for name in NETWORK_STAGE:
        unit = tree / "usr/lib/systemd/system" / name
        if unit.is_file() and not unit.is_symlink():
            kept = [line for line in unit.read_text().splitlines() if line not in early]
            put(tree, f"/etc/systemd/system/{name}", "\n".join(kept) + "\n")


def kernel_of(tree: pathlib.Path) -> str:
    versions = sorted(path.name for path in (tree / "lib/modules").iterdir())
    if not versions:
        raise SystemExit("build_image: no kernel in the image; name one in os_image_packages")
    return versions[-1]


def make_esp(spec: dict[str, t.Any], tree: pathlib.Path, image: pathlib.Path, root: str, esp: str) -> None:
    """The signed chain shim, GRUB; under the distribution's name and under the one that firmware falls back to."""
    name = EFI_NAME[spec["arch"]]
    shim = tree / f"usr/lib/shim/shim{name}.efi.signed"
    grub_directory = {"amd64": "x86_64-efi-signed", "arm64": "arm64-efi-signed"}[spec["arch"]]
    grub = tree / f"usr/lib/grub/{grub_directory}/grub{name}.efi.signed"
    make = ["mkfs.vfat", "-F", "32", "-s", "1", "-n", "ESP", "-i", esp.replace("-", ""), "-C"]
    run(*make, str(image), str(ESP_MIB * 1024), stdout=subprocess.DEVNULL)
    stub = image.with_suffix(".cfg")
    stub.write_text(GRUB_STUB.format(root=root))
    vendor = spec["efi_vendor"]
    run("mmd", "-i", str(image), "::/EFI", "::/EFI/BOOT", f"::/EFI/{vendor}")
    for source, target in (
        (shim, f"EFI/BOOT/BOOT{name.upper()}.EFI"),
        (grub, f"EFI/BOOT/grub{name}.efi"),
        (shim, f"EFI/{vendor}/shim{name}.efi"),
        (grub, f"EFI/{vendor}/grub{name}.efi"),
        # The signed GRUB looks in its distribution's directory, wherever it was started from.
        (stub, f"EFI/{vendor}/grub.cfg"),
    ):
        run("mcopy", "-i", str(image), str(source), f"::/{target}")


def make_root(tree: pathlib.Path, image: pathlib.Path, root: str, spare_mib: int) -> int:
    """The root file system with room for a first boot; it grows to its disk there. Returns its size in MiB."""
    counted = subprocess.run(["du", "-sm", "--apparent-size", str(tree)], check=True, capture_output=True)
    used = int(counted.stdout.split()[0])
    size = used + used // 8 + spare_mib
    run("mke2fs", "-q", "-t", "ext4", "-L", "rack-root", "-U", root, "-E", f"hash_seed={root}", "-d", str(tree),
        str(image), f"{size}M")  # fmt: skip
    return size


def assemble(spec: dict[str, t.Any], raw: pathlib.Path, esp: pathlib.Path, root: pathlib.Path, root_mib: int) -> None:
    """A partition table, and the two file systems at their places; holes stay holes."""
    total = HEAD_MIB + ESP_MIB + root_mib + TAIL_MIB
    with open(raw, "wb") as handle:
        handle.truncate(total * MIB)
    table = "\n".join(
        (
            "label: gpt",
            f"label-id: {identifier(spec, 'disk')}",
            f"start={HEAD_MIB}MiB, size={ESP_MIB}MiB, type={ESP_TYPE}, uuid={identifier(spec, 'part1')}, name=esp",
            f"start={HEAD_MIB + ESP_MIB}MiB, size={root_mib}MiB, type={ROOT_TYPE[spec['arch']]}, "
            f"uuid={identifier(spec, 'part2')}, name=root",
        )
    )
    run("sfdisk", "--quiet", str(raw), input=table.encode())
    for part, offset in ((esp, HEAD_MIB), (root, HEAD_MIB + ESP_MIB)):
        run("dd", f"if={part}", f"of={raw}", "bs=1M", f"seek={offset}", "conv=notrunc,sparse", "status=none")


def main() -> None:
    spec = json.loads(pathlib.Path(sys.argv[1]).read_text())
    output = pathlib.Path(sys.argv[2]).resolve()
    os.environ.setdefault("SOURCE_DATE_EPOCH", "1764460800")
    root = identifier(spec, "root")
    esp = identifier(spec, "esp")[:8]
    with tempfile.TemporaryDirectory(prefix=".build-", dir=output.parent) as name:
        work = pathlib.Path(name)
        tree = work / "tree"
        bootstrap(spec, tree, work)
        configure(spec, tree, root, f"{esp[:4]}-{esp[4:]}".upper())
        kernel = kernel_of(tree)
        make_esp(spec, tree, work / "esp", root, esp)
        root_mib = make_root(tree, work / "root", root, spec["spare_mib"])
        raw = work / "image.raw"
        assemble(spec, raw, work / "esp", work / "root", root_mib)
        raw.replace(output)
        shutil.rmtree(tree)
    print(json.dumps({"image": str(output), "kernel": kernel, "bytes": output.stat().st_size}))


if __name__ == "__main__":
    main()
