# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The nodes as Slurm declares them. Private to h200.rack."""

from __future__ import annotations

import typing as t

from .problems import Problems

_CPU = ("sockets", "cores_per_socket", "threads_per_core")


def check_declarable(node: t.Mapping[str, t.Any], problems: Problems) -> None:
    """Slurm is told what a node must have, so the profile must say it."""
    profile = node["profile"]
    if not profile:
        return
    missing = [f"cpu.{key}" for key in _CPU if not (profile.get("cpu") or {}).get(key)]
    missing += [] if profile.get("memory_mib") else ["memory_mib"]
    if missing:
        problems.add(
            node["name"],
            "rack_profile",
            f"{profile['name']} does not say {', '.join(missing)}, which Slurm needs: add them to one of your own "
            f"in rack_profiles, with base: {profile['name']}",
        )


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
