# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The metainfo by which BitTorrent clients know an image's file. Private to h200.rack.

It follows from the manifest and the file alone, so every mirror makes its own and all make the same one; the trackers
are named when it is used. Nothing trusts it: every chunk is still checked against the signed manifest.
"""

from __future__ import annotations

import hashlib
import os
import typing as t

from ansible_collections.h200.rack.plugins.module_utils._common.atomic import write_atomic

from .manifest import WIRE_FILE, Manifest

TORRENT_FILE = "image.torrent"
INFO_HASH_FILE = "image.infohash"
MAX_TORRENT = 1 << 20
_MIN_PIECE = 128 * 1024
_MAX_PIECE = 16 << 20
_PIECES = 8192


def piece_length(raw_size: int) -> int:
    """Small pieces travel on sooner, which counts when a whole rack fetches at once; too many are slow to account for.

    By the raw size, because the pieces are hashed while the wire file, whose size nobody knows yet, is written.
    """
    length = _MIN_PIECE
    while length < _MAX_PIECE and raw_size > length * _PIECES:
        length *= 2
    return length


def bencode(value: t.Any) -> bytes:
    """``value`` (integers, bytes, text, mappings) in BitTorrent's encoding."""
    if isinstance(value, int):
        return b"i%de" % value
    if isinstance(value, str):
        value = value.encode("utf-8")
    if isinstance(value, bytes):
        return b"%d:%s" % (len(value), value)
    pairs = sorted((key.encode("utf-8"), item) for key, item in value.items())
    return b"d" + b"".join(bencode(key) + bencode(item) for key, item in pairs) + b"e"


def _sha1(data: bytes = b"") -> t.Any:
    # SHA-1 is what the protocol names its pieces by. No security rests on it, and it is there in FIPS mode, too.
    return hashlib.sha1(data, usedforsecurity=False)


class Metainfo(t.NamedTuple):
    """The content of the file, and the info hash in hex, by which a tracker's whitelist knows it."""

    content: bytes
    info_hash: str


class Pieces:
    """Takes the bytes of the file in order, and gives its metainfo."""

    def __init__(self, length: int, name: str = WIRE_FILE) -> None:
        self._length = length
        self._name = name
        self._size = 0
        self._hashes: list[bytes] = []
        self._open = _sha1()
        self._filled = 0

    def add(self, data: bytes | memoryview) -> None:
        view = memoryview(data)
        self._size += len(view)
        while len(view):
            part = view[: self._length - self._filled]
            self._open.update(part)
            self._filled += len(part)
            if self._filled == self._length:
                self._close()
            view = view[len(part) :]

    def _close(self) -> None:
        self._hashes.append(self._open.digest())
        self._open = _sha1()
        self._filled = 0

    def metainfo(self) -> Metainfo:
        if self._filled:
            self._close()
        info = bencode(
            {
                "length": self._size,
                "name": self._name,
                "piece length": self._length,
                "pieces": b"".join(self._hashes),
                "private": 1,
            }
        )
        return Metainfo(b"d4:info%se" % info, _sha1(info).hexdigest())


def files(metainfo: Metainfo) -> dict[str, bytes]:
    """What stands beside the image's file, by name."""
    return {TORRENT_FILE: metainfo.content, INFO_HASH_FILE: f"{metainfo.info_hash}\n".encode("ascii")}


def missing(folder: str) -> bool:
    """Whether a published image is without its metainfo."""
    return not all(os.path.isfile(os.path.join(folder, name)) for name in (TORRENT_FILE, INFO_HASH_FILE))


def ensure(folder: str, load: t.Callable[[], Manifest]) -> bool:
    """Make the metainfo of a published image that is without; whether that was so."""
    if not missing(folder):
        return False
    pieces = Pieces(piece_length(load().raw_size))
    with open(os.path.join(folder, WIRE_FILE), "rb") as handle:
        for block in iter(lambda: handle.read(1 << 20), b""):
            pieces.add(block)
    for name, data in files(pieces.metainfo()).items():
        write_atomic(os.path.join(folder, name), data)
    return True
