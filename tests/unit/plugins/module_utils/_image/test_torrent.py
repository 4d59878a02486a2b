# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import hashlib
import os
import types

import pytest
from ansible_collections.h200.rack.plugins.module_utils._image import torrent

GIB = 1 << 30


def test_the_encoding_is_the_one_of_the_specification() -> None:
    assert torrent.bencode({"spam": "eggs", "cow": 3, "a": b"x"}) == b"d1:a1:x3:cowi3e4:spam4:eggse"


def test_pieces_do_not_depend_on_how_the_bytes_come() -> None:
    data = os.urandom(300_000)
    one, many = torrent.Pieces(131072), torrent.Pieces(131072)
    one.add(data)
    for start in range(0, len(data), 7777):
        many.add(data[start : start + 7777])
    made = one.metainfo()
    assert made == many.metainfo()
    hashes = b"".join(hashlib.sha1(data[start : start + 131072]).digest() for start in range(0, 300_000, 131072))
    assert b"6:pieces60:" + hashes in made.content
    assert made.info_hash == hashlib.sha1(made.content[len(b"d4:info") : -1]).hexdigest()


@pytest.mark.parametrize("raw_size", [1, 400_000_000, 5 * GIB, 40 * GIB, 500 * GIB])
def test_pieces_are_small_but_not_too_many(raw_size) -> None:
    length = torrent.piece_length(raw_size)
    assert length & (length - 1) == 0 and 128 * 1024 <= length <= 16 << 20
    assert raw_size / length <= 8192 or length == 16 << 20
    # 20 bytes a piece, and the image's file is never much larger than the raw image.
    assert 20 * raw_size / length < torrent.MAX_TORRENT


def test_an_image_published_without_metainfo_gets_it(tmp_path) -> None:
    (tmp_path / "image.raw.zst").write_bytes(os.urandom(400_000))
    manifest = types.SimpleNamespace(raw_size=1_000_000)
    assert torrent.ensure(str(tmp_path), lambda: manifest)
    before = (tmp_path / torrent.TORRENT_FILE).read_bytes()
    pieces = torrent.Pieces(torrent.piece_length(1_000_000))
    pieces.add((tmp_path / "image.raw.zst").read_bytes())
    assert before == pieces.metainfo().content
    assert (tmp_path / torrent.INFO_HASH_FILE).read_text() == f"{pieces.metainfo().info_hash}\n"
    assert not torrent.ensure(str(tmp_path), lambda: pytest.fail("it is read again"))
