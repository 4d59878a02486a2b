# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Machines boot from what the roles set up: firmware, DHCP, iPXE, script, kernel."""

from __future__ import annotations

import shutil

import payload
import pytest
import rack
from ansible_collections.h200.rack.plugins.module_utils._boot.rotation import rotate
from lab import BOOT, MIRRORS, Lab

pytestmark = pytest.mark.usefixtures("machines")

# OVMF names it when it starts the second in its order, the disk; its only other entries are the network's.
DISK = 'BdsDxe: starting Boot0001 "UEFI Non-Block Boot Device"'


def served(lab: Lab, since: int) -> list[tuple[str, str]]:
    """(address of the server, URI) of what nginx sent since then, without the refusals."""
    return [(e["server"].split(":")[0], e["uri"]) for e in lab.log_lines()[since:] if e["status"] == 200]


def test_uefi_pxe_reaches_the_ramdisk_with_every_argument_unchanged(lab):
    rack.render(lab, rack.node("gpu001", "deploy"))
    guest = lab.guest(rack.MACS["gpu001"]).start()
    guest.says("PAYLOAD DONE", 180)
    said = guest.console()
    assert f" {rack.COMMAND_LINE}>" in said
    # Both initrds reached the kernel.
    assert "OVERLAY<of this rack>" in said


def test_nothing_waits_for_ipv6_between_dhcp_and_the_script(lab):
    """iPXE of 2019 waits some 15 s for a router where nobody answers it. What it takes is the benchmark's matter."""
    rack.render(lab, rack.node("gpu009", "local"))
    guest = lab.guest(rack.MACS["gpu009"]).start()
    acked = guest.says("Filename: http://", 180)
    assert guest.says("boots from its own disk", 60) - acked < 10
    log = lab.ssh("journalctl", "-u", "dnsmasq", "-o", "short-unix", "--no-pager").splitlines()
    asked = next(entry["epoch"] for entry in lab.log_lines()[::-1] if entry["uri"] == "/boot/boot.ipxe")
    acks = [float(line.split()[0]) for line in log if "DHCPACK" in line and rack.MACS["gpu009"] in line]
    assert asked - max(ack for ack in acks if ack <= asked) < 10


@pytest.mark.full
def test_uefi_http_boot_starts_from_a_url(lab):
    rack.render(lab, rack.node("gpu002", "rescue"))
    before = len(lab.log_lines())
    guest = lab.guest(rack.MACS["gpu002"], boot="http").start()
    guest.says("PAYLOAD DONE", 240)
    assert "rack.action=rescue" in guest.console()
    assert (BOOT, "/ipxe/snponly.efi") in served(lab, before)


@pytest.mark.full
def test_bios_pxe_reaches_the_ramdisk(lab):
    """The card's own iPXE is the first stage here, so it gets the script and no second iPXE."""
    rack.render(lab, rack.node("gpu003", "deploy"))
    guest = lab.guest(rack.MACS["gpu003"], firmware="bios").start()
    guest.says("PAYLOAD DONE", 180)
    said = guest.console()
    assert rack.ARGUMENTS in said
    assert "OVERLAY<of this rack>" in said


def test_the_first_mirror_is_dead_and_the_second_serves(lab):
    rack.render(lab, rack.node("gpu004", "deploy"))
    first, second = (url.removeprefix("http://") for url in rotate("gpu004", [f"http://{m}" for m in MIRRORS]))
    before = len(lab.log_lines())
    with lab.dead(first):
        lab.guest(rack.MACS["gpu004"]).start().says("PAYLOAD DONE", 240)
    assert {address for address, uri in served(lab, before) if uri.startswith("/ramdisk")} == {second}


@pytest.mark.full
def test_both_mirrors_die_and_come_back(lab):
    rack.render(lab, rack.node("gpu005", "deploy"))
    guest = lab.guest(rack.MACS["gpu005"]).start()
    with lab.dead(MIRRORS[0]), lab.dead(MIRRORS[1]):
        guest.says("gpu005: not booted, round 1 of 20", 240)
    guest.says("PAYLOAD DONE", 240)


