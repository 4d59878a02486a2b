# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest
from ansible_collections.h200.rack.plugins.module_utils._boot import config_files


def item(path, content="new", mode="0644"):
    return {"path": str(path), "content": content, "mode": mode}


def runner(status, output=""):
    calls = []

    def run(command):
        calls.append(command)
        return status, output

    run.calls = calls
    return run


def test_an_invalid_configuration_is_taken_back_whole(tmp_path):
    old, fresh, gone = tmp_path / "old", tmp_path / "fresh", tmp_path / "gone"
    old.write_text("before")
    old.chmod(0o600)
    gone.write_text("still wanted")
    with pytest.raises(config_files.InvalidConfiguration, match="unknown directive"):
        config_files.apply([item(old), item(fresh)], [str(gone)], ["check"], runner(1, "unknown directive"))
    assert old.read_text() == "before" and old.stat().st_mode & 0o777 == 0o600
    assert not fresh.exists()
    assert gone.read_text() == "still wanted"


def test_a_check_that_cannot_run_takes_it_back_as_well(tmp_path):
    def run(command):
        raise OSError("no such program")

    with pytest.raises(OSError):
        config_files.apply([item(tmp_path / "a")], [], ["check"], run)
    assert not (tmp_path / "a").exists()


def test_a_second_run_changes_nothing_and_checks_nothing(tmp_path):
    run = runner(0)
    assert config_files.apply([item(tmp_path / "a")], [], ["check"], run).paths == [str(tmp_path / "a")]
    assert config_files.apply([item(tmp_path / "a")], [str(tmp_path / "b")], ["check"], run).paths == []
    assert run.calls == [["check"]]


def test_check_mode_touches_nothing(tmp_path):
    run = runner(0)
    outcome = config_files.apply([item(tmp_path / "a")], [], ["check"], run, dry_run=True)
    assert outcome.paths and outcome.diff[0]["after"] == "new"
    assert not run.calls and not list(tmp_path.iterdir())


def test_permissions_alone_are_a_change(tmp_path):
    config_files.apply([item(tmp_path / "a")], [], [], runner(0))
    assert config_files.apply([item(tmp_path / "a", mode="0600")], [], [], runner(0)).paths
    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o600
