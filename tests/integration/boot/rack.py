# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The plan that the boot tests work with, in the words of the collection."""

from __future__ import annotations

import pathlib
import shutil
import typing as t

import payload
from lab import BOOT, MIRRORS, Lab, Play

RAMDISK = "ramdisk/x86_64/0123abcd"
OVERLAY = "ramdisk/overlay/4567cdef.cpio"
# What a shell, GRUB or a careless template would damage.
ARGUMENTS = """a="x  ;  y" ; #foo b=$HOME c="q || r" ds=nocloud;s=http://x/ d='1 2' && end"""
COMMAND_LINE = (
    "initrd=initrd.img initrd=overlay.cpio ip=10.31.1.11::10.31.1.1:255.255.255.0:gpu001::off "
    "BOOTIF=01-52-54-00-31-01-0b rack.node=gpu001 rack.action=deploy console=ttyS0,115200n8 " + ARGUMENTS
)

MACS = {f"gpu{number:03}": f"52:54:00:31:01:{10 + number:02x}" for number in range(1, 10)}
SUBNETS = [{"name": "provisioning", "cidr": "10.31.1.0/24", "role": "provisioning"}]
HOSTS = [{"name": name, "mac": mac, "address": f"10.31.1.{10 + int(name[3:])}"} for name, mac in MACS.items()]

ROLES: list[dict[str, t.Any]] = [
    {"name": "netboot", "ansible.builtin.include_role": {"name": "h200.rack.netboot"}},
    {
        "name": "dhcp",
        "ansible.builtin.include_role": {"name": "h200.rack.dhcp"},
        "vars": {"dhcp_hosts": HOSTS, "dhcp_subnets": SUBNETS, "dhcp_boot_server": BOOT},
    },
    {"name": "mirror", "ansible.builtin.include_role": {"name": "h200.rack.mirror"}},
]


def node(name: str, action: str, **more: t.Any) -> dict[str, t.Any]:
    """A node for ipxe_render."""
    return {
        "name": name,
        "mac": MACS[name],
        "action": action,
        "address": f"10.31.1.{10 + int(name[3:])}/24",
        "gateway": "10.31.1.1",
        "console": ["ttyS0,115200n8"],
        "ramdisk": RAMDISK,
        "overlay": OVERLAY,
        "kernel_args": ARGUMENTS,
        **more,
    }


def render(lab: Lab, *nodes: dict[str, t.Any], check: bool = True, **options: t.Any) -> Play:
    """Run ipxe_render as a play would."""
    arguments = {"nodes": list(nodes), "mirrors": [f"http://{mirror}" for mirror in MIRRORS], **options}
    return lab.play([{"name": "The scripts are there", "h200.rack.ipxe_render": arguments}], check=check)


def publish(lab: Lab, kernel: pathlib.Path, initrd: pathlib.Path) -> None:
    """Put the ramdisk and an overlay where the mirror serves them."""
    root = lab.path("/srv/h200-rack/mirror")
    (root / RAMDISK).mkdir(parents=True)
    shutil.copy(kernel, root / RAMDISK / "vmlinuz")
    shutil.copy(initrd, root / RAMDISK / "initrd.img")
    (root / OVERLAY).parent.mkdir(parents=True)
    (root / OVERLAY).write_bytes(payload.cpio({"overlay": (b"of this rack", 0o644)}))
