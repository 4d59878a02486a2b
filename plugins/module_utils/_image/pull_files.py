# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Bring one published file onto this mirror, whatever single sources do meanwhile. Private to h200.rack."""

from __future__ import annotations

import os
import typing as t

from . import ramdisk
from .fetch import CorruptChunk, fetch_raw, fetch_wire, unpack
from .manifest import Chunk, Manifest, wire_bound
from .mirrors import NoMirrors, Pool
from .write import in_threads, thread_count

_PIECE = 8 << 20


def fetch_frames(pool: Pool, url: str, path: str, manifest: Manifest) -> int:
    """The frames of an image, several at a time, each unpacked and checked before it is stored.

    Those that ``path`` has already are left as they are. Returns the bytes fetched.
    """
    counts: list[int] = []
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        os.ftruncate(fd, manifest.wire_size)

        def make() -> t.Callable[[Chunk], None]:
            wire = memoryview(bytearray(wire_bound(manifest.chunk_size)))
            raw = memoryview(bytearray(manifest.chunk_size))

            def work(chunk: Chunk) -> None:
                frame, view = wire[: chunk.wire_length], raw[: chunk.raw_length]
                if _is_stored(fd, chunk, frame, view):
                    return
                counts.append(fetch_raw(pool, url, chunk, manifest.wire_size, wire, view))
                _write_all(fd, frame, chunk.wire_offset)

            return work

        threads = thread_count(manifest.chunk_size)
        in_threads(manifest.chunks, make, threads, lambda: None, pool.stop)
        os.fsync(fd)
    finally:
        os.close(fd)
    return sum(counts)


def fetch_file(pools: t.Iterable[Pool], url: str, path: str, size: int, sha256: str) -> int:
    """A file without chunks of its own, in pieces, from whichever source of the first pool gives them.

    Its one sha256 does not tell which source gave a wrong piece: then the next pool, of one source, is asked for all
    of it. Returns the bytes fetched.
    """
    count = 0
    for number, pool in enumerate(pools):
        try:
            _pieces(pool, url, path, size)
        except NoMirrors:
            if not number:
                raise
            continue
        count += size
        if ramdisk.describe(path)["sha256"] == sha256:
            break
    return count


def _pieces(pool: Pool, url: str, path: str, size: int) -> None:
    buffer = memoryview(bytearray(min(_PIECE, size)))
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)
    try:
        for offset in range(0, size, _PIECE):
            view = buffer[: min(_PIECE, size - offset)]
            fetch_wire(pool, url, Chunk(0, 0, offset, len(view), "", False), size, view)
            _write_all(fd, view, offset)
        os.fsync(fd)
    finally:
        os.close(fd)


def _is_stored(fd: int, chunk: Chunk, frame: memoryview, raw: memoryview) -> bool:
    if os.preadv(fd, [frame], chunk.wire_offset) != len(frame) or frame[:4] != b"\x28\xb5\x2f\xfd":
        return False
    try:
        unpack(chunk, frame, raw)
    except CorruptChunk:
        return False
    return True


def _write_all(fd: int, view: memoryview, offset: int) -> None:
    done = 0
    while done < len(view):
        done += os.pwrite(fd, view[done:], offset + done)
