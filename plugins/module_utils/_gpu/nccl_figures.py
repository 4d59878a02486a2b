# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether the figures of a table agree with each other, and what they say about the ranks. Private to h200.rack."""

from __future__ import annotations

import dataclasses
import math
import statistics
import typing as t

from .nccl_model import Row, Side, Table

# Bus bandwidth per algorithm bandwidth, as nccl-tests computes it, for n ranks.
_FACTORS: dict[str, t.Callable[[float], float]] = {
    "all_reduce": lambda n: 2 * (n - 1) / n,
    "all_gather": lambda n: (n - 1) / n,
    "reduce_scatter": lambda n: (n - 1) / n,
    "alltoall": lambda n: (n - 1) / n,
    "gather": lambda n: (n - 1) / n,
    "scatter": lambda n: (n - 1) / n,
    "broadcast": lambda n: 1.0,
    "reduce": lambda n: 1.0,
    "sendrecv": lambda n: 1.0,
}
# Below this a printed bandwidth of two decimals is too coarse to compute with.
_COARSE = 1.0


@dataclasses.dataclass(frozen=True)
class Ranks:
    """How many ranks the ratio of the two bandwidths means, at least and at most; ``likely`` between them."""

    low: int
    high: int
    likely: int

    def allows(self, ranks: int) -> bool:
        return self.low <= ranks <= self.high


def factor(collective: t.Optional[str], ranks: int) -> t.Optional[float]:
    function = _FACTORS.get(collective or "")
    return function(ranks) if function and ranks > 0 else None


def guess_collective(table: Table) -> t.Optional[str]:
    """From the operation and the ratio of the bandwidths, where the log does not name it."""
    row = _best(table.rows)
    if row is None:
        return None
    ratio = row[1].busbw / row[1].algbw
    redop = next((r.redop for r in table.rows if r.redop is not None), None)
    if redop not in (None, "none"):
        return "all_reduce" if ratio >= 1.05 else "reduce_scatter" if ratio < 0.999 else None
    if all(r.out is not None and r.out.wrong is not None and r.inp and r.inp.wrong is None for r in table.rows):
        # Only what cannot work in place has its in-place results never compared.
        return "alltoall" if ratio < 0.999 else "sendrecv"
    return "all_gather" if ratio < 0.999 else None


def ranks_of(table: Table, collective: t.Optional[str], per_node: int = 8) -> t.Optional[Ranks]:
    """The number of ranks by busbw/algbw; None where the collective's factor does not tell."""
    best = _best(table.rows)
    if best is None or collective not in _FACTORS:
        return None
    side = best[1]
    doubled = 2.0 if collective == "all_reduce" else 1.0
    if _FACTORS[collective](2) == _FACTORS[collective](3):
        return None
    low_ratio = (side.busbw - 0.0051) / (side.algbw + 0.0051)
    high_ratio = (side.busbw + 0.0051) / (side.algbw - 0.0051)
    low = doubled / (doubled - low_ratio) if low_ratio < doubled else math.inf
    high = doubled / (doubled - high_ratio) if high_ratio < doubled else 1e6
    if low is math.inf or low > 1e6:
        return None
    first, last = math.ceil(low - 0.02), math.floor(high + 0.02)
    if first > last:
        return Ranks(0, 0, 0)
    whole = [n for n in range(first, min(last, first + 4096) + 1) if n % per_node == 0]
    middle = doubled / (doubled - side.busbw / side.algbw)
    return Ranks(first, last, min(whole, key=lambda n: abs(n - middle)) if whole else round(middle))


def one_rank(table: Table) -> bool:
    """Data moves and the bus bandwidth is 0: every process was a job of its own."""
    sides = [side for row in table.rows for side in row.sides if row.size > 0]
    moving = [side for side in sides if side.algbw > 0]
    return bool(moving) and all(side.busbw == 0 for side in sides)


def row_agrees(row: Row, collective: t.Optional[str], ranks: t.Optional[int]) -> bool:
    """Whether time, size and both bandwidths of ``row`` fit together."""
    expected = factor(collective, ranks) if ranks else None
    return all(_side_agrees(row, side, expected, ranks) for side in row.sides)


