# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Take a node, say its stage, let it go: one request becomes at most a few events. Private to h200.rack."""

from __future__ import annotations

import dataclasses
import datetime
import os
import typing as t

from ansible_collections.h200.rack.plugins.module_utils._common.atomic import locked
from ansible_collections.h200.rack.plugins.module_utils._common.errors import InvalidInput, RackError

from . import clock, ledger
from .evidence import clean_evidence
from .history import current_stage, current_way, previous_stage, reached_stage
from .lease import check_free, current_lease, wears_thin
from .ledger import Event
from .stages import ALL_STAGES, FAILED, check_step, failing_stage


@dataclasses.dataclass(frozen=True)
class Request:
    """What one call of ``node_state`` asks for."""

    node: str
    run_id: str
    holder: str
    stage: t.Optional[str] = None
    code: t.Optional[str] = None
    failed_stage: t.Optional[str] = None
    evidence: t.Mapping[str, t.Any] = dataclasses.field(default_factory=dict)
    lease: float = 3600.0
    release: bool = False
    earlier: t.Sequence[t.Mapping[str, t.Any]] = ()
    process: str = ""
    take_over: t.Optional[str] = None


def check_request(request: Request) -> None:
    """Refuse what cannot be meant."""
    ledger.check_node_name(request.node)
    if not request.run_id:
        raise InvalidInput(f"{request.node}: run_id is empty")
    if request.lease <= 0:
        raise InvalidInput(f"{request.node}: lease must be more than 0 seconds")
    if request.stage is not None and request.stage not in ALL_STAGES:
        raise InvalidInput(f"{request.node}: no such stage: {request.stage}")
    if (request.stage == FAILED) != bool(request.code):
        raise InvalidInput(f"{request.node}: code belongs to the stage failed, and must be there with it")
    for step in request.earlier:
        if request.stage is None or step["stage"] == FAILED or step["stage"] not in ALL_STAGES:
            raise InvalidInput(f"{request.node}: earlier holds stages that were reached before the option stage")
    if request.failed_stage and request.stage != FAILED:
        raise InvalidInput(f"{request.node}: failed_stage belongs to the stage failed")


def _step(request: Request, earlier: t.Mapping[str, t.Any]) -> Request:
    """The request for one of the stages reached earlier."""
    evidence = earlier.get("evidence") or {}
    return dataclasses.replace(request, stage=earlier["stage"], evidence=evidence, code=None, failed_stage=None)


def _fields(step: Request, reached: t.Optional[str]) -> dict[str, t.Any]:
    """What a stage event says besides who said it and when."""
    fields: dict[str, t.Any] = {"stage": step.stage, "evidence": clean_evidence(step.evidence)}
    if step.stage == FAILED:
        fields["code"] = step.code
        fields["failed_stage"] = failing_stage(reached, step.failed_stage)
    return fields


def _new_stages(request: Request, events: t.Sequence[Event]) -> list[dict[str, t.Any]]:
    """The fields of the stage events that the request asks for; none when the last ones say the same."""
    if request.stage is None:
        return []
    reached = reached_stage(events)
    wanted = []
    for step in (*(_step(request, each) for each in request.earlier), request):
        check_step(request.node, reached, str(step.stage))
        wanted.append(_fields(step, reached))
        reached = reached if step.stage == FAILED else step.stage
    last = current_way(events)[-len(wanted) :]
    same = len(last) == len(wanted) and all(
        event.get(key) == value for event, fields in zip(last, wanted) for key, value in fields.items()
    )
    return [] if same else wanted


def new_events(request: Request, events: t.Sequence[Event], now: datetime.datetime) -> list[Event]:
    """The events that the request adds to a ledger. Raises when another run holds the node or the order is wrong."""
    lease = current_lease(events, now)
    check_free(request.node, lease, request.run_id, request.take_over)
    ours = lease is not None and lease["run_id"] == request.run_id
    if events:
        # Dates in a ledger never run backwards, even when the clock was set back.
        now = max(now, clock.parse(events[-1]["time"]))
    base = {
        "time": clock.text(now),
        "run_id": request.run_id,
        "holder": request.holder,
        **({"process": request.process} if request.process else {}),
        "until": clock.text(now + datetime.timedelta(seconds=request.lease)),
    }
    new: list[Event] = []
    if lease is not None and not ours:
        new.append({"event": "takeover", "from": {key: lease[key] for key in ("run_id", "holder", "until")}, **base})
    previous = current_stage(events)
    for fields in _new_stages(request, events):
        new.append({"event": "stage", "previous": previous, **fields, **base})
        previous = fields["stage"]
    if not request.release and not new and (lease is None or wears_thin(lease, now, request.lease)):
        new.append({"event": "lease", **base})
    if request.release and (ours or new):
        new.append({"event": "release", **base})
    return new


def summary(events: t.Sequence[Event], now: datetime.datetime) -> dict[str, t.Any]:
    """What is told of a node."""
    return {
        "stage": current_stage(events),
        "previous_stage": previous_stage(events),
        "history": current_way(events),
        "lease": current_lease(events, now),
    }


def record(
    folder: str,
    request: Request,
    check_mode: bool = False,
    now: t.Callable[[], datetime.datetime] = clock.now,
) -> dict[str, t.Any]:
    """Carry out the request: the summary after it, ``changed``, and the summary ``before`` it."""
    check_request(request)
    path = ledger.ledger_path(folder, request.node)
    if check_mode:
        return _outcome(request, ledger.read(path), now())[0]
    try:
        os.makedirs(folder, mode=0o750, exist_ok=True)
        with locked(ledger.lock_path(folder, request.node)):
            outcome, new = _outcome(request, ledger.read(path), now())
            if new:
                ledger.append(path, new)
            return outcome
    except OSError as exc:
        raise RackError(f"{request.node}: the ledger {path} cannot be written: {exc}", code="io", path=path) from exc


def _outcome(request: Request, events: list[Event], now: datetime.datetime) -> tuple[dict[str, t.Any], list[Event]]:
    new = new_events(request, events, now)
    return {"changed": bool(new), "before": summary(events, now), **summary([*events, *new], now)}, new


def info(folder: str, nodes: t.Sequence[str], now: t.Callable[[], datetime.datetime] = clock.now) -> dict[str, t.Any]:
    """The summary of every node named, or of all that have a ledger. Damage of one ledger stays with its node."""
    if not nodes:
        try:
            nodes = sorted(name[: -len(".jsonl")] for name in os.listdir(folder) if name.endswith(".jsonl"))
        except FileNotFoundError:
            nodes = []
    return {node: _told(ledger.ledger_path(folder, node), now()) for node in nodes}


def _told(path: str, now: datetime.datetime) -> dict[str, t.Any]:
    try:
        return {**summary(ledger.read(path), now), "error": None}
    except (RackError, OSError) as exc:
        return {**summary([], now), "error": str(exc)}
