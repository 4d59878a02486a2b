# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What machines hear from a real dnsmasq with the role's configuration, answer by answer."""

from __future__ import annotations

import os
import shutil
import time

import pytest
from dhcp_client import ACK, NAK, OFFER, REQUEST
from dhcp_lab import Network
from lab import sh, wait_for

SUBNETS = [
    {
        "name": "rack1",
        "cidr": "10.77.1.0/24",
        "gateway": "10.77.1.1",
        "dns": ["10.77.9.53"],
        "ntp": ["10.77.9.123", "10.77.9.124"],
        "role": "provisioning",
    },
    {"name": "rack2", "cidr": "10.77.2.0/24", "gateway": "10.77.2.1", "role": "provisioning", "relay": "10.77.2.1"},
    {"name": "bmc", "cidr": "10.77.3.0/24", "gateway": "10.77.3.1", "role": "bmc"},
]
ONE, TWO, OWN, BMC = (f"52:54:00:77:00:0{number}" for number in range(1, 5))
STRANGER = "52:54:00:99:00:01"
HOSTS = [
    {"name": "gpu001", "mac": ONE, "address": "10.77.1.11"},
    {"name": "gpu002", "mac": TWO, "address": "10.77.2.12"},
    {"name": "gpu003", "mac": OWN, "address": "10.77.1.13", "ipxe_binary": "ipxe/ours.efi"},
    {"name": "gpu001-bmc", "mac": BMC, "address": "10.77.3.11"},
]
SITE = "dhcp-range=set:site,192.168.77.50,192.168.77.60,1h\naddress=/intranet.test/192.168.77.99\n"
PXE, HTTP = "PXEClient:Arch:00007:UNDI:003001", "HTTPClient:Arch:00016:UNDI:003001"

pytestmark = pytest.mark.skipif(
    os.geteuid() != 0 or not shutil.which("dnsmasq"), reason="needs root for namespaces, and dnsmasq"
)


@pytest.fixture(scope="module")
def net():
    """Two racks, a BMC network and a site's own network; boot01 stands in rack 1 and in all but rack 2."""
    with Network() as network:
        for name in ("rack1", "rack2", "bmc", "site"):
            network.segment(name)
        network.boot = network.host("boot01")
        network.plug(network.boot, "rack1", "prov0", "10.77.1.2/24")
        network.plug(network.boot, "bmc", "bmc0", "10.77.3.2/24")
        network.plug(network.boot, "site", "site0", "192.168.77.1/24")
        network.nodes = network.host("nodes")
        for name in ("rack1", "rack2", "bmc", "site"):
            network.plug(network.nodes, name, name)
        # The router between the racks, which relays.
        network.router = network.host("router")
        network.plug(network.router, "rack1", "r1", "10.77.1.1/24")
        network.plug(network.router, "rack2", "r2", "10.77.2.1/24")
        sh("ip", "netns", "exec", network.router, "sysctl", "-qw", "net.ipv4.ip_forward=1")
        sh("ip", "-n", network.boot, "route", "add", "10.77.2.0/24", "via", "10.77.1.1")
        network.server1 = network.server(network.boot, HOSTS, SUBNETS, site=SITE, dhcp_dns_port=53)
        network.dnsmasq(network.router, "port=0\nbind-dynamic\ndhcp-relay=10.77.2.1,10.77.1.2\n")
        yield network


def one(net, request, interface="rack1"):
    """The only answer."""
    answers = net.ask(net.nodes, interface, {"wait": 15, **request})[0]
    assert len(answers) == 1, answers
    return answers[0]


def none(net, request, interface="rack1"):
    return net.ask(net.nodes, interface, {"wait": 1.5, **request})[0] == []


@pytest.mark.parametrize(
    ("arch", "vendor", "file"),
    [
        (0, "PXEClient:Arch:00000:UNDI:002001", "ipxe/undionly.kpxe"),
        (7, PXE, "ipxe/snponly.efi"),
        (9, "PXEClient:Arch:00009:UNDI:003001", "ipxe/snponly.efi"),
        (11, "PXEClient:Arch:00011:UNDI:003001", "ipxe/ipxe-arm64.efi"),
        (16, HTTP, "http://10.77.1.2/ipxe/snponly.efi"),
        (19, "HTTPClient:Arch:00019:UNDI:003001", "http://10.77.1.2/ipxe/ipxe-arm64.efi"),
    ],
)
def test_each_architecture_gets_what_it_can_run(net, arch, vendor, file):
    answer = one(net, {"mac": ONE, "arch": arch, "vendor": vendor})
    assert answer["kind"] == OFFER and answer["address"] == "10.77.1.11"
    assert answer["file"] == file and answer["next_server"] == "10.77.1.2"
    # UEFI takes an HTTP answer only with this echo, and a PXE client would not know what to do with it.
    assert answer["vendor"] == ("HTTPClient" if vendor.startswith("HTTP") else "")


