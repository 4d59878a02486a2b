# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Carrying out a power plan and proving it; Redfish and IPMI are back ends of it. Private to h200.rack."""

from __future__ import annotations

import typing as t

from .._common.deadline import Deadline
from . import power_plan as pp
from .errors import BmcError

POLL_SECONDS, POLL_MAX = 1.0, 5.0
# How long after a restart On must be read without a sign of it, until On is believed.
SETTLE_SECONDS = 5.0
# How long to look for a sign of a restart whose request got no answer.
UNKNOWN_RESTART_SECONDS = 60.0


class Backend(t.Protocol):
    """What a protocol must offer to be driven through a plan."""

    sent: list[str]  # the ResetTypes that were sent, in order

    @property
    def allowed(self) -> t.Collection[str] | None:
        """The ResetTypes that the BMC allows; None when it does not say."""

    def read(self, patient: bool = True) -> str | None:
        """The power state, None when the BMC gives none."""

    def signs(self) -> tuple[t.Any, ...]:
        """What changes on a restart even if the power state does not; as of the last read."""

    def send(self, step: pp.Step, name: str) -> bool:
        """Send once. True: accepted or in effect; False: the effect is unknown. Raises BmcError when refused."""


class Runner:
    """Brings one machine through a plan within ``deadline``."""

    def __init__(self, backend: Backend, deadline: Deadline, graceful_timeout: float) -> None:
        self.backend = backend
        self.deadline = deadline
        self.graceful_timeout = graceful_timeout
        self.restart_seen: bool | None = None  # whether there was a sign of the restart that was sent

    def settle_transition(self, state: str | None, target: str | None) -> str | None:
        """Let a transition that is under way end, unless it is a start that is to be broken off."""
        if state not in (pp.POWERING_ON, pp.POWERING_OFF) or (state == pp.POWERING_ON and target == pp.OFF):
            return state
        now = self._wait(lambda now: now not in (pp.POWERING_ON, pp.POWERING_OFF, None), self.deadline)
        if now in (pp.POWERING_ON, pp.POWERING_OFF, None):
            raise BmcError("timeout", f"The power state was {state} at first and is still {now or 'unknown'}.")
        return now

    def run(self, steps: t.Sequence[pp.Step], current: str | None, wait: bool) -> str | None:
        """Send the steps, each proven before the next; the last one only with ``wait``."""
        for index, step in enumerate(steps):
            if step.target == pp.OFF and current == pp.OFF:
                continue  # the graceful step before has done it
            name = step.pick(self.backend.allowed)
            if name is None:
                if step.optional:
                    continue
                raise pp.not_allowed(step, self.backend.allowed)
            last = index == len(steps) - 1
            current = self._do(step, name, current, wait or not last)
        return current

    def _do(self, step: pp.Step, name: str, before: str | None, wait: bool) -> str | None:
        signs = self.backend.signs()
        try:
            known = self.backend.send(step, name)
        except BmcError as exc:
            if step.optional and exc.error_class in ("unsupported", "busy", "bmc_bug"):
                return self.backend.read()  # the operating system cannot be asked: the next step uses force
            raise
        if not wait and known:
            return self.backend.read()
        if name in pp.RESTARTS:
            return self._prove_restart(name, signs, known, step.graceful)
        if step.target is None:
            if not known:
                raise _unproven(name, "and a power state cannot show whether it took effect")
            return self.backend.read()
        within = Deadline(min(self.graceful_timeout, self.deadline.remaining)) if step.graceful else self.deadline
        now = self._wait(lambda state: state == step.target, within)
        if now != step.target and not step.optional:
            raise self._late(name, step, now, before)
        return now

    def _wait(self, done: t.Callable[[str | None], bool], within: Deadline) -> str | None:
        """Read until ``done``; trouble while reading is part of waiting. Returns the last state read."""
        pause = POLL_SECONDS
        while True:
            try:
                state = self.backend.read(patient=False)
            except BmcError as exc:
                if exc.error_class in ("auth", "tls", "invalid"):
                    raise
                state = None
            if done(state) or not within.pause(min(pause, self.deadline.remaining)) or self.deadline.expired:
                return state
            if within.elapsed > 10:
                pause = min(pause * 1.5, POLL_MAX)

    def _prove_restart(self, name: str, signs: tuple[t.Any, ...], known: bool, graceful: bool) -> str | None:
        """A restart is over when On is read after a sign of it, or, if it was accepted, after it stayed On a while."""
        patience = self.graceful_timeout if graceful else SETTLE_SECONDS if known else UNKNOWN_RESTART_SECONDS
        quiet = Deadline(min(patience, self.deadline.remaining))
        seen = False

        def done(state: str | None) -> bool:
            nonlocal seen
            now = self.backend.signs()
            seen = seen or state in (pp.OFF, pp.POWERING_ON, pp.POWERING_OFF) or (any(now) and now != signs)
            return state == pp.ON and (seen or quiet.expired)

        state = self._wait(done, self.deadline)
        if state != pp.ON:
            raise self._late(name, pp.Step((name,), pp.ON), state, None)
        if not seen and not known:
            raise _unproven(name, "and the machine shows no sign of a restart")
        self.restart_seen = seen
        return state

    def _late(self, name: str, step: pp.Step, now: str | None, before: str | None) -> BmcError:
        hint = " Its operating system did not shut down; use shutdown=graceful_then_force." if step.graceful else ""
        limit = self.graceful_timeout if step.graceful else self.deadline.elapsed
        return BmcError(
            "not_applied" if now == before and not step.graceful else "timeout",
            f"{name} was sent, but after {limit:.0f} s the power state is {now or 'unknown'}, not {step.target}.{hint}",
        )


def _unproven(name: str, why: str) -> BmcError:
    return BmcError(
        "timeout",
        f"{name} was sent once, the BMC did not confirm it, {why}. It was not repeated; look at the console.",
        retryable=False,
    )


def bring(params: dict[str, t.Any], check_mode: bool, warnings: list[str], runner: Runner) -> dict[str, t.Any]:
    """The part of a power module that knows no protocol: decide, act, prove, report."""
    backend, reset_type = runner.backend, params["reset_type"]
    target = pp.RESET_TYPES[reset_type] if reset_type else {"on": pp.ON, "off": pp.OFF}.get(params["state"])
    before = backend.read()
    try:
        now = before if check_mode or not params["wait"] else runner.settle_transition(before, target)
        if reset_type:
            steps = pp.single(reset_type, now)
        else:
            steps = pp.plan(params["state"], now, params["shutdown"], backend.allowed)
        would_send = pp.preview(steps, backend.allowed)
        if check_mode:
            after = ([step.target for step in steps if step.target] or [now])[-1]
        else:
            after = runner.run(steps, now, params["wait"])
    except BmcError as exc:
        exc.details.update(changed=bool(backend.sent), previous_power_state=before, reset_types_sent=backend.sent)
        raise
    if params["state"] == "restarted" and now == pp.OFF:
        warnings.append("The machine was off, so it was turned on instead of restarted.")
    if runner.restart_seen is False:
        warnings.append("The restart was accepted, but neither the power state nor the BMC's records show it.")
    return {
        "changed": bool(steps),
        "restart_seen": runner.restart_seen,
        "power_state": after,
        "previous_power_state": before,
        "reset_types_sent": would_send if check_mode else backend.sent,
        "waited_seconds": round(runner.deadline.elapsed, 1),
        "diff": {"before": {"power_state": before}, "after": {"power_state": after}},
    }
