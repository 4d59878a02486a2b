# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Nodes that make themselves known to a running controller (`slurmd -Z`): no restart and no reconfigure.

They stand in no file of the controller. It must have room for them (MaxNodeCount), a gres.conf that names no nodes,
and a node set that takes them by their feature. Slurm before 25.05 gives them no place in a topology/tree.
Private to h200.rack.
"""

from __future__ import annotations

import typing as t

from .._common.errors import InvalidInput, RackError
from . import conf, strategy
from .declared import Declared

# The node set of ours takes nodes with this feature too.
FEATURE = "h200_rack"


def room(slurm_conf: str | None) -> int:
    """MaxNodeCount of a slurm.conf that we manage; 0 when it has none."""
    if slurm_conf is None:
        return 0
    read = conf.read("slurm.conf", lambda path: slurm_conf if path == "slurm.conf" else "")
    text = read.settings.get("maxnodecount", "")
    return int(text) if text.isdigit() else 0


def kinds(nodes: t.Iterable[Declared]) -> set[tuple[int, str]]:
    return {(node.gpus, node.gpu_type) for node in nodes if node.gpus}


def prepared(slurm_conf: str | None, topology: str, nodes: t.Collection[Declared]) -> bool:
    """Whether the files are written so that nodes can join by themselves."""
    return not missing(slurm_conf, topology, nodes)


def missing(slurm_conf: str | None, topology: str, nodes: t.Collection[Declared]) -> list[str]:
    """What keeps nodes from joining by themselves."""
    if slurm_conf is None:
        return ["slurm_manage must be all"]
    found = []
    if room(slurm_conf) < len(nodes):
        found.append(f"slurm_max_nodes must be at least {len(nodes)}, the number of nodes")
    if topology != "none":
        found.append("slurm_topology must be none, since a tree has no place for them")
    if len(kinds(nodes)) > 1:
        found.append("all nodes must have the same GPUs, since gres.conf cannot name them")
    return found


def named(partitions: t.Iterable[t.Mapping[str, t.Any]], names: t.Collection[str]) -> list[str]:
    """Partitions that list nodes which stand in no file."""
    return [
        f"slurm_rack_partitions: {item['name']} must not name {name}, which no file lists; without nodes it takes all"
        for item in partitions
        for name in item.get("nodes") or ()
        if name in names
    ]


def refuse(lacking: t.Sequence[str]) -> t.NoReturn:
    raise RackError(
        f"slurm_strategy: dynamic is refused: {'; '.join(lacking)}", code="strategy_refused", problems=list(lacking)
    )


def fits(config: t.Mapping[str, str], total: int) -> bool:
    """Whether the controller that runs now, by its own `show config`, takes ``total`` nodes, new ones among them."""
    most = config.get("MaxNodeCount", "")
    return (
        most.isdigit()
        and int(most) >= total
        and config.get("SelectType") == "select/cons_tres"
        and config.get("TopologyPlugin", "topology/none") != "topology/tree"
    )


def pays(changes: t.Iterable[str], version: t.Any) -> bool:
    """Whether what else changes needs no restart, which would take the new nodes along."""
    return strategy.choose(changes, version, running=True) != strategy.RESTART


def slurmd_conf(node: Declared) -> str:
    """What slurmd tells the controller of itself: the inventory's word, and the gate."""
    features = dict.fromkeys((*node.features, FEATURE))
    return f"{node._replace(features=tuple(features)).hardware} State=DRAIN"


def refuse_other_hardware(old: t.Mapping[str, Declared], nodes: t.Mapping[str, Declared]) -> None:
    """The controller keeps what a dynamic node told first; another profile reaches it by removal only."""
    problems = [
        f"{name}: rack_profile: has joined as a dynamic node with other hardware; remove it (the role h200.rack.slurm, "
        "tasks_from remove), then register it again"
        for name, node in nodes.items()
        if name in old and node.dynamic and slurmd_conf(old[name]) != slurmd_conf(node)
    ]
    if problems:
        raise InvalidInput("; ".join(problems), problems=problems)
