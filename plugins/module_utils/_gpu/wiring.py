# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How a node's GPUs are wired: ``nvidia-smi nvlink --status`` and ``nvidia-smi topo -m``. Private to h200.rack."""

from __future__ import annotations

import dataclasses
import re
import typing as t

_ANSI = re.compile(r"\x1b\[[0-9;]*m")
_GPU = re.compile(r"^\s*GPU (\d+):")
_LINK = re.compile(r"^\s*Link (\d+):\s*(?:([\d.]+)\s*GB/s|(.*))")
_CELL = re.compile(r"NV\d+|PIX|PXB|PHB|NODE|SYS|X|N/A")
_ROW = re.compile(r"^\s*(GPU|NIC)(\d+)(.*)$")
_LEGEND = re.compile(r"^\s*NIC(\d+):\s*(\S+)\s*$")
_HEADER_GPU = re.compile(r"GPU\d+")
_HEADER_NIC = re.compile(r"NIC\d+|mlx\d_\w+")
_AFFINITY = re.compile(r"(\d+(?:-\d+)?(?:,\d+(?:-\d+)?)*)\s+(\d+)")

# From near to far; the first two stay below one PCIe switch complex.
NEAR = ("PIX", "PXB")


@dataclasses.dataclass(frozen=True)
class Topology:
    """``gpu_gpu[i][j]`` and ``gpu_nic[i][name]`` are words of the matrix; ``numa[i]`` is GPU i's NUMA node."""

    gpu_gpu: dict[int, dict[int, str]]
    gpu_nic: dict[int, dict[str, str]]
    nics: tuple[str, ...]
    numa: dict[int, int]

    def near(self, gpu: int, among: t.Collection[str] = ()) -> list[str]:
        """The NICs nearest to ``gpu``: behind the same switch, else behind the same switch complex."""
        nics = self.gpu_nic.get(gpu, {})
        for word in NEAR:
            found = sorted(name for name, value in nics.items() if value == word and (not among or name in among))
            if found:
                return found
        return []


def parse_nvlink(text: str) -> dict[int, dict[int, t.Optional[float]]]:
    """GPU → link → GB/s per direction (None: the link is there and inactive). A GPU without links has no entries."""
    gpus: dict[int, dict[int, t.Optional[float]]] = {}
    links: t.Optional[dict[int, t.Optional[float]]] = None
    for line in text.splitlines():
        gpu = _GPU.match(line)
        if gpu:
            links = gpus.setdefault(int(gpu.group(1)), {})
            continue
        link = _LINK.match(line)
        if link and links is not None:
            try:
                links[int(link.group(1))] = float(link.group(2)) if link.group(2) else None
            except ValueError:
                links[int(link.group(1))] = None
    return gpus


def parse_topology(text: str) -> Topology:
    """``nvidia-smi topo -m``, also where tabs were lost or rows have more of them than the header.

    Cells are counted, not cut at tabs: a row has one for every GPU and one for every NIC, and the NICs and their
    names are those of the legend ("NIC3: mlx5_4"), whose numbers need not agree.
    """
    lines = [_ANSI.sub("", line) for line in text.splitlines()]
    legend = {int(m.group(1)): m.group(2) for m in map(_LEGEND.match, lines) if m}
    gpus = sorted({int(m.group(2)) for m in map(_ROW.match, lines) if m and m.group(1) == "GPU" and _cells(m.group(3))})
    nics = [legend[number] for number in sorted(legend)] or _nics_of_header(lines)
    gpu_gpu: dict[int, dict[int, str]] = {}
    gpu_nic: dict[int, dict[str, str]] = {}
    numa: dict[int, int] = {}
    for line in lines:
        row = _ROW.match(line)
        if not row or row.group(1) != "GPU" or row.group(3).lstrip().startswith(":"):
            continue
        cells = list(_CELL.finditer(row.group(3)))
        if len(cells) < len(gpus) + len(nics):
            continue
        words = [cell.group() for cell in cells]
        gpu = int(row.group(2))
        gpu_gpu[gpu] = {other: words[k] for k, other in enumerate(gpus) if other != gpu}
        gpu_nic[gpu] = {name: words[len(gpus) + k] for k, name in enumerate(nics)}
        rest = row.group(3)[cells[len(gpus) + len(nics) - 1].end() :]
        affinity = _AFFINITY.search(rest)
        if affinity:
            numa[gpu] = int(affinity.group(2))
    return Topology(gpu_gpu, gpu_nic, tuple(nics), numa)


def _cells(rest: str) -> list[str]:
    return [] if rest.lstrip().startswith(":") or _HEADER_GPU.search(rest) else _CELL.findall(rest)


def _nics_of_header(lines: t.Iterable[str]) -> list[str]:
    """Drivers before 515 have no legend: the header names the NICs."""
    for line in lines:
        if len(_HEADER_GPU.findall(line)) > 1:
            return _HEADER_NIC.findall(line)
    return []
