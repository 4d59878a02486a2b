# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What ipmi_power does. Private to h200.rack."""

from __future__ import annotations

import typing as t

from .chassis import Chassis
from .entry import deadline_of
from .open_ipmi import open_ipmi
from .power_run import Runner, bring


def power(params: dict[str, t.Any], check_mode: bool, warnings: list[str], secrets: list[str]) -> dict[str, t.Any]:
    """Bring the machine into the wanted power state, or send one request, and prove the effect."""
    deadline = deadline_of(params)
    with open_ipmi(params, deadline) as client:
        runner = Runner(Chassis(client), deadline, float(params["graceful_timeout"]))
        return {**bring(params, check_mode, warnings, runner), "cipher_suite": client.cipher_suite}
