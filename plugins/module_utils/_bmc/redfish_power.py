# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What redfish_power does. Private to h200.rack."""

from __future__ import annotations

import typing as t

from .entry import deadline_of
from .errors import BmcError
from .open_redfish import open_redfish
from .power_run import Runner, bring
from .reset import Reset


def power(params: dict[str, t.Any], check_mode: bool, warnings: list[str], secrets: list[str]) -> dict[str, t.Any]:
    """Bring the system into the wanted power state, or send one ResetType, and prove the effect."""
    deadline = deadline_of(params)
    with open_redfish(params, deadline, warnings, secrets) as client:
        system_id = client.choose_system(params["system_id"])
        runner = Runner(Reset(client), deadline, float(params["graceful_timeout"]))
        try:
            result = bring(params, check_mode, warnings, runner)
        except BmcError as exc:
            exc.details.update(system_id=system_id)
            raise
        return {**result, "system_id": system_id, "auth": client.auth}
