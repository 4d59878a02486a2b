# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What ipmi_sim runs to act on its chassis, a libvirt domain.

    chassis.py HOME get power | get boot
    chassis.py HOME set power 0|1 | set reset 1 | set shutdown 1 | set boot none|pxe|default

HOME is the BMC's folder, named for the node. "default" is IPMI's word for the default hard disk. An override counts
for one boot, as on a real BMC: the domain starts in its order and has its own order back at once, which boot_order.py
hands to the machine for its next reset.
"""

from __future__ import annotations

import pathlib
import sys
import xml.etree.ElementTree as ET

import libvirt

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
        else:  # the order of devices is read when the machine is made
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
        # The domain's own definition comes back whatever happens in between.
        try:
            self.domain = self.connection.defineXML(reordered(own, "interface" if device == "pxe" else "disk"))
            self.domain.create()
        finally:
            self.domain = self.connection.defineXML(own)
        self.override.unlink(missing_ok=True)


def reordered(definition: str, first: str) -> str:
    """The definition with the first card and the disks in the boot order, one kind of device before the other."""
    domain = ET.fromstring(definition)
    devices = [*domain.findall("devices/disk"), *domain.findall("devices/interface")[:1]]
    for number, device in enumerate(sorted(devices, key=lambda device: device.tag != first), start=1):
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
    elif (verb, what) != ("set", "identify"):  # there is no lamp to light
        raise SystemExit(f"cannot {verb} {what}")


if __name__ == "__main__":
    main(sys.argv)
