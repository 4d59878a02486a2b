# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What nccl-tests said, whatever its version and form: the data between parsing and judging. Private to h200.rack."""

from __future__ import annotations

import dataclasses
import typing as t


@dataclasses.dataclass(frozen=True)
class Side:
    """Out-of-place or in-place: microseconds and GB/s. ``wrong`` None: not validated."""

    time: float
    algbw: float
    busbw: float
    wrong: t.Optional[float] = None


@dataclasses.dataclass(frozen=True)
class Row:
    size: int
    count: t.Optional[int]
    dtype: str
    redop: t.Optional[str]
    root: t.Optional[int]
    out: t.Optional[Side]
    inp: t.Optional[Side]

    @property
    def sides(self) -> list[Side]:
        return [side for side in (self.out, self.inp) if side is not None]

    @property
    def sweep(self) -> tuple[str, t.Optional[str], t.Optional[int]]:
        """Rows of one sweep over the sizes share type, operation and root."""
        return self.dtype, self.redop, self.root


@dataclasses.dataclass(frozen=True)
class Device:
    rank: int
    host: str
    model: str
    device: t.Optional[int] = None
    bus: str = ""
    group: int = 0


@dataclasses.dataclass
class Parameters:
    """What the test says it was asked for."""

    min_bytes: int
    max_bytes: int
    step: int
    step_is_factor: bool
    gpus: int = 1
    threads: int = 1
    validation: t.Optional[bool] = None

    def sizes(self, limit: int = 4096) -> t.Optional[list[int]]:
        """The sizes of the sweep; None where they cannot be told."""
        if self.min_bytes < 0 or self.step < (2 if self.step_is_factor else 1):
            return [self.min_bytes] if self.min_bytes == self.max_bytes else None
        if self.step_is_factor and self.min_bytes == 0:
            return None
        sizes = []
        size = self.min_bytes
        while size <= self.max_bytes:
            sizes.append(size)
            if len(sizes) > limit:
                return None
            size = size * self.step if self.step_is_factor else size + self.step
        return sizes


@dataclasses.dataclass
class Table:
    """One test: what stands between its head and its foot."""

    parameters: t.Optional[Parameters] = None
    devices: list[Device] = dataclasses.field(default_factory=list)
    devices_cut: bool = False
    # Of a list that names one rank for each process only (JSON): all ranks. None: the list is complete.
    ranks_stated: t.Optional[int] = None
    columns: list[str] = dataclasses.field(default_factory=list)
    rows: list[Row] = dataclasses.field(default_factory=list)
    collective: t.Optional[str] = None
    version: t.Optional[str] = None
    reduced_to: t.Optional[int] = None
    masked: int = 0
    elided: bool = False
    headless: bool = False
    # Rows that began and did not end; True where a line of NCCL's tells what destroyed it.
    broken: list[tuple[t.Optional[int], bool]] = dataclasses.field(default_factory=list)
    out_of_bounds: t.Optional[int] = None
    bounds_ok: t.Optional[bool] = None
    average: t.Optional[float] = None
    average_ok: t.Optional[bool] = None
    ended: bool = False
    tags: set[str] = dataclasses.field(default_factory=set)

    @property
    def begun(self) -> bool:
        return bool(self.parameters or self.devices or self.columns or self.rows or self.masked)


@dataclasses.dataclass(frozen=True)
class Trouble:
    """A line that tells of a failure; a ``survivable`` one is also seen in runs that then went well."""

    code: str
    text: str
    survivable: bool = False


@dataclasses.dataclass
class Log:
    tables: list[Table] = dataclasses.field(default_factory=list)
    troubles: list[Trouble] = dataclasses.field(default_factory=list)
    warnings: list[str] = dataclasses.field(default_factory=list)
    nccl_version: t.Optional[str] = None
    algorithm: t.Optional[str] = None  # NCCL_ALGO, as NCCL says that it was set
    nvls_off: t.Optional[str] = None  # the line that says why NVLS is not in play
    communicator_ranks: t.Optional[int] = None  # "nranks" of NCCL's own lines
    # How NCCL connected its ranks: how often by GPUDirect (gdr), by a NIC without it (net), within the node (local).
    paths: dict[str, int] = dataclasses.field(default_factory=dict)
    simulated: bool = False
    empty: bool = False
