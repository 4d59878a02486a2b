# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What redfish_power does. Private to h200.rack."""

from __future__ import annotations

import typing as t

from . import power_plan as pp
from .entry import deadline_of
from .errors import BmcError, invalid
from .open import open_redfish
from .reset import Reset


def power(params: dict[str, t.Any], check_mode: bool, warnings: list[str], secrets: list[str]) -> dict[str, t.Any]:
    """Bring the system into the wanted power state, or send one ResetType, and prove the effect."""
    reset_type = params["reset_type"]
    if reset_type and reset_type not in pp.RESET_TYPES:
        raise invalid(f"reset_type: {reset_type!r} is none of {', '.join(pp.RESET_TYPES)}.")
    deadline = deadline_of(params)
    with open_redfish(params, deadline, warnings, secrets) as client:
        system_id = client.choose_system(params["system_id"])
        reset = Reset(client, deadline, float(params["graceful_timeout"]))
        before = reset.read()
        try:
            now = before if check_mode else reset.settle_transition(before)
            steps = (
                pp.single(reset_type, now) if reset_type else pp.plan(params["state"], now, params["shutdown"], reset.allowed)
            )
            would_send = pp.preview(steps, reset.allowed) if steps else []
            if check_mode:
                after = _predicted(steps, now)
            elif steps:
                after = reset.run(steps, now, params["wait"])
            else:
                after = now
        except BmcError as exc:
            exc.details.update(
                changed=bool(reset.sent), system_id=system_id, previous_power_state=before, reset_types_sent=reset.sent
            )
            raise
        if params["state"] == "restarted" and before == pp.OFF:
            warnings.append("The machine was off, so it was turned on instead of restarted.")
        return {
            "changed": bool(steps),
            "system_id": system_id,
            "power_state": after,
            "previous_power_state": before,
            "reset_types_sent": would_send if check_mode else reset.sent,
            "waited_seconds": round(deadline.elapsed, 1),
            "auth": client.auth,
            "diff": {"before": {"power_state": before}, "after": {"power_state": after}},
        }


def _predicted(steps: t.Sequence[pp.Step], now: str | None) -> str | None:
    targets = [step.target for step in steps if step.target]
    return targets[-1] if targets else now
