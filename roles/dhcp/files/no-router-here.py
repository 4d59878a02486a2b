# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tell machines that boot that there is no IPv6 router on their segment, so that they need not wait for one.

iPXE asks for an IPv6 router beside DHCP and waits some 15 s for an answer, also when all it needs is IPv4. This answers
each router solicitation on the interfaces with an address in the given IPv4 networks: router lifetime 0 (not a router),
no prefix, no flags. Nobody gets an address, a route or a name server from it, and it stands beside a real router.

usage: no-router-here.py NETWORK...
"""

from __future__ import annotations

import fcntl
import ipaddress
import socket
import struct
import sys

ROUTER_SOLICITATION, ROUTER_ADVERTISEMENT = 133, 134
ICMP6_FILTER = 1
SIOCGIFADDR = 0x8915
ALL_NODES, ALL_ROUTERS = "ff02::1", "ff02::2"
# Type, code, checksum (the kernel's), hop limit and flags unspecified, router lifetime 0, timers unspecified.
ADVERTISEMENT = struct.pack("!BBHBBHII", ROUTER_ADVERTISEMENT, 0, 0, 0, 0, 0, 0, 0)
# Seconds until new interfaces are looked for.
LOOK = 5.0


def interfaces(networks: list[ipaddress.IPv4Network]) -> set[int]:
    """The interfaces with an IPv4 address in one of the networks."""
    found = set()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        for index, name in socket.if_nameindex():
            try:
                answer = fcntl.ioctl(probe, SIOCGIFADDR, struct.pack("256s", name.encode()))
            except OSError:  # it has none
                continue
            if any(ipaddress.IPv4Address(answer[20:24]) in network for network in networks):
                found.add(index)
    return found


def listen() -> socket.socket:
    """A socket that gets router solicitations only."""
    own = socket.socket(socket.AF_INET6, socket.SOCK_RAW, socket.IPPROTO_ICMPV6)
    passed = [0xFFFFFFFF] * 8
    passed[ROUTER_SOLICITATION >> 5] &= ~(1 << (ROUTER_SOLICITATION & 31))
    own.setsockopt(socket.IPPROTO_ICMPV6, ICMP6_FILTER, struct.pack("8I", *passed))
    # Neighbours ignore advertisements that could have come through a router.
    own.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_UNICAST_HOPS, 255)
    own.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_HOPS, 255)
    own.settimeout(LOOK)
    return own


def join(own: socket.socket, wanted: set[int], joined: set[int]) -> set[int]:
    for index in wanted - joined:
        group = socket.inet_pton(socket.AF_INET6, ALL_ROUTERS) + struct.pack("@I", index)
        try:
            own.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_JOIN_GROUP, group)
        except OSError as error:  # IPv6 is switched off there, or the interface is just going
            print(f"interface {index}: {error}", file=sys.stderr)
            wanted = wanted - {index}
    return wanted


def main(arguments: list[str]) -> int:
    networks = [ipaddress.IPv4Network(text) for text in arguments]
    if not networks:
        print(__doc__, file=sys.stderr)
        return 2
    own = listen()
    joined: set[int] = set()
    while True:
        joined = join(own, interfaces(networks), joined)
        try:
            _message, (address, _port, _flow, scope) = own.recvfrom(1500)
        except socket.timeout:
            continue
        if scope not in joined:
            continue
        target = ALL_NODES if address == "::" else address
        try:
            own.sendto(ADVERTISEMENT, (target, 0, 0, scope))
        except OSError as error:
            print(f"{address}: {error}", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
