# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module nccl_probe without Ansible: get a log, by running a test or from the caller, and judge it.

Private to h200.rack.
"""

from __future__ import annotations

import os
import pathlib
import shlex
import typing as t
import uuid

from ansible_collections.h200.rack.plugins.module_utils._common import profiles
from ansible_collections.h200.rack.plugins.module_utils._common.errors import InvalidInput

from . import limited, nccl_command, nccl_json, nccl_text, nccl_wrapping
from .collect import SIMULATED_MARKER, boot_id, serial
from .nccl_judge import judge
from .nccl_model import Log, Row
from .nccl_reasons import Reason
from .nccl_verdict import Expectation, Judgement

# What of a log a record keeps at most.
_TAIL = 4000
# Every hop through the NICs, and NCCL saying so.
_LOOPBACK = {
    "NCCL_P2P_DISABLE": "1",
    "NCCL_SHM_DISABLE": "1",
    "NCCL_NVLS_ENABLE": "0",
    "NCCL_DEBUG": "INFO",
    "NCCL_DEBUG_SUBSYS": "INIT,NET,ENV",
}
_SHOWN = ("NCCL_", "UCX_", "CUDA_")


def probe(params: t.Mapping[str, t.Any], check_mode: bool = False) -> dict[str, t.Any]:
    """The module's result."""
    if params.get("log") is not None or params.get("log_content") is not None:
        return _judge_given(params)
    return _run(params, check_mode)


def read_log(text: str) -> Log:
    """Text or JSON, whichever it is, and however it was wrapped."""
    text = nccl_wrapping.unwrapped(text)
    if nccl_json.looks_like_json(text):
        log = nccl_json.parse(text)
        if log.tables:
            return log
    return nccl_text.parse(text)


def _judge_given(params: t.Mapping[str, t.Any]) -> dict[str, t.Any]:
    content, path = params.get("log_content"), params.get("log")
    stale = False
    if content is None:
        try:
            content = nccl_wrapping.decoded(pathlib.Path(str(path)).read_bytes())
        except OSError as exc:
            raise InvalidInput(f"log: {path} cannot be read: {exc.strerror}", variable="log") from exc
        stale = nccl_json.looks_like_json(content.lstrip("\ufeff")) and os.path.exists(f"{path}.0")
    log = read_log(content)
    result = judge(log, _expectation(params, None))
    if stale:
        result.reasons.insert(
            0, Reason("STALE_JSON", f"{path}.0 exists: the file was there before, a later run wrote it")
        )
        result.finish()
    return report(result, log, simulated=log.simulated)


def _run(params: t.Mapping[str, t.Any], check_mode: bool) -> dict[str, t.Any]:
    request = _request(params)
    nccl_command.check(request)
    env = nccl_command.check_env(params.get("env") or {})
    if params.get("loopback"):
        env = {**_LOOPBACK, **env}
    job_name = f"nccl_probe_{uuid.uuid4().hex[:12]}"
    argv = nccl_command.command(request, env, job_name, as_root=os.geteuid() == 0)
    # What is not plainly a setting of the test may be a secret.
    given = [f"{name}={value if name.startswith(_SHOWN) else '***'}" for name, value in sorted(env.items())]
    shown = shlex.join([*given, *argv])
    expect = _expectation(params, request)
    asked = {"command": shown, "target_hosts": list(request.hosts)}
    if check_mode:
        return {**_without_run("CHECK_MODE", f"would run: {shown}"), **asked}
    missing = limited.find_missing(argv, env)
    if missing:
        return {**_without_run("TOOL_MISSING", f"{missing} is not installed here"), **asked}
    ended = limited.run(argv, env, request.timeout)
    if ended.timed_out and request.launcher == "srun":
        limited.cancel(job_name)
    log = _log_of(ended)
    result = judge(log, expect)
    _add_ending(result, ended, request.timeout)
    simulated = log.simulated or os.path.exists(SIMULATED_MARKER)
    return {
        **report(result, log, simulated),
        **asked,
        "exit_code": ended.rc,
        "seconds": round(ended.seconds, 2),
        "boot_id": boot_id(),
        "serials": {"system": serial()},
        "stdout_tail": ended.out[-_TAIL:],
        "stderr_tail": ended.err[-_TAIL:],
    }


def _log_of(ended: limited.Ended) -> Log:
    """The JSON where it was asked for and is whole, else the text; what stderr complains of either way."""
    text = nccl_text.parse(ended.out)
    complaints = nccl_text.parse(ended.err)
    log = nccl_json.parse(ended.json) if ended.json else text
    log = log if log.tables else text
    known = [trouble.code for trouble in log.troubles]
    more = [*(text.troubles if log is not text else []), *complaints.troubles]
    log.troubles += [trouble for trouble in more if trouble.code not in known]
    log.warnings += complaints.warnings
    log.algorithm = log.algorithm or complaints.algorithm
    log.nvls_off = log.nvls_off or complaints.nvls_off
    log.paths = {**text.paths, **complaints.paths}
    log.simulated = log.simulated or text.simulated or complaints.simulated
    return log


