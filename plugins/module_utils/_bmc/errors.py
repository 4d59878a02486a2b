# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The one error of the BMC layers: what went wrong, whether it can be tried again, what to do. Private to h200.rack."""

from __future__ import annotations

import typing as t

from .._common.errors import RackError

# error_class -> may the same task succeed later, unchanged?
RETRYABLE: dict[str, bool] = {
    "unreachable": True,
    "tls": False,
    "auth": False,
    "session_limit": True,
    "busy": True,
    "unsupported": False,
    "precondition": True,
    "not_applied": True,
    "timeout": True,
    "bmc_bug": True,
    "invalid": False,
}


class BmcError(RackError):
    """A failed BMC operation; ``error_class`` is one of the keys of :data:`RETRYABLE`."""

    def __init__(
        self,
        error_class: str,
        msg: str,
        *,
        retryable: bool | None = None,
        http_status: int | None = None,
        message_ids: t.Sequence[str] = (),
        **details: t.Any,
    ) -> None:
        super().__init__(msg, code=error_class, **details)
        self.error_class = error_class
        self.retryable = RETRYABLE[error_class] if retryable is None else retryable
        self.http_status = http_status
        self.message_ids = list(message_ids)

    def as_result(self) -> dict[str, t.Any]:
        return {
            "msg": self.msg,
            "error_class": self.error_class,
            "retryable": self.retryable,
            "http_status": self.http_status,
            "message_ids": self.message_ids,
            **self.details,
        }


def invalid(msg: str, **details: t.Any) -> BmcError:
    """What the task asked for cannot be right; nothing was sent."""
    return BmcError("invalid", msg, **details)
