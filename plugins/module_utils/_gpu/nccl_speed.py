# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How fast a test was, at the judged size, against a reference with a name. Private to h200.rack."""

from __future__ import annotations

import dataclasses
import statistics
import typing as t

from . import nccl_figures as figures
from . import nccl_reference as references
from .nccl_model import Log, Row, Table
from .nccl_verdict import Expectation, Judgement

# No system is this much faster than its reference: the figures are not what they seem.
_TOO_GOOD = 1.25
# In-place much slower than out-of-place is unusual, and so is one repetition against the others.
_IN_PLACE = 0.85
_STEADY = 0.85
# What is measured alike, with the references; NVLink SHARP reduces other types at other rates.
_LIKE_FLOAT = ("float", "half", "bfloat16", "float32", "float16")
_REDUCING = ("all_reduce", "reduce_scatter", "reduce")

# What one test comes to: its share of the reference (what tests are ordered by), the judged size, the bus bandwidth
# there, the same in place, and the utilization.
Speed = tuple[float, int, float, t.Optional[float], t.Optional[dict[str, t.Any]]]


def speed(
    log: Log,
    table: Table,
    collective: t.Optional[str],
    ranks: t.Optional[int],
    nodes: t.Optional[int],
    expect: Expectation,
    result: Judgement,
) -> t.Optional[Speed]:
    """Judge the speed into ``result``; None where no row can be judged."""
    rows = _judged_rows(table, collective, expect, result)
    if not rows:
        return None
    size = rows[0].size
    outs = [row.out.busbw for row in rows if row.out is not None]
    ins = [row.inp.busbw for row in rows if row.inp is not None]
    busbw = statistics.median(outs or ins)
    in_place = statistics.median(ins) if ins else None
    if min(outs or ins) < _STEADY * busbw:
        result.note("UNSTEADY", f"the same size reached {min(outs or ins):g} GB/s once, {busbw:g} in the middle")
    if not outs:
        result.note("IN_PLACE_JUDGED", "the log has no out-of-place results")
    elif in_place is not None and in_place < busbw * _IN_PLACE:
        result.note("IN_PLACE_SLOW", f"in-place reaches {in_place:g} GB/s only")
    trusted = ranks if result.ranks_basis == "listed" else None
    if not all(figures.row_agrees(row, collective, trusted) for row in rows):
        result.add("INCONSISTENT", f"time, size and bandwidths at {size} bytes do not fit together: a damaged log")
    reference = _reference(log, collective, nodes, ranks, size, expect, result)
    if reference is None or reference.too_small:
        return busbw, size, busbw, in_place, None
    share = busbw / reference.value if reference.value else 0.0
    utilization = {"value": round(share, 4), "reference": round(reference.value, 2), "basis": reference.basis}
    if busbw < reference.floor and collective in _REDUCING and rows[0].dtype not in _LIKE_FLOAT:
        result.add(
            "NO_REFERENCE", f"{busbw:g} GB/s; {rows[0].dtype} is reduced at other rates than float: test with float"
        )
    elif busbw < reference.floor:
        _slow(log, busbw, reference, expect, result)
    elif expect.reference is None and share > _TOO_GOOD and busbw > 1.05 * (reference.ceiling or 0):
        result.add("INCONSISTENT", f"{busbw:g} GB/s is more than this hardware can do: wrong profile, or no real run")
    elif busbw < reference.warn:
        result.note("BUSBW_MARGINAL", f"{busbw:g} GB/s passes, healthy nodes reach {reference.value:g}")
    return share, size, busbw, in_place, utilization


def _judged_rows(table: Table, collective: t.Optional[str], expect: Expectation, result: Judgement) -> list[Row]:
    """The rows at the judged size, of the type that references are known for."""
    types = sorted({row.dtype for row in table.rows})
    dtype = next((name for name in _LIKE_FLOAT if name in types), types[0])
    if len(types) > 1:
        result.note("SEVERAL_TYPES", f"{dtype} is judged, of {', '.join(types)}")
    elif dtype != "float" and collective in _REDUCING:
        result.note("TYPE", f"{dtype} moves at other rates than the float that references are for")
    operations = {row.redop for row in table.rows if row.dtype == dtype}
    if len(operations) > 1 and "sum" in operations:
        result.note("SEVERAL_OPERATIONS", "sum is judged: NVLink SHARP does not speed up each of the others")
        operations = {"sum"}
    rows = [row for row in table.rows if row.dtype == dtype and row.redop in operations and row.size > 0]
    largest = max((row.size for row in rows), default=0)
    wanted = expect.at_size or expect.max_bytes or largest
    found = [row for row in rows if wanted * 0.99 <= row.size <= wanted]
    if not found and rows:
        result.add("SIZE_MISSING", f"no result for {wanted} bytes; the largest is {largest}")
    return found


def _reference(
    log: Log,
    collective: t.Optional[str],
    nodes: t.Optional[int],
    ranks: t.Optional[int],
    size: int,
    expect: Expectation,
    result: Judgement,
) -> t.Optional[references.Reference]:
    if expect.reference is not None:
        reference = references.given(expect.reference, expect.min_utilization)
        return dataclasses.replace(reference, nodes=nodes or 1)
    if expect.min_utilization == 0 and expect.profile is None:
        return None
    reference = None
    if expect.profile is not None and collective and nodes:
        ring = expect.ring or (not expect.own_run and (log.algorithm or "").lower() == "ring")
        if ring and not expect.ring:
            result.note("RING_JUDGED", "the log says NCCL_ALGO=RING, so it is held against a ring, not NVLink SHARP")
        reference = references.find(
            expect.profile,
            collective,
            nodes,
            size,
            ring=ring,
            loopback=expect.loopback,
            min_utilization=expect.min_utilization,
        )
    if reference is None:
        why = "give profile or reference" if expect.profile is None else "the profile has no figure for this: give one"
        result.add("NO_REFERENCE", f"the result is sound, its speed was not judged: {why}")
    elif reference.too_small and not result.has("INCOMPLETE"):
        result.add("SIZE_TOO_SMALL", f"{size} bytes tell of latency, not of bandwidth: test up to 8 GiB or more")
    elif nodes and ranks and ranks != nodes * expect.gpus:
        words = f"no figure is known for {ranks} ranks on {nodes} node(s) of {expect.gpus} GPUs"
        result.add("NO_REFERENCE", f"the result is sound, its speed was not judged: {words}")
        return None
    return reference


def _slow(log: Log, busbw: float, reference: references.Reference, expect: Expectation, result: Judgement) -> None:
    words = f"{busbw:g} GB/s, at least {reference.floor:.4g} needed ({reference.basis})"
    if log.nvls_off and reference.nvls:
        result.add("NVLS_ABSENT", f"{words}; NCCL says: {log.nvls_off}")
    elif reference.ring is not None and 0.85 * reference.ring <= busbw <= 1.08 * reference.ring:
        hint = "what a ring reaches: is NCCL_ALGO or NCCL_NVLS_ENABLE set, did the fabric manager restart? reboot"
        result.add("NVLS_ABSENT", f"{words}; {hint}")
    elif reference.nodes > 1 or expect.loopback:
        hint = "a NIC, cable, rail or GPUDirect path is slow: gpu_probe ports, then pairs of nodes with NCCL_ALGO=RING"
        result.add("NIC_PATH_SLOW", f"{words}; {hint}")
    else:
        result.add("BUSBW_LOW", f"{words}; NVLinks, clocks (power, heat), other processes on the GPUs?")
