# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a check says: measured, expected, verdict. Private to h200.rack."""

from __future__ import annotations

import dataclasses
import typing as t

PASS = "pass"
FAIL = "fail"
NOT_RUN = "not_run"


@dataclasses.dataclass(frozen=True)
class Check:
    """One comparison of a node with what its profile expects.

    ``code`` is empty for a pass; a hint may also come with a pass, as something worth a look.
    """

    name: str
    verdict: str
    measured: t.Any
    expected: t.Any
    code: str = ""
    hint: str = ""

    def as_dict(self) -> dict[str, t.Any]:
        return dataclasses.asdict(self)


def passed(name: str, measured: t.Any, expected: t.Any, hint: str = "") -> Check:
    return Check(name, PASS, measured, expected, hint=hint)


def failed(name: str, measured: t.Any, expected: t.Any, code: str, hint: str) -> Check:
    return Check(name, FAIL, measured, expected, code, hint)


def not_run(name: str, expected: t.Any, code: str, hint: str) -> Check:
    return Check(name, NOT_RUN, None, expected, code, hint)


def overall(verdicts: t.Iterable[str]) -> str:
    """Fail when anything failed; pass only when everything was measured and passed."""
    seen = set(verdicts)
    if FAIL in seen:
        return FAIL
    return PASS if seen == {PASS} else NOT_RUN
