# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From DHCP ACK to the boot script, and from power-on to the kernel: the roles against a textbook, in one run.

Both serve the same kernel and ramdisk from one host to the same machine (QEMU, TCG, OVMF, Debian's iPXE), in turns.
The textbook is the configuration of the usual how-to: dnsmasq with TFTP, the iPXE binary, a script that begins with
`dhcp` and fetches by HTTP.
"""

from __future__ import annotations

import argparse
import json
import pathlib
import statistics
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "integration" / "boot"))

import payload
import rack
from lab import BOOT, MIRRORS, Lab

# Seconds from DHCP's acknowledgement to the request for the script.
BAR = 3.0
NODE = "gpu001"
MAC = rack.MACS[NODE]

TEXTBOOK_DNSMASQ = f"""\
port=0
interface=prov0
bind-interfaces
dhcp-range=10.31.1.100,10.31.1.200,12h
dhcp-match=set:ipxe,175
dhcp-boot=tag:!ipxe,ipxe/snponly.efi
dhcp-boot=tag:ipxe,http://{BOOT}/boot/textbook.ipxe
enable-tftp
tftp-root=/srv/h200-rack/tftp
log-dhcp
"""
TEXTBOOK_SCRIPT = f"""\
#!ipxe
dhcp
kernel http://{MIRRORS[0]}/{rack.RAMDISK}/vmlinuz initrd=initrd.img console=ttyS0,115200n8
initrd http://{MIRRORS[0]}/{rack.RAMDISK}/initrd.img
boot
"""


def use_roles(lab: Lab) -> str:
    lab.ssh("systemctl", "stop", "textbook.service", "2>/dev/null", "||", "true")
    lab.ssh("systemctl", "start", "dnsmasq", "h200-rack-no-router-here")
    return "/boot/boot.ipxe"


def use_textbook(lab: Lab) -> str:
    lab.ssh("systemctl", "stop", "dnsmasq", "h200-rack-no-router-here")
    lab.ssh("systemd-run", "--unit=textbook", "dnsmasq", "--keep-in-foreground", "--conf-file=/etc/textbook.conf")
    return "/boot/textbook.ipxe"


def measure(lab: Lab, script: str, unit: str) -> dict[str, float]:
    guest = lab.guest(MAC).start()
    kernel = guest.says("Linux version", 300)
    guest.says("PAYLOAD DONE", 120)
    guest.stop()
    asked = next(entry["epoch"] for entry in reversed(lab.log_lines()) if entry["uri"] == script)
    log = lab.ssh("journalctl", "-u", unit, "-o", "short-unix", "--no-pager")
    acks = [float(line.split()[0]) for line in log.splitlines() if "DHCPACK" in line and MAC in line]
    acked = max(ack for ack in acks if ack <= asked)
    return {"ack_to_script": asked - acked, "power_to_kernel": kernel}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    rounds = parser.parse_args().rounds
    taken: dict[str, list[dict[str, float]]] = {"roles": [], "textbook": []}
    with Lab() as lab:
        lab.play(rack.ROLES)
        rack.publish(lab, *payload.payload())
        rack.render(lab, rack.node(NODE, "deploy", kernel_args=""))
        lab.path("/etc/textbook.conf").write_text(TEXTBOOK_DNSMASQ)
        lab.path("/srv/h200-rack/boot/textbook.ipxe").write_text(TEXTBOOK_SCRIPT)
        for _round in range(rounds):
            taken["textbook"].append(measure(lab, use_textbook(lab), "textbook"))
            taken["roles"].append(measure(lab, use_roles(lab), "dnsmasq"))
    raise SystemExit(report(taken))


def report(taken: dict[str, list[dict[str, float]]]) -> int:
    print(json.dumps(taken, indent=1))
    print("binary: snponly.efi of Debian 12, iPXE 1.0.0+git-20190125; firmware: OVMF under TCG, PXE over IPv4")
    for what in ("ack_to_script", "power_to_kernel"):
        medians = {name: statistics.median(run[what] for run in runs) for name, runs in taken.items()}
        ratio = statistics.median(ours[what] / theirs[what] for ours, theirs in zip(taken["roles"], taken["textbook"]))
        print(f"{what}: roles {medians['roles']:.2f} s, textbook {medians['textbook']:.2f} s, ratio {ratio:.2f}")
    seconds = statistics.median(run["ack_to_script"] for run in taken["roles"])
    print(f"bar: {seconds:.2f} s of {BAR:g} s, {'met' if seconds <= BAR else 'MISSED'}")
    return int(seconds > BAR)


if __name__ == "__main__":
    main()