def _side_agrees(row: Row, side: Side, expected: t.Optional[float], ranks: t.Optional[int]) -> bool:
    if side.algbw < _COARSE or side.time < 1:
        return True
    computed = row.size / side.time / 1e3
    # Times of seven digits and more are printed like 1.2e+06.
    tolerance = 0.06 if side.time >= 1e6 else 0.01
    # Versions before 2.0 print the size of one rank where the bandwidth is that of all.
    fits = any(abs(side.algbw / (computed * n) - 1) < tolerance for n in (1, ranks or 1))
    if not fits:
        return False
    return expected is None or abs(side.busbw / side.algbw - expected) < 0.002 * expected + 0.012 / side.algbw


def average_of(table: Table) -> t.Optional[float]:
    """The mean over all rows and both placements, which is what nccl-tests prints at the end."""
    values = [side.busbw for row in table.rows for side in row.sides]
    return statistics.fmean(values) if values else None


def average_agrees(table: Table) -> t.Optional[bool]:
    """Whether the printed average is that of the rows; None where it cannot be compared."""
    computed = average_of(table)
    if computed is None or table.average is None:
        return None
    if table.broken:
        return None
    return abs(computed - table.average) <= 0.006 + 2e-4 * abs(table.average)


def gaps(table: Table) -> t.Optional[str]:
    """What is missing from the sweep, by the parameters or else by the steps between the rows; None: nothing."""
    damaged = {size for size, explained in table.broken if explained and size is not None}
    wanted = table.parameters.sizes() if table.parameters else None
    for sweep in _sweeps(table):
        present = sorted({row.size for row in sweep} | damaged)
        counts = {sum(1 for row in sweep if row.size == size) for size in present if size > 0 and size not in damaged}
        if len(counts) > 1:
            return "some sizes stand fewer times than others"
        problem = _against(present, wanted) if wanted else _by_steps(present)
        if problem:
            return problem
    return None


def _sweeps(table: Table) -> list[list[Row]]:
    groups: dict[t.Any, list[Row]] = {}
    for row in table.rows:
        groups.setdefault(row.sweep, []).append(row)
    return list(groups.values())


def _against(present: t.Sequence[int], wanted: t.Sequence[int]) -> t.Optional[str]:
    """Sizes are rounded down to a multiple of ranks and type, small ones down to 0, so several may fall together."""
    missing = [size for size in wanted if not any(_same(size, other) for other in present)]
    large = [size for size in missing if size >= 1 << 16]
    if large:
        return f"{len(large)} of {len(wanted)} sizes are missing, the first is {large[0]}"
    if missing and len(missing) > sum(1 for size in present if size < 1 << 16) + 14:
        return f"{len(missing)} small sizes are missing"
    return _small_gap(present, wanted)


def _small_gap(present: t.Sequence[int], wanted: t.Sequence[int]) -> t.Optional[str]:
    """Among small sizes, rounded or not, none may be left out between two that are there."""
    small = [size for size in wanted if 4096 <= size < 1 << 16]
    absent = [size for size in small if not any(size * 0.75 < other <= size for other in present)]
    return f"size {absent[0]} is missing" if absent else None


def _same(wanted: int, found: int) -> bool:
    return wanted * 0.99 <= found <= wanted if wanted >= 1 << 16 else wanted // 2 < found <= wanted


def _by_steps(present: t.Sequence[int]) -> t.Optional[str]:
    sizes = [size for size in present if size >= 1024]
    if len(sizes) < 2:
        return None
    if len(sizes) == 2:
        # Two sizes make any step; a factor above 16 is nobody's sweep.
        return None if sizes[1] <= 16 * sizes[0] else f"nothing between {sizes[0]} and {sizes[1]}"
    ratios = [b / a for a, b in zip(sizes, sizes[1:])]
    steps = [b - a for a, b in zip(sizes, sizes[1:])]
    even_ratio = max(ratios) / min(ratios) < 1.05
    even_step = max(steps) - min(steps) <= 0.05 * max(steps)
    if even_ratio or even_step:
        return None
    widest = max(range(len(ratios)), key=ratios.__getitem__)
    return f"nothing between {sizes[widest]} and {sizes[widest + 1]}"


def _best(rows: t.Sequence[Row]) -> t.Optional[tuple[Row, Side]]:
    """The side with the most digits to compute with."""
    sides = [(row, side) for row in rows for side in row.sides if side.algbw >= _COARSE and side.busbw > 0]
    usual = [pair for pair in sides if pair[1].time >= 1]
    return max(usual, key=lambda pair: pair[1].algbw, default=None)
