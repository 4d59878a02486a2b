# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""topology.conf for topology/tree from the scalable units, and a check of what Slurm only warns about.

One switch per scalable unit stands for its whole leaf layer: a rail-optimised node hangs on eight leaves,
and a node listed under more than one switch is an error to Slurm. Private to h200.rack.
"""

from __future__ import annotations

import typing as t

from .._common.errors import InvalidInput
from . import hostlist
from .declared import Declared

SPINE = "spine"


def render(nodes: t.Sequence[Declared]) -> list[str]:
    """The lines of topology.conf. Nodes without a scalable unit cannot be placed and are refused."""
    lost = [node.name for node in nodes if node.unit is None]
    if lost:
        raise InvalidInput(
            f"{hostlist.compress(lost)}: rack_scalable_unit is not set; the topology needs it for every node "
            "(or set slurm_topology to none)"
        )
    units: dict[str, list[str]] = {}
    for node in nodes:
        units.setdefault(str(node.unit), []).append(node.name)
    lines = [f"SwitchName={unit} Nodes={hostlist.compress(sorted(names))}" for unit, names in sorted(units.items())]
    if units:
        lines.append(f"SwitchName={_spine_name(units)} Switches={hostlist.compress(sorted(units))}")
    return lines


def _spine_name(units: t.Container[str]) -> str:
    return SPINE if SPINE not in units else f"h200rack-{SPINE}"


def problems(text: str, nodes: t.Iterable[str]) -> list[str]:
    """What is wrong with a topology.conf for a cluster of ``nodes``; Slurm would start with every one of these."""
    switches, found = _read(text)
    known = set(nodes)
    found += _node_problems(switches, known)
    return found + _tree_problems(switches)


class Switch(t.NamedTuple):
    nodes: list[str]
    switches: list[str]


def _read(text: str) -> tuple[dict[str, Switch], list[str]]:
    switches: dict[str, Switch] = {}
    found: list[str] = []
    for line in text.splitlines():
        words = dict(word.split("=", 1) for word in line.split("#", 1)[0].split() if "=" in word)
        fields = {key.lower(): value for key, value in words.items()}
        if "switchname" not in fields:
            continue
        for name in hostlist.expand(fields["switchname"]):
            if name in switches:
                found.append(f"switch {name} is described twice")
            below = hostlist.expand(fields.get("nodes", "")), hostlist.expand(fields.get("switches", ""))
            if not any(below):
                found.append(f"switch {name} has neither nodes nor switches")
            switches[name] = Switch(*below)
    if not switches:
        found.append("no switch at all")
    return switches, found


def _node_problems(switches: dict[str, Switch], known: set[str]) -> list[str]:
    found: list[str] = []
    above: dict[str, list[str]] = {}
    for name, switch in switches.items():
        for node in switch.nodes:
            above.setdefault(node, []).append(name)
    for node, names in above.items():
        if len(names) > 1:
            found.append(f"node {node} hangs on more than one switch: {', '.join(names)}")
        if node not in known:
            found.append(f"node {node} under switch {names[0]} is not a node of this cluster")
    lost = sorted(known - set(above))
    if lost:
        found.append(f"no switch for {hostlist.compress(lost)}: jobs that span switches would never get there")
    return found


def _tree_problems(switches: dict[str, Switch]) -> list[str]:
    found: list[str] = []
    parents: dict[str, list[str]] = {}
    for name, switch in switches.items():
        for child in switch.switches:
            parents.setdefault(child, []).append(name)
            if child not in switches:
                found.append(f"switch {child} under {name} is not described")
    found += [f"switch {child} hangs on more than one: {', '.join(up)}" for child, up in parents.items() if len(up) > 1]
    roots = [name for name in switches if name not in parents]
    if len(roots) > 1:
        found.append(f"no switch joins {', '.join(sorted(roots))}: jobs cannot span them; a spine is missing")
    if switches and not roots:
        found.append("the switches form a ring")
    return found
