# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a node's events say, as pure functions. Private to h200.rack."""

from __future__ import annotations

import typing as t

from .ledger import Event
from .stages import FAILED, STAGES, following


def stage_events(events: t.Sequence[Event]) -> list[Event]:
    """The events that say a stage, without those that only concern the lease."""
    return [event for event in events if event["event"] == "stage"]


def current_way(events: t.Sequence[Event]) -> list[Event]:
    """The stage events since the last ``declared``: what concerns the system that is on the node now."""
    stages = stage_events(events)
    starts = [number for number, event in enumerate(stages) if event["stage"] == STAGES[0]]
    return stages[starts[-1] :] if starts else stages


def current_stage(events: t.Sequence[Event]) -> t.Optional[str]:
    """The last stage said, ``failed`` included."""
    stages = stage_events(events)
    return stages[-1]["stage"] if stages else None


def previous_stage(events: t.Sequence[Event]) -> t.Optional[str]:
    """The stage that the node was in before its current one."""
    now = current_stage(events)
    for event in reversed(stage_events(events)):
        if event["stage"] != now:
            return event["stage"]
    return None


def reached_stage(events: t.Sequence[Event]) -> t.Optional[str]:
    """The last stage that was really reached: where a failed node stood before it failed."""
    for event in reversed(current_way(events)):
        if event["stage"] != FAILED:
            return event["stage"]
    return None


def resume_point(history: t.Sequence[Event]) -> dict[str, t.Any]:
    """Where the node stands: ``reached``, the ``next`` stage, how it ``failed``, and its ``evidence`` by stage.

    Going back makes the stages after it untrue, so their evidence is left out.
    """
    way = current_way(history)
    reached = reached_stage(way)
    evidence: dict[str, t.Any] = {}
    for event in way:
        if event["stage"] == FAILED:
            continue
        place = STAGES.index(event["stage"])
        evidence = {stage: value for stage, value in evidence.items() if STAGES.index(stage) < place}
        evidence[event["stage"]] = event.get("evidence", {})
    last = way[-1] if way else None
    failed = None
    if last is not None and last["stage"] == FAILED:
        failed = {
            "stage": last.get("failed_stage"),
            "code": last.get("code"),
            "evidence": last.get("evidence", {}),
            "time": last["time"],
        }
    return {"reached": reached, "next": following(reached), "failed": failed, "evidence": evidence}