def _add_ending(result: Judgement, ended: limited.Ended, timeout: int) -> None:
    codes = [reason.code for reason in result.reasons]
    if ended.timed_out:
        result.reasons = [reason for reason in result.reasons if reason.code not in ("NO_RESULT", "CRASHED", "TIMEOUT")]
        result.reasons.insert(0, Reason("TIMEOUT", f"not done in {timeout} s; it and all it started were ended"))
    elif ended.missing:
        result.reasons.insert(0, Reason("LAUNCH_FAILED", f"{ended.missing}: {ended.err}"))
    elif ended.rc:
        if codes in ([], ["NO_RESULT"], ["NO_REFERENCE"]):
            said = (ended.err.strip().splitlines() or ended.out.strip().splitlines() or ["it said nothing"])[-1][:300]
            code = "LAUNCH_FAILED" if codes == ["NO_RESULT"] else "EXIT_CODE"
            result.reasons = [reason for reason in result.reasons if reason.code != "NO_RESULT"]
            result.reasons.insert(0, Reason(code, f"ended with {ended.rc}: {said}"))
        elif "BUSY" not in codes and not any(reason.verdict == "fail" for reason in result.reasons):
            result.reasons.insert(0, Reason("EXIT_CODE", f"ended with {ended.rc}"))
    result.finish()


def _request(params: t.Mapping[str, t.Any]) -> nccl_command.Request:
    profile = profiles.complete(params["profile"]) if params.get("profile") else {}
    gpus = params.get("gpus_per_node") or (profile.get("gpu") or {}).get("count") or 8
    return nccl_command.Request(
        collective=params.get("collective") or "all_reduce",
        launcher=params.get("launcher") or "local",
        hosts=tuple(params.get("hosts") or ()),
        gpus_per_node=int(gpus),
        min_bytes=nccl_command.size(params.get("min_bytes") or "8", "min_bytes"),
        max_bytes=nccl_command.size(params.get("max_bytes") or "16G", "max_bytes"),
        step_factor=int(params.get("step_factor") or 2),
        iterations=int(params.get("iterations") or 20),
        warmup=int(5 if params.get("warmup") is None else params["warmup"]),
        timeout=int(600 if params.get("timeout") is None else params["timeout"]),
        program=params.get("program") or "",
        launcher_args=tuple(params.get("launcher_args") or ()),
        extra_args=tuple(params.get("extra_args") or ()),
        json_path="{dir}/result.json" if params.get("json") else "",
    )


def _expectation(params: t.Mapping[str, t.Any], request: t.Optional[nccl_command.Request]) -> Expectation:
    profile = profiles.complete(params["profile"]) if params.get("profile") else None
    hosts: t.Any = params.get("expect_hosts")
    ranks = params.get("expect_ranks")
    if request is not None:
        ranks = request.ranks if ranks is None else ranks
        hosts = request.nodes if hosts is None else hosts
    share = params.get("min_utilization")
    if share is not None and not 0 <= share <= 2:
        raise InvalidInput("min_utilization is a share such as 0.85", variable="min_utilization")
    algorithm = str((params.get("env") or {}).get("NCCL_ALGO", ""))
    return Expectation(
        profile=profile,
        ranks=ranks,
        hosts=hosts,
        at_size=nccl_command.size(params["at_size"], "at_size") if params.get("at_size") else None,
        reference=params.get("reference"),
        min_utilization=share,
        require_validation=params.get("require_validation") is not False,
        collective=request.collective if request is not None else params.get("collective"),
        max_bytes=request.max_bytes if request is not None else None,
        ring=algorithm.lower() == "ring",
        own_run=request is not None,
        loopback=bool(params.get("loopback")),
    )


def _without_run(code: str, hint: str) -> dict[str, t.Any]:
    result = Judgement(reasons=[Reason(code, hint)])
    return report(result.finish(), Log(), simulated=os.path.exists(SIMULATED_MARKER))


def report(result: Judgement, log: Log, simulated: bool) -> dict[str, t.Any]:
    """What the module returns of a judged log."""
    return {
        "verdict": result.verdict,
        "reasons": [reason.as_dict() for reason in result.reasons],
        "notes": result.notes,
        "busbw": result.busbw,
        "at_size": result.at_size,
        "in_place_busbw": result.in_place_busbw,
        "peak_busbw": result.peak_busbw,
        "printed_avg_busbw": result.printed_avg,
        "utilization": result.utilization,
        "rows": [_row(row) for row in result.rows],
        "wrong": result.wrong,
        "validated": result.validated,
        "complete": result.complete,
        "ranks": result.ranks,
        "ranks_basis": result.ranks_basis,
        "hosts": result.hosts,
        "gpu_models": result.models,
        "collective": result.collective,
        "nccl_version": log.nccl_version,
        "nccl_warnings": log.warnings,
        "simulated": simulated,
    }


def _row(row: Row) -> dict[str, t.Any]:
    cells: dict[str, t.Any] = {"size": row.size, "type": row.dtype, "redop": row.redop}
    for name, side in (("out_of_place", row.out), ("in_place", row.inp)):
        cells[name] = side and {"time": side.time, "algbw": side.algbw, "busbw": side.busbw, "wrong": side.wrong}
    return cells
