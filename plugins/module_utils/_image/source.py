# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where the writer gets chunks: from the mirrors, or from a swarm as they arrive. Private to h200.rack."""

from __future__ import annotations

import os
import threading
import typing as t

from .fetch import CorruptChunk, fetch_raw, unpack
from .manifest import Chunk
from .mirrors import Pool
from .swarm import Swarm

_WAIT = 0.5


class Source(t.Protocol):
    def order(self, chunks: t.Iterable[Chunk]) -> t.Iterator[Chunk]:
        """``chunks`` in the order in which they can be had; waits where nothing can be had yet."""

    def fetch(self, chunk: Chunk, wire: memoryview, raw: memoryview) -> int:
        """Fill ``raw`` with the chunk, checked; ``wire`` is room for its frame. Returns the bytes fetched."""


class FromMirrors:
    def __init__(self, pool: Pool, path: str, wire_size: int) -> None:
        self.pool = pool
        self._path = path
        self._wire_size = wire_size

    def order(self, chunks: t.Iterable[Chunk]) -> t.Iterator[Chunk]:
        return iter(chunks)

    def fetch(self, chunk: Chunk, wire: memoryview, raw: memoryview) -> int:
        return fetch_raw(self.pool, self._path, chunk, self._wire_size, wire, raw)


class FromSwarm:
    """Follows what has arrived. What the swarm does not give, or gives wrong, comes from the mirrors."""

    def __init__(self, swarm: Swarm, mirrors: FromMirrors) -> None:
        self._swarm = swarm
        self._mirrors = mirrors
        self._lock = threading.Lock()
        self._fd: int | None = None
        self.bytes = 0

    def close(self) -> None:
        if self._fd is not None:
            os.close(self._fd)

    def order(self, chunks: t.Iterable[Chunk]) -> t.Iterator[Chunk]:
        pending: list[Chunk] = []
        for chunk in chunks:
            if chunk.zero:
                yield chunk
            else:
                pending.append(chunk)
        while pending:
            status, later = self._swarm.status, []
            for chunk in pending:
                if status.has(chunk.wire_offset, chunk.wire_length):
                    yield chunk
                else:
                    later.append(chunk)
            if len(later) == len(pending):
                if self._swarm.stalled:
                    yield from later
                    return
                self._mirrors.pool.check()
                self._swarm.wait(_WAIT)
            pending = later

    def fetch(self, chunk: Chunk, wire: memoryview, raw: memoryview) -> int:
        if self._swarm.status.has(chunk.wire_offset, chunk.wire_length):
            try:
                self._read(chunk.wire_offset, wire[: chunk.wire_length])
                unpack(chunk, wire[: chunk.wire_length], raw)
            except (CorruptChunk, OSError):
                # The pieces are right by their own hashes: the torrent is that of other bytes. The mirrors decide.
                return self._mirrors.fetch(chunk, wire, raw)
            with self._lock:
                self.bytes += chunk.wire_length
            return chunk.wire_length
        return self._mirrors.fetch(chunk, wire, raw)

    def _read(self, offset: int, view: memoryview) -> None:
        with self._lock:
            if self._fd is None:
                self._fd = os.open(self._swarm.path, os.O_RDONLY | os.O_CLOEXEC)
        done = 0
        while done < len(view):
            count = os.preadv(self._fd, [view[done:]], offset + done)
            if not count:
                raise CorruptChunk("the file of the swarm is too short")
            done += count
