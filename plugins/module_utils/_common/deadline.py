# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One deadline for a whole piece of work, instead of a time-out for each of its steps. Private to h200.rack."""

from __future__ import annotations

import time
import typing as t

from .errors import DeadlineExceeded


class Deadline:
    """Counts down ``seconds`` from its creation on the monotonic clock."""

    def __init__(
        self,
        seconds: float,
        clock: t.Callable[[], float] = time.monotonic,
        sleep: t.Callable[[float], None] = time.sleep,
    ) -> None:
        self.seconds = seconds
        self._clock = clock
        self._sleep = sleep
        self._start = clock()

    @property
    def elapsed(self) -> float:
        """Seconds since the start."""
        return self._clock() - self._start

    @property
    def remaining(self) -> float:
        """Seconds left, never below zero."""
        return max(0.0, self.seconds - self.elapsed)

    @property
    def expired(self) -> bool:
        return self.elapsed >= self.seconds

    def check(self, what: str) -> None:
        """Raise :class:`DeadlineExceeded` when no time is left for ``what``."""
        if self.expired:
            raise DeadlineExceeded(f"{what}: not done within {self.seconds:g} s")

    def pause(self, seconds: float) -> bool:
        """Wait ``seconds`` or what is left, whichever is shorter; False when no time was left to wait."""
        left = self.remaining
        if left <= 0:
            return False
        self._sleep(min(seconds, left))
        return True
