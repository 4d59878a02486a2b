# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The one error type that the layers derive theirs from. Private to h200.rack."""

from __future__ import annotations

import typing as t


class RackError(Exception):
    """A failure that a person can act on.

    ``code`` is a stable, lower-case word for programs; ``msg`` says what is wrong and what to do;
    ``details`` are further returned values, JSON-serialisable and free of secrets.
    """

    code = "error"

    def __init__(self, msg: str, *, code: str | None = None, **details: t.Any) -> None:
        super().__init__(msg)
        self.msg = msg
        if code is not None:
            self.code = code
        self.details = details

    def as_result(self) -> dict[str, t.Any]:
        """The keyword arguments for ``fail_json``."""
        return {"msg": self.msg, "code": self.code, **self.details}


class InvalidInput(RackError):
    """What the caller asked for cannot be right; nothing was done."""

    code = "invalid"


class DeadlineExceeded(RackError):
    """The time given was used up."""

    code = "timeout"
