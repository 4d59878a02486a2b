# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A fake BMC's IPMI side: RMCP+ with cipher suites 17 and 3, chassis and boot commands, bad manners on request."""

from __future__ import annotations

import dataclasses
import hashlib
import hmac
import os
import socket
import struct
import threading
import time
import typing as t

from .aes import Aes
from .machine import Machine

OPEN, OPENED, RAKP1, RAKP2, RAKP3, RAKP4 = 0x10, 0x11, 0x12, 0x13, 0x14, 0x15
GUID = bytes(range(16))
CONTROLS = {0: "ForceOff", 1: "On", 2: "PowerCycle", 3: "ForceRestart", 4: "Nmi", 5: "GracefulShutdown"}


@dataclasses.dataclass
class Manners:
    suites: tuple[int, ...] = (17, 3)
    answers_sha1_to_17: bool = False  # accepts suite 17 and computes with SHA-1 (pyghmi's own server)
    zero_rakp2_tag: bool = False  # XCC3, xcat-core #7555
    ipmi15_only: bool = False
    full: int = 0  # refuse so many sessions for lack of resources
    param3_code: int = 0  # completion code for the boot flag timer (go-ipmi #74)
    boot_rule: t.Callable[[bytes], bytes] = bytes  # what is stored of parameter 5
    lose: dict[tuple[int, int], int] = dataclasses.field(default_factory=dict)  # (netfn, command) -> answers to lose
    codes: dict[tuple[int, int], list[int]] = dataclasses.field(default_factory=dict)  # completion codes to give first
    short: tuple[tuple[int, int], ...] = ()  # commands answered without data
    kg: bytes | None = None


class _Session:
    def __init__(self, number: int, console: int, suite: int, sha1: bool) -> None:
        self.number, self.console, self.suite = number, console, suite
        self.hash = hashlib.sha1 if sha1 else hashlib.sha256
        self.cut = 12 if sha1 else 16
        self.random = os.urandom(16)
        self.user = b""
        self.role = b""
        self.console_random = b""
        self.sik = self.k1 = b""
        self.aes: Aes | None = None
        self.sequence = 0
        self.active = False


