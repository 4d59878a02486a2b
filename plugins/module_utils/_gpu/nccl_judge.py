# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Judge what nccl-tests said: first whether it counts at all, then how fast it was. Private to h200.rack."""

from __future__ import annotations

import collections
import dataclasses
import statistics
import typing as t

from . import nccl_figures as figures
from . import nccl_reference as references
from .checks import FAIL, NOT_RUN, PASS
from .nccl_model import Log, Row, Table
from .nccl_reasons import HINTS, Reason

# No system is this much faster than its reference: the figures are not what they seem.
_TOO_GOOD = 1.25
# In-place much slower than out-of-place is unusual.
_IN_PLACE = 0.85


@dataclasses.dataclass
class Expectation:
    """What the caller wants the log to show. None: not said."""

    profile: t.Optional[t.Mapping[str, t.Any]] = None
    ranks: t.Optional[int] = None
    hosts: t.Optional[t.Union[int, t.Sequence[str]]] = None
    at_size: t.Optional[int] = None
    reference: t.Optional[float] = None
    min_utilization: t.Optional[float] = None
    require_validation: bool = True
    collective: t.Optional[str] = None
    max_bytes: t.Optional[int] = None
    ring: bool = False
    loopback: bool = False

    @property
    def gpus(self) -> int:
        return int(((self.profile or {}).get("gpu") or {}).get("count") or 0)

    @property
    def host_count(self) -> t.Optional[int]:
        return self.hosts if self.hosts is None or isinstance(self.hosts, int) else len(self.hosts)


@dataclasses.dataclass
class Judgement:
    verdict: str = NOT_RUN
    reasons: list[Reason] = dataclasses.field(default_factory=list)
    notes: list[dict[str, str]] = dataclasses.field(default_factory=list)
    collective: t.Optional[str] = None
    ranks: t.Optional[int] = None
    ranks_basis: str = ""
    hosts: list[str] = dataclasses.field(default_factory=list)
    models: list[str] = dataclasses.field(default_factory=list)
    rows: list[Row] = dataclasses.field(default_factory=list)
    wrong: t.Optional[int] = None
    validated: bool = False
    complete: bool = False
    at_size: t.Optional[int] = None
    busbw: t.Optional[float] = None
    in_place_busbw: t.Optional[float] = None
    peak_busbw: t.Optional[float] = None
    printed_avg: t.Optional[float] = None
    utilization: t.Optional[dict[str, t.Any]] = None

    def add(self, code: str, hint: str = "") -> None:
        if code not in [reason.code for reason in self.reasons]:
            self.reasons.append(Reason(code, hint or HINTS.get(code, "")))

    def note(self, code: str, hint: str) -> None:
        self.notes.append({"code": code, "hint": hint})

    def finish(self) -> Judgement:
        verdicts = {reason.verdict for reason in self.reasons}
        self.verdict = FAIL if FAIL in verdicts else NOT_RUN if NOT_RUN in verdicts else PASS
        return self


def judge(log: Log, expect: Expectation) -> Judgement:
    """Never raises on any log."""
    result = Judgement()
    if any(table.masked for table in log.tables):
        result.add("MASKED", "figures are masked: a template of a document, not a run")
        return result.finish()
    for trouble in log.troubles:
        # "Test failure" chains and the launcher's last words follow a first cause: that one is the reason.
        if trouble.code in ("TEST_ERROR", "CRASHED") and result.reasons:
            continue
        result.add(trouble.code, f"{HINTS.get(trouble.code, '')}: {trouble.text}")
    if not any(table.begun for table in log.tables):
        if not result.reasons:
            words = "nothing was printed" if log.empty else "the output is not that of nccl-tests"
            result.add("NO_RESULT", words)
        return result.finish()
    _one_job(log, expect, result)
    judged = [_table(log, table, expect, result) for table in log.tables]
    # Of several tests the slowest counts.
    worst = min((one for one in judged if one is not None), key=lambda one: one[0], default=None)
    if worst is not None:
        _key, result.at_size, result.busbw, result.in_place_busbw, result.utilization = worst
    return result.finish()


