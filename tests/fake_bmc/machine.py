# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The machine behind a fake BMC: power that takes its time, whoever asks for it."""

from __future__ import annotations

import dataclasses
import time


@dataclasses.dataclass
class Machine:
    power: str = "Off"
    on_seconds: float = 0.0
    off_seconds: float = 0.0
    graceful_works: bool = True
    restart_shows: bool = True  # whether a restart passes through a state other than On
    intermediate: bool = False  # whether PoweringOn and PoweringOff are reported
    ignores: tuple[str, ...] = ()  # reset types that are accepted and do nothing

    def __post_init__(self) -> None:
        self._pending: list[tuple[float, str]] = []  # (when, state)
        self.done: list[str] = []  # reset types that took effect
        self.went_off_at: float | None = None
        self.went_on_at: float | None = None
        self.last_reset: str | None = None

    @property
    def state(self) -> str:
        """What the BMC reports now."""
        self._advance()
        return self.power

    def _advance(self) -> None:
        now = time.monotonic()
        while self._pending and self._pending[0][0] <= now:
            when, state = self._pending.pop(0)
            self.power = state
            if state == "Off":
                self.went_off_at = when
            if state == "On":
                self.went_on_at = when

    def reset(self, reset_type: str) -> None:
        """Begin what ``reset_type`` asks for."""
        self._advance()
        now = time.monotonic()
        if reset_type in self.ignores:
            return
        self.done.append(reset_type)
        self.last_reset = f"2026-11-30T00:00:{len(self.done):02d}Z"
        if reset_type in ("On", "ForceOn", "Resume"):
            self._go(now, [("PoweringOn", 0.0), ("On", self.on_seconds)])
        elif reset_type == "ForceOff" or (reset_type == "GracefulShutdown" and self.graceful_works):
            self._go(now, [("PoweringOff", 0.0), ("Off", self.off_seconds)])
        elif reset_type in ("ForceRestart", "GracefulRestart", "PowerCycle", "FullPowerCycle"):
            if self.restart_shows:
                self._go(now, [("Off", 0.0), ("On", self.off_seconds + self.on_seconds)])
        elif reset_type == "PushPowerButton":
            self.reset("ForceOff" if self.power == "On" else "On")
            self.done.pop()
        elif reset_type == "Pause":
            self._go(now, [("Paused", 0.0)])

    def _go(self, now: float, states: list[tuple[str, float]]) -> None:
        self._pending = [
            (now + after, state) for state, after in states if self.intermediate or not state.startswith("Powering")
        ]
        self._advance()
