# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""nccl-tests' text output of every version since 2018. Columns are found by their names. Private to h200.rack."""

from __future__ import annotations

import math
import re
import typing as t

from .nccl_lines import Line, clean, once
from .nccl_model import Device, Log, Parameters, Row, Side, Table, Trouble
from .nccl_troubles import trouble_of

_PARAMETERS = re.compile(
    r"nThread\s+(\d+)\s+nGpus\s+(\d+)\s+minBytes\s+(\d+)\s+maxBytes\s+(\d+)\s+step:\s*(\d+)\s*\((factor|bytes)\)"
    r"(?:.*?validation:\s*(\d+))?"
)
_DEVICE = re.compile(
    r"Rank\s+(\d+)\s+(?:Group\s+(\d+)\s+)?(?:[A-Z]\w*\s+\d+\s+)*on\s+(\S+)\s+device\s+(\d+)\s+\[([^\]]*)\]\s*(.*?)\s*$"
)
_COLLECTIVE = re.compile(r"Collective test (starting|concluded):\s*(?:\S*/)?(\w+?)(?:_perf)?(?:\.exe)?\s*$")
_PROGRAM = re.compile(r"(?:^|[\s/])(\w+)_perf(?:_mpi)?\b")
_VERSION = re.compile(r"nccl-tests version\s+(\S+)")
_NCCL_VERSION = re.compile(r"NCCL version\s+([\w.+-]+)")
_LIBRARY = re.compile(r"nccl-library=(\d+)")
_BOUNDS = re.compile(r"Out of bounds values\s*:\s*(\d+)\s*(OK|FAILED)?")
_AVERAGE = re.compile(r"Avg bus bandwidth\s*:\s*(\S+)\s*(OK|FAILED)?")
_REDUCING = re.compile(r"Reducing maxBytes to\s+(\d+)")
_ALGO = re.compile(r"NCCL_ALGO set by environment to\s+(\S+?)\.?\s*$")
_ALGO_GIVEN = re.compile(r"\bNCCL_ALGO[=\s]\s*[\"']?([\w^:,;-]+)")
_PATH = re.compile(r"\[(?:send|receive)\] via (\S.*)")
_NRANKS = re.compile(r"\bnranks\s+(\d+)\b")
_NVLS_OFF = re.compile(
    r"NCCL_NVLS_ENABLE set by environment to 0|NVLS multicast support is not available|NVLS: .*(?:disabled|failed)",
    re.I,
)
# What documents write in the place of figures.
_MASK = re.compile(r"[XxNnYyZz?*#_~-]+(?:[.,][XxNnYyZz?*#_~-]+)?|<[^>]+>|[.…]+|TBD|TODO", re.I)
_ELISION = re.compile(r"^(?:\[?\.{3,}\]?|\[?…\]?|⋮|<snip>|\[snip\]|\(\.\.\.\))$")
_SIMULATED = re.compile(r"^#?\s*simulated\b", re.I)

COLLECTIVES = ("all_reduce", "all_gather", "reduce_scatter", "alltoall", "sendrecv", "broadcast", "reduce", "gather")
# The layout of a table whose head is missing, if a row has exactly these cells. It never makes a pass.
_USUAL = ["size", "count", "type", "redop", "root", *(["time", "algbw", "busbw", "#wrong"] * 2)]
# Largest relative error of the versions that print one instead of a count of wrong elements.
_ERROR_LIMITS = {"half": 1e-2, "bfloat16": 1e-1, "float": 1e-4, "double": 1e-9}


def parse(text: str) -> Log:
    """Never raises, whatever ``text`` is."""
    log = Log(empty=not text.strip())
    reader = _Reader(log)
    for line in once(list(clean(text))):
        reader.take(line)
    reader.finish()
    return log


