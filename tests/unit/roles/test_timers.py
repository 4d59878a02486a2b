# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What systemd does with the timers of the roles."""

from __future__ import annotations

import pathlib

import pytest

ROLES = pathlib.Path(__file__).resolve().parents[3] / "roles"
CALENDAR = sorted(path for path in ROLES.rglob("*.timer*") if "OnCalendar=" in path.read_text())


def test_there_are_timers_to_look_at() -> None:
    assert CALENDAR


@pytest.mark.parametrize("path", CALENDAR, ids=lambda path: path.name)
def test_a_role_does_not_hang_where_no_time_server_answers(path: pathlib.Path) -> None:
    """Calendar timers wait for time-sync.target by default: systemd.timer(5), default dependencies."""
    assert "\nDefaultDependencies=no\n" in path.read_text()
