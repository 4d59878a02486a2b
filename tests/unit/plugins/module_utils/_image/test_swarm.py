# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest
from ansible_collections.h200.rack.plugins.module_utils._common.errors import InvalidInput, RackError
from ansible_collections.h200.rack.plugins.module_utils._image import disks, scratch, swarm, transport

GIB = 1 << 30


def status(bits: str, piece_length: int = 10) -> swarm.Status:
    """A status by the pieces that are there, first one first."""
    field = int(bits.ljust(-(-len(bits) // 8) * 8, "0"), 2)
    return swarm.Status(len(bits), piece_length, field, 0, 0, 0, 0)


@pytest.mark.parametrize(
    ("start", "length", "there"),
    [(0, 10, True), (5, 10, True), (15, 10, False), (20, 1, False), (30, 60, True), (30, 61, False), (95, 5, False)],
)
def test_a_chunk_has_arrived_when_all_its_pieces_have(start, length, there) -> None:
    assert status("1101111110").has(start, length) is there
    assert status("1111111111").has(start, length)
    assert not swarm.NOTHING.has(start, length)


def test_complete_means_all_pieces_and_none_known_is_not_complete() -> None:
    assert swarm.is_complete(status("11111")) and swarm.is_complete(status("1" * 16))
    assert not swarm.is_complete(status("11101")) and not swarm.is_complete(swarm.NOTHING)


def test_mirrors_are_let_go_once_the_members_hold_everything_and_asked_again_only_for_want() -> None:
    mine, theirs = status("110000000"), status("001111110").bitfield
    last = status("000000001").bitfield
    assert swarm.wants_mirrors(mine, theirs, asking=True, starved=False)
    assert not swarm.wants_mirrors(mine, theirs | last, asking=True, starved=False)
    # A member went away, or tells late what it has.
    assert not swarm.wants_mirrors(mine, theirs, asking=False, starved=False)
    assert swarm.wants_mirrors(mine, theirs, asking=False, starved=True)
    assert not swarm.wants_mirrors(status("111111111"), 0, asking=True, starved=True)
    # Before aria2c knows the torrent nothing is decided.
    assert swarm.wants_mirrors(swarm.NOTHING, 0, asking=True, starved=False)


def disk(path: str, **changes) -> disks.Disk:
    known = disks.Disk(path, 500 * GIB, 512, path[-3:], "", "M", "", "", False, (), "", "", ())
    return known._replace(**changes)


@pytest.mark.parametrize(
    ("scratch_disk", "word"),
    [
        ({"path": "/dev/root"}, "root disk"),
        ({"in_use": "mounted"}, "in use"),
        ({"content": ("xfs",)}, "holds xfs"),
        ({"size": GIB}, "too small"),
        ({"unfit": "removable"}, "cannot be a root disk"),
    ],
)
def test_a_disk_with_something_on_it_is_no_scratch_disk(scratch_disk, word) -> None:
    found = [disk("/dev/sda"), disk("/dev/sdb", serial="S")._replace(**scratch_disk)]
    with pytest.raises(RackError, match=f"^scratch: .*{word}"):
        scratch.choose_disk(found, {"serial": "S"}, "/dev/root", 2 * GIB, False)


def test_the_scratch_disk_is_the_one_that_was_named() -> None:
    found = [disk("/dev/sda"), disk("/dev/sdb", content=("xfs",)), disk("/dev/sdc")]
    assert scratch.choose_disk(found, {"serial": "sdc"}, "/dev/sda", 2 * GIB, False).path == "/dev/sdc"
    assert scratch.choose_disk(found, {"serial": "sdb"}, "/dev/sda", 2 * GIB, True).path == "/dev/sdb"
    with pytest.raises(RackError, match="3 disks"):
        scratch.choose_disk(found, {"model": "M"}, "/dev/sda", 2 * GIB, False)


def test_pieces_in_memory_leave_a_gibibyte_for_the_rest(tmp_path) -> None:
    assert scratch.fits_memory(2 * GIB, 3 * GIB) and not scratch.fits_memory(2 * GIB, 3 * GIB - 1)
    (tmp_path / "meminfo").write_text("MemTotal: 9 kB\nMemFree: 2 kB\nMemAvailable:    4 kB\n")
    assert scratch.available_memory(str(tmp_path / "meminfo")) == 4096


@pytest.mark.parametrize(
    ("wish", "word"),
    [
        (transport.Wish("bittorrent"), "^trackers: "),
        (transport.Wish("bittorrent", ("10.0.0.1:6969",)), "^trackers: '10.0.0.1:6969'"),
        (transport.Wish("bittorrent", ("http://a/announce,http://b",)), "^trackers: "),
        (transport.Wish("http", (), {"raid1": ["a", "b"]}), "^scratch: "),
    ],
)
def test_a_wish_that_cannot_be_meant_names_its_option(wish, word) -> None:
    with pytest.raises(InvalidInput, match=word):
        transport.check(wish)
