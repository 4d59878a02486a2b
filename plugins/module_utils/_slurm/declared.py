# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the inventory declares about a node, checked, and the lines it becomes. Private to h200.rack.

The hardware comes from the profile, never from the node: a node with a dead GPU would else be blessed with seven.
"""

from __future__ import annotations

import re
import typing as t

from .._common.errors import InvalidInput

_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9-]{0,62}[A-Za-z0-9])?")
_FEATURE = re.compile(r"[A-Za-z0-9_.-]+")
_CPU_KEYS = ("sockets", "cores_per_socket", "threads_per_core")


class Declared(t.NamedTuple):
    """One node as its inventory wants Slurm to see it."""

    name: str
    address: str | None
    unit: str | None
    sockets: int
    cores: int
    threads: int
    memory: int
    gpus: int
    gpu_type: str
    features: tuple[str, ...]
    dynamic: bool = False  # joined by itself; it stands in no file

    @property
    def gres(self) -> str:
        return f"gpu:{self.gpu_type}:{self.gpus}" if self.gpus else ""

    @property
    def hardware(self) -> str:
        """All that comes from the profile; nodes with the same text share a line."""
        words = [
            f"Sockets={self.sockets}",
            f"CoresPerSocket={self.cores}",
            f"ThreadsPerCore={self.threads}",
            f"RealMemory={self.memory}",
        ]
        if self.gres:
            words.append(f"Gres={self.gres}")
        if self.features:
            words.append(f"Feature={','.join(self.features)}")
        return " ".join(words)


def read_nodes(nodes: t.Sequence[t.Mapping[str, t.Any]], margin: float) -> list[Declared]:
    """Check and resolve ``nodes``; every problem is told at once. ``margin`` is the share of memory left undeclared."""
    problems: list[str] = []
    declared: list[Declared] = []
    for node in nodes:
        wrong = list(_problems(node))
        problems.extend(f"{node.get('name') or '(no name)'}: {problem}" for problem in wrong)
        if not wrong:
            declared.append(_resolve(node, margin))
    problems.extend(_clashes(nodes))
    if problems:
        raise InvalidInput("; ".join(problems), problems=problems)
    return declared


def _problems(node: t.Mapping[str, t.Any]) -> t.Iterator[str]:
    if not _NAME.fullmatch(str(node.get("name") or "")):
        yield "name: must be a host name without dots, as `hostname -s` prints it on the node"
    profile = node.get("profile") or {}
    cpu = profile.get("cpu") or {}
    missing = [f"cpu.{key}" for key in _CPU_KEYS if not _positive(cpu.get(key))]
    if not _positive(profile.get("memory_mib")):
        missing.append("memory_mib")
    if missing:
        yield (
            f"rack_profile: profile {profile.get('name') or '(unnamed)'} has no {', '.join(missing)}; "
            "give them in rack_profiles (what `slurmd -C` prints on a healthy node of this model tells them)"
        )
    gpu = profile.get("gpu") or {}
    if gpu.get("count") and not _FEATURE.fullmatch(str(gpu.get("gres_type") or "")):
        yield "rack_profile: gpu.gres_type must be the type that jobs ask for, such as h200"
    unit = node.get("scalable_unit")
    if isinstance(unit, (list, tuple)):
        yield f"rack_scalable_unit: a node hangs on one scalable unit, not on {len(unit)}: {', '.join(map(str, unit))}"
    elif unit is not None and not _FEATURE.fullmatch(str(unit)):
        yield f"rack_scalable_unit: {unit!r} must be one word, since a switch of the topology is named after it"
    for feature in node.get("features") or ():
        if not _FEATURE.fullmatch(str(feature)):
            yield f"features: {feature!r} must be one word"


def _clashes(nodes: t.Sequence[t.Mapping[str, t.Any]]) -> t.Iterator[str]:
    units: dict[str, t.Any] = {}
    addresses: dict[str, str] = {}
    for node in nodes:
        name, unit, address = str(node.get("name")), node.get("scalable_unit"), node.get("address")
        if name in units and units[name] != unit:
            yield f"{name}: rack_scalable_unit: named in two scalable units, {units[name]} and {unit}"
        elif name in units:
            yield f"{name}: named twice"
        units.setdefault(name, unit)
        if address and addresses.setdefault(address, name) != name:
            yield f"{name}: ansible_host: {address} is the address of {addresses[address]} too"


def _resolve(node: t.Mapping[str, t.Any], margin: float) -> Declared:
    profile = node["profile"]
    cpu, gpu = profile["cpu"], profile.get("gpu") or {}
    return Declared(
        name=str(node["name"]),
        address=str(node["address"]) if node.get("address") else None,
        unit=str(node["scalable_unit"]) if node.get("scalable_unit") not in (None, "") else None,
        sockets=int(cpu["sockets"]),
        cores=int(cpu["cores_per_socket"]),
        threads=int(cpu["threads_per_core"]),
        # What the kernel keeps for itself differs between kernels; RealMemory one MiB too high drains the node.
        memory=int(int(profile["memory_mib"]) * (1 - margin)),
        gpus=int(gpu.get("count") or 0),
        gpu_type=str(gpu.get("gres_type") or ""),
        features=tuple(str(feature) for feature in node.get("features") or ()),
    )


def _positive(value: t.Any) -> bool:
    return str(value).isdigit() and int(value) > 0


def as_record(node: Declared) -> dict[str, t.Any]:
    """For the registry file."""
    return {**node._asdict(), "features": list(node.features)}


def from_record(record: t.Mapping[str, t.Any]) -> Declared:
    return Declared(**{**record, "features": tuple(record["features"])})