class _Reader:
    """Walks the lines and opens a new table where a new test begins."""

    def __init__(self, log: Log) -> None:
        self.log = log
        self.table = Table()
        self.program: t.Optional[str] = None
        # The beginning of a row that another process's line broke, its tag, and whether we saw what broke it.
        self.fragment: t.Optional[tuple[list[str], t.Optional[str], bool]] = None

    def take(self, line: Line) -> None:
        if line.kind == "row":
            self._drop_fragment()
            self._row(line)
        elif line.kind == "head":
            self._head(line)
        elif line.kind == "nccl":
            self._nccl(line.text)
        else:
            self._other(line)

    def finish(self) -> None:
        self._drop_fragment()
        if self.table.begun:
            self._close()

    def _close(self) -> None:
        self.table.collective = self.table.collective or self.program
        self.log.tables.append(self.table)
        self.table = Table()

    def _new_if(self, condition: bool) -> None:
        if condition:
            self._drop_fragment()
            self._close()

    def _head(self, line: Line) -> None:
        text = line.text
        tag = line.tag
        parameters = _PARAMETERS.search(text)
        if parameters:
            self._new_if(bool(self.table.parameters or self.table.rows))
            threads, gpus, low, high, step = (int(value) for value in parameters.groups()[:5])
            validation = parameters.group(7)
            self.table.parameters = Parameters(
                low, high, step, parameters.group(6) == "factor", gpus, threads, validation and validation != "0"
            )
            self._tag(tag)
            return
        device = _DEVICE.search(text)
        if device:
            self._new_if(bool(self.table.rows))
            self.table.devices.append(
                Device(int(device[1]), device[3], device[6], int(device[4]), device[5], int(device[2] or 0))
            )
            self.table.devices_cut = self.table.devices_cut or device[6].endswith("...")
            return
        if re.match(r"(?:size\s+count|bytes\s+N)\s+type", text):
            self._new_if(bool(self.table.ended and self.table.rows))
            if self.table.rows and self.table.columns:
                self.table.tags.add("second header")
            self.table.columns = text.split()
            self._tag(tag)
            return
        self._one_line(text)

    def _one_line(self, text: str) -> None:
        collective = _COLLECTIVE.search(text)
        if collective:
            if collective.group(1) == "starting":
                self._new_if(bool(self.table.rows or self.table.parameters))
            self.table.collective = collective.group(2)
            return
        version = _VERSION.search(text)
        if version:
            self._new_if(bool(self.table.rows or self.table.parameters))
            self.table.version = version.group(1)
            library = _LIBRARY.search(text)
            if library:
                code = int(library.group(1))
                self.log.nccl_version = f"{code // 10000}.{code // 100 % 100}.{code % 100}"
            return
        bounds = _BOUNDS.search(text)
        if bounds:
            self._drop_fragment()
            total = int(bounds.group(1))
            self.table.out_of_bounds = (self.table.out_of_bounds or 0) + total
            good = bounds.group(2) != "FAILED" and total == 0
            self.table.bounds_ok = good and self.table.bounds_ok is not False
            self.table.ended = True
            return
        average = _AVERAGE.search(text)
        if average:
            self.table.average = _number(average.group(1))
            self.table.average_ok = {"OK": True, "FAILED": False}.get(average.group(2) or "")
            self.table.masked += bool(_MASK.fullmatch(average.group(1)))
            return
        if text.startswith("error: ") and self.table.ended:
            self._add(Trouble("NCCL_ERROR", text[:300]))
        reducing = _REDUCING.search(text)
        if reducing:
            self.table.reduced_to = int(reducing.group(1))

    def _other(self, line: Line) -> None:
        text = line.text
        if self.fragment is not None and self._rejoin(line):
            return
        if _ELISION.match(text):
            if self.table.rows:
                self.table.elided = True
            elif self.table.devices:
                self.table.devices_cut = True
            return
        if _SIMULATED.match(text):
            self.log.simulated = True
        version = _NCCL_VERSION.search(text)
        if version and not self.log.nccl_version:
            self.log.nccl_version = version.group(1)
        program = _PROGRAM.search(text)
        if program and program.group(1) in COLLECTIVES:
            self.program = program.group(1)
        given = _ALGO_GIVEN.search(text)
        if given and not self.log.algorithm:
            self.log.algorithm = given.group(1)
        self._trouble(text)

    def _trouble(self, text: str) -> bool:
        trouble = trouble_of(text)
        if trouble:
            self._add(trouble)
        return trouble is not None

    def _add(self, trouble: Trouble) -> None:
        """Of a kind the first counts, and one that cannot have been survived more than one that can."""
        known = next((k for k, one in enumerate(self.log.troubles) if one.code == trouble.code), None)
        if known is None:
            self.log.troubles.append(trouble)
        elif self.log.troubles[known].survivable and not trouble.survivable:
            self.log.troubles[known] = trouble

    def _nccl(self, text: str) -> None:
        if self.fragment is not None:
            self.fragment = (self.fragment[0], self.fragment[1], True)
        algo = _ALGO.search(text) if "NCCL_ALGO" in text else None
        if algo:
            self.log.algorithm = algo.group(1)
        if self.log.nvls_off is None and "NVLS" in text and _NVLS_OFF.search(text):
            self.log.nvls_off = text[-200:]
        path = _PATH.search(text) if " via " in text else None
        if path:
            way = "local" if not path.group(1).startswith("NET/") else "gdr" if "GDRDMA" in path.group(1) else "net"
            self.log.paths[way] = self.log.paths.get(way, 0) + 1
        ranks = _NRANKS.search(text) if "nranks" in text else None
        if ranks:
            self.log.communicator_ranks = max(self.log.communicator_ranks or 0, int(ranks.group(1)))
        if "NCCL WARN" in text and len(self.log.warnings) < 20:
            self.log.warnings.append(text[-300:])

    def _row(self, line: Line) -> None:
        cells = line.text.split()
        if any(_MASK.fullmatch(cell) for cell in cells[3:]):
            self.table.masked += 1
            return
        if self.table.ended and self.table.columns and self.table.rows:
            # Rows after a foot belong to a table whose head is missing.
            columns = self.table.columns
            self._close()
            self.table.columns = columns
            self.table.headless = True
        self._tag(line.tag)
        row = self._read(cells)
        if row is not None:
            self.table.rows.append(row)
        elif all(_number(cell) is not None or cell == "N/A" for cell in cells[5:]):
            self.fragment = (cells, line.tag, False)
        else:
            self.table.broken.append((int(cells[0]), self._trouble(line.text)))

    def _read(self, cells: list[str]) -> t.Optional[Row]:
        columns = self.table.columns
        if not columns:
            self.table.headless = True
            columns = _USUAL
        return read_row(columns, cells)

    def _rejoin(self, line: Line) -> bool:
        """Whether ``line`` is the rest of the row that another process's line broke."""
        if self.fragment is None:
            return False
        cells, tag, explained = self.fragment
        more = line.text.split()
        if not more or not all(_number(cell) is not None or cell == "N/A" for cell in more):
            return False
        if tag is not None and line.tag not in (None, tag):
            return False
        row = self._read([*cells, *more])
        if row is not None:
            self.fragment = None
            self.table.rows.append(row)
        else:
            self.fragment = ([*cells, *more], tag, explained)
        return True

    def _drop_fragment(self) -> None:
        if self.fragment is not None:
            cells, _number, explained = self.fragment
            self.table.broken.append((int(cells[0]) if cells[0].isdigit() else None, explained))
            self.fragment = None

    def _tag(self, tag: t.Optional[str]) -> None:
        if tag is not None:
            self.table.tags.add(tag)


