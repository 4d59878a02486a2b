# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From what is wanted and what is there to the files and the kind of change. Private to h200.rack."""

from __future__ import annotations

import os
import pathlib
import typing as t

from .._common.errors import InvalidInput
from . import conf, declared, dynamic, registry, render, topology

NODES, GRES, TOPOLOGY = "h200-rack-nodes.conf", "h200-rack-gres.conf", "h200-rack-topology.conf"
OURS = (NODES, GRES, TOPOLOGY)


class Wanted(t.NamedTuple):
    """What one call asks for."""

    nodes: list[declared.Declared]
    absent: tuple[str, ...]
    partitions: t.Sequence[t.Mapping[str, t.Any]]
    slurm_conf: str | None  # None: the site's own; only our included files are managed
    cgroup_conf: str | None
    detect: str
    device: str
    topology: str
    folder: str
    joining: frozenset[str] = frozenset()  # new nodes that make themselves known instead of standing in the files

    @property
    def whole(self) -> bool:
        return self.slurm_conf is not None


class Plan(t.NamedTuple):
    nodes: dict[str, declared.Declared]
    partitions: list[render.Partition]
    files: dict[str, bytes]  # name in the folder → content, as it shall stay
    old_files: dict[str, bytes | None]
    changes: list[str]
    by_feature: bool = False  # nodes may join by themselves

    @property
    def listed(self) -> dict[str, declared.Declared]:
        """The nodes that stand in the files."""
        return _listed(self.nodes)


def _listed(nodes: t.Mapping[str, declared.Declared]) -> dict[str, declared.Declared]:
    return {name: node for name, node in nodes.items() if not node.dynamic}


def make(wanted: Wanted, old: registry.Registry, reader: t.Callable[[str], bytes | None]) -> Plan:
    """Everything that can be said without the controller. Raises :class:`InvalidInput`."""
    check_site(wanted)
    nodes = merge(wanted, old)
    dynamic.refuse_other_hardware(old.nodes, nodes)
    partitions = render.read_partitions(wanted.partitions, nodes)
    by_feature = dynamic.prepared(wanted.slurm_conf, wanted.topology, nodes.values())
    _check_dynamic(wanted, nodes, by_feature)
    made = files(wanted, nodes, partitions, by_feature)
    check_topology(made, wanted, _listed(nodes))
    before = {name: reader(os.path.join(wanted.folder, name)) for name in made}
    kinds = changes(before, made, registry.Registry(_listed(old.nodes), old.applied), _listed(nodes))
    return Plan(nodes, partitions, made, before, kinds, by_feature)


def _check_dynamic(wanted: Wanted, nodes: t.Mapping[str, declared.Declared], by_feature: bool) -> None:
    """Nodes that joined by themselves must not lose what they stand on."""
    joined = {name for name, node in nodes.items() if node.dynamic}
    if not joined:
        return
    lacking = [] if by_feature else dynamic.missing(wanted.slurm_conf, wanted.topology, nodes.values())
    lacking += dynamic.named(wanted.partitions, joined)
    if lacking:
        dynamic.refuse(lacking)


def merge(wanted: Wanted, old: registry.Registry) -> dict[str, declared.Declared]:
    """The nodes that were registered before, with this call's added and removed."""
    nodes = dict(old.nodes)
    for node in wanted.nodes:
        before = old.nodes.get(node.name)
        nodes[node.name] = node._replace(dynamic=before.dynamic if before else node.name in wanted.joining)
    for name in wanted.absent:
        nodes.pop(name, None)
    return dict(sorted(nodes.items()))


def files(
    wanted: Wanted,
    nodes: dict[str, declared.Declared],
    partitions: list[render.Partition],
    by_feature: bool = False,
) -> dict[str, bytes]:
    listed = list(_listed(nodes).values())
    made = {NODES: render.nodes_conf(listed, partitions, by_feature=by_feature)}
    made[GRES] = render.gres_conf(list(nodes.values()), wanted.detect, wanted.device, unnamed=by_feature)
    if wanted.topology == "tree":
        made[TOPOLOGY] = render.topology_conf(listed)
    if wanted.whole:
        made["slurm.conf"] = str(wanted.slurm_conf)
        made["gres.conf"] = f"{render.HEADER}Include {GRES}\n"
        if wanted.topology == "tree":
            made["topology.conf"] = f"{render.HEADER}Include {TOPOLOGY}\n"
        if wanted.cgroup_conf is not None:
            made["cgroup.conf"] = wanted.cgroup_conf
    return {name: content.encode() for name, content in made.items()}


