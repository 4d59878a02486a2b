# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Judge what nccl-tests said: first whether it counts at all, then how fast it was. Private to h200.rack."""

from __future__ import annotations

import collections
import math
import typing as t

from . import nccl_figures as figures
from .nccl_model import Log, Table
from .nccl_reasons import HINTS
from .nccl_speed import Speed, speed
from .nccl_verdict import Expectation, Judgement

# Their in-place results are never validated.
_NO_IN_PLACE = ("alltoall", "alltoallv", "sendrecv", "hypercube")


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
        if trouble.survivable and any(table.ended and table.rows for table in log.tables):
            result.note("COMPLAINT", trouble.text)
            continue
        result.add(trouble.code, f"{HINTS.get(trouble.code, '')}: {trouble.text}")
    if not any(table.begun for table in log.tables):
        if not result.reasons:
            words = "nothing was printed" if log.empty else "the output is not that of nccl-tests"
            result.add("NO_RESULT", words)
        return result.finish()
    _one_job(log, expect, result)
    if expect.loopback:
        _through_nics(log, expect, result)
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
        if len({device.group for device in table.devices}) > 1:
            result.add("NOT_ONE_JOB", "the ranks were split into groups: unset NCCL_TESTS_SPLIT and its mask")
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


def _through_nics(log: Log, expect: Expectation, result: Judgement) -> None:
    """A loopback proves the NICs and GPUDirect only where NCCL says that it took that way."""
    within, staged = log.paths.get("local", 0), log.paths.get("net", 0)
    if within:
        result.add("NOT_THROUGH_NICS", f"{within} connections of NCCL stay within the node: the NICs were not tested")
    elif staged:
        words = f"{staged} connections go through host memory instead of from GPU to NIC"
        result.add("GPUDIRECT_ABSENT", f"{words}: open kernel modules with dma-buf, ACS and IOMMU; NIC near its GPU?")
    elif not log.paths and expect.own_run:
        result.add("PATHS_UNKNOWN", "NCCL did not say which way its connections take, though NCCL_DEBUG=INFO was set")
    elif not log.paths:
        result.note("PATHS_UNKNOWN", "the log does not say whether GPUDirect was used: it shows with NCCL_DEBUG=INFO")


def _table(log: Log, table: Table, expect: Expectation, result: Judgement) -> t.Optional[Speed]:
    """Judge one test into ``result``; what its speed comes to, where that can be said."""
    collective = _collective(table, expect, result)
    result.collective = result.collective or collective
    result.rows += table.rows
    _complete(table, log, result)
    _validated(table, collective, expect, result)
    ranks = _ranks(log, table, collective, expect, result)
    nodes = _hosts(table, ranks, expect, result)
    _models(table, expect, result)
    _shared_gpus(table, result)
    sides = [side.busbw for row in table.rows for side in row.sides]
    if sides:
        result.peak_busbw = max(sides) if result.peak_busbw is None else max(result.peak_busbw, *sides)
    if result.printed_avg is None:
        result.printed_avg = table.average
    if table.average_ok is False:
        result.add(
            "MIN_BW_FAILED", "the average is below what NCCL_TESTS_MIN_BW asks for, and the test ends with an error"
        )
    if not table.rows or figures.one_rank(table):
        return None
    return speed(log, table, collective, ranks, nodes, expect, result)


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


def _validated(table: Table, collective: t.Optional[str], expect: Expectation, result: Judgement) -> None:
    if not table.rows:
        return
    sides = [row.sides[:1] if collective in _NO_IN_PLACE else row.sides for row in table.rows]
    checked = all(side.wrong is not None for row in sides for side in row)
    if table.parameters is not None and table.parameters.validation is False:
        checked = False
    wrong = sum(math.ceil(abs(side.wrong or 0)) for row in table.rows for side in row.sides)
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
    said = log.communicator_ranks
    if listed and said and said != listed and len(log.tables) == 1:
        code = "NOT_ONE_JOB" if said < listed else "RANKS"
        result.add(code, f"{listed} ranks are listed, NCCL says that its communicator has {said}")
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


def _shared_gpus(table: Table, result: Judgement) -> None:
    """Two ranks on one GPU leave another GPU out of the test; MIG instances share theirs rightly.

    Without its domain, as older versions print it, the bus is the same for all GPUs of some virtual machines.
    """
    places = collections.Counter(
        (device.host, device.bus) for device in table.devices if ":" in device.bus and "MIG" not in device.model
    )
    shared = [f"{host} [{bus}]" for (host, bus), count in places.items() if count > 1]
    if shared and len({device.rank for device in table.devices}) == len(table.devices):
        result.add("RANKS", f"several ranks on one GPU, others were left out: {', '.join(shared)}")