def test_a_node_of_the_plan_goes_on_to_its_disk_when_its_script_says_local(lab):
    """exit 1: UEFI tries what comes next in its order, here HTTP boot, which hears the same, and then the disk."""
    rack.render(lab, rack.node("gpu006", "local"))
    before = len(lab.log_lines())
    guest = lab.guest(rack.MACS["gpu006"]).start()
    left = guest.says("gpu006: boots from its own disk", 180)
    assert guest.says(DISK, 60) > left
    assert not [uri for _address, uri in served(lab, before) if uri.startswith("/ramdisk")]


@pytest.mark.full
def test_local_reaches_the_disk_also_past_pxe_over_ipv6(lab):
    """OVMF as it comes waits more than a minute for a DHCPv6 server, and still comes to the disk."""
    rack.render(lab, rack.node("gpu006", "local"))
    guest = lab.guest(rack.MACS["gpu006"], ipv6=True).start()
    left = guest.says("gpu006: boots from its own disk", 180)
    assert guest.says(DISK, 180) > left


@pytest.mark.full
def test_a_bios_goes_on_to_its_disk_when_the_script_says_local(lab):
    """exit 0: a BIOS tries what comes next after a success."""
    rack.render(lab, rack.node("gpu006", "local"))
    lab.guest(rack.MACS["gpu006"], firmware="bios").start().says("DISK RUNS", 120)


def test_a_machine_without_a_script_does_what_unknown_action_says(lab):
    guest = lab.guest(rack.MACS["gpu007"]).start()
    guest.says(f"h200.rack: {rack.MACS['gpu007']} is not in the plan, boots from its own disk", 180)


@pytest.mark.full
def test_a_script_that_leads_back_to_the_entry_ends(lab):
    loop = f"#!ipxe\nchain --replace http://{BOOT}/boot/boot.ipxe ||\nexit 1\n"
    name = rack.MACS["gpu008"].replace(":", "-") + ".ipxe"
    lab.path(f"/srv/h200-rack/boot/{name}").write_text(loop)
    before = len(lab.log_lines())
    guest = lab.guest(rack.MACS["gpu008"]).start()
    ended = guest.says("a boot script led back to boot.ipxe, this boot ends here", 180)
    assert guest.says(DISK, 60) > ended
    # PXE and HTTP boot each took the entry twice, and then it was over.
    entries = [uri for _address, uri in served(lab, before) if uri == "/boot/boot.ipxe"]
    assert len(entries) == 4


def test_a_bmc_that_ignores_once_does_not_reinstall(lab):
    """The machine boots from the network again and again; what it does there follows from its state."""
    rack.render(lab, rack.node("gpu001", "deploy"))
    guest = lab.guest(rack.MACS["gpu001"], reboots=True).start()
    guest.says("Linux version", 240)
    rack.render(lab, rack.node("gpu001", "local"))
    done = guest.says("PAYLOAD DONE", 60)
    left = guest.says("gpu001: boots from its own disk", 240)
    assert guest.says(DISK, 60) > left > done
    assert sum("PAYLOAD DONE" in line for _second, line in guest.lines) == 1


@pytest.mark.full
def test_a_node_boots_a_binary_of_the_site_s_own_that_can_do_more(lab):
    """Debian 13's iPXE: told to one node only, takes autoexec.ipxe from beside itself, and can switch off."""
    site = lab.path("/srv/site")
    site.mkdir()
    shutil.copy(payload.newer_ipxe(), site / "newer.efi")
    hosts = [{**host, **({"ipxe_binary": "ipxe/newer.efi"} if host["name"] == "gpu002" else {})} for host in rack.HOSTS]
    netboot = {**rack.ROLES[0], "vars": {"netboot_binaries": {"newer.efi": "/srv/site/newer.efi"}}}
    dhcp = {**rack.ROLES[1], "vars": {**rack.ROLES[1]["vars"], "dhcp_hosts": hosts}}
    lab.play([netboot, dhcp])
    try:
        rack.render(lab, rack.node("gpu002", "poweroff", ipxe_build="debian_2025"), rack.node("gpu003", "local"))
        guest = lab.guest(rack.MACS["gpu002"]).start()
        guest.says("gpu002: powers off", 180)
        assert guest.ends(120) == 0
        assert "iPXE 1.21.1" in guest.console() and "autoexec.ipxe" in guest.console()
        assert "Could not boot image" not in guest.console()
        usual = lab.guest(rack.MACS["gpu003"]).start()
        usual.says("gpu003: boots from its own disk", 180)
        assert "iPXE 1.0.0" in usual.console()
    finally:
        lab.play(rack.ROLES[:2])
