# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Bring one node of a running controller to a state. Private to h200.rack.

What others drained stays theirs: it is reported, never resumed and never given another reason.
"""

from __future__ import annotations

import typing as t

from .._common.deadline import Deadline
from .._common.errors import DeadlineExceeded, RackError
from . import evidence, rejection
from . import reason as _reason
from .records import Node
from .scontrol import ControllerAway, Scontrol

POLL = 1.0


class Request(t.NamedTuple):
    name: str
    reason: str | None  # the reason to set, ours
    run_id: str | None
    gres: str | None  # what must be registered
    wait: float  # seconds
    wait_for_jobs: bool
    foreign_drain: str  # fail | keep
    restarted_from: str | None = None  # the slurmd start that a registration must be newer than
    was_invalid: bool = False  # an earlier slurmd was refused; that does not tell about the new one
    dynamic: bool = False  # the node makes itself known; until then the controller does not know it


class Outcome(t.NamedTuple):
    changed: bool
    before: Node | None
    after: Node | None
    held_by: dict[str, str | None] | None = None
    msg: str | None = None


def snapshot(scontrol: Scontrol, name: str, deadline: Deadline) -> Node | None:
    """The node now; a controller that is away is waited for."""
    while True:
        try:
            return scontrol.node(name)
        except ControllerAway as exc:
            if not deadline.pause(POLL):
                waited = f"{name}: {exc.msg} (waited {deadline.seconds:g} s)"
                raise ControllerAway(waited) from exc  # pylint: disable=bad-exception-cause  # pylint sees no class here


def foreign(node: Node) -> bool:
    """Drained by a person or a program: neither by us, nor by slurmctld for hardware less than declared.

    A dynamic node without a reason is drained by its own slurmd's command line, which is our gate; `scontrol` gives
    no drain without a reason.
    """
    if not node.drained or (node.dynamic and not node.reason):
        return False
    return _reason.parse(node.reason) is None and not rejection.is_one(node.reason)


def _held(node: Node) -> dict[str, str | None]:
    return {"reason": node.reason, "user": node.reason_user, "since": node.reason_since}


def _must_exist(node: Node | None, name: str) -> Node:
    if node is None:
        raise RackError(
            f"{name}: slurmctld does not know this node; the role h200.rack.slurm with tasks_from controller adds it",
            code="unknown_node",
        )
    return node


def present(scontrol: Scontrol, request: Request, check_mode: bool) -> Outcome:
    """Wait until the node's slurmd registered with the GRES expected.

    A drain of ours from an earlier run becomes this run's, so that this run's release ends it; nothing else changes.
    """
    deadline = Deadline(request.wait)
    first = snapshot(scontrol, request.name, deadline)
    if first is None and request.dynamic:
        if check_mode:
            return Outcome(True, None, None)
        first = _wait_known(scontrol, request, deadline)
    first = _must_exist(first, request.name)
    node = first if check_mode else _wait_registered(scontrol, request, first, deadline)
    if foreign(node):
        return Outcome(False, first, node, _held(node))
    if not check_mode:
        _refuse_less(scontrol, request, node)
    ours = _reason.parse(node.reason)
    if not node.drained or not request.run_id or (ours and ours.run_id == request.run_id):
        return Outcome(False, first, node)
    wanted = str(_reason.make(request.run_id, _reason.PROVISIONING))
    if check_mode:
        return Outcome(True, first, _as_if(node, drain=True, reason=wanted))
    scontrol.update_node(request.name, "DRAIN", wanted)
    return Outcome(True, first, _must_exist(snapshot(scontrol, request.name, deadline), request.name))


def _has_spoken(node: Node, request: Request) -> bool:
    if node.invalid:
        # A node that was never valid has no start time; one that was refused before may be so no longer.
        return not request.was_invalid
    return node.registered and node.slurmd_start != request.restarted_from


def _wait_known(scontrol: Scontrol, request: Request, deadline: Deadline) -> Node:
    while True:
        node = snapshot(scontrol, request.name, deadline)
        if node is not None:
            return node
        if not deadline.pause(POLL):
            raise _silent(request, "absent")


def _silent(request: Request, state: str) -> DeadlineExceeded:
    return DeadlineExceeded(
        f"{request.name}: no slurmd registered within {request.wait:g} s (state {state}); look at "
        "`journalctl -u slurmd -u munge` there: a munge key or clock that differs, or no way to the controller's "
        "port, are the usual causes",
        node=request.name,
        state=state,
    )


def _wait_registered(scontrol: Scontrol, request: Request, node: Node, deadline: Deadline) -> Node:
    while not _has_spoken(node, request):
        if not deadline.pause(POLL):
            if node.invalid:
                return node
            raise _silent(request, f"{node.state}, {node.reason}" if node.reason else node.state)
        node = _must_exist(snapshot(scontrol, request.name, deadline), request.name)
    return node


def _refuse_less(scontrol: Scontrol, request: Request, node: Node) -> None:
    """Fail when the node is less than declared, with the code as the reason of its drain."""
    logged = evidence.rejection_reason(scontrol, node.name) if node.invalid else None
    found = rejection.of(node, logged)
    if found is None and request.gres and request.gres not in _plain_gres(node.gres):
        found = ("GPU_COUNT", f"Gres={node.gres or 'none'}", f"the profile says {request.gres}")
    if found is None:
        return
    code, said, hint = found
    if request.run_id:
        scontrol.update_node(node.name, "DRAIN", str(_reason.make(request.run_id, code)))
    raise RackError(
        f"{node.name}: slurmctld refused its registration ({said}): {hint}", code=code, node=node.name, said=said
    )


def _plain_gres(gres: str) -> list[str]:
    """``gpu:h200:8(S:0-1)`` → ``gpu:h200:8``: the sockets in brackets are the node's own finding."""
    return [item.split("(", 1)[0] for item in gres.split(",")]


