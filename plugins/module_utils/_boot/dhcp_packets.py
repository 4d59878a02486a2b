# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The packets of a DHCP probe: the question as an Ethernet frame, and what an answer says. Private to h200.rack."""

from __future__ import annotations

import socket
import struct
import typing as t

DISCOVER, OFFER, ACK = 1, 2, 5
_COOKIE = b"\x63\x82\x53\x63"
_BROADCAST = 0x8000
_BOOTREPLY = 2
# Subnet mask, router, name servers, server, vendor class, TFTP server, boot file.
_WANTED = bytes([1, 3, 6, 54, 60, 66, 67])
# What UEFI firmware says of itself. A proxy DHCP server answers nobody else, and some servers only such a client.
_FIRMWARE = b"".join(
    bytes([code, len(value)]) + value
    for code, value in (
        (60, b"PXEClient:Arch:00007:UNDI:003001"),
        (93, b"\x00\x07"),
        (94, b"\x01\x03\x01"),
        (97, b"\x00" + b"h200.rack.probe."),
    )
)
# Two questions find both kinds of servers.
QUESTIONS = (b"", _FIRMWARE)


class Answer(t.NamedTuple):
    """What a DHCP server said to somebody."""

    server: str
    mac: str
    offered: str
    relay: str
    boot_file: str


def discover(mac: str, xid: bytes, said: bytes) -> bytes:
    """A DHCPDISCOVER as the interface with this MAC sends it. It takes nothing, for no request follows an offer."""
    own = bytes.fromhex(mac.replace(":", ""))
    dhcp = struct.pack("!BBBB4sHH", 1, 1, 6, 0, xid, 0, _BROADCAST) + bytes(16) + own.ljust(16, b"\0") + bytes(192)
    dhcp += _COOKIE + bytes([53, 1, DISCOVER]) + said + bytes([55, len(_WANTED)]) + _WANTED + b"\xff"
    dhcp = dhcp.ljust(300, b"\0")  # some relays drop what is shorter than BOOTP
    udp = struct.pack("!HHHH", 68, 67, 8 + len(dhcp), 0) + dhcp
    header = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 20 + len(udp), 0, 0, 64, 17, 0, bytes(4), b"\xff" * 4)
    header = header[:10] + struct.pack("!H", _checksum(header)) + header[12:]
    return b"\xff" * 6 + own + b"\x08\x00" + header + udp


def answer(frame: bytes) -> t.Optional[Answer]:
    """What the frame says if it is a server's offer or acknowledgement, to whomever."""
    if len(frame) < 14 + 20 + 8 + 240 or frame[12:14] != b"\x08\x00" or frame[23] != 17:
        return None
    start = 14 + (frame[14] & 0x0F) * 4
    dhcp = frame[start + 8 :]
    if frame[start + 2 : start + 4] != b"\x00\x44" or dhcp[:1] != bytes([_BOOTREPLY]) or dhcp[236:240] != _COOKIE:
        return None
    options = _options(dhcp[240:])
    if options.get(53) not in (bytes([OFFER]), bytes([ACK])):
        return None
    return Answer(
        _address(options.get(54, b"")) or _address(frame[26:30]),
        ":".join(f"{byte:02x}" for byte in frame[6:12]),
        _address(dhcp[16:20]),
        _address(dhcp[24:28]),
        (options.get(67) or dhcp[108:236]).split(b"\0")[0].decode("ascii", "replace"),
    )


def _options(raw: bytes) -> dict[int, bytes]:
    found: dict[int, bytes] = {}
    at = 0
    while at + 1 < len(raw) and raw[at] != 255:
        if raw[at] == 0:
            at += 1
            continue
        found[raw[at]] = found.get(raw[at], b"") + raw[at + 2 : at + 2 + raw[at + 1]]
        at += 2 + raw[at + 1]
    return found


def _address(raw: bytes) -> str:
    """Empty for none."""
    return socket.inet_ntoa(raw) if len(raw) == 4 and any(raw) else ""


def _checksum(header: bytes) -> int:
    total = sum(struct.unpack(f"!{len(header) // 2}H", header))
    total = (total & 0xFFFF) + (total >> 16)
    return ~(total + (total >> 16)) & 0xFFFF
