# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The Redfish action ComputerSystem.Reset: each ResetType is sent once. Private to h200.rack."""

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
REFUSED_PAUSE, REFUSED_PAUSE_MAX = 5.0, 30.0
POST_LOCKS = ("UnableToModifyDuringSystemPOST", "InvalidOperationForSystemState", "SystemPostInProgress")


class Reset:
    """The power back end of the chosen system of ``client``."""

    def __init__(self, client: Redfish) -> None:
        self.client = client
        self.sent: list[str] = []
        self.system: dict[str, t.Any] = {}
        self._allowed: list[str] | None = None
        self._allowed_read = False

    def read(self, patient: bool = True) -> str | None:
        self.system = self.client.read_system(tries=4 if patient else 1).body
        return pp.state_word(self.system.get("PowerState"))

    def signs(self) -> tuple[t.Any, ...]:
        progress, oem = self.system.get("BootProgress"), self.system.get("Oem")
        hpe = oem.get("Hpe") if isinstance(oem, dict) else None
        return (
            self.system.get("LastResetTime"),
            progress.get("LastState") if isinstance(progress, dict) else None,
            hpe.get("PostState") if isinstance(hpe, dict) else None,
        )

    @property
    def allowed(self) -> list[str] | None:
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
        named = [value for value in listed if isinstance(value, str)] if isinstance(listed, list) else []
        return named or None

    def send(self, step: pp.Step, name: str) -> bool:
        target = path_of(self._action().get("target"))
        target = target or f"{self.client.system_path}/Actions/ComputerSystem.Reset"
        conflict = Deadline(CONFLICT_SECONDS)
        self.sent.append(name)
        while True:
            try:
                self.client.http.fresh()
                answer = self.client.write("POST", target, {"ResetType": name})
            except NoAnswer:
                return False
            except BmcError:  # it was not sent
                self.sent.pop()
                raise
            if answer.ok:
                return True
            _unused, harmless = answer.verdict
            if answer.status >= 500 and not harmless and answer.status != 501:
                return False  # a 5xx without a known reason: it may have been done
            if self._moot(step):
                return True
            window = conflict if answer.status == 409 and not answer.says(*POST_LOCKS) else None
            if not harmless or not self._pause(answer, window):
                self.sent.pop()
                raise self._refused(answer, name)

    def _moot(self, step: pp.Step) -> bool:
        """Whether a refused request needs no repeating because its state is there, or on its way, already."""
        coming = {pp.ON: pp.POWERING_ON, pp.OFF: pp.POWERING_OFF}.get(step.target or "")
        restart = any(name in pp.RESTARTS for name in step.types)
        return not restart and step.target is not None and self.read() in (step.target, coming)

    def _pause(self, answer: Answer, window: Deadline | None) -> bool:
        """Wait before a refused request is repeated; False when there is no time for that."""
        pause = min(answer.retry_after or REFUSED_PAUSE, REFUSED_PAUSE_MAX)
        patience = self.client.patience
        left = patience.remaining if window is None else min(window.remaining, patience.remaining)
        return left > pause and patience.pause(pause)

    def _refused(self, answer: Answer, name: str) -> BmcError:
        if answer.verdict[0] != "unsupported" or not self.allowed:
            return answer.error(f"Sending {name}")
        return answer.error(
            f"Sending {name}", f"It allows: {', '.join(self.allowed)}.", allowed_reset_types=self.allowed
        )
