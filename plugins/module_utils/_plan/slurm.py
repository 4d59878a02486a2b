# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The nodes as Slurm declares them. Private to h200.rack."""

from __future__ import annotations

import typing as t


def slurm_nodes(plan: t.Mapping[str, t.Any]) -> list[dict[str, t.Any]]:
    """The option ``nodes`` of slurm_config for every node of the plan."""
    return [
        {
            "name": node["hostname"],
            "address": node["ip"],
            "profile": node["profile"],
            **({"scalable_unit": node["scalable_unit"]} if node["scalable_unit"] else {}),
        }
        for node in plan["nodes"].values()
    ]
