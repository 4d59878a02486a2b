# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From host variables to plain values: what the plan is made of, never a secret. Private to h200.rack."""

from __future__ import annotations

import typing as t

from .fields import Field
from .problems import Problems

MISSING = (None, "")


def _plain(value: t.Any) -> t.Any:
    """A copy in which nothing is left to be templated later, out of reach of the error handling."""
    if isinstance(value, t.Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if value is None or isinstance(value, (bool, int, float)):
        return value
    return str(value)


def read(host: str, hostvars: t.Mapping[str, t.Any], variable: str, problems: Problems) -> t.Any:
    """One variable; None when it is missing, or after its template proved wrong."""
    try:
        if variable not in hostvars:
            return None
        return _plain(hostvars[variable])
    except Exception as exc:  # whatever a template of the inventory may raise
        problems.add(host, variable, f"cannot be evaluated: {exc}")
        return None


def read_fields(
    host: str, hostvars: t.Mapping[str, t.Any], fields: t.Sequence[Field], problems: Problems
) -> dict[str, t.Any]:
    """All fields of a host, checked; None stands for what is missing or wrong, after saying so."""
    values: dict[str, t.Any] = {}
    for field in fields:
        before = len(problems.found)
        value = read(host, hostvars, field.variable, problems)
        if value in MISSING:
            values[field.key] = None if field.required else field.default
            if field.required and len(problems.found) == before:
                problems.add(host, field.variable, "missing")
            continue
        try:
            values[field.key] = field.check(value)
        except ValueError as exc:
            problems.add(host, field.variable, str(exc))
            values[field.key] = None
    return values
