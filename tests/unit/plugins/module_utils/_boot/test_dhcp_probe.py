# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json
import struct

import pytest
from ansible_collections.h200.rack.plugins.module_utils._boot import dhcp_packets, dhcp_probe
from ansible_collections.h200.rack.plugins.module_utils._common.errors import InvalidInput
from hypothesis import given, settings
from hypothesis import strategies as st

MAC = "52:54:00:01:02:03"
LINKS = json.dumps(
    [
        {"ifname": "lo", "link_type": "loopback", "address": "00:00:00:00:00:00",
         "addr_info": [{"family": "inet", "local": "127.0.0.1"}]},
        {"ifname": "br-prov", "link_type": "ether", "address": MAC,
         "addr_info": [{"family": "inet6", "local": "fe80::1"}, {"family": "inet", "local": "192.168.9.9"},
                       {"family": "inet", "local": "10.20.1.2"}]},
        {"ifname": "ib0", "link_type": "infiniband", "address": "00:00",
         "addr_info": [{"family": "inet", "local": "10.20.1.3"}]},
        {"ifname": "eth9", "link_type": "ether", "address": MAC, "addr_info": []},
    ]
)  # fmt: skip


def reply(kind=2, server="10.20.1.66", offered="10.20.1.100", ip_options=b"", boot=b"x.efi", relay="0.0.0.0"):
    import socket

    fixed = struct.pack("!BBBB4sHH", 2, 1, 6, 0, b"xidx", 0, 0x8000) + bytes(4) + socket.inet_aton(offered)
    dhcp = fixed + bytes(4) + socket.inet_aton(relay) + bytes(208) + b"\x63\x82\x53\x63" + bytes([53, 1, kind])
    if server:
        dhcp += b"\x36\x04" + socket.inet_aton(server)
    dhcp += bytes([67, len(boot)]) + boot + b"\xff"
    udp = struct.pack("!HHHH", 67, 68, 8 + len(dhcp), 0) + dhcp
    length = 5 + len(ip_options) // 4
    header = struct.pack("!BBHHHBBH", 0x40 | length, 0, length * 4 + len(udp), 0, 0, 64, 17, 0)
    header += socket.inet_aton("10.20.1.67") + b"\xff" * 4 + ip_options
    return b"\xff" * 6 + bytes.fromhex("525400aabbcc") + b"\x08\x00" + header + udp


def passes(frame: bytes) -> bool:
    """Run the filter as the kernel does."""
    at, accumulator, index = 0, 0, 0
    while True:
        code, yes, no, k = dhcp_probe._FILTER[at]
        at += 1
        if code == 0x06:
            return k > 0
        if code == 0xB1:
            index = 4 * (frame[k] & 0x0F)
        elif code in (0x28, 0x48, 0x30):
            start = k + (index if code == 0x48 else 0)
            width = 1 if code == 0x30 else 2
            accumulator = int.from_bytes(frame[start : start + width], "big")
        elif code == 0x15:
            at += yes if accumulator == k else no
        elif code == 0x45:
            at += yes if accumulator & k else no


def test_an_offer_is_told_with_who_where_from_and_what():
    said = dhcp_packets.answer(reply(relay="10.20.1.1"))
    assert said == ("10.20.1.66", "52:54:00:aa:bb:cc", "10.20.1.100", "10.20.1.1", "x.efi")
    assert "through the relay 10.20.1.1" in dhcp_probe.sentence(dhcp_probe.Server("prov0", said))


def test_a_server_that_does_not_name_itself_is_named_by_its_address():
    assert dhcp_packets.answer(reply(server="")).server == "10.20.1.67"


def test_a_proxy_is_called_one():
    assert "is a proxy" in dhcp_probe.sentence(
        dhcp_probe.Server("prov0", dhcp_packets.answer(reply(offered="0.0.0.0")))
    )


def test_a_header_with_options_hides_nobody():
    frame = reply(ip_options=b"\x94\x04\x00\x00")
    assert passes(frame) and dhcp_packets.answer(frame).server == "10.20.1.66"


@pytest.mark.parametrize("kind", [1, 3, 4, 6, 7, 8])
def test_only_offers_and_acknowledgements_count(kind):
    assert dhcp_packets.answer(reply(kind)) is None


def test_what_the_probe_sends_is_no_answer_and_does_not_pass_its_filter():
    for said in dhcp_packets.QUESTIONS:
        frame = dhcp_packets.discover(MAC, b"abcd", said)
        assert dhcp_packets.answer(frame) is None and not passes(frame)
        # A discover and nothing else, from the interface's own address, to be answered by broadcast.
        assert frame[6:12].hex(":") == MAC and frame[42 + 28 : 42 + 34].hex(":") == MAC
        assert frame[42 + 240 : 42 + 243] == b"\x35\x01\x01" and frame[42 + 10] == 0x80
        assert dhcp_packets._checksum(frame[14:34]) == 0


def test_a_mirror_s_own_traffic_stays_in_the_kernel():
    tcp = bytearray(reply())
    tcp[23] = 6
    ntp = bytearray(reply())
    ntp[36:38] = struct.pack("!H", 123)
    fragment = bytearray(reply())
    fragment[20:22] = b"\x00\x10"
    ipv6 = bytearray(reply())
    ipv6[12:14] = b"\x86\xdd"
    assert not any(passes(bytes(frame)) for frame in (tcp, ntp, fragment, ipv6))


@settings(deadline=None)
@given(st.binary(max_size=400), st.integers(0, 330))
def test_no_answer_of_a_stranger_breaks_the_probe(noise, cut):
    dhcp_packets.answer(reply()[:cut] + noise)
    dhcp_packets.answer(reply()[:-1] + noise)


def test_only_ports_in_the_networks_are_asked_on():
    found = dhcp_probe.ports(LINKS, ["10.20.1.0/24", "fd00::/64"])
    assert [(port.name, port.mac) for port in found] == [("br-prov", MAC)]
    assert dhcp_probe.ports(LINKS, ["10.99.0.0/16"]) == []
    assert dhcp_probe.own_addresses(LINKS) == {"127.0.0.1", "192.168.9.9", "10.20.1.2", "10.20.1.3"}


def test_a_network_that_is_none_is_refused():
    with pytest.raises(InvalidInput, match="10.20.1.2"):
        dhcp_probe.ports(LINKS, ["10.20.1.2/24"])