def check_topology(made: t.Mapping[str, bytes], wanted: Wanted, names: t.Iterable[str]) -> None:
    """Slurm starts with a topology that leaves nodes out; here it is refused."""
    if wanted.topology != "tree" or not names:
        return
    text = made[TOPOLOGY].decode()
    if not wanted.whole:
        text = _joined_topology(wanted.folder, made)
    wrong = topology.problems(text, names)
    if wrong:
        raise InvalidInput(f"topology.conf: {'; '.join(wrong)}", problems=wrong)


def _joined_topology(folder: str, made: t.Mapping[str, bytes]) -> str:
    lines = []
    for line in _read(os.path.join(folder, "topology.conf")).splitlines():
        words = line.split()
        included = len(words) == 2 and words[0].lower() == "include" and os.path.basename(words[1]) == TOPOLOGY
        lines.append(made[TOPOLOGY].decode() if included else line)
    return "\n".join(lines)


def check_site(wanted: Wanted) -> None:
    """With the site's own slurm.conf: refuse, with the line to add, what we would else have to write there."""
    if wanted.whole:
        return
    path = os.path.join(wanted.folder, "slurm.conf")
    if not os.path.exists(path):
        raise InvalidInput(
            f"{path} does not exist; slurm_manage is includes, so the site's own slurm.conf must be there"
        )
    site = conf.read(path)
    lacking = []
    if not any(os.path.basename(target) == NODES for target in site.includes):
        lacking.append(f"{path}: add the line `Include {NODES}`")
    if "gpu" not in site.settings.get("grestypes", "").split(","):
        lacking.append(f"{path}: set `GresTypes=gpu`")
    lacking += _lacking_include(wanted.folder, "gres.conf", GRES)
    if wanted.topology == "tree":
        if site.settings.get("topologyplugin") != "topology/tree":
            lacking.append(f"{path}: set `TopologyPlugin=topology/tree` (or slurm_topology to none)")
        lacking += _lacking_include(wanted.folder, "topology.conf", TOPOLOGY)
    theirs = site.names("nodename", not_in=OURS)
    twice = [node.name for node in wanted.nodes if node.name in theirs]
    if twice:
        lacking.append(f"{path}: it defines {', '.join(twice)} itself; remove them there, or from the inventory")
    if lacking:
        raise InvalidInput("; ".join(lacking), problems=lacking)


def _lacking_include(folder: str, name: str, ours: str) -> list[str]:
    path = os.path.join(folder, name)
    words = [line.split() for line in _read(path).splitlines()]
    there = any(len(pair) == 2 and pair[0].lower() == "include" and os.path.basename(pair[1]) == ours for pair in words)
    return [] if there else [f"{path}: add the line `Include {ours}`"]


def _read(path: str) -> str:
    try:
        return pathlib.Path(path).read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return ""


def changes(
    old_files: t.Mapping[str, bytes | None],
    new_files: t.Mapping[str, bytes],
    old: registry.Registry,
    nodes: t.Mapping[str, declared.Declared],
) -> list[str]:
    """The kinds of change, as the strategy table names them."""
    kinds = []
    differing = {name for name, content in new_files.items() if old_files.get(name) != content}
    if set(old.nodes) != set(nodes):
        kinds.append("node_set")
    common = [(old.nodes[name], nodes[name]) for name in nodes if name in old.nodes]
    if any(before.gres != after.gres for before, after in common) or differing & {GRES, "gres.conf"}:
        kinds.append("gres")
    if any(before.hardware != after.hardware or before.address != after.address for before, after in common):
        kinds.append("node_values")
    if NODES in differing and not kinds:
        kinds.append("partitions")
    if differing & {TOPOLOGY, "topology.conf"}:
        kinds.append("topology")
    if "cgroup.conf" in differing:
        kinds.append("cgroup")
    if "slurm.conf" in differing:
        kinds.append("settings")
    if not kinds and old.applied != registry.digest(new_files):
        # The files are there, but a run was interrupted before the controller was proven with them.
        kinds.append("settings")
    return kinds
