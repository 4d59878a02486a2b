# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Let the nodes of the virtual rack read their boot order at every reset, as firmware does.

libvirt reads it when it makes the machine only, so a node that reboots itself would still go by what its BMC said at
power-on. This daemon watches the definitions, which the BMCs write, and tells the running machine what changed; QEMU
hands it to the firmware at the next reset.

It also keeps the second card out of the order: a server's setup names the card that boots, and firmware that tried the
production network after a boot script said `exit` would wait there for minutes.
"""

from __future__ import annotations

import json
import sys
import xml.etree.ElementTree as ET

import libvirt
import libvirt_qemu

NEVER = -1  # QEMU's word for a device that is not in the order


def devices(domain: ET.Element) -> dict[str, ET.Element]:
    """Bootable devices by what names them in a definition and in the running machine alike."""
    found = {}
    for device in domain.find("devices"):
        if device.tag == "disk":
            found["disk " + device.find("target").get("dev")] = device
        elif device.tag == "interface":
            found["card " + device.find("mac").get("address")] = device
    return found


def without_second_card(definition: str) -> str | None:
    """The definition with its first card only in the boot order; None where it is so already."""
    domain = ET.fromstring(definition)
    found = [(card, card.find("boot")) for card in domain.findall("devices/interface")[1:]]
    unwanted = [(card, boot) for card, boot in found if boot is not None]
    for card, boot in unwanted:
        card.remove(boot)
    return ET.tostring(domain, encoding="unicode") if unwanted else None


def set_boot_index(domain: libvirt.virDomain, alias: str, index: int) -> None:
    command = {"execute": "qom-set", "arguments": {
        "path": f"/machine/peripheral/{alias}", "property": "bootindex", "value": index}}  # fmt: skip
    answer = json.loads(libvirt_qemu.qemuMonitorCommand(domain, json.dumps(command), 0))
    if "error" in answer:
        raise RuntimeError(f"{domain.name()} {alias}: {answer['error']}")


def tell_machine(domain: libvirt.virDomain) -> None:
    wanted = devices(ET.fromstring(domain.XMLDesc(libvirt.VIR_DOMAIN_XML_INACTIVE)))
    running = devices(ET.fromstring(domain.XMLDesc()))
    aliases = {name: device.find("alias").get("name") for name, device in running.items()}
    # An order is held by one device at a time: all give up theirs before any takes one.
    for alias in aliases.values():
        set_boot_index(domain, alias, NEVER)
    for name, device in wanted.items():
        boot = device.find("boot")
        if boot is not None and name in aliases:
            set_boot_index(domain, aliases[name], int(boot.get("order")))


def follow(connection: libvirt.virConnect, domain: libvirt.virDomain, event: int, *_: object) -> None:
    if event not in (libvirt.VIR_DOMAIN_EVENT_DEFINED, libvirt.VIR_DOMAIN_EVENT_STARTED):
        return
    try:
        flags = libvirt.VIR_DOMAIN_XML_INACTIVE | libvirt.VIR_DOMAIN_XML_SECURE
        better = without_second_card(domain.XMLDesc(flags))
        if better:
            connection.defineXML(better)  # which is an event, too
        elif domain.isActive():
            tell_machine(domain)
    except (libvirt.libvirtError, RuntimeError) as error:  # it may have been switched off meanwhile
        print(error, flush=True)


def main() -> None:
    libvirt.virEventRegisterDefaultImpl()
    libvirt.registerErrorHandler(lambda *_: None, None)
    connection = libvirt.open("qemu:///system")
    connection.domainEventRegisterAny(None, libvirt.VIR_DOMAIN_EVENT_ID_LIFECYCLE, follow, None)
    connection.registerCloseCallback(lambda *_: sys.exit("libvirtd went away"), None)
    print("ready", flush=True)
    while connection.isAlive():
        libvirt.virEventRunDefaultImpl()


if __name__ == "__main__":
    main()
