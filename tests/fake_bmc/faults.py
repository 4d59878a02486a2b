# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Faults to inject, and the log that tests assert on."""

from __future__ import annotations

import dataclasses
import re
import typing as t

# (head, body) -> what to send, each with the seconds to wait afterwards.
Wire = t.Callable[[bytes, bytes], t.Iterator[tuple[bytes, float]]]


def dripping(seconds: float, from_byte: int = 0) -> Wire:
    """An answer of which one byte comes every ``seconds``; the first ``from_byte`` come at once."""

    def wire(head: bytes, body: bytes) -> t.Iterator[tuple[bytes, float]]:
        whole = head + body
        yield whole[:from_byte], seconds
        for number in range(from_byte, len(whole)):
            yield whole[number : number + 1], seconds

    return wire


def endless_head(head: bytes, body: bytes) -> t.Iterator[tuple[bytes, float]]:
    """Interim answers without end, which a client has to skip."""
    while True:
        yield b"HTTP/1.1 100 Continue\r\n\r\n", 0.01


def endless_body(head: bytes, body: bytes) -> t.Iterator[tuple[bytes, float]]:
    """Chunks of spaces without end, as fast as they are taken."""
    yield b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", 0
    while True:
        yield b"10000\r\n" + b" " * 0x10000 + b"\r\n", 0


def garbage(head: bytes, body: bytes) -> t.Iterator[tuple[bytes, float]]:
    """Something that is no HTTP."""
    yield b"\x16\x03\x01\x00\xff<<<\r\n\r\n", 0


def cut_short(head: bytes, body: bytes) -> t.Iterator[tuple[bytes, float]]:
    """Half of the body that was announced."""
    yield head + body[: len(body) // 2], 0


@dataclasses.dataclass
class Fault:
    """What happens to the next ``times`` requests that match."""

    method: str = "*"
    path: str = ""  # regular expression, searched
    reset_type: str | None = None
    times: int = 1
    process: bool = False  # whether the request takes effect all the same
    delay: float = 0.0  # seconds before the answer
    drop: bool = False  # close the connection instead of answering
    status: int | None = None
    body: t.Any = None
    headers: dict[str, str] = dataclasses.field(default_factory=dict)
    raw: bytes | None = None  # sent as the body, as it is
    wire: Wire | None = None  # how the bytes of the answer are sent, when not at once
    after: int = 0  # let so many matching requests pass first

    def matches(self, method: str, path: str, body: t.Any) -> bool:
        if self.times <= 0 or self.method not in ("*", method) or not re.search(self.path, path):
            return False
        if self.reset_type and not (isinstance(body, dict) and body.get("ResetType") == self.reset_type):
            return False
        if self.after > 0:
            self.after -= 1
            return False
        return True


@dataclasses.dataclass
class Entry:
    method: str
    path: str
    body: t.Any
    headers: dict[str, str]
    status: int | None = None  # None: no answer was given
    seconds: float = 0.0

    @property
    def refused(self) -> bool:
        """Answered so that the client may know that nothing happened."""
        return self.status is not None and (400 <= self.status < 500 or self.status in (501, 503))


class Log(list):
    """The requests in the order of their arrival."""

    def paths(self, method: str = "GET") -> list[str]:
        return [entry.path for entry in self if entry.method == method]

    def of(self, method: str, path: str) -> list[Entry]:
        return [entry for entry in self if entry.method == method and re.search(path, entry.path)]

    def resets(self, taken: bool = False) -> list[str]:
        """The ResetTypes posted; with ``taken`` only those that were accepted or whose outcome was left open."""
        found = self.of("POST", r"Reset$")
        return [entry.body.get("ResetType") for entry in found if not (taken and entry.refused)]

    def sessions_open(self) -> int:
        made = [entry for entry in self.of("POST", r"/Sessions$") if entry.status == 201]
        closed = [entry for entry in self.of("DELETE", r"/Sessions/") if entry.status and entry.status < 300]
        return len(made) - len(closed)