def _one_job(log: Log, expect: Expectation, result: Judgement) -> None:
    """N one-rank jobs exit with 0 and say OK: find them by ranks named twice, tables side by side, or bandwidth 0."""
    for table in log.tables:
        named = collections.Counter((device.rank) for device in table.devices)
        if named and max(named.values()) > 1:
            result.add("NOT_ONE_JOB", "the same rank is named more than once: built without MPI=1, or wrong --mpi")
        if table.rows and figures.one_rank(table):
            result.add("NOT_ONE_JOB", "bus bandwidth is 0: every process ran alone; build with MPI=1, check --mpi")
        ranks = {tag for tag in table.tags if tag.isdigit()}
        if len(ranks) > 1:
            result.add("NOT_ONE_JOB", "several ranks printed a table of their own")
        if "second header" in table.tags:
            result.add("NOT_ONE_JOB", "two tables are mixed: several jobs wrote at once")
    alone = [table for table in log.tables if len(table.devices) == 1 and not table.devices_cut]
    if len(alone) > 1:
        result.add("NOT_ONE_JOB", f"{len(alone)} tests of one rank each: build with MPI=1, check --mpi")


def _table(
    log: Log, table: Table, expect: Expectation, result: Judgement
) -> t.Optional[tuple[float, int, float, t.Optional[float], t.Optional[dict[str, t.Any]]]]:
    """Judge one test into ``result``; what its speed comes to, where that can be said."""
    collective = _collective(table, expect, result)
    result.collective = result.collective or collective
    result.rows += table.rows
    _complete(table, log, result)
    _validated(table, expect, result)
    ranks = _ranks(log, table, collective, expect, result)
    nodes = _hosts(table, ranks, expect, result)
    _models(table, expect, result)
    sides = [side.busbw for row in table.rows for side in row.sides]
    if sides:
        result.peak_busbw = max(sides) if result.peak_busbw is None else max(result.peak_busbw, *sides)
    if result.printed_avg is None:
        result.printed_avg = table.average
    if table.average_ok is False:
        result.note("MIN_BW_FAILED", "nccl-tests' own check of the average (NCCL_TESTS_MIN_BW) failed")
    if not table.rows:
        return None
    return _speed(log, table, collective, ranks, nodes, expect, result)


def _collective(table: Table, expect: Expectation, result: Judgement) -> t.Optional[str]:
    shown = table.collective
    if shown and expect.collective and shown != expect.collective:
        result.add("WRONG_COLLECTIVE", f"{shown} was run, {expect.collective} was asked for")
    guessed = figures.guess_collective(table)
    if shown is None and guessed and expect.collective:
        like = figures.factor(guessed, 8) == figures.factor(expect.collective, 8)
        if not like and figures.factor(expect.collective, 8) != 1.0:
            result.add("WRONG_COLLECTIVE", f"the figures are those of {guessed}, not of {expect.collective}")
    if shown is None and expect.collective is None and guessed == "all_gather":
        result.note("COLLECTIVE_GUESSED", "all_gather and alltoall look alike here: name the collective")
    return shown or expect.collective or guessed


def _complete(table: Table, log: Log, result: Judgement) -> None:
    problem = _missing_part(table)
    result.complete = problem is None and (result.complete or table is log.tables[0])
    if problem is not None and not (log.troubles and not table.rows):
        result.add("INCOMPLETE", problem)
    if table.reduced_to is not None and table.parameters is not None:
        wanted = table.parameters.sizes() or []
        largest = max((row.size for row in table.rows), default=0)
        if wanted and not wanted[-1] * 0.99 <= largest:
            result.add("SWEEP_SHORTENED", f"GPU memory cut the sweep at {table.reduced_to} bytes: ask for less")
        else:
            result.note("SWEEP_LIMIT", "GPU memory limits the sweep, but no size that was asked for is lost")


def _missing_part(table: Table) -> t.Optional[str]:
    if not table.rows:
        return "the test began and printed no result: it hung or was killed"
    if table.headless or not table.columns:
        return "the beginning of the log is missing"
    if table.elided:
        return "lines were left out of this log"
    if not table.ended or table.bounds_ok is None:
        return "the end is missing: it was killed or crashed"
    unexplained = [size for size, explained in table.broken if not explained]
    if unexplained:
        return f"a row is damaged (size {unexplained[0]})"
    gap = figures.gaps(table)
    if gap:
        return gap
    if figures.average_agrees(table) is False:
        return "the printed average is not that of the rows: rows are missing or were altered"
    if table.average is None:
        return "the line with the average is missing or damaged"
    return None


