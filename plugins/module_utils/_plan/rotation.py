# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which mirrors a node may use now: those that are in rotation and have what it needs. Private to h200.rack."""

from __future__ import annotations

import typing as t

Plan = t.Mapping[str, t.Any]
Checks = t.Sequence[t.Mapping[str, t.Any]]
Lost = t.Sequence[t.Mapping[str, t.Any]]

#: What a node has one list for, in the order of its mirrors; and the same for those behind a cache.
_LISTS = ("mirrors", "boot_mirrors", "mirror_hosts")
_FALLBACK = "fallback_"


def all_mirrors(node: t.Mapping[str, t.Any], key: str = "mirrors") -> list[str]:
    """The node's mirrors, then those that it asks only when these fail."""
    return [*node[key], *node[_FALLBACK + key]]


def concerns(problem: t.Mapping[str, t.Any], entry: t.Mapping[str, t.Any], node: t.Mapping[str, t.Any]) -> bool:
    """Whether a problem of a mirror keeps this node, which wants the image of ``entry``, from using it."""
    if problem["kind"] == "ramdisk":
        return problem["name"] == node["arch"]
    if problem["kind"] == "image":
        return problem["name"] == entry["name"]
    return problem["kind"] == "mirror"


def usable(plan: Plan, checks: Checks, lost: Lost = ()) -> dict[str, list[str]]:
    """By node, the hosts of the mirrors that it may use; ``lost`` are hosts that cannot be managed."""
    gone = {problem["node"] for problem in lost}
    hosts = {
        name: [host for host in all_mirrors(node, "mirror_hosts") if host not in gone]
        for name, node in plan["nodes"].items()
    }
    for entry, check in zip(plan["images"], checks):
        for name in entry["nodes"]:
            node = plan["nodes"][name]
            urls = dict(zip(all_mirrors(node, "mirror_hosts"), all_mirrors(node)))
            bad = {problem["mirror"] for problem in check.get("problems", ()) if concerns(problem, entry, node)}
            hosts[name] = [host for host in hosts[name] if urls[host] not in bad]
    return hosts


def in_rotation(plan: Plan, checks: Checks, lost: Lost = ()) -> dict[str, t.Any]:
    """The plan in which each node has only the mirrors that it may use.

    A node for which none is left keeps all of its own: that is a problem, told elsewhere.
    """
    hosts = usable(plan, checks, lost)
    return {**plan, "nodes": {name: _only(node, hosts[name]) for name, node in plan["nodes"].items()}}


def _only(node: t.Mapping[str, t.Any], hosts: t.Sequence[str]) -> dict[str, t.Any]:
    if not hosts:
        return dict(node)
    lists = {}
    for prefix in ("", _FALLBACK):
        kept = [place for place, host in enumerate(node[f"{prefix}mirror_hosts"]) if host in hosts]
        lists.update({f"{prefix}{key}": [node[f"{prefix}{key}"][place] for place in kept] for key in _LISTS})
    if not lists["mirrors"]:
        # Behind a cache that is away, the others are all there is.
        lists = {**{key: lists[_FALLBACK + key] for key in _LISTS}, **{_FALLBACK + key: [] for key in _LISTS}}
    return {**node, **lists}
