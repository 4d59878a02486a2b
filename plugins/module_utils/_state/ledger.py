# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One append-only file of JSON lines per node. Private to h200.rack.

A line counts once its newline is written. A writer that died in the middle leaves a torn last line; readers leave it
out and the next writer, holding the lock, removes it. Every other line must be whole.
"""

from __future__ import annotations

import json
import os
import re
import typing as t

from ansible_collections.h200.rack.plugins.module_utils._common.atomic import fsync_dir, read_or_none
from ansible_collections.h200.rack.plugins.module_utils._common.errors import InvalidInput, RackError

from . import clock

Event = dict[str, t.Any]

_NODE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,199}\Z")
KINDS = ("stage", "lease", "takeover", "release")


class DamagedLedger(RackError):
    """A line that nobody of ours could have written."""

    code = "damaged"


def check_node_name(node: str) -> str:
    """A node's name is a file's name here."""
    if not _NODE.match(node):
        raise InvalidInput(f"{node!r} cannot be a node's name: letters, digits, dot, hyphen and underscore only")
    return node


def ledger_path(folder: str, node: str) -> str:
    return os.path.join(folder, f"{check_node_name(node)}.jsonl")


def lock_path(folder: str, node: str) -> str:
    return os.path.join(folder, f".{check_node_name(node)}.lock")


def whole_lines(data: bytes) -> bytes:
    """The data up to its last newline: without the torn line of a writer that died."""
    return data[: data.rfind(b"\n") + 1]


def _event(path: str, number: int, line: bytes) -> Event:
    try:
        event = json.loads(line)
        if not isinstance(event, dict) or event.get("event") not in KINDS:
            raise ValueError("not an event")
        clock.parse(event["time"])
        clock.parse(event["until"])
    except (ValueError, KeyError, TypeError) as exc:
        raise DamagedLedger(
            f"{path}, line {number}, is not an event of a ledger: repair or remove this line (kept nowhere else)",
            path=path,
            line=number,
        ) from exc
    return event


def parse_events(path: str, data: bytes) -> list[Event]:
    """All events in the data of the file ``path``. Raises :class:`DamagedLedger`."""
    return [_event(path, number, line) for number, line in enumerate(whole_lines(data).splitlines(), start=1)]


def read(path: str) -> list[Event]:
    """All events of the file; none when it does not exist."""
    return parse_events(path, read_or_none(path) or b"")


def _write_all(fd: int, data: bytes) -> None:
    while data:
        data = data[os.write(fd, data) :]


def append(path: str, events: t.Sequence[Event]) -> None:
    """Add the events durably, all in one write. The caller holds the node's lock."""
    lines = b"".join(json.dumps(event, sort_keys=True).encode() + b"\n" for event in events)
    new = not os.path.exists(path)
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o640)
    try:
        size = os.fstat(fd).st_size
        if size and os.pread(fd, 1, size - 1) != b"\n":
            os.ftruncate(fd, len(whole_lines(os.pread(fd, size, 0))))
        _write_all(fd, lines)
        os.fsync(fd)
    finally:
        os.close(fd)
    if new:
        fsync_dir(os.path.dirname(path))
