# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""slurm_node: from the module's options to its result. Private to h200.rack."""

from __future__ import annotations

import typing as t

from .._common.errors import RackError
from . import gate, node, reason
from .scontrol import Run, Scontrol


def run(params: t.Mapping[str, t.Any], command: Run, check_mode: bool) -> dict[str, t.Any]:
    """Raises :class:`RackError`."""
    scontrol = Scontrol(command)
    request = node.Request(
        name=params["name"],
        reason=params["reason"],
        run_id=params["run_id"],
        gres=params["gres"],
        wait=params["wait"],
        wait_for_jobs=params["wait_for_jobs"],
        foreign_drain=params["foreign_drain"],
        restarted_from=params["restarted_from"],
        was_invalid=params["was_invalid"],
        dynamic=params["dynamic"],
    )
    if params["run_id"] is not None:
        reason.make(params["run_id"], params["reason"])
    if params["state"] == "resumed":
        _refuse_unaccepted(scontrol, request, params, check_mode)
    outcome = node.STATES[params["state"]](scontrol, request, check_mode)
    return _result(scontrol, outcome)


def _refuse_unaccepted(
    scontrol: Scontrol, request: node.Request, params: t.Mapping[str, t.Any], check_mode: bool
) -> None:
    """Keep a node behind the gate whose records do not admit it; one that already is out stays out."""
    if not params["required"]:
        return
    now = gate.Now(request.name, params["run_id"] or "", params["boot_id"] or None)
    verdict = gate.judge(now, params["records"], params["required"], params["allow_simulated"])
    if verdict.passed:
        return
    there = node.snapshot(scontrol, request.name, node.Deadline(request.wait))
    if there is None or not there.drained or node.foreign(there):
        return
    if not check_mode:
        node.drained(scontrol, request._replace(reason=verdict.code, wait_for_jobs=False), check_mode=False)
    raise RackError(f"{verdict.msg}; it stays drained", code=verdict.code, node=request.name)


def _result(scontrol: Scontrol, outcome: node.Outcome) -> dict[str, t.Any]:
    after = outcome.after
    jobs = scontrol.jobs(after.name) if after is not None else []
    before_text, after_text = _line(outcome.before), _line(after)
    result = {
        "changed": outcome.changed,
        "previous_state": outcome.before.state if outcome.before else "absent",
        "reason": None,
        **node.as_dict(after, jobs),
        "diff": {"before": before_text, "after": after_text},
    }
    if outcome.held_by:
        result["held_by"] = outcome.held_by
    if outcome.msg:
        result["msg"] = outcome.msg
    return result


def _line(value: node.Node | None) -> str:
    if value is None:
        return "absent\n"
    return f"{value.name}: {'drained' if value.drained else 'not drained'}, reason: {value.reason or '-'}\n"
