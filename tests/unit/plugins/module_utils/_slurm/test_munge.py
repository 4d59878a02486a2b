# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A key is made once, is never one that others know, and is never half written."""

from __future__ import annotations

import base64
import getpass
import re

import pytest
from ansible_collections.h200.rack.plugins.module_utils._common.errors import InvalidInput, RackError
from ansible_collections.h200.rack.plugins.module_utils._slurm import munge

ME = getpass.getuser()


def test_two_clusters_do_not_get_the_same_key(tmp_path):
    first = munge.ensure(str(tmp_path / "a" / "key"), None, ME, check_mode=False)
    second = munge.ensure(str(tmp_path / "b" / "key"), None, ME, check_mode=False)
    assert first.changed
    assert first.digest != second.digest


def test_a_key_that_is_there_stays(tmp_path):
    path = str(tmp_path / "key")
    first = munge.ensure(path, None, ME, check_mode=False)
    assert munge.ensure(path, None, ME, check_mode=False) == (False, first.digest)


def test_another_key_is_replaced_by_the_clusters(tmp_path):
    path = tmp_path / "key"
    munge.ensure(str(path), None, ME, check_mode=False)
    key = bytes(range(128))
    assert munge.ensure(str(path), base64.b64encode(key).decode(), ME, check_mode=False).changed
    assert path.read_bytes() == key
    assert path.stat().st_mode & 0o777 == 0o400
    assert not munge.ensure(str(path), base64.b64encode(key).decode(), ME, check_mode=False).changed


def test_a_key_that_others_can_read_is_closed(tmp_path):
    path = tmp_path / "key"
    munge.ensure(str(path), None, ME, check_mode=False)
    path.chmod(0o644)
    assert munge.ensure(str(path), None, ME, check_mode=False).changed
    assert path.stat().st_mode & 0o077 == 0


def test_check_mode_writes_no_key(tmp_path):
    path = tmp_path / "key"
    assert munge.ensure(str(path), None, "no-such-user-here", check_mode=True) == (True, None)
    assert not path.exists()


@pytest.mark.parametrize("content", ["not base64!", base64.b64encode(b"short").decode()])
def test_what_munged_would_refuse_is_refused(tmp_path, content):
    with pytest.raises(InvalidInput):
        munge.ensure(str(tmp_path / "key"), content, ME, check_mode=False)


def test_a_key_that_was_cut_on_its_way_does_not_replace_a_good_one(tmp_path):
    path = tmp_path / "key"
    good = munge.ensure(str(path), None, ME, check_mode=False).digest
    before = path.read_bytes()
    cut = base64.b64encode(before[:64]).decode()
    with pytest.raises(InvalidInput, match="another digest"):
        munge.ensure(str(path), cut, ME, check_mode=False, digest=good)
    assert path.read_bytes() == before
    whole = base64.b64encode(before).decode()
    assert not munge.ensure(str(path), whole, ME, check_mode=False, digest=good).changed


@pytest.mark.parametrize("off", [-400, 400])
def test_a_clock_that_munge_would_refuse_is_told_with_its_difference(off):
    with pytest.raises(RackError, match=re.escape(f"{off:+d} s")) as caught:
        munge.check_clock(1000 + off, 1000, 60)
    assert caught.value.code == "clock_skew"
    munge.check_clock(1050, 1000, 60)
    munge.check_clock(0, None, 60)


def test_no_failure_shows_the_key(tmp_path):
    key = base64.b64encode(b"secret " * 10).decode()
    with pytest.raises(InvalidInput) as caught:
        munge.ensure(str(tmp_path / "key"), key, ME, check_mode=False, digest="0" * 64)
    assert "secret" not in str(caught.value) and key not in str(caught.value)
