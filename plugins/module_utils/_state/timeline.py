# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How long each stage took, as rows and as lines for people. Private to h200.rack."""

from __future__ import annotations

import typing as t

from . import clock
from .ledger import Event
from .stages import FAILED

State = t.Mapping[str, t.Any]


def timeline(history: t.Sequence[Event]) -> list[dict[str, t.Any]]:
    """A row per event: stage, time, ``seconds`` since the event before and ``total`` since the first."""
    rows: list[dict[str, t.Any]] = []
    first = before = None
    for event in history:
        moment = clock.parse(event["time"])
        first, before = first or moment, before or moment
        row = {
            "stage": event["stage"],
            "time": event["time"],
            "seconds": round((moment - before).total_seconds(), 3),
            "total": round((moment - first).total_seconds(), 3),
            "run_id": event.get("run_id"),
        }
        if event["stage"] == FAILED:
            row.update(code=event.get("code"), failed_stage=event.get("failed_stage"))
        rows.append(row)
        before = moment
    return rows


def _failure(event: Event) -> str:
    evidence = event.get("evidence") or {}
    told = " ".join(str(evidence.get("msg") or "").split())[:200]
    return f"failed at {event.get('failed_stage')} ({event.get('code')})" + (f": {told}" if told else "")


def _line(name: str, width: int, state: State) -> str:
    if state.get("error"):
        return f"{name:<{width}}  {state['error']}"
    history = state.get("history") or []
    if not history:
        return f"{name:<{width}}  nothing is known of it"
    rows = timeline(history)
    stage = _failure(history[-1]) if history[-1]["stage"] == FAILED else rows[-1]["stage"]
    steps = ", ".join(f"{row['stage']} +{row['seconds']:.1f}" for row in rows[1:])
    lease = state.get("lease")
    held = f"; held by {lease['holder']} until {lease['until']}" if lease and not lease["expired"] else ""
    since = f"since {rows[0]['time']}, {rows[-1]['total']:.1f} s"
    return f"{name:<{width}}  {stage}  ({since}{f': {steps}' if steps else ''}{held})"


def ways(states: t.Mapping[str, State]) -> list[str]:
    """A line per node: where it is, and the seconds of each stage of its current way."""
    width = max(map(len, states), default=0)
    return [_line(name, width, state) for name, state in states.items()]


def held_by(states: t.Mapping[str, State], run_id: str) -> list[str]:
    """The nodes that a run holds, its lease expired or not."""
    return [name for name, state in states.items() if (state.get("lease") or {}).get("run_id") == run_id]