def read_row(columns: t.Sequence[str], cells: t.Sequence[str]) -> t.Optional[Row]:
    """A row by the names of ``columns``; None where the cells do not fit them.

    Old alltoall rows lack redop and root although the head has them, and a time stamp takes two cells.
    """
    first = next((k for k, name in enumerate(columns) if name in ("time", "cputime")), None)
    if first is None or len(cells) < 4:
        return None
    keys, values = list(columns[:first]), list(columns[first:])
    numbers = list(cells)
    stamp = bool(values) and values[-1] == "timestamp"
    if stamp:
        values = values[:-1]
        numbers = numbers[:-2]
    lead = len(numbers) - len(values)
    if lead == len(keys) - 2 and keys[-2:] == ["redop", "root"]:
        keys = keys[:-2]
    elif lead != len(keys):
        return None
    head = dict(zip(keys, numbers))
    size = _integer(head.get("size", head.get("bytes")))
    if size is None:
        return None
    body = numbers[lead:]
    starts = [k for k, name in enumerate(values) if name in ("time", "cputime")]
    sides = []
    for number, start in enumerate(starts):
        end = starts[number + 1] if number + 1 < len(starts) else len(values)
        side = _side(dict(zip(values[start:end], body[start:end])), head.get("type", ""))
        if side is None:
            return None
        sides.append(side)
    root = _integer(head.get("root"))
    redop = head.get("redop", head.get("op"))
    count = _integer(head.get("count", head.get("N")))
    return Row(size, count, head.get("type", ""), redop, root, sides[0], sides[1] if len(sides) > 1 else None)


def _side(cells: t.Mapping[str, str], dtype: str) -> t.Optional[Side]:
    time = _number(cells.get("time", cells.get("cputime", "")))
    algbw, busbw = _number(cells.get("algbw", "")), _number(cells.get("busbw", ""))
    if time is None or algbw is None or busbw is None:
        return None
    if "#wrong" in cells or "wrong" in cells:
        cell = cells.get("#wrong", cells.get("wrong", ""))
        wrong = _number(cell)
        return None if wrong is None and cell != "N/A" else Side(time, algbw, busbw, wrong)
    cell = cells.get("error", cells.get("res", "N/A"))
    error = _number(cell)
    if error is None:
        return Side(time, algbw, busbw) if cell == "N/A" else None
    return Side(time, algbw, busbw, float(error > _ERROR_LIMITS.get(dtype, 0)))


def _number(cell: str) -> t.Optional[float]:
    try:
        value = float(cell)
    except ValueError:
        return None
    return value if math.isfinite(value) and "_" not in cell else None


def _integer(cell: t.Optional[str]) -> t.Optional[int]:
    return int(cell) if cell is not None and re.fullmatch(r"-?\d{1,20}", cell) else None
