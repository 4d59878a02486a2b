# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Time limits for calls that know none: name look-ups and pyghmi. Private to h200.rack."""

from __future__ import annotations

import threading
import typing as t

T = t.TypeVar("T")


class TookTooLong(Exception):
    """The call had not returned when its time was over; it goes on in a thread that nobody waits for."""


def bounded(seconds: float, call: t.Callable[[], T]) -> T:
    """What ``call()`` returns or raises, if it does so within ``seconds``."""
    done: list[T] = []
    raised: list[BaseException] = []

    def work() -> None:
        try:
            done.append(call())
        except BaseException as exc:  # handed over to the caller
            raised.append(exc)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(max(0.0, seconds))
    if raised:
        raise raised[0]
    if not done:
        raise TookTooLong
    return done[0]
