# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run a stress program (dcgmi diag, gpu-burn) within its time and judge what it says. Private to h200.rack."""

from __future__ import annotations

import os
import shlex
import typing as t

from ansible_collections.h200.rack.plugins.module_utils._common.errors import InvalidInput

from . import dcgm, gpu_burn, limited
from .checks import Check, failed, not_run, overall
from .collect import SIMULATED_MARKER

_TAIL = 6000


def dcgm_command(level: int, parameters: t.Mapping[str, t.Any], program: str) -> list[str]:
    """``parameters`` are DCGM's own, such as ``pcie.gpu_nvlinks_expected_up``."""
    joined = ";".join(f"{key}={value}" for key, value in sorted(parameters.items()))
    return [program, "diag", "-r", str(level), "-j", *(("-p", joined) if joined else ())]


def run_dcgm(params: t.Mapping[str, t.Any], check_mode: bool) -> dict[str, t.Any]:
    argv = dcgm_command(params["level"], params.get("parameters") or {}, params["program"])

    def judge(ended: limited.Ended) -> tuple[list[Check], dict[str, t.Any]]:
        diagnosis = dcgm.parse(ended.out) or dcgm.parse(ended.err)
        if diagnosis is None:
            said = (ended.err.strip() or ended.out.strip() or "nothing").splitlines()[-1][:300]
            hint = f"it ended with {ended.rc} and said: {said}; is nvidia-dcgm running?"
            return [failed("dcgm", ended.rc, "a diagnosis", "DCGM_NO_RESULT", hint)], {}
        checks = dcgm.judge(diagnosis, params["gpus"], params.get("optional") or ())
        more = {"versions": {"driver": diagnosis.driver, "dcgm": diagnosis.version}, "simulated": diagnosis.simulated}
        return checks, more

    return _run(argv, params["timeout"], "dcgm", judge, check_mode)


def run_burn(params: t.Mapping[str, t.Any], check_mode: bool) -> dict[str, t.Any]:
    if params["seconds"] < 1:
        raise InvalidInput("seconds must be above zero", variable="seconds")
    argv = [params["program"], *(params.get("arguments") or ()), str(params["seconds"])]

    def judge(ended: limited.Ended) -> tuple[list[Check], dict[str, t.Any]]:
        found = gpu_burn.parse(ended.out)
        checks = gpu_burn.judge(found, params["gpus"], params.get("minimum_rate"))
        if ended.rc and all(check.verdict == "pass" for check in checks):
            checks.append(failed("gpu_burn_exit", ended.rc, 0, "EXIT_CODE", "it ended with an error"))
        return checks, {"rates": found["rates"], "gpus": {str(k): v for k, v in found["gpus"].items()}}

    return _run(argv, params["seconds"] + params["grace"], "gpu_burn", judge, check_mode)


def _run(
    argv: t.Sequence[str],
    timeout: float,
    name: str,
    judge: t.Callable[[limited.Ended], tuple[list[Check], dict[str, t.Any]]],
    check_mode: bool,
) -> dict[str, t.Any]:
    shown = shlex.join(argv)
    marked = os.path.exists(SIMULATED_MARKER)
    if check_mode:
        return _report([not_run(name, None, "CHECK_MODE", f"would run: {shown}")], shown, {}, marked)
    missing = limited.find_missing(argv, {})
    if missing:
        return _report([not_run(name, None, "TOOL_MISSING", f"{missing} is not installed")], shown, {}, marked)
    ended = limited.run(argv, {}, timeout)
    if ended.timed_out:
        checks = [failed(name, f"more than {timeout:g} s", f"at most {timeout:g} s", "TIMEOUT", "it hung: see Xids")]
        more: dict[str, t.Any] = {}
    else:
        checks, more = judge(ended)
    more = {
        **more,
        "exit_code": ended.rc,
        "elapsed": round(ended.seconds, 2),
        "stdout_tail": ended.out[-_TAIL:],
        "stderr_tail": ended.err[-_TAIL:],
    }
    return _report(checks, shown, more, marked)


def _report(checks: t.Sequence[Check], command: str, more: t.Mapping[str, t.Any], marked: bool) -> dict[str, t.Any]:
    return {
        **more,
        "verdict": overall(check.verdict for check in checks),
        "checks": [check.as_dict() for check in checks],
        "reasons": [
            {"code": check.code, "hint": f"{check.name}: {check.hint}"} for check in checks if check.verdict != "pass"
        ],
        "command": command,
        "simulated": marked or bool(more.get("simulated")),
    }
