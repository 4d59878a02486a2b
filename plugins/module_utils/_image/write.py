# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Bring an image's chunks to a disk: several at a time, each checked before it is written. Private to h200.rack.

Every thread takes a chunk through all of its steps (fetch, unpack, hash, write), each of which leaves the interpreter
lock to the others; a few more threads than cores hide the waits for network and disk.
"""

from __future__ import annotations

import hashlib
import os
import threading
import time
import typing as t

from ansible_collections.h200.rack.plugins.module_utils._common.errors import RackError

from .manifest import Chunk, Manifest, wire_bound
from .mirrors import Pool
from .source import Source
from .target import Target, buffer

_MEMORY = 320 << 20
_SAMPLES = 16
_PEEK = 4096


class VerifyError(RackError):
    """What was read back is not what was written."""

    code = "verify"


class Counters:
    """What has been done so far, counted under one lock."""

    def __init__(self, total: int) -> None:
        self._lock = threading.Lock()
        self.total = total
        self.fetched = self.written = self.skipped = self.unchanged = self.verified = 0
        self.started = time.monotonic()

    def add(self, **counts: int) -> None:
        with self._lock:
            for key, count in counts.items():
                setattr(self, key, getattr(self, key) + count)

    @property
    def done(self) -> int:
        return self.written + self.skipped

    @property
    def seconds(self) -> float:
        return time.monotonic() - self.started

    def progress(self) -> dict[str, t.Any]:
        seconds = self.seconds
        return {
            "total_bytes": self.total,
            "done_bytes": self.done,
            "fetched_bytes": self.fetched,
            "verified_bytes": self.verified,
            "seconds": round(seconds, 2),
            "throughput": int(self.done / seconds) if seconds else 0,
        }


def thread_count(chunk_size: int) -> int:
    """How many chunks may be on their way at once: enough to keep all cores busy, bounded by memory."""
    wanted = min(max(2 * (os.cpu_count() or 1), 4), 16)
    return max(1, min(wanted, _MEMORY // (chunk_size + wire_bound(chunk_size))))


def in_threads(
    items: t.Iterable[t.Any],
    make_worker: t.Callable[[], t.Callable[[t.Any], None]],
    count: int,
    tick: t.Callable[[], None],
    stop: t.Callable[[], None] = lambda: None,
) -> None:
    """Hand each of ``items`` to one of ``count`` workers; the first error ends them all and is raised.

    ``tick`` is called about once a second by the calling thread, ``stop`` once when the others shall give up.
    """
    queue = iter(items)
    lock = threading.Lock()
    errors: list[BaseException] = []

    def run() -> None:
        try:
            work = make_worker()
            while not errors:
                with lock:
                    item = next(queue, None)
                if item is None:
                    return
                work(item)
        except BaseException as exc:
            errors.append(exc)
            stop()

    threads = [threading.Thread(target=run, daemon=True) for _number in range(count)]
    for thread in threads:
        thread.start()
    try:
        for thread in threads:
            while thread.is_alive():
                thread.join(1.0)
                tick()
    except BaseException as exc:
        errors.append(exc)
        stop()
        raise
    if errors:
        raise errors[0]


class Writer:
    """Writes one manifest's chunks, all but the first, to one target."""

    def __init__(self, pool: Pool, manifest: Manifest, target: Target, tick: t.Callable[[], None]) -> None:
        self._pool = pool
        self._manifest = manifest
        self._target = target
        self._tick = tick
        self._threads = thread_count(manifest.chunk_size)
        self.counters = Counters(manifest.raw_size)

    def _buffers(self) -> tuple[memoryview, memoryview]:
        size = self._manifest.chunk_size
        return memoryview(bytearray(wire_bound(size))), buffer(size)

    def first_chunk(self, source: Source) -> bytes:
        """The first chunk of the image, in memory: it goes to the disk last, with the partition table of this disk."""
        chunk = self._manifest.chunks[0]
        wire, raw = self._buffers()
        self.counters.add(fetched=source.fetch(chunk, wire, raw[: chunk.raw_length]))
        return bytes(raw[: chunk.raw_length])

    def is_on_disk(self, chunk: Chunk, raw: memoryview) -> bool:
        """Whether the disk already holds the chunk; ``raw`` is room for it."""
        view = raw[: chunk.raw_length]
        self._target.read(chunk.raw_offset, view)
        return hashlib.sha256(view).hexdigest() == chunk.sha256

    def looks_like_ours(self) -> bool:
        """Whether comparing before writing pays: a few chunks from all over the disk are looked at."""
        chunks = [chunk for chunk in self._manifest.chunks[1:] if not chunk.zero]
        step = max(1, len(chunks) // _SAMPLES)
        samples = chunks[::step][:_SAMPLES]
        peek, zeros = buffer(_PEEK)[:_PEEK], bytes(_PEEK)
        raw: memoryview | None = None
        for chunk in samples:
            length = min(_PEEK, chunk.raw_length)
            self._target.read(chunk.raw_offset, peek[:length])
            if peek[:length] == zeros[:length]:
                continue
            raw = raw if raw is not None else buffer(self._manifest.chunk_size)
            if self.is_on_disk(chunk, raw):
                return True
        return False

    def holds_all(self) -> bool:
        """Whether every chunk but the first is on the disk; stops at the first that is not."""
        try:
            self.verify(self._manifest.chunks[1:])
        except VerifyError:
            return False
        return True

    def write_rest(self, source: Source, compare: bool) -> None:
        """Write every chunk but the first. ``compare``: leave alone what the disk already holds."""
        jobs = source.order(self._jobs(merge_zeros=not compare))
        in_threads(jobs, lambda: self._worker(source, compare), self._threads, self._tick, self._pool.stop)

    def _jobs(self, merge_zeros: bool) -> t.Iterator[Chunk]:
        """The chunks; where nothing is compared, neighbouring zero chunks become one range."""
        run: Chunk | None = None
        for chunk in self._manifest.chunks[1:]:
            if merge_zeros and chunk.zero:
                run = run._replace(raw_length=run.raw_length + chunk.raw_length) if run else chunk
                continue
            if run:
                yield run
                run = None
            yield chunk
        if run:
            yield run

    def _worker(self, source: Source, compare: bool) -> t.Callable[[Chunk], None]:
        wire, raw = self._buffers()

        def work(chunk: Chunk) -> None:
            if compare and self.is_on_disk(chunk, raw):
                self.counters.add(skipped=chunk.raw_length, unchanged=chunk.raw_length)
            elif chunk.zero:
                self._target.zero(chunk.raw_offset, chunk.raw_length)
                self.counters.add(skipped=chunk.raw_length)
            else:
                view = raw[: chunk.raw_length]
                fetched = source.fetch(chunk, wire, view)
                self._target.write(chunk.raw_offset, view)
                self.counters.add(fetched=fetched, written=chunk.raw_length)

        return work

    def sample(self) -> list[Chunk]:
        """One chunk of every sixteen, at least a few, not the same ones on every node and each time."""
        chunks = [chunk for chunk in self._manifest.chunks[1:] if not chunk.zero]
        step = max(1, min(16, len(chunks) // 4))
        return chunks[int.from_bytes(os.urandom(2), "little") % step :: step]

    def verify(self, chunks: t.Sequence[Chunk]) -> None:
        """Read ``chunks`` back from the disk and compare their digests."""

        def make() -> t.Callable[[Chunk], None]:
            raw = buffer(self._manifest.chunk_size)

            def work(chunk: Chunk) -> None:
                if not self.is_on_disk(chunk, raw):
                    raise VerifyError(f"{self._target.path}: the disk returns other bytes at {chunk.raw_offset}")
                self.counters.add(verified=chunk.raw_length)

            return work

        in_threads(chunks, make, self._threads, self._tick)
