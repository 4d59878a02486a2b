# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which run may write a node's ledger, as pure functions. Private to h200.rack."""

from __future__ import annotations

import datetime
import typing as t

from ansible_collections.h200.rack.plugins.module_utils._common.errors import RackError

from . import clock
from .ledger import Event


class LeaseHeld(RackError):
    """Another run works on the node."""

    code = "held"


def current_lease(events: t.Sequence[Event], now: datetime.datetime) -> t.Optional[dict[str, t.Any]]:
    """The lease that the last event left: run_id, holder, until, expired; None when it was released."""
    if not events or events[-1]["event"] == "release":
        return None
    last = events[-1]
    return {
        "run_id": last["run_id"],
        "holder": last["holder"],
        "until": last["until"],
        "process": last.get("process", ""),
        "expired": clock.parse(last["until"]) <= now,
    }


def check_free(node: str, lease: t.Optional[dict[str, t.Any]], run_id: str, take_over: t.Optional[str] = None) -> None:
    """Refuse when another run holds the node, unless it is the one that is known to be dead."""
    if lease is None or lease["run_id"] in (run_id, take_over) or lease["expired"]:
        return
    raise LeaseHeld(
        f"{node}: held by {lease['holder']} (run {lease['run_id']}) until {lease['until']}: "
        "wait for that run, or for its lease to expire if it is dead",
        node=node,
        lease=lease,
    )


def wears_thin(lease: dict[str, t.Any], now: datetime.datetime, seconds: float) -> bool:
    """Whether less than half of the lease is left."""
    return (clock.parse(lease["until"]) - now).total_seconds() < seconds / 2
