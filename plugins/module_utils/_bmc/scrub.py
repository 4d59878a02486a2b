# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Keeping secrets out of results: every form in which a BMC may echo one. Private to h200.rack."""

from __future__ import annotations

import base64
import json
import typing as t
from urllib.parse import quote, quote_plus

MASK = "********"


def forms(username: str | None, secrets: t.Iterable[str | None]) -> list[str]:
    """Every spelling of ``secrets`` to look for, the longest first."""
    found: set[str] = set()
    for secret in secrets:
        if not secret:
            continue
        found.update((secret, quote(secret), quote(secret, safe=""), quote_plus(secret), json.dumps(secret)[1:-1]))
        if username:
            found.add(base64.b64encode(f"{username}:{secret}".encode()).decode())
    return sorted(found, key=len, reverse=True)


def scrub(value: t.Any, secrets: t.Sequence[str]) -> t.Any:
    """A copy of ``value`` with every secret in every string (keys too) replaced by :data:`MASK`."""
    if isinstance(value, str):
        value = value.encode("utf-8", "replace").decode()  # half a surrogate pair from a BMC breaks callbacks
        for secret in secrets:
            value = value.replace(secret, MASK)
        return value
    if isinstance(value, dict):
        return {scrub(key, secrets): scrub(item, secrets) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [scrub(item, secrets) for item in value]
    return value
