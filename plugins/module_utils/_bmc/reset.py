# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The Redfish action ComputerSystem.Reset: each ResetType is sent once and proven by reading. Private to h200.rack."""

from __future__ import annotations

import typing as t

from .._common.deadline import Deadline
from . import power_plan as pp
from .answer import Answer
from .errors import BmcError
from .http import NoAnswer
from .redfish import Redfish
from .systems import path_of

# iDRAC10 answers 409 to On for a while after a power-off (LP#2162995); Ironic waits 60 s, we 90.
CONFLICT_SECONDS = 90.0
CONFLICT_PAUSE = 5.0
POLL_SECONDS, POLL_MAX = 1.0, 5.0
# How long after a restart On must be read without a sign of it, until On is believed.
SETTLE_SECONDS = 5.0
# How long to look for a sign of a restart whose request got no answer.
UNKNOWN_RESTART_SECONDS = 60.0


class Reset:
    """Carries out power steps on the chosen system of ``client``."""

    def __init__(self, client: Redfish, deadline: Deadline, graceful_timeout: float) -> None:
        self.client = client
        self.deadline = deadline
        self.graceful_timeout = graceful_timeout
        self.sent: list[str] = []
        self.system: dict[str, t.Any] = {}
        self._allowed: list[str] | None = None
        self._allowed_read = False

    # -- reading ------------------------------------------------------------------------------------------

    def read(self, tries: int = 4) -> str | None:
        """The power state as the BMC words it, None when it gives none."""
        self.system = self.client.read_system(tries).body
        state = self.system.get("PowerState")
        return state if isinstance(state, str) and state else None

    @property
    def allowed(self) -> list[str] | None:
        """The ResetTypes that the BMC allows; None when it does not say."""
        if not self._allowed_read:
            self._allowed, self._allowed_read = self._read_allowed(), True
        return self._allowed

    def _action(self) -> dict[str, t.Any]:
        actions = self.system.get("Actions")
        action = actions.get("#ComputerSystem.Reset") if isinstance(actions, dict) else None
        if not isinstance(action, dict):
            raise BmcError(
                "unsupported", f"System {self.client.system_id} has no Reset action; is it the host? Check system_id."
            )
        return action

    def _read_allowed(self) -> list[str] | None:
        action = self._action()
        listed = action.get("ResetType@Redfish.AllowableValues")
        info = path_of(action.get("@Redfish.ActionInfo"))
        if not listed and info:
            try:
                answer = self.client.try_get(info, tries=2)
            except BmcError:  # a dead link: the BMC will tell when it refuses
                return None
            parameters = answer.body.get("Parameters") if answer.ok else None
            for parameter in parameters if isinstance(parameters, list) else []:
                if isinstance(parameter, dict) and parameter.get("Name") == "ResetType":
                    listed = parameter.get("AllowableValues")
        if not isinstance(listed, list) or not listed:
            return None
        return [value for value in listed if isinstance(value, str)]

    # -- acting -------------------------------------------------------------------------------------------

    def settle_transition(self, state: str | None) -> str | None:
        """Let a transition that is under way end before anything is decided."""
        wait_for = {pp.POWERING_ON: pp.ON, pp.POWERING_OFF: pp.OFF}.get(state or "")
        if wait_for:
            return self._wait(lambda now: now not in (pp.POWERING_ON, pp.POWERING_OFF), self.deadline)
        return state

    def run(self, steps: t.Sequence[pp.Step], current: str | None, wait: bool) -> str | None:
        """Send the steps, each proven before the next; the last one only with ``wait``."""
        for index, step in enumerate(steps):
            if step.target == pp.OFF and current == pp.OFF:
                continue  # the graceful step before has done it
            name = step.pick(self.allowed)
            if name is None:
                if step.optional:
                    continue
                raise pp.not_allowed(step, self.allowed)
            last = index == len(steps) - 1
            current = self._do(step, name, current, wait or not last)
        return current

    def _do(self, step: pp.Step, name: str, before: str | None, wait: bool) -> str | None:
        sign = self._signs()
        try:
            known = self._send(step, name)
        except BmcError as exc:
            if step.optional and exc.error_class in ("unsupported", "busy", "bmc_bug"):
                return self.read()  # the operating system cannot be asked: the next step uses force
            raise
        if not wait and known:
            return self.read()
        if name in pp.RESTARTS:
            return self._prove_restart(name, sign, known)
        if step.target is None:
            if not known:
                raise self._unproven(name, "and a power state cannot show whether it took effect")
            return self.read()
        within = Deadline(min(self.graceful_timeout, self.deadline.remaining)) if step.graceful else self.deadline
        now = self._wait(lambda state: state == step.target, within)
        if now != step.target and not step.optional:
            raise self._late(name, step, now, before)
        return now

    def _send(self, step: pp.Step, name: str) -> bool:
        """Post the reset. True: accepted or in effect; False: no answer, so the effect is unknown."""
        target = path_of(self._action().get("target"))
        target = target or f"{self.client.system_path}/Actions/ComputerSystem.Reset"
        conflict = Deadline(CONFLICT_SECONDS)
        self.sent.append(name)
        while True:
            try:
                answer = self.client.write("POST", target, {"ResetType": name})
            except NoAnswer:
                return False
            if answer.ok:
                return True
            if 300 <= answer.status < 400:
                raise answer.error(f"Sending {name}", "The BMC redirected the request in circles.")
            error_class, refused = answer.verdict
            if answer.status >= 500 and not refused and error_class != "bmc_bug":
                return False  # 503 or 504 without a reason: it may have been done
            if answer.status in (500, 502):
                return False
            if self._reached(step):
                return True
            window = conflict if error_class == "busy" and answer.status == 409 and not _post_lock(answer) else None
            if not refused or not self._pause(answer, window):
                raise self._refused(answer, name)

    def _reached(self, step: pp.Step) -> bool:
        """Whether a refused request is moot because the state is there (or on its way) already."""
        now = self.read()
        coming = {pp.ON: pp.POWERING_ON, pp.OFF: pp.POWERING_OFF}.get(step.target or "")
        names_restart = any(name in pp.RESTARTS for name in step.types)
        return not names_restart and step.target is not None and now in (step.target, coming)

    def _pause(self, answer: Answer, window: Deadline | None) -> bool:
        """Wait before a refused request is repeated; False when there is no time for that."""
        pause = min(answer.retry_after or CONFLICT_PAUSE, 30.0)
        if window is not None and window.remaining <= pause:
            return False
        return self.deadline.remaining > pause and self.deadline.pause(pause)

    def _wait(self, done: t.Callable[[str | None], bool], within: Deadline) -> str | None:
        """Read until ``done``; trouble while reading is part of waiting. Returns the last state read."""
        pause, state = POLL_SECONDS, None
        while True:
            try:
                state = self.read(tries=1)
            except BmcError as exc:
                if exc.error_class in ("auth", "tls", "invalid"):
                    raise
                state = None
            if done(state):
                return state
            if within.remaining <= 0 or self.deadline.remaining <= 0:
                return state
            within.pause(min(pause, self.deadline.remaining or 0.01))
            if within.elapsed > 10:
                pause = min(pause * 1.5, POLL_MAX)

    # -- proof --------------------------------------------------------------------------------------------

    def _signs(self) -> tuple[t.Any, t.Any]:
        """What changes on a restart even if the power state does not."""
        progress = self.system.get("BootProgress")
        last = progress.get("LastState") if isinstance(progress, dict) else None
        return self.system.get("LastResetTime"), last

    def _prove_restart(self, name: str, sign: tuple[t.Any, t.Any], known: bool) -> str | None:
        """A restart is over when On is read after a sign of it, or, if it was accepted, after it stayed On a while."""
        seen = False
        quiet = Deadline(SETTLE_SECONDS if known else min(UNKNOWN_RESTART_SECONDS, self.deadline.remaining))

        def done(state: str | None) -> bool:
            nonlocal seen
            seen = seen or state in (pp.OFF, pp.POWERING_ON, pp.POWERING_OFF)
            seen = seen or (state == pp.ON and self._signs() != sign and any(self._signs()))
            return state == pp.ON and (seen or quiet.expired)

        state = self._wait(done, self.deadline)
        if state != pp.ON:
            raise self._late(name, pp.Step((name,), pp.ON), state, None)
        if not seen and not known:
            raise self._unproven(name, "and the machine shows no sign of a restart")
        return state

    def _unproven(self, name: str, why: str) -> BmcError:
        return BmcError(
            "timeout",
            f"{name} was sent once, the BMC did not confirm it, {why}. It was not repeated; look at the console.",
            retryable=False,
        )

    def _late(self, name: str, step: pp.Step, now: str | None, before: str | None) -> BmcError:
        hint = " Its operating system did not shut down; use shutdown=graceful_then_force." if step.graceful else ""
        limit = self.graceful_timeout if step.graceful else self.deadline.seconds
        return BmcError(
            "not_applied" if now == before and not step.graceful else "timeout",
            f"{name} was sent, but the power state is {now or 'unknown'}, not {step.target}, "
            f"after {limit:g} s.{hint}",
        )

    def _refused(self, answer: Answer, name: str) -> BmcError:
        details: dict[str, t.Any] = {}
        advice = None
        if answer.verdict[0] == "unsupported":
            details["allowed_reset_types"] = self.allowed or []
            if self.allowed:
                advice = f"It allows: {', '.join(self.allowed)}."
        return answer.error(f"Sending {name}", advice, **details)


def _post_lock(answer: Answer) -> bool:
    return answer.says("UnableToModifyDuringSystemPOST", "InvalidOperationForSystemState", "SystemPostInProgress")
