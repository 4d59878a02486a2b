# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import shutil
import subprocess

import pytest
from ansible_collections.h200.rack.plugins.module_utils._ramdisk import cpio


def test_the_same_entries_in_another_order_make_the_same_bytes():
    entries = [cpio.regular("b/file", b"x"), cpio.directory("a"), cpio.symlink("a/link", "../b/file")]
    assert cpio.archive(cpio.with_parents(entries)) == cpio.archive(cpio.with_parents(reversed(entries)))


def test_a_parent_that_comes_after_its_child_would_lose_the_child():
    paths = [entry.path for entry in cpio.with_parents([cpio.regular("etc/h200-rack/ca.pem", b"")])]
    assert paths == ["etc", "etc/h200-rack", "etc/h200-rack/ca.pem"]


def test_an_archive_ends_on_a_block_so_that_another_may_follow():
    assert len(cpio.archive([cpio.regular("odd", b"abc")])) % 512 == 0


@pytest.mark.skipif(shutil.which("cpio") is None, reason="needs cpio")
def test_cpio_reads_what_was_written(tmp_path):
    entries = [cpio.regular("d/one", b"1", 0o600), cpio.symlink("d/two", "one"), cpio.regular("d/empty", b"")]
    data = cpio.archive(cpio.with_parents(entries))
    subprocess.run(["cpio", "-idm", "--quiet"], input=data, cwd=tmp_path, check=True)
    assert (tmp_path / "d/one").read_bytes() == b"1"
    assert (tmp_path / "d/one").stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "d/two").read_bytes() == b"1"
    assert (tmp_path / "d/empty").read_bytes() == b""