def drained(scontrol: Scontrol, request: Request, check_mode: bool) -> Outcome:
    """Drain the node for our reason, unless it is drained already by somebody else."""
    deadline = Deadline(request.wait)
    before = _must_exist(snapshot(scontrol, request.name, deadline), request.name)
    if foreign(before):
        after = before if check_mode else _wait_for_jobs(scontrol, request, before, deadline)
        return Outcome(False, before, after, _held(before))
    wanted = str(_reason.make(request.run_id, request.reason or _reason.PROVISIONING))
    if before.drained and before.reason == wanted:
        after = before if check_mode else _wait_for_jobs(scontrol, request, before, deadline)
        return Outcome(False, before, after)
    if check_mode:
        return Outcome(True, before, _as_if(before, drain=True, reason=wanted))
    scontrol.update_node(request.name, "DRAIN", wanted)
    after = _must_exist(snapshot(scontrol, request.name, deadline), request.name)
    if not after.drained:
        raise RackError(f"{request.name}: is {after.state} after a drain", code="not_applied", node=request.name)
    return Outcome(True, before, _wait_for_jobs(scontrol, request, after, deadline))


def _wait_for_jobs(scontrol: Scontrol, request: Request, node: Node, deadline: Deadline) -> Node:
    if not request.wait_for_jobs:
        return node
    while True:
        jobs = scontrol.jobs(request.name)
        current = _must_exist(snapshot(scontrol, request.name, deadline), request.name)
        if not jobs and not current.busy:
            return current
        if not deadline.pause(POLL):
            raise DeadlineExceeded(
                f"{request.name}: still runs {len(jobs)} job(s) ({', '.join(jobs[:5])}) after {request.wait:g} s; "
                "it stays drained: wait for them or end them, then run this again",
                jobs=jobs,
                node=request.name,
            )


