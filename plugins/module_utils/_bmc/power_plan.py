# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From the wanted power state to the requests that realise it, for Redfish and IPMI. Private to h200.rack.

A plan is a list of steps; a step offers ResetTypes in order of preference, of which the first the BMC allows is sent,
once, and names the power state that proves it.
"""

from __future__ import annotations

import dataclasses
import typing as t

from .errors import BmcError

ON, OFF, PAUSED = "On", "Off", "Paused"
POWERING_ON, POWERING_OFF = "PoweringOn", "PoweringOff"
KNOWN_STATES = (ON, OFF, PAUSED, POWERING_ON, POWERING_OFF)

_BY_LOWER = {state.lower(): state for state in KNOWN_STATES}

STATES = ("on", "off", "restarted", "cycled")
SHUTDOWNS = ("force", "graceful", "graceful_then_force")

# ResetType -> the power state that it leads to; None: nothing that a power state could prove.
RESET_TYPES: dict[str, str | None] = {
    "On": ON,
    "ForceOn": ON,
    "ForceOff": OFF,
    "GracefulShutdown": OFF,
    "ForceRestart": ON,
    "GracefulRestart": ON,
    "PowerCycle": ON,
    "FullPowerCycle": ON,
    "PushPowerButton": None,
    "Nmi": None,
    "Pause": PAUSED,
    "Resume": ON,
    "Suspend": None,
}
# A restart begins and ends in On, so On alone does not prove it.
RESTARTS = ("ForceRestart", "GracefulRestart", "PowerCycle", "FullPowerCycle")


def state_word(reported: t.Any) -> str | None:
    """A power state as the schema spells it, if it is one of the schema's; None when the BMC gives none."""
    if not isinstance(reported, str) or not reported.strip():
        return None
    return _BY_LOWER.get(reported.strip().lower(), reported)


_FORCE_OFF = ("ForceOff",)
_TURN_ON = ("On", "ForceOn", "PushPowerButton")


@dataclasses.dataclass(frozen=True)
class Step:
    """Send the first allowed of ``types`` and wait for ``target``."""

    types: tuple[str, ...]
    target: str | None
    graceful: bool = False  # depends on the operating system: it may never come true
    optional: bool = False  # another step does the same by force

    def pick(self, allowed: t.Collection[str] | None) -> str | None:
        """The ResetType to send; with an unknown list, the preferred one."""
        if allowed is None:
            return self.types[0]
        return next((name for name in self.types if name in allowed), None)


def plan(state: str, current: str | None, shutdown: str, allowed: t.Collection[str] | None) -> list[Step]:
    """The steps from ``current`` to ``state``; empty when nothing is to be sent."""
    off = _shutdown_steps(shutdown)
    # The power button turns a running machine off, so it needs a machine that is known to be off.
    starts = _TURN_ON if current in (OFF, POWERING_OFF) else _TURN_ON[:-1]
    turn_on = Step(("Resume", *starts) if current == PAUSED else starts, ON)
    if state == "on":
        return [] if current in (ON, POWERING_ON) else [turn_on]
    if state == "off":
        return [] if current in (OFF, POWERING_OFF) else off
    if current == OFF:  # nothing runs that could be restarted: turning it on is what the user is after
        return [turn_on]
    turn_on = Step(_TURN_ON, ON)  # after a proven Off
    if state == "restarted":
        direct = {"force": "ForceRestart", "graceful": "GracefulRestart"}.get(shutdown)
        if direct and (allowed is None or direct in allowed):
            return [Step((direct,), ON, graceful=shutdown == "graceful")]
    if state in ("restarted", "cycled") and shutdown == "force" and allowed is not None and "ForceOff" not in allowed:
        return [Step(("PowerCycle", "FullPowerCycle"), ON)]
    return [*off, turn_on]


def _shutdown_steps(shutdown: str) -> list[Step]:
    if shutdown == "force":
        return [Step(_FORCE_OFF, OFF)]
    graceful = Step(("GracefulShutdown",), OFF, graceful=True, optional=shutdown == "graceful_then_force")
    return [graceful] if shutdown == "graceful" else [graceful, Step(_FORCE_OFF, OFF)]


def single(reset_type: str, current: str | None) -> list[Step]:
    """The one step of a given ResetType; none when its state is there already."""
    target = RESET_TYPES[reset_type]
    if target is not None and target == current and reset_type not in RESTARTS:
        return []
    return [Step((reset_type,), target)]


def preview(steps: t.Sequence[Step], allowed: t.Collection[str] | None) -> list[str]:
    """What would be sent when every graceful step succeeds. Raises when the BMC allows none of a step's types."""
    names: list[str] = []
    graceful_done = False
    for step in steps:
        if graceful_done and step.target == OFF:
            continue
        name = step.pick(allowed)
        if name:
            names.append(name)
            graceful_done = graceful_done or step.optional
        elif not step.optional:
            raise not_allowed(step, allowed)
    return names


def not_allowed(step: Step, allowed: t.Collection[str] | None) -> BmcError:
    wanted = " or ".join(step.types)
    known = ", ".join(sorted(allowed)) if allowed else "none that it names"
    hint = " Use shutdown=force or graceful_then_force." if step.types == ("GracefulShutdown",) else ""
    return BmcError(
        "unsupported",
        f"This BMC does not allow the reset type {wanted}. It allows: {known}.{hint}",
        allowed_reset_types=sorted(allowed or ()),
    )
