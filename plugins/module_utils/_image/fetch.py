# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Fetch one chunk's frame into a buffer and unpack it, whatever single mirrors do meanwhile. Private to h200.rack."""

from __future__ import annotations

import hashlib
import threading
import time
import typing as t

from ansible_collections.h200.rack.plugins.module_utils._common.errors import RackError

from .http import MirrorError
from .manifest import Chunk
from .mirrors import Mirror, Pool

try:
    import zstandard

    ZSTANDARD_ERROR = None
except ImportError as exc:
    zstandard = None
    ZSTANDARD_ERROR = exc


_local = threading.local()


class CorruptChunk(RackError):
    """The bytes are not those of the manifest."""

    code = "corrupt"


def fetch_wire(pool: Pool, path: str, chunk: Chunk, total: int, wire: memoryview) -> set[Mirror]:
    """Fill ``wire`` with the chunk's frame; goes on at another mirror where one stopped. Returns who gave bytes."""
    have = 0
    givers: set[Mirror] = set()
    failed: set[Mirror] = set()
    while have < len(wire):
        mirror = pool.take(failed)
        before, started = have, time.monotonic()
        try:
            connection = pool.connection(mirror)
            for count in connection.get_range(path, chunk.wire_offset + have, wire[have:], total, pool.watch()):
                have += count
                givers.add(mirror)
        except MirrorError as exc:
            pool.failed(mirror, exc, have - before, time.monotonic() - started)
            failed.add(mirror)
        except BaseException as exc:
            pool.failed(mirror, MirrorError(str(exc)))
            raise
        else:
            pool.gave(mirror, have - before, time.monotonic() - started)
    return givers


def _decompressor() -> t.Any:
    """This thread's decompressor: its workspace is kept from chunk to chunk."""
    if not hasattr(_local, "decompressor"):
        _local.decompressor = zstandard.ZstdDecompressor()
    return _local.decompressor


def unpack(chunk: Chunk, wire: memoryview, raw: memoryview) -> None:
    """Unpack the frame into ``raw``, which has exactly the chunk's length, and check every byte of it."""
    try:
        if zstandard.get_frame_parameters(wire).content_size != chunk.raw_length:
            raise CorruptChunk(f"the frame at {chunk.wire_offset} says another size than {chunk.raw_length}")
        # A frame that comes whole and knows its size is unpacked into the given buffer without a copy.
        with _decompressor().stream_reader(wire, read_across_frames=False) as reader:
            filled = 0
            while filled < len(raw):
                count = reader.readinto(raw[filled:] if filled else raw)
                if not count:
                    raise CorruptChunk(f"the frame at {chunk.wire_offset} ends early")
                filled += count
    except zstandard.ZstdError as exc:
        raise CorruptChunk(f"the frame at {chunk.wire_offset} cannot be unpacked: {exc}") from exc
    if hashlib.sha256(raw).hexdigest() != chunk.sha256:
        raise CorruptChunk(f"the chunk at {chunk.raw_offset} has another sha256 than the manifest says")


def fetch_raw(pool: Pool, path: str, chunk: Chunk, total: int, wire: memoryview, raw: memoryview) -> int:
    """Fetch the chunk until it is right; returns the bytes fetched for it."""
    fetched = 0
    view = wire[: chunk.wire_length]
    while True:
        givers = fetch_wire(pool, path, chunk, total, view)
        fetched += chunk.wire_length
        try:
            unpack(chunk, view, raw)
        except CorruptChunk as exc:
            # Only when one mirror gave all of it is it certain who is to blame.
            if len(givers) == 1:
                pool.corrupted(next(iter(givers)), exc.msg)
            pool.deadline.check(exc.msg)
        else:
            return fetched
