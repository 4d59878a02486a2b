# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from ansible_collections.h200.rack.plugins.module_utils._mirror.catalog import Catalog, Family
from ansible_collections.h200.rack.plugins.module_utils._mirror.step import Want, families, own, wants

OLD, NEW, OTHER = "1" * 64, "2" * 64, "3" * 64


def image(current, *digests, name="a"):
    return Family("image", name, current, digests)


def catalog(*found, overlays=()):
    return Catalog(found, overlays)


def test_a_follower_holds_what_is_published_and_calls_current_what_that_does():
    mine, theirs = catalog(image(OLD, OLD)), catalog(image(NEW, OLD, NEW), overlays=(OTHER,))
    found = wants(mine, theirs, authority=False)
    assert found == [
        Want("image", "a", NEW, True, False),
        Want("image", "a", OLD, False, False),
        Want("overlay", "overlay", OTHER, False, False),
    ]
    assert families(found) == ["images/a"]


def test_what_a_follower_has_besides_is_better_gone_than_damaged():
    mine = catalog(image(OLD, OLD, NEW), overlays=(OTHER,))
    found = wants(mine, catalog(image(NEW, NEW)), authority=False)
    assert Want("image", "a", OLD, False, True) in found
    assert Want("overlay", "overlay", OTHER, False, True) in found


def test_an_image_that_the_first_mirror_lost_is_kept_by_the_others():
    found = wants(catalog(image(OLD, OLD, name="b")), catalog(image(NEW, NEW)), authority=False)
    assert Want("image", "b", OLD, True, False) in found


def test_the_mirror_that_publishes_follows_nobody():
    mine, theirs = catalog(image(NEW, OLD, NEW)), catalog(image(OLD, OLD, OTHER))
    assert wants(mine, theirs, authority=True) == [
        Want("image", "a", NEW, True, False),
        Want("image", "a", OLD, False, True),
    ]


def test_a_new_mirror_that_publishes_takes_the_current_versions_of_the_others():
    theirs = catalog(image(NEW, OLD, NEW))
    assert wants(catalog(), theirs, authority=True) == [Want("image", "a", NEW, True, False)]


def test_a_store_is_read_without_what_is_on_its_way(tmp_path):
    for path in (f"images/a/{OLD}", f"images/a/.pull-{NEW}", "images/empty", f"ramdisk/x86_64/{NEW}"):
        (tmp_path / path).mkdir(parents=True)
    (tmp_path / "images/a/current").write_text(f"{OLD}\n")
    (tmp_path / "ramdisk/overlay").mkdir()
    (tmp_path / f"ramdisk/overlay/{OTHER}.cpio").write_bytes(b"")
    assert own(str(tmp_path)) == catalog(image(OLD, OLD), Family("ramdisk", "x86_64", "", (NEW,)), overlays=(OTHER,))
    assert own(str(tmp_path / "gone")) == catalog()
