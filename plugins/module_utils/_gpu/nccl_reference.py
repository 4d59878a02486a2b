# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a healthy system reaches: by collective, number of nodes, algorithm and size. Private to h200.rack.

A percentage without its denominator says nothing, so every reference carries the sentence it stands on.
"""

from __future__ import annotations

import dataclasses
import math
import typing as t

from ansible_collections.h200.rack.plugins.module_utils._common.profiles import compute_nics

MIB, GIB = 1 << 20, 1 << 30

# Share of the large-message figure that healthy systems reach at smaller sizes; below the first size, bandwidth
# is not what a test measures. One node: H100 and H200 (383 to 403 GB/s at 128 MiB against 480). Several nodes: the
# slowest of four healthy pairs. Without NVLS the ramp is steeper.
_NVLS_RAMP = ((128 * MIB, 0.80), (256 * MIB, 0.86), (512 * MIB, 0.89), (GIB, 0.92), (4 * GIB, 0.97), (8 * GIB, 1.0))
_NODES_RAMP = ((GIB, 0.75), (2 * GIB, 0.85), (4 * GIB, 0.92), (8 * GIB, 0.97), (16 * GIB, 1.0))
_RING_RAMP = ((128 * MIB, 0.78), (256 * MIB, 0.88), (512 * MIB, 0.95), (2 * GIB, 1.0))

# A ring of eight ranks on one node whose every hop is forced through the NICs: one NIC's rate, of which Azure's
# node checks ask 40 of 50 GB/s.
_LOOPBACK_FLOOR = 0.8


@dataclasses.dataclass(frozen=True)
class Reference:
    """GB/s at the judged size; ``floor`` is what must be reached, ``warn`` below which a pass is worth a look."""

    value: float
    floor: float
    basis: str
    warn: float = 0.0
    nvls: bool = False  # whether NVLink SHARP is what makes this figure
    ring: t.Optional[float] = None  # what is left of it without NVLS
    nodes: int = 1
    too_small: bool = False
    ceiling: t.Optional[float] = None  # what NVLink SHARP may make of it, where it may or may not be in play


def share_at(size: int, ramp: t.Sequence[tuple[int, float]]) -> t.Optional[float]:
    """The share at ``size``, between the points of ``ramp`` by the logarithm of the size; None below it."""
    if size < ramp[0][0] * 0.99:
        return None
    for (low, a), (high, b) in zip(ramp, ramp[1:]):
        if size <= high:
            return a + (b - a) * max(0.0, math.log2(size / low)) / math.log2(high / low)
    return ramp[-1][1]


def given(value: float, min_utilization: t.Optional[float]) -> Reference:
    """The caller's own figure."""
    share = 0.85 if min_utilization is None else min_utilization
    return Reference(value, value * share, f"{value:g} GB/s given as reference, at least {share:.0%} of it")


def find(
    profile: t.Mapping[str, t.Any],
    collective: str,
    nodes: int,
    size: int,
    *,
    ring: bool = False,
    loopback: bool = False,
    min_utilization: t.Optional[float] = None,
) -> t.Optional[Reference]:
    """The reference for ``collective`` over ``nodes`` nodes of ``profile``; None where no figure is known."""
    nccl = profile.get("nccl") or {}
    gpus = (profile.get("gpu") or {}).get("count") or 0
    share = min_utilization if min_utilization is not None else nccl.get("min_utilization") or 0.85
    name = profile.get("name") or "profile"
    nics, _names = compute_nics(profile)
    line = nics * float((profile.get("nics") or {}).get("rate_gbps") or 0) / 8
    nvls, nvlink = nccl.get("nvls_gbs"), nccl.get("nvlink_ring_gbs")
    if loopback:
        return _loopback(
            name, line / gpus if gpus else 0, size, share if min_utilization is not None else _LOOPBACK_FLOOR
        )
    if nodes == 1:
        return _one_node(nccl, name, collective, size, ring, share, min_utilization is not None)
    if not line or not gpus:
        return None
    ranks = nodes * gpus
    if collective in ("alltoall", "alltoallv"):
        value = line / gpus * nodes / (nodes - 1) * (ranks - 1) / ranks
        words = f"{line / gpus:g} GB/s of NIC per GPU, spread over {nodes} nodes"
        return _scaled(value, share, size, _RING_RAMP, f"{name}: {collective}, {words}", nodes)
    if collective == "sendrecv":
        return _scaled(line / gpus, share, size, _RING_RAMP, f"{name}: one NIC's rate", nodes)
    if collective == "all_reduce" and not ring and nvls:
        ideal = line * nodes / (nodes - 1) * (ranks - 1) / ranks
        value = min(nvls, ideal)
        words = (
            f"{line:g} GB/s of NIC per node, reduced within the nodes first, over {nodes} nodes"
            if value < nvls
            else f"capped by NVLink SHARP, not by {line:g} GB/s of NIC"
        )
        return _scaled(value, share, size, _NODES_RAMP, f"{name}: {nodes} nodes, all_reduce, {words}", nodes)
    if collective == "all_reduce":
        return _scaled(line, share, size, _RING_RAMP, f"{name}: {nodes} nodes, ring, {line:g} GB/s of NIC", nodes)
    value = min(line, nvlink) if nvlink else line
    return _scaled(value, share, size, _RING_RAMP, f"{name}: {nodes} nodes, {collective}, NIC or NVLink ring", nodes)


def _one_node(
    nccl: t.Mapping[str, t.Any], name: str, collective: str, size: int, ring: bool, share: float, own_share: bool
) -> t.Optional[Reference]:
    nvls, nvlink = nccl.get("nvls_gbs"), nccl.get("nvlink_ring_gbs")
    if collective == "all_reduce" and not ring and nvls:
        floor = share if own_share or not nccl.get("nvls_floor_gbs") else nccl["nvls_floor_gbs"] / nvls
        part = share_at(size, _NVLS_RAMP)
        value = nvls * (part or 1.0)
        return Reference(
            value,
            value * floor,
            f"{name}: 1 node, all_reduce by NVLink SHARP, {nvls:g} GB/s for large messages" + _at(part, size),
            warn=(nccl.get("nvls_warn_gbs") or 0) * (part or 1.0),
            nvls=True,
            ring=(nvlink or 0) * (share_at(size, _RING_RAMP) or 1.0) or None,
            too_small=part is None,
        )
    if not nvlink:
        return None
    found = _scaled(nvlink, share, size, _RING_RAMP, f"{name}: 1 node, {collective} over NVLink without NVLS", 1)
    # Newer versions of NCCL speed these up as well, others do not: both are healthy.
    return dataclasses.replace(found, ceiling=nvls) if collective in ("all_gather", "reduce_scatter") else found


def _loopback(name: str, per_gpu: float, size: int, share: float) -> t.Optional[Reference]:
    if not per_gpu:
        return None
    return _scaled(per_gpu, share, size, _RING_RAMP, f"{name}: 1 node, every hop through the NICs, one NIC's rate", 1)


def _scaled(
    value: float, share: float, size: int, ramp: t.Sequence[tuple[int, float]], basis: str, nodes: int
) -> Reference:
    part = share_at(size, ramp)
    scaled = value * (part or 1.0)
    return Reference(scaled, scaled * share, basis + _at(part, size), nodes=nodes, too_small=part is None)


def _at(part: t.Optional[float], size: int) -> str:
    if part is None or part >= 1:
        return ""
    return f", {part:.0%} of it at {size / MIB:g} MiB"