class IpmiBmc:
    """Serves on a loopback UDP port for the time of a with block."""

    def __init__(
        self, machine: Machine | None = None, username: str = "admin", password: str = "s3cret-Pass", **manners: t.Any
    ) -> None:
        self.machine = machine or Machine()
        self.manners = Manners(**manners)
        self.username, self.password = username.encode(), password.encode()
        self.boot = bytes(5)  # the data of parameter 5
        self.log: list[tuple[int, int, bytes]] = []
        self.opened = self.closed = 0
        self._sessions: dict[int, _Session] = {}
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind(("127.0.0.1", 0))
        self._socket.settimeout(0.1)
        self.host = f"127.0.0.1:{self._socket.getsockname()[1]}"
        self.url = self.host
        self._stop = False
        self._thread = threading.Thread(target=self._serve, daemon=True)

    def __enter__(self) -> IpmiBmc:
        self._thread.start()
        return self

    def __exit__(self, *unused: object) -> None:
        self._stop = True
        self._thread.join(5)
        self._socket.close()

    def controls(self) -> list[str]:
        """The power requests that arrived, repetitions included."""
        return [CONTROLS[data[0]] for netfn, command, data in self.log if (netfn, command) == (0, 2)]

    # -- packets ------------------------------------------------------------------------------------------

    def _serve(self) -> None:
        while not self._stop:
            try:
                packet, sender = self._socket.recvfrom(2048)
            except socket.timeout:
                continue
            for answer in self._packet(packet):
                self._socket.sendto(b"\x06\x00\xff\x07" + answer, sender)

    def _packet(self, packet: bytes) -> list[bytes]:
        if packet[4] == 0:  # IPMI 1.5, before the session
            message = self._message(packet[14 : 14 + packet[13]], None)
            return [b"\x00" + bytes(8) + bytes([len(message)]) + message] if message else []
        kind, encrypted = packet[5] & 0x3F, packet[5] & 0x80
        size = struct.unpack_from("<H", packet, 14)[0]
        payload = packet[16 : 16 + size]
        if kind in (OPEN, RAKP1, RAKP3):
            reply_kind, reply = {OPEN: self._open, RAKP1: self._rakp1, RAKP3: self._rakp3}[kind](payload)
            return [b"\x06" + bytes([reply_kind]) + bytes(8) + struct.pack("<H", len(reply)) + reply] if reply else []
        session = self._sessions.get(struct.unpack_from("<I", packet, 6)[0])
        if session is None or not session.active or not encrypted or session.aes is None:
            return []
        plain = session.aes.decrypt_cbc(payload[:16], payload[16:])
        message = self._message(plain[: -plain[-1] - 1], session)
        return [self._sealed(session, message)] if message else []

    def _sealed(self, session: _Session, message: bytes) -> bytes:
        assert session.aes is not None
        pad = (15 - len(message)) % 16
        plain = message + bytes(range(1, pad + 1)) + bytes([pad])
        iv = os.urandom(16)
        payload = iv + session.aes.encrypt_cbc(iv, plain)
        session.sequence += 1
        packet = b"\x06\xc0" + struct.pack("<IIH", session.console, session.sequence, len(payload)) + payload
        fill = -(len(packet) + 2) % 4
        packet += b"\xff" * fill + bytes([fill, 7])
        return packet + hmac.new(session.k1, packet, session.hash).digest()[: session.cut]

    # -- the login ----------------------------------------------------------------------------------------

    def _open(self, data: bytes) -> tuple[int, bytes]:
        tag, console, algorithm = data[0], struct.unpack_from("<I", data, 4)[0], data[12]
        suite = {3: 17, 1: 3}.get(algorithm, 0)
        refusal = 0x11 if suite not in self.manners.suites else 0x01 if self.manners.full > 0 else 0
        if refusal == 0x01:
            self.manners.full -= 1
        if refusal:
            return OPENED, bytes([tag, refusal, 0, 0]) + struct.pack("<I", console)
        number = 0x1000 + len(self._sessions)
        sha1 = suite == 3 or self.manners.answers_sha1_to_17
        self._sessions[number] = _Session(number, console, suite, sha1)
        return OPENED, bytes([tag, 0, 4, 0]) + struct.pack("<II", console, number) + data[8:32]

    def _rakp1(self, data: bytes) -> tuple[int, bytes]:
        session = self._sessions[struct.unpack_from("<I", data, 4)[0]]
        tag = 0 if self.manners.zero_rakp2_tag else data[0]
        session.console_random = data[8:24]
        session.role, session.user = data[24:25], data[28 : 28 + data[27]]
        if session.user != self.username:
            return RAKP2, bytes([tag, 0x0D, 0, 0]) + struct.pack("<I", session.console)
        ids = struct.pack("<II", session.console, session.number)
        told = ids + session.console_random + session.random + GUID + session.role + bytes([len(session.user)])
        proof = hmac.new(self.password, told + session.user, session.hash).digest()
        return RAKP2, bytes([tag, 0, 0, 0]) + struct.pack("<I", session.console) + session.random + GUID + proof

    def _rakp3(self, data: bytes) -> tuple[int, bytes]:
        session = self._sessions[struct.unpack_from("<I", data, 4)[0]]
        names = session.role + bytes([len(session.user)]) + session.user
        secret = session.console_random + session.random + names
        session.sik = hmac.new(self.manners.kg or self.password, secret, session.hash).digest()
        session.k1 = hmac.new(session.sik, b"\x01" * 20, session.hash).digest()
        session.aes = Aes(hmac.new(session.sik, b"\x02" * 20, session.hash).digest()[:16])
        session.active = True
        self.opened += 1
        told = session.console_random + struct.pack("<I", session.number) + GUID
        proof = hmac.new(session.sik, told, session.hash).digest()[: session.cut]
        return RAKP4, bytes([data[0], 0, 0, 0]) + struct.pack("<I", session.console) + proof

    # -- commands -----------------------------------------------------------------------------------------

    def _message(self, request: bytes, session: _Session | None) -> bytes:
        netfn, command, data = request[1] >> 2, request[5], request[6:-1]
        self.log.append((netfn, command, data))
        code, reply = self._command(netfn, command, data, session)
        if self.manners.lose.get((netfn, command), 0) > 0:
            self.manners.lose[(netfn, command)] -= 1
            return b""
        head = bytes([request[3], (netfn + 1) << 2])
        body = bytes([0x20, request[4], command, code]) + reply
        return head + _checksum(head) + body + _checksum(body)

    def _command(self, netfn: int, command: int, data: bytes, session: _Session | None) -> tuple[int, bytes]:
        forced = self.manners.codes.get((netfn, command))
        if forced:
            return forced.pop(0), b""
        if (netfn, command) == (6, 0x38):
            new = 0 if self.manners.ipmi15_only else 0x80
            return 0, bytes([1, new, 0, 2 if new else 0, 0, 0, 0, 0])
        if session is None:
            return 0xD4, b""
        if (netfn, command) in self.manners.short:
            return 0, b""
        if (netfn, command) == (6, 0x3B):
            return 0, data[:1]
        if (netfn, command) == (6, 0x3C):
            self.closed += 1
            return 0, b""
        if (netfn, command) == (6, 1):
            return 0, bytes([0x20, 1, 2, 0, 2, 0, 0x10, 0x20, 0, 0x30, 0x40, 0, 0, 0, 0])
        if (netfn, command) == (0, 1):
            return 0, bytes([1 if self.machine.state == "On" else 0, 0, 0])
        if (netfn, command) == (0, 2):
            return self._control(CONTROLS.get(data[0], ""))
        if (netfn, command) == (0, 8) and data[0] == 3:
            return self.manners.param3_code, b""
        if (netfn, command) == (0, 8) and data[0] == 5:
            self.boot = self.manners.boot_rule(bytes(data[1:6]))
            return 0, b""
        if (netfn, command) == (0, 9):
            return 0, bytes([1, 5]) + self.boot
        return 0xC1, b""

    def _control(self, name: str) -> tuple[int, bytes]:
        if name in ("ForceRestart", "PowerCycle", "GracefulShutdown") and self.machine.state == "Off":
            return 0xD5, b""
        self.machine.reset(name)
        return 0, b""


def _checksum(data: bytes) -> bytes:
    return bytes([-sum(data) & 0xFF])


def wait_until(condition: t.Callable[[], bool], seconds: float = 2.0) -> bool:
    """For assertions about what a datagram does a moment later."""
    ends = time.monotonic() + seconds
    while time.monotonic() < ends:
        if condition():
            return True
        time.sleep(0.01)
    return condition()
