# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What two hosts may not share. Private to h200.rack."""

from __future__ import annotations

import collections
import dataclasses
import typing as t

from .problems import Problems


@dataclasses.dataclass(frozen=True)
class Claim:
    """A host says by a variable that something is its own.

    ``kind`` and ``value`` say what; claims with different ``part`` share it in peace: ports of one address, or
    the systems behind one management controller.
    """

    kind: str
    value: t.Any
    host: str
    variable: str
    part: t.Any = None


def _conflict(one: Claim, other: Claim) -> bool:
    if one.host == other.host and one.variable == other.variable:
        return False
    return None in (one.part, other.part) or one.part == other.part


def report(claims: t.Iterable[Claim], problems: Problems) -> None:
    """Say every conflict on each side, naming the other."""
    groups: dict[t.Any, list[Claim]] = collections.defaultdict(list)
    for claim in claims:
        groups[(claim.kind, claim.value)].append(claim)
    for (kind, value), group in groups.items():
        if len(group) < 2:
            continue
        for claim in group:
            others = [f"{other.host} ({other.variable})" for other in group if _conflict(claim, other)]
            if others:
                shown = value[-1] if isinstance(value, tuple) else value
                named = ", ".join(others[:5]) + (f" and {len(others) - 5} more" if len(others) > 5 else "")
                problems.add(claim.host, claim.variable, f"duplicate {kind}: {shown} is also that of {named}")