def resumed(scontrol: Scontrol, request: Request, check_mode: bool) -> Outcome:
    """Resume the node when it is drained for our reason (of this run, when one is given)."""
    deadline = Deadline(request.wait)
    before = _must_exist(snapshot(scontrol, request.name, deadline), request.name)
    down = before.base == "DOWN"
    if not before.drained and not down:
        return Outcome(False, before, before)
    refusal = _why_not_resume(before, request.run_id)
    if refusal:
        if request.foreign_drain == "keep":
            return Outcome(False, before, before, _held(before), refusal)
        raise RackError(refusal, code="foreign_drain", node=request.name, held_by=_held(before))
    if before.invalid:
        # `scontrol update state=resume` would say "Invalid node state specified".
        _refuse_less(scontrol, request, before)
    if check_mode:
        return Outcome(True, before, _as_if(before, drain=False, reason=None))
    scontrol.update_node(request.name, "RESUME")
    return Outcome(True, before, _wait_up(scontrol, request, deadline))


def _why_not_resume(node: Node, run_id: str | None) -> str | None:
    ours = _reason.parse(node.reason)
    by = f" by {node.reason_user}" if node.reason_user else ""
    if ours is None:
        state = "drained" if node.drained else "down"
        return f"{node.name}: is {state}{by} ({node.reason or 'no reason'}), not by h200.rack; it is left alone"
    if run_id and ours.run_id != run_id:
        return (
            f"{node.name}: is drained for run {ours.run_id} ({ours.code}), not for this run {run_id}; it is left alone"
        )
    return None


def _wait_up(scontrol: Scontrol, request: Request, deadline: Deadline) -> Node:
    while True:
        node = _must_exist(snapshot(scontrol, request.name, deadline), request.name)
        if not node.drained and node.base in ("IDLE", "ALLOCATED", "MIXED") and node.responding:
            return node
        if not deadline.pause(POLL):
            raise DeadlineExceeded(
                f"{request.name}: resumed, but {node.state} after {request.wait:g} s ({node.reason or 'no reason'})",
                node=request.name,
                state=node.state,
            )


def absent(scontrol: Scontrol, request: Request, check_mode: bool) -> Outcome:
    """Drain a dynamic node, wait for its jobs, delete it. A node of the files is the role's to remove."""
    deadline = Deadline(request.wait)
    before = snapshot(scontrol, request.name, deadline)
    if before is None:
        return Outcome(False, None, None)
    if not before.dynamic:
        raise RackError(
            f"{request.name}: stands in the controller's files, not as a dynamic node; remove it with the role "
            "h200.rack.slurm, tasks_from remove, which takes all of them at once and restarts the controller once",
            code="static_node",
            node=request.name,
        )
    if check_mode:
        return Outcome(True, before, None)
    drained(scontrol, request._replace(wait_for_jobs=True), check_mode=False)
    scontrol.delete_node(request.name)
    return Outcome(True, before, snapshot(scontrol, request.name, deadline))


def _as_if(node: Node, drain: bool, reason: str | None) -> Node:
    flags = tuple(flag for flag in node.flags if flag != "DRAIN")
    return node._replace(flags=(*flags, "DRAIN") if drain else flags, reason=reason)


STATES: dict[str, t.Callable[[Scontrol, Request, bool], Outcome]] = {
    "present": present,
    "drained": drained,
    "resumed": resumed,
    "absent": absent,
}


def as_dict(node: Node | None, jobs: t.Sequence[str] = ()) -> dict[str, t.Any]:
    """What the modules return of a node."""
    if node is None:
        return {"present": False, "state": "absent", "jobs": []}
    return {
        "present": True,
        "state": node.state,
        "base": node.base,
        "flags": list(node.flags),
        "reason": node.reason,
        "reason_user": node.reason_user,
        "gres": node.gres,
        "gpus": node.gpus,
        "real_memory": node.real_memory,
        "cpus": node.cpus,
        "partitions": list(node.partitions),
        "features": list(node.features),
        "registered": node.registered,
        "slurmd_start": node.slurmd_start,
        "drained": node.drained,
        "invalid": node.invalid,
        "dynamic": node.dynamic,
        "address": node.address,
        "version": node.version,
        "jobs": list(jobs),
    }
