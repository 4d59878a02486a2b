# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The metainfo by which BitTorrent clients know an image's file. For the benchmark only, so far.

It follows from the file alone, so every mirror makes its own and all make the same one; the tracker is named when it is
used. Nothing trusts it: every chunk is still checked against the signed manifest.
"""

from __future__ import annotations

import hashlib
import os
import pathlib
import typing as t

TORRENT_FILE = "image.torrent"
# Small pieces travel on sooner, which is what counts when a whole rack fetches at once; aria2 asks in blocks of 16 KiB.
PIECE_LENGTH = 1 << 20


def bencode(value: t.Any) -> bytes:
    """``value`` (integers, bytes, text, lists, mappings) in BitTorrent's encoding."""
    if isinstance(value, bool):
        raise TypeError("bencode knows no booleans")
    if isinstance(value, int):
        return b"i%de" % value
    if isinstance(value, str):
        value = value.encode("utf-8")
    if isinstance(value, bytes):
        return b"%d:%s" % (len(value), value)
    if isinstance(value, (list, tuple)):
        return b"l" + b"".join(map(bencode, value)) + b"e"
    pairs = sorted((key.encode("utf-8"), item) for key, item in value.items())
    return b"d" + b"".join(bencode(key) + bencode(item) for key, item in pairs) + b"e"


class Pieces:
    """Takes the bytes of the file in order, and gives its metainfo."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._size = 0
        self._hashes: list[bytes] = []
        self._open = hashlib.sha1(usedforsecurity=False)
        self._filled = 0

    def add(self, data: bytes | memoryview) -> None:
        view = memoryview(data)
        self._size += len(view)
        while len(view):
            part = view[: PIECE_LENGTH - self._filled]
            self._open.update(part)
            self._filled += len(part)
            if self._filled == PIECE_LENGTH:
                self._close()
            view = view[len(part) :]

    def _close(self) -> None:
        self._hashes.append(self._open.digest())
        self._open = hashlib.sha1(usedforsecurity=False)
        self._filled = 0

    def metainfo(self) -> tuple[bytes, str]:
        """The file's content, and the info hash in hex, by which a tracker's whitelist knows it."""
        if self._filled:
            self._close()
        info = {
            "length": self._size,
            "name": self._name,
            "piece length": PIECE_LENGTH,
            "pieces": b"".join(self._hashes),
            "private": 1,
        }
        return bencode({"info": info}), hashlib.sha1(bencode(info), usedforsecurity=False).hexdigest()


def of_file(path: str) -> tuple[bytes, str]:
    """Metainfo and info hash of a file."""
    pieces = Pieces(os.path.basename(path))
    with pathlib.Path(path).open("rb") as handle:
        for block in iter(lambda: handle.read(1 << 20), b""):
            pieces.add(block)
    return pieces.metainfo()


def info_hash(metainfo: bytes) -> str:
    """The info hash of metainfo made here: the encoding is canonical, and ``info`` is all there is."""
    prefix, end = b"d4:info", b"e"
    if not metainfo.startswith(prefix) or not metainfo.endswith(end):
        raise ValueError("not metainfo of this collection")
    return hashlib.sha1(metainfo[len(prefix) : -len(end)], usedforsecurity=False).hexdigest()