def _validated(table: Table, expect: Expectation, result: Judgement) -> None:
    if not table.rows:
        return
    # In-place results of alltoall and sendrecv are never validated.
    checked = all((row.out or row.sides[0]).wrong is not None for row in table.rows)
    wrong = sum(int(side.wrong or 0) for row in table.rows for side in row.sides)
    result.validated = checked if result.wrong is None and not result.validated else checked and result.validated
    if checked:
        result.wrong = (result.wrong or 0) + wrong
    if wrong or table.out_of_bounds or table.bounds_ok is False:
        result.wrong = max(result.wrong or 0, wrong, table.out_of_bounds or 0)
        result.add("WRONG_RESULTS", "data came out wrong: take the node out; find the GPU or link by halves, run dcgmi")
    if not checked and expect.require_validation:
        result.add("NOT_VALIDATED", "results were not compared (-c 0 prints N/A): run with -c 1")


def _ranks(
    log: Log, table: Table, collective: t.Optional[str], expect: Expectation, result: Judgement
) -> t.Optional[int]:
    """The ranks of the job: listed, else by the ratio of the bandwidths; every source must agree."""
    if table.rows and figures.one_rank(table):
        result.ranks, result.ranks_basis = 1, "bus bandwidth 0"
        return 1
    computed = figures.ranks_of(table, collective, expect.gpus or 8)
    listed = table.ranks_stated or len({device.rank for device in table.devices}) or None
    if table.devices_cut:
        listed = None
    if listed and not table.ranks_stated:
        numbers = {device.rank for device in table.devices}
        if numbers != set(range(listed)):
            result.add("RANKS", f"{max(numbers) + 1} ranks were started, {listed} are listed")
    if listed and computed and not computed.allows(listed):
        code = "NOT_ONE_JOB" if computed.high < listed else "INCONSISTENT"
        result.add(code, f"{listed} ranks are listed, the figures are those of {computed.likely}")
    if listed and table.parameters and listed % (table.parameters.gpus * table.parameters.threads):
        result.add("RANKS", f"{listed} ranks do not divide into processes of {table.parameters.gpus} GPUs")
    ranks = listed or (computed.likely if computed else None) or log.communicator_ranks
    result.ranks = result.ranks or ranks
    result.ranks_basis = "listed" if listed else "busbw/algbw" if computed else "NCCL" if ranks else ""
    wanted = expect.ranks
    if wanted is None and expect.gpus and expect.host_count:
        wanted = expect.gpus * expect.host_count
    if ranks is None:
        if wanted is not None and table.rows:
            result.add("RANKS_UNKNOWN", "neither a list of devices nor the figures tell how many ranks ran")
    elif wanted is not None and not (ranks == wanted or (not listed and computed and computed.allows(wanted))):
        result.add("RANKS", f"{ranks} ranks ran, {wanted} were expected")
    elif wanted is None and expect.gpus and listed and listed % expect.gpus:
        result.add("RANKS", f"{ranks} ranks are not whole nodes of {expect.gpus} GPUs")
    return ranks if wanted is None or listed else wanted


