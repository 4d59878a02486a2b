# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which mirrors a node may use now: those that are in rotation and have what it needs. Private to h200.rack."""

from __future__ import annotations

import typing as t

Plan = t.Mapping[str, t.Any]
Checks = t.Sequence[t.Mapping[str, t.Any]]
Lost = t.Sequence[t.Mapping[str, t.Any]]

#: What a node has one list for, in the order of its mirrors.
_LISTS = ("mirrors", "boot_mirrors", "mirror_hosts")


def concerns(problem: t.Mapping[str, t.Any], entry: t.Mapping[str, t.Any], node: t.Mapping[str, t.Any]) -> bool:
    """Whether a problem of a mirror keeps this node, which wants the image of ``entry``, from using it."""
    if problem["kind"] == "ramdisk":
        return problem["name"] == node["arch"]
    if problem["kind"] == "image":
        return problem["name"] == entry["name"]
    return problem["kind"] == "mirror"


def usable(plan: Plan, checks: Checks, lost: Lost = ()) -> dict[str, list[int]]:
    """By node, the places in its lists of the mirrors that it may use; ``lost`` are hosts that cannot be managed."""
    gone = {problem["node"] for problem in lost}
    places = {
        name: [place for place, host in enumerate(node["mirror_hosts"]) if host not in gone]
        for name, node in plan["nodes"].items()
    }
    for entry, check in zip(plan["images"], checks):
        for name in entry["nodes"]:
            node = plan["nodes"][name]
            bad = {problem["mirror"] for problem in check.get("problems", ()) if concerns(problem, entry, node)}
            places[name] = [place for place in places[name] if node["mirrors"][place] not in bad]
    return places


def in_rotation(plan: Plan, checks: Checks, lost: Lost = ()) -> dict[str, t.Any]:
    """The plan in which each node has only the mirrors that it may use.

    A node for which none is left keeps all of its own: that is a problem, told elsewhere.
    """
    places = usable(plan, checks, lost)
    nodes = {}
    for name, node in plan["nodes"].items():
        kept = places[name]
        lists = {key: [node[key][place] for place in kept] for key in _LISTS} if kept else {}
        nodes[name] = {**node, **lists}
    return {**plan, "nodes": nodes}
