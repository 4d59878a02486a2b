# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest
from ansible_collections.h200.rack.plugins.module_utils._boot import dhcp
from ansible_collections.h200.rack.plugins.module_utils._common.errors import InvalidInput

PROVISIONING = {
    "name": "rack 1",
    "cidr": "10.0.1.0/24",
    "gateway": "10.0.1.1",
    "role": "provisioning",
    "ntp": "10.0.1.2",
}
BMC = {"name": "bmc", "cidr": "10.0.2.0/24", "role": "bmc"}
PRODUCTION = {"name": "production", "cidr": "10.0.3.0/24", "role": "production"}


def host(number, **changes):
    return {"name": f"gpu{number:03}", "mac": f"5254.0000.{number:04x}", "address": f"10.0.1.{number}/24", **changes}


def test_only_subnets_that_need_an_answer_get_one():
    plan = dhcp.plan([host(11)], [PROVISIONING, BMC, PRODUCTION])
    assert [subnet["tag"] for subnet in plan.subnets] == ["net-rack-1"]
    plan = dhcp.plan([host(11), host(12, address="10.0.2.12")], [PROVISIONING, BMC, PRODUCTION])
    assert [(subnet["tag"], subnet["boots"]) for subnet in plan.subnets] == [("net-rack-1", True), ("net-bmc", False)]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"address": "10.9.9.9"}, "host gpu012: address 10.9.9.9 lies in none"),
        ({"address": "10.0.1.255"}, "host gpu012: .*broadcast"),
        ({"address": "ten"}, "host gpu012: address"),
        ({"mac": "x"}, "host gpu012: .*MAC"),
        ({"name": "a,b"}, "host a,b"),
        ({"address": "10.0.1.11"}, "address 10.0.1.11 is given to gpu011 and gpu012"),
        ({"mac": "52:54:00:00:00:0B"}, "mac 52:54:00:00:00:0b is given to gpu011 and gpu012"),
        ({"name": "gpu011"}, "name gpu011 is given to"),
    ],
)
def test_what_cannot_be_right_names_the_host(changes, said):
    with pytest.raises(InvalidInput, match=said):
        dhcp.plan([host(11), host(12, **changes)], [PROVISIONING])


@pytest.mark.parametrize(
    ("subnet", "said"),
    [
        ({"name": "x", "cidr": "10.0.1.0/33"}, "subnet x: cidr"),
        ({"name": "x", "cidr": "10.0.1.128/25"}, "overlaps"),
        ({"name": "x", "cidr": "10.0.7.0/24", "gateway": "10.0.8.1"}, "outside"),
    ],
)
def test_a_subnet_that_cannot_be_right_is_named(subnet, said):
    with pytest.raises(InvalidInput, match=said):
        dhcp.plan([], [PROVISIONING, subnet])


def test_the_order_of_the_inventory_changes_nothing():
    hosts = [host(number) for number in (12, 100, 11)]
    first, second = dhcp.plan(hosts, [PROVISIONING]), dhcp.plan(hosts[::-1], [PROVISIONING])
    assert dhcp.hosts_file(first, "12h") == dhcp.hosts_file(second, "12h")
    assert dhcp.hosts_file(first, "12h").splitlines()[1] == "52:54:00:00:00:0b,10.0.1.11,gpu011,12h"


def test_a_host_with_a_binary_of_its_own_gets_it_and_not_the_common_one():
    plan = dhcp.plan([host(11, ipxe_binary="ipxe/ipxe.efi"), host(12)], [PROVISIONING])
    assert plan.binaries == {"ipxe/ipxe.efi": "binary-1"}
    lines = dhcp.hosts_file(plan, "12h").splitlines()
    assert "set:own-uefi,set:binary-1," in lines[1] and "set:" not in lines[2]
    with pytest.raises(InvalidInput, match="host gpu011: ipxe_binary"):
        dhcp.plan([host(11, ipxe_binary="../x y")], [PROVISIONING])


@pytest.mark.parametrize("lease", ["forever", "12 h", "12h,ignore", ""])
def test_a_lease_time_that_dnsmasq_does_not_know_is_refused(lease):
    with pytest.raises(InvalidInput, match="lease time"):
        dhcp.hosts_file(dhcp.plan([host(11)], [PROVISIONING]), lease)


@pytest.mark.parametrize(
    ("binaries", "said"),
    [
        # The usual how-to: one binary for a BIOS, for everybody.
        ({"x86_64": "ipxe/undionly.kpxe"}, "dhcp_ipxe_binaries.x86_64: ipxe/undionly.kpxe does not run"),
        ({"bios": "ipxe/snponly.efi"}, "dhcp_ipxe_binaries.bios: ipxe/snponly.efi does not run"),
        ({"aarch64": "ipxe/undionly.kpxe"}, "dhcp_ipxe_binaries.aarch64"),
        ({"x86_64": "ipxe/ipxe.iso"}, "no binary for a network boot"),
        ({"x86_64": "../ipxe.efi"}, "not a path below the TFTP root"),
        ({"ia32": "ipxe/ipxe.efi"}, "'ia32' is none of"),
    ],
)
def test_a_binary_that_its_firmware_cannot_start_is_refused(binaries, said):
    with pytest.raises(InvalidInput, match=said):
        dhcp.check_binaries(binaries)


def test_an_interface_is_the_rack_s_by_its_address():
    def link(name, *addresses):
        return {"ifname": name, "addr_info": [{"family": "inet", "local": address} for address in addresses]}

    links = [
        link("lo", "127.0.0.1"),
        link("eth0", "192.168.1.2", "10.0.1.3"),
        link("br-prov", "10.0.1.2"),
        link("eth9"),
    ]
    links.append({"ifname": "eth8", "addr_info": [{"family": "inet6", "local": "fe80::1"}, {}]})
    plan = dhcp.plan([host(11)], [PROVISIONING, BMC])
    assert dhcp.interfaces(links, plan) == ["br-prov", "eth0"]
    assert dhcp.interfaces([], plan) == []
