# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The archive that the Linux kernel unpacks (cpio newc): the same bytes for the same input. Private to h200.rack."""

from __future__ import annotations

import io
import os
import shutil
import stat
import typing as t
from dataclasses import dataclass

BLOCK = 512


@dataclass(frozen=True)
class Entry:
    """One thing in the archive. ``path`` is relative; ``data`` are a file's bytes or a link's target."""

    path: str
    mode: int
    data: bytes = b""
    source: t.Optional[str] = None  # a file to copy from, instead of data
    uid: int = 0
    gid: int = 0
    rdev: tuple[int, int] = (0, 0)


def directory(path: str, mode: int = 0o755) -> Entry:
    return Entry(path, stat.S_IFDIR | mode)


def regular(path: str, data: bytes, mode: int = 0o644) -> Entry:
    return Entry(path, stat.S_IFREG | mode, data)


def symlink(path: str, target: str) -> Entry:
    return Entry(path, stat.S_IFLNK | 0o777, os.fsencode(target))


def character_device(path: str, major: int, minor: int, mode: int = 0o600) -> Entry:
    return Entry(path, stat.S_IFCHR | mode, rdev=(major, minor))


def with_parents(entries: t.Iterable[Entry]) -> list[Entry]:
    """The entries sorted by path, with each missing parent directory put before what is in it."""
    known = {entry.path: entry for entry in entries}
    for path in list(known):
        parent = os.path.dirname(path)
        while parent and parent not in known:
            known[parent] = directory(parent)
            parent = os.path.dirname(parent)
    return [known[path] for path in sorted(known, key=os.fsencode)]


def _header(ino: int, entry: Entry, size: int, name: bytes, mtime: int) -> bytes:
    links = 2 if stat.S_ISDIR(entry.mode) else 1
    fields = (ino, entry.mode, entry.uid, entry.gid, links, mtime, size, 0, 0, *entry.rdev, len(name) + 1, 0)
    return b"070701" + b"".join(b"%08X" % field for field in fields) + name + b"\0"


def _padding(length: int, to: int = 4) -> bytes:
    return b"\0" * (-length % to)


def write(out: t.BinaryIO, entries: t.Iterable[Entry], mtime: int = 0) -> int:
    """Write an archive of the entries, in their order, and return its length in bytes."""
    total = 0
    ino = 0
    for ino, entry in enumerate(entries, 1):
        size = len(entry.data) if entry.source is None else os.stat(entry.source).st_size
        head = _header(ino, entry, size, os.fsencode(entry.path), mtime)
        out.write(head + _padding(len(head)))
        if entry.source is None:
            out.write(entry.data)
        else:
            with open(entry.source, "rb") as handle:
                shutil.copyfileobj(handle, out, 1 << 20)
        out.write(_padding(size))
        total += len(head) + len(_padding(len(head))) + size + len(_padding(size))
    head = _header(0, Entry("", 0), 0, b"TRAILER!!!", 0)
    tail = head + _padding(len(head))
    tail += _padding(total + len(tail), BLOCK)
    out.write(tail)
    return total + len(tail)


def archive(entries: t.Iterable[Entry], mtime: int = 0) -> bytes:
    """The archive as bytes; for small ones."""
    out = io.BytesIO()
    write(out, entries, mtime)
    return out.getvalue()