@pytest.mark.parametrize("arch", [6, 10, 15, 18, 20, 27, 39, 41])
def test_an_architecture_that_nobody_knows_gets_no_file_and_a_line_in_the_log(net, arch):
    before = len(net.server1.said())
    answer = one(net, {"mac": ONE, "arch": arch, "vendor": f"PXEClient:Arch:{arch:05}:UNDI:003001"})
    assert answer["file"] == "" and answer["address"] == "10.77.1.11"
    said = net.server1.said()[before:]
    assert "unknown-architecture" in said and f"PXEClient:Arch:{arch:05}" in said


@pytest.mark.parametrize("way", [{"option_175": True}, {"user_class": "iPXE"}])
@pytest.mark.parametrize("arch", [0, 7, 11, 16])
def test_ipxe_gets_the_script_and_no_binary_again(net, way, arch):
    for mac in (ONE, OWN):
        answer = one(net, {"mac": mac, "arch": arch, "vendor": PXE, **way})
        assert answer["file"] == "http://10.77.1.2/boot/boot.ipxe"
        # 175.176 = 1: no wait for a proxy DHCP server.
        assert answer["option_175"].startswith("b00101")


def test_a_node_s_own_binary_is_told_to_the_firmware_that_can_run_it(net):
    assert one(net, {"mac": OWN, "arch": 7, "vendor": PXE})["file"] == "ipxe/ours.efi"
    assert one(net, {"mac": OWN, "arch": 16, "vendor": HTTP})["file"] == "http://10.77.1.2/ipxe/ours.efi"
    assert one(net, {"mac": OWN, "arch": 0})["file"] == "ipxe/undionly.kpxe"
    assert one(net, {"mac": OWN, "arch": 6})["file"] == ""


def test_router_name_server_and_time_servers_are_those_of_the_subnet(net):
    answer = one(net, {"mac": ONE})
    assert answer["routers"] == ["10.77.1.1"] and answer["dns"] == ["10.77.9.53"]
    assert answer["ntp"] == ["10.77.9.123", "10.77.9.124"] and answer["hostname"] == "gpu001"


def test_a_relayed_rack_has_addresses_and_router_of_its_own(net):
    answer = one(net, {"mac": TWO, "arch": 7, "vendor": PXE}, "rack2")
    assert answer["address"] == "10.77.2.12" and answer["routers"] == ["10.77.2.1"]
    # No name server of its own, so none is told, least of all the boot server's own address.
    assert answer["dns"] == [] and answer["ntp"] == []
    assert answer["file"] == "ipxe/snponly.efi" and answer["next_server"] == "10.77.1.2"
    # A node in the wrong rack gets nothing there.
    assert none(net, {"mac": ONE}, "rack2")
    assert none(net, {"mac": TWO}, "rack1")


def test_a_bmc_gets_its_address_and_nothing_to_boot(net):
    answer = one(net, {"mac": BMC}, "bmc")
    assert answer["address"] == "10.77.3.11" and answer["routers"] == ["10.77.3.1"] and answer["file"] == ""
    assert one(net, {"mac": BMC, "arch": 7, "vendor": PXE}, "bmc")["file"] == ""


def test_a_stranger_gets_no_answer_and_no_refusal_of_what_another_server_gave(net):
    assert none(net, {"mac": STRANGER, "arch": 7, "vendor": PXE})
    assert none(net, {"mac": STRANGER, "kind": REQUEST, "address": "10.77.1.200"})
    assert none(net, {"mac": STRANGER, "kind": REQUEST, "address": "10.1.2.3"})


def test_the_site_s_own_range_and_names_of_the_same_dnsmasq_go_on(net):
    # The site's addresses are pinged for 3 s before they are given, as before.
    answer = one(net, {"mac": STRANGER, "arch": 7, "vendor": PXE}, "site")
    assert answer["address"].startswith("192.168.77.") and answer["file"] == ""
    assert one(net, {"mac": "52:54:00:99:00:02", "arch": 16, "vendor": HTTP}, "site")["vendor"] == ""
    query = (
        "import socket,struct;s=socket.socket(socket.AF_INET,socket.SOCK_DGRAM);s.settimeout(5);"
        "s.sendto(struct.pack('!6H',7,256,1,0,0,0)+b'\\x08intranet\\x04test\\0\\0\\1\\0\\1',('192.168.77.1',53));"
        "print(socket.inet_ntoa(s.recv(512)[-4:]))"
    )
    assert sh("ip", "netns", "exec", net.boot, "python3", "-c", query).strip() == "192.168.77.99"


