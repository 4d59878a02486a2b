# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How long each stage took. Private to h200.rack."""

from __future__ import annotations

import typing as t

from . import clock
from .ledger import Event
from .stages import FAILED


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
