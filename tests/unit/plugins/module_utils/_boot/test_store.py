# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import os
import threading

import pytest
from ansible_collections.h200.rack.plugins.module_utils._boot import store
from ansible_collections.h200.rack.plugins.module_utils._common import atomic
from ansible_collections.h200.rack.plugins.module_utils._common.errors import DeadlineExceeded, InvalidInput


def item(name="a.ipxe", content="#!ipxe\n", **more):
    return {"name": name, "content": content, "node": "a", "action": "local", **more}


def many(count, content="#!ipxe\n"):
    return [item(f"{number}.ipxe", content) for number in range(count)]


@pytest.mark.parametrize("count", [1, 50])
def test_a_second_run_changes_nothing(tmp_path, count):
    assert store.update(str(tmp_path), many(count)).changed
    before = {path: os.stat(path).st_mtime_ns for path in tmp_path.iterdir()}
    outcome = store.update(str(tmp_path), many(count))
    assert not outcome.changed and not any(script["changed"] for script in outcome.scripts)
    assert {path: os.stat(path).st_mtime_ns for path in tmp_path.iterdir()} == before


def test_a_call_for_one_node_replaces_one_file(tmp_path):
    store.update(str(tmp_path), many(10))
    outcome = store.update(str(tmp_path), [item("3.ipxe", "#!ipxe\nexit 1\n")])
    assert [script["path"] for script in outcome.scripts if script["changed"]] == [str(tmp_path / "3.ipxe")]
    assert len(list(tmp_path.glob("*.ipxe"))) == 10


def test_check_mode_writes_nothing_and_says_what_it_would(tmp_path):
    outcome = store.update(str(tmp_path), many(3), prune=True, dry_run=True)
    assert outcome.changed and not list(tmp_path.iterdir())
    assert outcome.diff[0]["before"] == "" and outcome.diff[0]["after"] == "#!ipxe\n"


def test_check_mode_on_a_fresh_host_does_not_fail(tmp_path):
    assert store.update(str(tmp_path / "absent"), many(3), dry_run=True).changed


def test_a_missing_directory_is_said(tmp_path):
    with pytest.raises(InvalidInput, match="h200.rack.netboot"):
        store.update(str(tmp_path / "absent"), many(3))


def test_prune_removes_only_what_was_written_here(tmp_path):
    (tmp_path / "by-hand.ipxe").write_text("#!ipxe\n")
    store.update(str(tmp_path), many(3))
    outcome = store.update(str(tmp_path), many(1), prune=True)
    assert outcome.removed == [str(tmp_path / "1.ipxe"), str(tmp_path / "2.ipxe")]
    assert sorted(path.name for path in tmp_path.glob("*.ipxe")) == ["0.ipxe", "by-hand.ipxe"]
    assert not store.update(str(tmp_path), many(1), prune=True).changed


def test_nothing_is_removed_unasked(tmp_path):
    store.update(str(tmp_path), many(3))
    assert store.update(str(tmp_path), many(1)).removed == []


def test_a_damaged_register_prunes_nothing(tmp_path):
    store.update(str(tmp_path), many(3))
    (tmp_path / store.REGISTER).write_text('["../../etc/passwd"]')
    with pytest.raises(InvalidInput, match="damaged"):
        store.update(str(tmp_path), many(1), prune=True)
    assert len(list(tmp_path.glob("*.ipxe"))) == 3


@pytest.mark.parametrize("name", ["../a.ipxe", "a/b", "", ".hidden", "a b"])
def test_a_name_that_leaves_the_directory_is_refused(tmp_path, name):
    with pytest.raises(InvalidInput):
        store.update(str(tmp_path), [item(name)])


def test_one_name_twice_is_refused(tmp_path):
    with pytest.raises(InvalidInput, match="twice"):
        store.update(str(tmp_path), [item(), item()])


def test_what_is_kept_is_made_once(tmp_path):
    store.update(str(tmp_path), [item(content="one", keep=True)])
    assert not store.update(str(tmp_path), [item(content="two", keep=True)]).changed
    assert (tmp_path / "a.ipxe").read_text() == "one"


def test_two_writers_do_not_mix(tmp_path):
    held = threading.Event()
    release = threading.Event()

    def hold():
        with atomic.locked(str(tmp_path / store.LOCK)):
            held.set()
            release.wait(10)

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait(10)
    try:
        with pytest.raises(DeadlineExceeded, match="locked"):
            store.update(str(tmp_path), many(1), lock_timeout=0.2)
    finally:
        release.set()
        thread.join()
    assert not list(tmp_path.glob("*.ipxe"))


def test_the_web_server_can_read_what_was_written(tmp_path):
    previous = os.umask(0o077)
    try:
        store.update(str(tmp_path), many(10))
    finally:
        os.umask(previous)
    assert {oct(path.stat().st_mode & 0o777) for path in tmp_path.glob("*.ipxe")} == {"0o644"}
