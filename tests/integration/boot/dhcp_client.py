# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A DHCP client that says what it is told to say, once, and shows what came back.

usage, in the client's namespace: dhcp_client.py INTERFACE < JSON list of requests > JSON list of answers
"""

from __future__ import annotations

import json
import os
import socket
import struct
import sys
import time

DISCOVER, REQUEST = 1, 3
OFFER, ACK, NAK = 2, 5, 6
_WANTED = bytes([1, 3, 6, 12, 15, 42, 43, 60, 66, 67, 175])


def packet(mac: bytes, xid: bytes, kind: int, options: bytes, ciaddr: str = "0.0.0.0") -> bytes:
    fixed = struct.pack("!BBBB4sHH", 1, 1, 6, 0, xid, 0, 0x8000)
    fixed += socket.inet_aton(ciaddr) + bytes(12) + mac.ljust(16, b"\0") + bytes(192)
    dhcp = fixed + b"\x63\x82\x53\x63" + bytes([53, 1, kind]) + options + bytes([55, len(_WANTED)]) + _WANTED + b"\xff"
    udp = struct.pack("!HHHH", 68, 67, 8 + len(dhcp), 0) + dhcp
    header = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 20 + len(udp), 0, 0, 64, 17, 0, bytes(4), b"\xff" * 4)
    total = sum(struct.unpack("!10H", header))
    total = (total & 0xFFFF) + (total >> 16)
    header = header[:10] + struct.pack("!H", ~(total + (total >> 16)) & 0xFFFF) + header[12:]
    return b"\xff" * 6 + mac + b"\x08\x00" + header + udp


def said(request: dict[str, object]) -> bytes:
    """The options of a request: what firmware and iPXE say of themselves, and the addresses asked for."""
    options = b""
    if "arch" in request:
        options += struct.pack("!BBH", 93, 2, request["arch"])
    for code, key in ((60, "vendor"), (77, "user_class")):
        if key in request:
            text = str(request[key]).encode()
            options += bytes([code, len(text)]) + text
    if request.get("option_175"):
        options += bytes([175, 3, 0xB1, 1, 1])
    for code, key in ((50, "address"), (54, "server")):
        if key in request:
            options += bytes([code, 4]) + socket.inet_aton(str(request[key]))
    return options


def read(dhcp: bytes) -> dict[str, object]:
    options: dict[int, bytes] = {}
    at = 240
    while at < len(dhcp) and dhcp[at] != 255:
        if dhcp[at]:
            options[dhcp[at]] = options.get(dhcp[at], b"") + dhcp[at + 2 : at + 2 + dhcp[at + 1]]
            at += 1 + dhcp[at + 1]
        at += 1
    addresses = {3: "routers", 6: "dns", 42: "ntp"}
    answer = {
        "kind": options[53][0],
        "address": socket.inet_ntoa(dhcp[16:20]),
        "next_server": socket.inet_ntoa(dhcp[20:24]),
        "server": socket.inet_ntoa(options[54]) if 54 in options else "",
        "file": options.get(67, dhcp[108:236]).rstrip(b"\0").decode(),
        "vendor": options.get(60, b"").decode(errors="replace"),
        "hostname": options.get(12, b"").decode(),
        "option_175": options.get(175, b"").hex(),
    }
    for code, name in addresses.items():
        raw = options.get(code, b"")
        answer[name] = [socket.inet_ntoa(raw[i : i + 4]) for i in range(0, len(raw), 4)]
    return answer


def ask(interface: str, requests: list[dict[str, object]]) -> list[list[dict[str, object]]]:
    """All answers to each request, in the order of their coming."""
    own = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(0x0800))
    own.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 16 << 20)
    own.bind((interface, 0))
    found: list[list[dict[str, object]]] = []
    for request in requests:
        mac = bytes.fromhex(str(request["mac"]).replace(":", ""))
        xid = os.urandom(4)
        kind = int(request.get("kind", DISCOVER))
        own.send(packet(mac, xid, kind, said(request), str(request.get("ciaddr", "0.0.0.0"))))
        found.append(_answers(own, xid, float(request.get("wait", 1.0)), int(request.get("enough", 1))))
    return found


def _answers(own: socket.socket, xid: bytes, wait: float, enough: int) -> list[dict[str, object]]:
    answers: list[dict[str, object]] = []
    deadline = time.monotonic() + wait
    while len(answers) < enough and time.monotonic() < deadline:
        own.settimeout(max(0.01, deadline - time.monotonic()))
        try:
            frame = own.recv(4096)
        except socket.timeout:
            break
        if frame[23] == 17 and frame[36:38] == b"\0\x44" and frame[46:50] == xid and frame[42] == 2:
            answers.append(read(frame[42:]))
    return answers


if __name__ == "__main__":
    json.dump(ask(sys.argv[1], json.load(sys.stdin)), sys.stdout)
