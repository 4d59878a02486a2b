# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The included files that belong to us, rendered from the declared nodes. Private to h200.rack."""

from __future__ import annotations

import typing as t

from .._common.errors import InvalidInput
from . import dynamic, hostlist, topology
from .declared import Declared

HEADER = "# Written by h200.rack from its inventory; changes made here are lost.\n"
# A name for all our nodes, which a site's own partition can use: `PartitionName=x Nodes=h200_rack`.
NODESET = "h200_rack"


class Partition(t.NamedTuple):
    name: str
    nodes: tuple[str, ...]  # empty: all
    existing: bool  # the site's own; it only has to be there and to take our nodes
    options: dict[str, str]


def read_partitions(items: t.Sequence[t.Mapping[str, t.Any]], nodes: t.Container[str]) -> list[Partition]:
    problems, partitions = [], []
    for item in items:
        unknown = [name for name in item.get("nodes") or () if name not in nodes]
        if unknown:
            names = ", ".join(unknown)
            problems.append(f"slurm_rack_partitions: {item['name']} names {names}, which no inventory declared")
        options = {str(key): _value(value) for key, value in (item.get("options") or {}).items()}
        partitions.append(
            Partition(str(item["name"]), tuple(item.get("nodes") or ()), bool(item.get("existing")), options)
        )
    if problems:
        raise InvalidInput("; ".join(problems), problems=problems)
    return partitions


def _value(value: t.Any) -> str:
    return {True: "YES", False: "NO"}.get(value, str(value)) if isinstance(value, bool) else str(value)


def nodes_conf(
    nodes: t.Sequence[Declared],
    partitions: t.Sequence[Partition],
    gate: t.Mapping[str, str] | None = None,
    by_feature: bool = False,
) -> str:
    """Node, node set and partition lines. ``gate`` maps names to the reason with which they come up drained.

    ``by_feature`` opens the node set for nodes that join by themselves.

    The gate lasts for one start of the controller only: a State=DRAIN left in the file would drain a released
    node again at every later start.
    """
    gate = gate or {}
    lines = [_node_line(node, gate.get(node.name)) for node in nodes]
    members = f" Nodes={hostlist.compress(node.name for node in nodes)}" if nodes else ""
    members += f" Feature={dynamic.FEATURE}" if by_feature else ""
    if members:
        lines.append(f"NodeSet={NODESET}{members}")
    lines += [_partition_line(item) for item in partitions if not item.existing and (members or item.nodes)]
    return HEADER + "".join(f"{line}\n" for line in lines)


def _node_line(node: Declared, reason: str | None) -> str:
    words = [f"NodeName={node.name}"]
    if node.address:
        words.append(f"NodeAddr={node.address}")
    words.append(node.hardware)
    words.append(f'State=DRAIN Reason="{reason}"' if reason else "State=UNKNOWN")
    return " ".join(words)


def _partition_line(item: Partition) -> str:
    nodes = hostlist.compress(item.nodes) if item.nodes else NODESET
    options = "".join(f" {key}={value}" for key, value in item.options.items())
    return f"PartitionName={item.name} Nodes={nodes}{options}"


def gres_conf(nodes: t.Sequence[Declared], detect: str, file_pattern: str, unnamed: bool = False) -> str:
    """gres.conf lines: ``detect`` is ``files``, ``nvml`` or ``nvidia``. ``unnamed`` ones hold for every node."""
    kinds: dict[tuple[int, str], list[str]] = {}
    for node in nodes:
        if node.gpus:
            kinds.setdefault((node.gpus, node.gpu_type), []).append(node.name)
    lines = []
    for (count, gpu_type), names in kinds.items():
        where = "" if unnamed else f"NodeName={hostlist.compress(names)} "
        if detect == "files":
            device = file_pattern.replace("%", "0" if count == 1 else f"[0-{count - 1}]")
            lines.append(f"{where}Name=gpu Type={gpu_type} File={device}")
        else:
            lines.append(f"{where}AutoDetect={detect} Name=gpu Type={gpu_type}")
    return HEADER + "".join(f"{line}\n" for line in lines)


def topology_conf(nodes: t.Sequence[Declared]) -> str:
    return HEADER + "".join(f"{line}\n" for line in topology.render(nodes))
