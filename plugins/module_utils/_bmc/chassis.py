# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The IPMI command Chassis Control: each request is sent once. Private to h200.rack."""

from __future__ import annotations

import typing as t

from . import power_plan as pp
from .errors import BmcError
from .ipmi import Ipmi, Refusal, Silence

CHASSIS, STATUS, CONTROL = 0x00, 0x01, 0x02
CONTROLS: dict[str, int] = {
    "ForceOff": 0,
    "On": 1,
    "PowerCycle": 2,
    "ForceRestart": 3,
    "Nmi": 4,
    "GracefulShutdown": 5,
}
BUSY_PAUSE = 5.0


class Chassis:
    """The power back end of one BMC over IPMI."""

    def __init__(self, client: Ipmi) -> None:
        self.client = client
        self.sent: list[str] = []

    @property
    def allowed(self) -> t.Collection[str]:
        return CONTROLS

    def read(self, patient: bool = True) -> str | None:
        try:
            data = self.client.command(CHASSIS, STATUS)
        except Silence as exc:
            if not patient:  # while waiting: perhaps the BMC forgot the session
                self.client.login()
            raise BmcError("timeout", f"Reading the chassis status: {exc}.") from exc
        except Refusal as exc:
            raise BmcError(exc.error_class, f"Reading the chassis status: {exc}.", completion_code=exc.code) from exc
        if not data:
            raise BmcError("bmc_bug", "The chassis status has no data.")
        return pp.ON if data[0] & 1 else pp.OFF

    def signs(self) -> tuple[t.Any, ...]:
        return ()  # IPMI shows a restart only if the power goes off

    def send(self, step: pp.Step, name: str) -> bool:
        self.sent.append(name)
        while True:
            try:
                self.client.command(CHASSIS, CONTROL, [CONTROLS[name]], once=True)
            except Silence:
                return False
            except Refusal as exc:
                if step.target is not None and name not in pp.RESTARTS and self.read() == step.target:
                    return True
                if exc.error_class in ("timeout", "bmc_bug"):
                    return False  # it may have been done
                if exc.error_class == "busy" and self.client.deadline.remaining > BUSY_PAUSE:
                    self.client.deadline.pause(BUSY_PAUSE)
                    continue
                self.sent.pop()
                raise BmcError(exc.error_class, f"Sending {name}: {exc}.", completion_code=exc.code) from exc
            return True
