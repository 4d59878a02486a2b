# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a person reads before and after a run. Private to h200.rack."""

from __future__ import annotations

import typing as t

from .ledger import Event
from .stages import FAILED
from .timeline import timeline

States = t.Mapping[str, t.Mapping[str, t.Any]]


def _stage(row: t.Mapping[str, t.Any]) -> str:
    if row["stage"] == FAILED:
        return f"failed at {row['failed_stage']} ({row['code']})"
    return f"{row['stage']} +{row['seconds']:.1f}s"


def _why(history: t.Sequence[Event]) -> list[str]:
    """The evidence of a failure, when the way ends in one."""
    if not history or history[-1]["stage"] != FAILED:
        return []
    evidence = history[-1].get("evidence") or {}
    return [f"    {key}: {value}" for key, value in sorted(evidence.items())]


def ways(states: States) -> list[str]:
    """Each node's stages with their seconds; under a failure its evidence."""
    lines = []
    for name in sorted(states):
        history = states[name].get("history") or []
        rows = timeline(history)
        if not rows:
            lines.append(f"{name}: nothing yet")
            continue
        lines.append(f"{name}: {rows[-1]['total']:.1f}s  " + "  ".join(_stage(row) for row in rows))
        lines.extend(_why(history))
    return lines


def held_by(states: States, run_id: str) -> list[str]:
    """The nodes that this run holds still."""
    return sorted(
        name
        for name, state in states.items()
        if (state.get("lease") or {}).get("run_id") == run_id and not state["lease"]["expired"]
    )


def _disk(node: t.Mapping[str, t.Any]) -> str:
    hints = node.get("root_disk") or {}
    return ", ".join(f"{key} {value}" for key, value in sorted(hints.items())) or "unknown"


def intent(plan: t.Mapping[str, t.Any], decision: t.Mapping[str, t.Any]) -> list[str]:
    """For each node of this run what is going to happen to it, a block of lines."""
    lines = []
    for name in sorted(decision["nodes"]):
        todo, node = decision["nodes"][name], plan["nodes"][name]
        lines.append(f"{name}: {todo['will']} ({todo['reason']})")
        if todo["will"] == "image":
            boot = "http" if node["boot_method"] == "uefi_http" else "pxe"
            overwrite = ", what is on it may be overwritten" if todo["allow_overwrite"] else ""
            lines += [
                f"    boot override: {boot}, once, by {node['bmc_protocol']} at {node['bmc_address']}",
                "    power: restarted (on, when it is off)",
                f"    script: {todo['script']}, and local once the image is written",
                f"    image: {node['image_name']}@{todo['digest']}",
                f"    disk: {_disk(node)}{overwrite}",
            ]
        elif todo["will"] == "finish":
            lines.append(f"    from: {todo['from_stage']}")
    return lines
