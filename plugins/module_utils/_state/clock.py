# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Dates as the ledger writes them: UTC, ISO 8601, milliseconds. Private to h200.rack."""

from __future__ import annotations

import datetime
import re

_FORM = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z\Z")


def now() -> datetime.datetime:
    """The present, in UTC."""
    return datetime.datetime.now(datetime.timezone.utc)


def text(moment: datetime.datetime) -> str:
    """``2026-11-30T15:04:05.678Z``; in this form, dates sort as strings."""
    return (
        moment.astimezone(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.") + f"{moment.microsecond // 1000:03d}Z"
    )


def parse(written: str) -> datetime.datetime:
    """The reverse of :func:`text`. Raises ValueError."""
    if not isinstance(written, str) or not _FORM.match(written):
        raise ValueError(f"not a date of a ledger: {written!r}")
    return datetime.datetime.fromisoformat(written[:-1] + "+00:00")
