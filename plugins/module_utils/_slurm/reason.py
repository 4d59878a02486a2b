# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The reason that marks a drain as ours: ``h200.rack:RUN:CODE``. Private to h200.rack.

The prefix is the ownership: what another person or program drained is never resumed by us.
"""

from __future__ import annotations

import re
import typing as t

from .._common.errors import InvalidInput

PREFIX = "h200.rack"
PROVISIONING = "provisioning"
_WORD = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,79}")
_OURS = re.compile(rf"{re.escape(PREFIX)}:(?P<run>[^:\s]+):(?P<code>\S+)")


class Reason(t.NamedTuple):
    run_id: str
    code: str

    def __str__(self) -> str:
        return f"{PREFIX}:{self.run_id}:{self.code}"


def make(run_id: str | None, code: str) -> Reason:
    """The reason for ``code`` in run ``run_id``. Raises :class:`InvalidInput` for what a later parse would not read."""
    if not run_id or not _WORD.fullmatch(run_id):
        raise InvalidInput(
            f"run_id: {run_id!r} must be 1 to 80 letters, digits, '.', '_', '+' or '-'; it marks this run's drains"
        )
    if not _WORD.fullmatch(code):
        raise InvalidInput(
            f"reason: {code!r} must be one word of letters, digits, '.', '_', '+' or '-', such as GPU_COUNT"
        )
    return Reason(run_id, code)


def parse(text: str | None) -> Reason | None:
    """The run and the code when ``text`` is one of our reasons, else None."""
    match = _OURS.fullmatch((text or "").strip())
    return Reason(match["run"], match["code"]) if match else None