def test_two_servers_give_the_same_address_and_neither_refuses_what_is_asked_of_the_other(net):
    second = net.host("boot02")
    net.plug(second, "rack1", "prov0", "10.77.1.3/24")
    other = net.server(second, HOSTS, SUBNETS, address="10.77.1.3")
    servers = ("10.77.1.2", "10.77.1.3")
    try:
        offers = net.ask(net.nodes, "rack1", {"mac": ONE, "arch": 7, "vendor": PXE, "wait": 15, "enough": 2})[0]
        assert {offer["server"] for offer in offers} == set(servers)
        assert {offer["address"] for offer in offers} == {"10.77.1.11"}
        for server in servers:
            request = {"mac": ONE, "kind": REQUEST, "address": "10.77.1.11", "server": server, "wait": 2, "enough": 2}
            answers = net.ask(net.nodes, "rack1", request)[0]
            assert [(answer["kind"], answer["server"]) for answer in answers] == [(ACK, server)]
    finally:
        other.stop()


def test_a_server_that_knows_nothing_of_a_lease_does_not_take_it_away(net):
    """A client renews at the server that is left: no refusal, and the same address when it asks anew."""
    second = net.host("boot05")
    net.segment("alone")
    net.plug(second, "alone", "prov0", "10.77.1.3/24")
    net.plug(net.nodes, "alone", "alone")
    net.server(second, HOSTS, SUBNETS, address="10.77.1.3")
    rebind = {"mac": ONE, "kind": REQUEST, "ciaddr": "10.77.1.11"}
    assert NAK not in {answer["kind"] for answer in net.ask(net.nodes, "alone", rebind)[0]}
    assert one(net, {"mac": ONE}, "alone")["address"] == "10.77.1.11"


def test_an_address_of_another_time_is_refused_to_a_node_of_the_plan(net):
    """So that it asks anew at once."""
    assert one(net, {"mac": ONE, "kind": REQUEST, "address": "10.1.2.3"})["kind"] == NAK


def test_machines_outside_the_plan_get_the_range_for_them_when_there_is_one(net):
    host = net.host("boot03")
    net.segment("open")
    net.plug(host, "open", "prov0", "10.77.1.4/24")
    net.plug(net.nodes, "open", "open")
    ranges = [{"start": "10.77.1.200", "end": "10.77.1.210"}]
    net.server(host, HOSTS, SUBNETS, address="10.77.1.4", dhcp_unknown_ranges=ranges)
    unknown = one(net, {"mac": STRANGER, "arch": 7, "vendor": PXE}, "open")
    assert unknown["address"].startswith("10.77.1.2") and unknown["file"] == "ipxe/snponly.efi"
    known = one(net, {"mac": ONE, "arch": 7, "vendor": PXE}, "open")
    assert known["address"] == "10.77.1.11"


MANY = [{"name": "manynodes", "cidr": "10.78.0.0/19", "role": "provisioning"}]


def many(count):
    return [
        {
            "name": f"gpu{number:04}",
            "mac": f"52:54:00:78:{number // 256:02x}:{number % 256:02x}",
            "address": f"10.78.{(number + 9) // 250}.{(number + 9) % 250 + 2}",
        }
        for number in range(1, count + 1)
    ]


@pytest.fixture(scope="module")
def large(net):
    host = net.host("boot04")
    net.segment("many")
    net.plug(host, "many", "prov0", "10.78.31.2/19")
    net.plug(net.nodes, "many", "many")
    return net.server(host, many(4000)[:-1], MANY, address="10.78.31.2", dhcp_log=False)


def test_4000_hosts_are_read_again_by_a_signal(net, large):
    hosts = many(4000)
    last = {"mac": hosts[-1]["mac"], "wait": 1}
    assert net.ask(net.nodes, "many", last)[0] == []
    started = time.monotonic()
    large.write(hosts[1:])
    large.reload()
    wait_for("the new host's answer", lambda: net.ask(net.nodes, "many", last)[0], 60)
    print(f"4,000 hosts read again in {time.monotonic() - started:.2f} s")
    # What was taken out of the plan gets no answer any more.
    assert net.ask(net.nodes, "many", {"mac": hosts[0]["mac"]})[0] == []


@pytest.mark.full
def test_4000_hosts_can_all_hold_a_lease(net, large):
    hosts = many(4000)
    large.write(hosts)
    large.reload()
    started = time.monotonic()
    asked = {"kind": REQUEST, "server": "10.78.31.2", "wait": 10}
    answers = net.ask(net.nodes, "many", *({"mac": h["mac"], "address": h["address"], **asked} for h in hosts))
    assert [answer[0]["kind"] for answer in answers if answer] == [ACK] * 4000
    print(f"4,000 leases in {time.monotonic() - started:.1f} s")
