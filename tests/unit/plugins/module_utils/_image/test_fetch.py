# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import hashlib
import random

import pytest
from ansible_collections.h200.rack.plugins.module_utils._image import fetch
from ansible_collections.h200.rack.plugins.module_utils._image.manifest import Chunk

zstandard = pytest.importorskip("zstandard")

DATA = random.Random(1).randbytes(70_000) + bytes(30_000)


def chunk(frame: bytes) -> Chunk:
    return Chunk(0, len(DATA), 0, len(frame), hashlib.sha256(DATA).hexdigest(), False)


def compressed(data: bytes, sized: bool = True) -> bytes:
    return zstandard.ZstdCompressor(write_content_size=sized).compress(data)


def unpack(frame: bytes) -> bytes:
    raw = memoryview(bytearray(len(DATA)))
    fetch.unpack(chunk(frame), memoryview(frame), raw)
    return bytes(raw)


def lying(data: bytes, size: int) -> bytes:
    """A frame whose header says that it holds ``size`` bytes."""
    frame = bytearray(compressed(data))
    # Frame header descriptor 0xa0: the size is a single segment's, in 4 bytes behind magic number and descriptor.
    assert frame[4] & 0xE0 == 0xA0
    frame[5:9] = size.to_bytes(4, "little")
    return bytes(frame)


def test_the_right_frame_is_unpacked() -> None:
    assert unpack(compressed(DATA)) == DATA


@pytest.mark.parametrize(
    "frame",
    [
        pytest.param(compressed(DATA + b"x"), id="holds more and says so"),
        pytest.param(compressed(DATA[:-1]), id="holds less"),
        pytest.param(compressed(DATA, sized=False), id="does not say how much it holds"),
        pytest.param(lying(DATA + bytes(1 << 20), len(DATA)), id="holds more than it says"),
        pytest.param(lying(DATA[:-9], len(DATA)), id="holds less than it says"),
        pytest.param(compressed(DATA)[:-100], id="is cut"),
        pytest.param(compressed(DATA[::-1]), id="other bytes"),
        pytest.param(b"<html>" * 100, id="no frame at all"),
        pytest.param(b"", id="nothing"),
    ],
)
def test_a_frame_that_is_not_the_chunks_is_refused(frame) -> None:
    with pytest.raises(fetch.CorruptChunk):
        unpack(frame)
