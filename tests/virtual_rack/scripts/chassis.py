#!/usr/bin/python3
# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What ipmi_sim runs to act on its chassis, a libvirt domain.

    chassis.py HOME get power | get boot
    chassis.py HOME set power 0|1 | set reset 1 | set shutdown 1 | set boot none|pxe|default

HOME is the BMC's folder, named for the node. "default" is IPMI's word for the default hard disk. An override counts
for one boot, as on a real BMC: the domain starts in its order, and is told at once to use its own at the next reset,
which a reboot from inside the guest is too.
"""

from __future__ import annotations

import json
import pathlib
import sys
import xml.etree.ElementTree as ET

import libvirt
import libvirt_qemu

OVERRIDES = ("pxe", "default")


class Chassis:
    def __init__(self, home: pathlib.Path) -> None:
        self.connection = libvirt.open("qemu:///system")
        self.domain = self.connection.lookupByName(home.name)
        self.override = home / "boot-override"

    def boot(self) -> str:
        return self.override.read_text().strip() if self.override.exists() else "none"

    def set_boot(self, device: str) -> None:
        if device == "none":
            self.override.unlink(missing_ok=True)
        elif device in OVERRIDES:
            self.override.write_text(device + "\n")
        else:
            raise SystemExit(f"this chassis cannot boot from {device}")

    def set_power(self, on: bool) -> None:
        if on and not self.domain.isActive():
            self.start()
        elif not on and self.domain.isActive():
            self.domain.destroy()

    def reset(self) -> None:
        if not self.domain.isActive():
            return
        if self.boot() == "none":
            self.domain.reset()
        else:   # the order of devices is read when the machine is made
            self.domain.destroy()
            self.start()

    def shutdown(self) -> None:
        if self.domain.isActive():
            self.domain.shutdown()

    def start(self) -> None:
        device = self.boot()
        own = self.domain.XMLDesc(libvirt.VIR_DOMAIN_XML_INACTIVE | libvirt.VIR_DOMAIN_XML_SECURE)
        if device == "none":
            self.domain.create()
            return
        try:
            self.domain = self.connection.defineXML(reordered(own, "interface" if device == "pxe" else "disk"))
            self.domain.create()
        finally:
            self.domain = self.connection.defineXML(own)
        self.override.unlink(missing_ok=True)
        self.use_own_order_from_next_reset(own)

    def use_own_order_from_next_reset(self, own: str) -> None:
        live = ET.fromstring(self.domain.XMLDesc())
        wanted = orders(ET.fromstring(own))
        aliases = {address_of(device): device.find("alias").get("name") for device in bootable(live)}
        # An order is taken by one device at a time: give up all before taking any.
        for alias in aliases.values():
            self.set_boot_index(alias, -1)
        for address, order in wanted.items():
            self.set_boot_index(aliases[address], order)

    def set_boot_index(self, alias: str, index: int) -> None:
        command = {"execute": "qom-set", "arguments": {
            "path": f"/machine/peripheral/{alias}", "property": "bootindex", "value": index}}  # fmt: skip
        answer = json.loads(libvirt_qemu.qemuMonitorCommand(self.domain, json.dumps(command), 0))
        if "error" in answer:
            raise SystemExit(f"{alias}: {answer['error']}")


def bootable(domain: ET.Element) -> list[ET.Element]:
    devices = domain.find("devices")
    return [*devices.findall("disk"), *devices.findall("interface")]


def address_of(device: ET.Element) -> str:
    """What names a device in the definition and in the running domain alike."""
    name = device.find("mac").get("address") if device.tag == "interface" else device.find("target").get("dev")
    return f"{device.tag} {name}"


def orders(domain: ET.Element) -> dict[str, int]:
    return {address_of(device): int(device.find("boot").get("order"))
            for device in bootable(domain) if device.find("boot") is not None}  # fmt: skip


def reordered(definition: str, first: str) -> str:
    """The definition with all devices of one kind first in the boot order, and the others behind."""
    domain = ET.fromstring(definition)
    devices = sorted(bootable(domain), key=lambda device: device.tag != first)
    for number, device in enumerate(devices, start=1):
        for boot in device.findall("boot"):
            device.remove(boot)
        ET.SubElement(device, "boot", order=str(number))
    return ET.tostring(domain, encoding="unicode")


def main(argv: list[str]) -> None:
    chassis = Chassis(pathlib.Path(argv[1]))
    verb, what, value = argv[2], argv[3], argv[4] if len(argv) > 4 else ""
    if (verb, what) == ("get", "power"):
        print(f"power:{chassis.domain.isActive()}")
    elif (verb, what) == ("get", "boot"):
        print(f"boot:{chassis.boot()}")
    elif (verb, what) == ("set", "power"):
        chassis.set_power(value == "1")
    elif (verb, what) == ("set", "boot"):
        chassis.set_boot(value)
    elif (verb, what) == ("set", "reset"):
        chassis.reset()
    elif (verb, what) == ("set", "shutdown"):
        chassis.shutdown()
    elif (verb, what) != ("set", "identify"):   # there is no lamp to light
        raise SystemExit(f"cannot {verb} {what}")


if __name__ == "__main__":
    main(sys.argv)
