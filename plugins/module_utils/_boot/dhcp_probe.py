# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Find the DHCP servers of a segment by asking. Private to h200.rack."""

from __future__ import annotations

import ctypes
import errno
import ipaddress
import json
import os
import select
import socket
import struct
import time
import typing as t

from ansible_collections.h200.rack.plugins.module_utils._common.errors import InvalidInput, RackError

from . import dhcp_packets

_ETH_P_IP = 0x0800
_SO_ATTACH_FILTER = 26
# Each question once more after this many seconds: a frame may be lost, and a port that has just come up eats some.
_AGAIN = 1.0
# Only UDP to port 68 passes, in the kernel: a mirror's network is full of other traffic. As the kernel's BPF:
# IPv4? UDP? not a later fragment? then the port behind a header of any length.
_FILTER = (
    (0x28, 0, 0, 12), (0x15, 0, 8, _ETH_P_IP),
    (0x30, 0, 0, 23), (0x15, 0, 6, 17),
    (0x28, 0, 0, 20), (0x45, 4, 0, 0x1FFF),
    (0xB1, 0, 0, 14), (0x48, 0, 0, 16), (0x15, 0, 1, 68),
    (0x06, 0, 0, 0xFFFF), (0x06, 0, 0, 0),
)  # fmt: skip


class Port(t.NamedTuple):
    """An interface to ask on."""

    name: str
    mac: str
    addresses: tuple[str, ...]


class Server(t.NamedTuple):
    """A server that was heard, and where."""

    interface: str
    answer: dhcp_packets.Answer


def ports(links: str, networks: t.Sequence[str]) -> list[Port]:
    """The Ethernet interfaces with an address in one of the networks, from what ``ip -json address`` says."""
    try:
        wanted = [ipaddress.ip_network(text) for text in networks]
    except ValueError as exc:
        raise InvalidInput(f"networks: {exc}") from exc
    found = []
    for link in json.loads(links):
        own = tuple(entry["local"] for entry in link.get("addr_info", ()) if entry.get("family") == "inet")
        inside = any(ipaddress.IPv4Address(address) in network for address in own for network in wanted)
        if inside and link.get("link_type") == "ether":
            found.append(Port(link["ifname"], link["address"], own))
    return found


def own_addresses(links: str) -> set[str]:
    """Every IPv4 address of this host."""
    return {
        entry["local"]
        for link in json.loads(links)
        for entry in link.get("addr_info", ())
        if entry.get("family") == "inet"
    }


def probe(asked: t.Sequence[Port], seconds: float) -> list[Server]:
    """Ask on every port, listen for so long, and name each server once."""
    heard: dict[tuple[str, str, str], Server] = {}
    sockets: dict[socket.socket, Port] = {}
    try:
        for port in asked:
            sockets[_listen(port)] = port
        xids = [os.urandom(4) for _question in dhcp_packets.QUESTIONS]
        now = time.monotonic()
        end, again = now + seconds, now + _AGAIN
        _ask(sockets, xids)
        while now < end and sockets:
            ready = select.select(list(sockets), [], [], max(0.0, min(end, again) - now))[0]
            for own in ready:
                port, answer = sockets[own], dhcp_packets.answer(own.recv(4096))
                if answer:
                    heard.setdefault((port.name, answer.server, answer.mac), Server(port.name, answer))
            now = time.monotonic()
            if now >= again:
                _ask(sockets, xids)
                again = end
    finally:
        for own in sockets:
            own.close()
    return [heard[key] for key in sorted(heard)]


def _listen(port: Port) -> socket.socket:
    try:
        own = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    except PermissionError as exc:
        raise RackError("asking for DHCP servers takes raw sockets, so become root") from exc
    program = b"".join(struct.pack("HBBI", *instruction) for instruction in _FILTER)
    buffer = ctypes.create_string_buffer(program)
    # struct sock_fprog: the number of instructions, padding, and where they are.
    own.setsockopt(
        socket.SOL_SOCKET, _SO_ATTACH_FILTER, struct.pack("HL", len(_FILTER), ctypes.addressof(buffer))
    )  # fmt: skip
    own.bind((port.name, _ETH_P_IP))
    return own


def _ask(sockets: t.Mapping[socket.socket, Port], xids: t.Sequence[bytes]) -> None:
    for own, port in sockets.items():
        for said, xid in zip(dhcp_packets.QUESTIONS, xids):
            try:
                own.send(dhcp_packets.discover(port.mac, xid, said))
            except OSError as exc:
                if exc.errno not in (errno.ENETDOWN, errno.ENXIO):
                    raise
                raise RackError(f"{port.name} is down, so nobody can be asked there") from exc


def sentence(server: Server) -> str:
    """What an operator has to know to find the machine."""
    answer = server.answer
    way = f" through the relay {answer.relay}" if answer.relay else ""
    what = f"offers {answer.offered}" if answer.offered else "is a proxy that offers a boot file only"
    boot = f", boot file {answer.boot_file}" if answer.boot_file else ""
    return f"the DHCP server {answer.server} (MAC {answer.mac}) answers on {server.interface}{way} and {what}{boot}"
