# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The stages of a node's way and which of them may follow which. Private to h200.rack."""

from __future__ import annotations

import typing as t

from ansible_collections.h200.rack.plugins.module_utils._common.errors import RackError

STAGES = (
    "declared",
    "bmc_ok",
    "netboot_set",
    "powered",
    "ramdisk_up",
    "written",
    "local_boot",
    "os_up",
    "ready",
    "accepted",
    "registered",
)
FAILED = "failed"
#: What the option ``stage`` may be.
ALL_STAGES = (*STAGES, FAILED)

_INDEX = {stage: number for number, stage in enumerate(STAGES)}


class StageOrder(RackError):
    """The event would leave out a stage."""

    code = "order"


def index(stage: str | None) -> int:
    """The place of a stage on the way; -1 for no stage at all."""
    return -1 if stage is None else _INDEX[stage]


def following(reached: str | None) -> str | None:
    """The stage after ``reached``; None at the end of the way."""
    place = index(reached) + 1
    return STAGES[place] if place < len(STAGES) else None


def check_step(node: str, reached: str | None, stage: str) -> None:
    """Refuse a step that leaves out a stage. Back is allowed, and so is the same stage again."""
    if stage == FAILED or index(stage) <= index(reached) + 1:
        return
    raise StageOrder(
        f"{node}: the stage {stage} cannot follow {reached or 'nothing'}: {following(reached)} comes first",
        node=node,
        reached=reached,
        expected=following(reached),
    )


def failing_stage(reached: str | None, named: t.Optional[str]) -> str:
    """The stage that was being worked on when the node failed."""
    return named or following(reached) or STAGES[-1]
