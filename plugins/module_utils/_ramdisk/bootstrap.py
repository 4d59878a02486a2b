# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Unpacks a small Debian system, its kernel and its firmware, each into a folder. Private to h200.rack."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
import typing as t
import urllib.error
from dataclasses import asdict, dataclass

from ansible.module_utils.urls import open_url
from ansible_collections.h200.rack.plugins.module_utils._common.atomic import read_or_none, write_atomic
from ansible_collections.h200.rack.plugins.module_utils._common.errors import InvalidInput, RackError

STAMP = "inputs.json"

# Kernel and firmware are only unpacked: installing them would bring an initramfs builder and its hooks along.
FETCH = r"""
set -eu
root=$1 out=$2 kernel=$3
shift 3
fetch() { # FOLDER PACKAGE
  mkdir -p "$root/var/tmp/fetch" "$out/$1"
  chmod 1777 "$root/var/tmp/fetch"
  chroot "$root" sh -c 'cd /var/tmp/fetch && exec apt-get -q download "$1"' - "$2"
  for deb in "$root"/var/tmp/fetch/*.deb; do dpkg-deb -x "$deb" "$out/$1"; done
  rm -r "$root/var/tmp/fetch"
}
concrete=$(chroot "$root" apt-cache depends "$kernel" | sed -n 's/^ *Depends: \(linux-image-[^ ]*\)$/\1/p' | head -n 1)
fetch kernel "${concrete:-$kernel}"
mkdir -p "$out/firmware"
for package in "$@"; do
  if [ -n "$(chroot "$root" apt-cache madison "$package")" ]; then fetch firmware "$package"; fi
done
"""

_NEVER_USED = (
    "/usr/share/doc/*",
    "/usr/share/man/*",
    "/usr/share/info/*",
    "/usr/share/locale/*",
    "/usr/share/lintian/*",
)


@dataclass(frozen=True)
class System:
    """What to unpack, and where to."""

    dest: str
    suite: str
    mirror: str
    security_mirror: str
    arch: str
    packages: t.Sequence[str]
    kernel: str
    firmware: t.Sequence[str] = ()
    hooks: t.Sequence[str] = ()


def inputs(system: System) -> bytes:
    """What the folder is made of; the same bytes mean that there is nothing to do."""
    fields = asdict(system)
    fields.pop("dest")
    return json.dumps({**fields, "fetch": FETCH}, sort_keys=True).encode() + b"\n"


def is_current(system: System) -> bool:
    return read_or_none(os.path.join(system.dest, STAMP)) == inputs(system)


def _run(command: t.Sequence[str], **options: t.Any) -> subprocess.CompletedProcess[bytes]:
    given = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, **options}
    return subprocess.run(command, check=False, **given)  # pylint: disable=ansible-bad-function  # no AnsibleModule here


def own_mirrors(codename: str, listed: str) -> tuple[str, str]:
    """The mirrors of release and security fixes in what ``apt-get indextargets`` lists, a suite and an URI a line."""
    found = {}
    for line in listed.splitlines():
        suite, _blank, uri = line.partition(" ")
        found.setdefault(suite, uri.strip().rstrip("/"))
    if not codename or codename not in found:
        raise InvalidInput("mirror: this host names no package source of its own release, so it has to be given")
    return found[codename], found.get(f"{codename}-security", "")


def with_own_mirrors(options: t.Mapping[str, t.Any]) -> dict[str, t.Any]:
    """The options, with the host's own mirrors in the place of those that are not given."""
    if options["mirror"] and options["security_mirror"] is not None:
        return dict(options)
    release = dict(
        line.split("=", 1) for line in (read_or_none("/etc/os-release") or b"").decode().splitlines() if "=" in line
    )
    told = _run(["apt-get", "indextargets", "--format", "$(CODENAME) $(REPO_URI)", "Created-By: Packages"])
    mirror, security = own_mirrors(release.get("VERSION_CODENAME", "").strip('"'), told.stdout.decode())
    given = options["security_mirror"]
    return {
        **options,
        "mirror": options["mirror"] or mirror,
        "security_mirror": security if given is None else given,
    }


def sources(system: System, has: t.Callable[[str], bool]) -> list[str]:
    """The apt sources: release, updates and security fixes, with the firmware component where there is one."""
    lines = []
    for base, suite in (
        (system.mirror, system.suite),
        (system.mirror, f"{system.suite}-updates"),
        (system.security_mirror, f"{system.suite}-security"),
    ):
        if not base:
            continue
        url = f"{base.rstrip('/')}/dists/{suite}/{{}}/binary-{system.arch}/Release"
        if not has(url.format("main")):
            if suite == system.suite:
                raise InvalidInput(f"mirror: {base} has no suite {suite} for {system.arch}, or cannot be reached")
            continue
        firmware = " non-free-firmware" if has(url.format("non-free-firmware")) else ""
        lines.append(f"deb {base} {suite} main{firmware}")
    return lines


def answers(url: str) -> bool:
    """Whether there is something at this address."""
    try:
        with open_url(url, method="HEAD", timeout=30):
            return True
    except (urllib.error.URLError, OSError):
        return False


def command(system: System, lines: t.Sequence[str], script: str, staging: str) -> list[str]:
    """The call of mmdebstrap."""
    fetch = f'sh {script} "$1" {staging} {system.kernel} {" ".join(system.firmware)}'
    return [
        "mmdebstrap",
        "--variant=minbase",
        f"--architectures={system.arch}",
        f"--include={','.join(system.packages)}",
        '--aptopt=APT::Install-Recommends "false"',
        "--aptopt=Acquire::Check-Valid-Until false",
        *(f"--dpkgopt=path-exclude={path}" for path in _NEVER_USED),
        *(f"--customize-hook={hook}" for hook in system.hooks),
        f"--customize-hook={fetch}",
        system.suite,
        os.path.join(staging, "tree"),
        *lines,
    ]


def build(system: System) -> None:
    """Unpack the system into ``dest``/{tree,kernel,firmware}, in place of what was there. Raises RackError."""
    parent = os.path.dirname(os.path.abspath(system.dest))
    with tempfile.TemporaryDirectory(prefix=".bootstrap-", dir=parent) as staging:
        os.chmod(staging, 0o755)
        script = os.path.join(staging, "fetch")
        with open(script, "w", encoding="utf-8") as handle:
            handle.write(FETCH)
        call = command(system, sources(system, answers), script, staging)
        done = _run(call, stderr=subprocess.STDOUT)
        if done.returncode != 0:
            output = done.stdout.decode("utf-8", "replace").strip()
            raise RackError(f"mmdebstrap failed: {output[-3000:]}", code="build")
        os.unlink(script)
        write_atomic(os.path.join(staging, STAMP), inputs(system))
        if os.path.lexists(system.dest):
            shutil.rmtree(system.dest)
        os.mkdir(system.dest)
        for name in ("tree", "kernel", "firmware", STAMP):  # the stamp last: what it vouches for is there
            os.rename(os.path.join(staging, name), os.path.join(system.dest, name))