def _hosts(table: Table, ranks: t.Optional[int], expect: Expectation, result: Judgement) -> t.Optional[int]:
    """How many nodes took part."""
    per_host = collections.Counter(device.host for device in table.devices)
    shown = sorted(per_host)
    result.hosts = result.hosts or shown
    wanted = expect.host_count
    if not shown:
        if wanted is None:
            gpus = expect.gpus or 8
            return -(-ranks // gpus) if ranks else None
        result.note("HOSTS_NOT_SHOWN", "the log does not list the devices, so the hosts are the caller's word")
        if isinstance(expect.hosts, (list, tuple)):
            result.add("HOSTS_UNKNOWN", "hosts are named in the expectation, and the log names none")
        return wanted
    if wanted is not None and len(shown) != wanted:
        result.add("HOSTS", f"{len(shown)} hosts took part ({', '.join(shown)}), {wanted} were expected")
    if isinstance(expect.hosts, (list, tuple)):
        short = {name.split(".")[0] for name in shown}
        absent = [name for name in expect.hosts if name.split(".")[0] not in short]
        if absent:
            result.add("HOSTS", f"did not take part: {', '.join(absent)}")
    uneven = {host: count for host, count in per_host.items() if expect.gpus and count != expect.gpus}
    if uneven and not table.ranks_stated and not table.devices_cut and expect.ranks is None:
        words = ", ".join(f"{host} with {count}" for host, count in sorted(uneven.items()))
        result.add("RANKS", f"not every host ran {expect.gpus} ranks: {words}")
    return len(shown)


def _models(table: Table, expect: Expectation, result: Judgement) -> None:
    named = {device.model for device in table.devices if device.model}
    # The last line of a log that was cut names half a model.
    models = sorted(one for one in named if not any(other != one and other.startswith(one) for other in named))
    models = models if not table.rows or len(named) == len(models) else sorted(named)
    result.models = sorted({*result.models, *models})
    wanted = ((expect.profile or {}).get("gpu") or {}).get("model")
    wrong = [model for model in models if wanted and model != wanted]
    if wrong:
        result.add("WRONG_GPU", f"{', '.join(wrong)} ran, the profile expects {wanted}")
    elif len(models) > 1 and not table.devices_cut:
        result.add("WRONG_GPU", f"different GPUs in one job: {', '.join(models)}")


def _judged_rows(table: Table, expect: Expectation, result: Judgement) -> list[Row]:
    """The rows at the judged size, of the type that references are known for."""
    types = sorted({row.dtype for row in table.rows})
    dtype = "float" if "float" in types else types[0]
    if len(types) > 1:
        result.note("SEVERAL_TYPES", f"{dtype} is judged, of {', '.join(types)}")
    elif dtype != "float":
        result.note("TYPE", f"{dtype} moves at other rates than the float that references are for")
    rows = [row for row in table.rows if row.dtype == dtype and row.size > 0]
    largest = max((row.size for row in rows), default=0)
    wanted = expect.at_size or expect.max_bytes or largest
    found = [row for row in rows if wanted * 0.99 <= row.size <= wanted]
    if not found and rows:
        result.add("SIZE_MISSING", f"no result for {wanted} bytes; the largest is {largest}")
    return found


def _speed(
    log: Log,
    table: Table,
    collective: t.Optional[str],
    ranks: t.Optional[int],
    nodes: t.Optional[int],
    expect: Expectation,
    result: Judgement,
) -> t.Optional[tuple[float, int, float, t.Optional[float], t.Optional[dict[str, t.Any]]]]:
    rows = _judged_rows(table, expect, result)
    if not rows:
        return None
    size = rows[0].size
    outs = [row.out.busbw for row in rows if row.out is not None]
    ins = [row.inp.busbw for row in rows if row.inp is not None]
    busbw = statistics.median(outs or ins)
    in_place = statistics.median(ins) if ins else None
    if not outs:
        result.note("IN_PLACE_JUDGED", "the log has no out-of-place results")
    elif in_place is not None and in_place < busbw * _IN_PLACE:
        result.note("IN_PLACE_SLOW", f"in-place reaches {in_place:g} GB/s only")
    trusted = ranks if result.ranks_basis == "listed" else None
    if not all(figures.row_agrees(row, collective, trusted) for row in rows):
        result.add("INCONSISTENT", f"time, size and bandwidths at {size} bytes do not fit together: a damaged log")
    reference = _reference(log, collective, nodes, size, expect, result)
    if reference is None or reference.too_small:
        return busbw, size, busbw, in_place, None
    share = busbw / reference.value if reference.value else 0.0
    utilization = {"value": round(share, 4), "reference": round(reference.value, 2), "basis": reference.basis}
    if busbw < reference.floor:
        _slow(log, busbw, reference, expect, result)
    elif expect.reference is None and share > _TOO_GOOD:
        result.add("INCONSISTENT", f"{busbw:g} GB/s is more than this hardware can do: wrong profile, or no real run")
    elif busbw < reference.warn:
        result.note("BUSBW_MARGINAL", f"{busbw:g} GB/s passes, healthy nodes reach {reference.value:g}")
    return share, size, busbw, in_place, utilization


def _reference(
    log: Log,
    collective: t.Optional[str],
    nodes: t.Optional[int],
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
        ring = expect.ring or (log.algorithm or "").lower() == "ring"
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
    elif reference.too_small:
        result.add("SIZE_TOO_SMALL", f"{size} bytes tell of latency, not of bandwidth: test up to 8 GiB or more")
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
