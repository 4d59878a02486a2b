# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a log is expected to show, and what it was found to be. Private to h200.rack."""

from __future__ import annotations

import dataclasses
import typing as t

from .checks import FAIL, NOT_RUN, PASS
from .nccl_model import Row
from .nccl_reasons import HINTS, Reason


@dataclasses.dataclass
class Expectation:
    """What the caller wants the log to show. None: not said."""

    profile: t.Optional[t.Mapping[str, t.Any]] = None
    ranks: t.Optional[int] = None
    hosts: t.Optional[t.Union[int, t.Sequence[str]]] = None
    at_size: t.Optional[int] = None
    reference: t.Optional[float] = None
    min_utilization: t.Optional[float] = None
    require_validation: bool = True
    collective: t.Optional[str] = None
    max_bytes: t.Optional[int] = None
    ring: bool = False
    loopback: bool = False
    # Whether we set the test's environment ourselves: then what the log says of it is what the node adds.
    own_run: bool = False

    @property
    def gpus(self) -> int:
        return int(((self.profile or {}).get("gpu") or {}).get("count") or 0)

    @property
    def host_count(self) -> t.Optional[int]:
        return self.hosts if self.hosts is None or isinstance(self.hosts, int) else len(self.hosts)


@dataclasses.dataclass
class Judgement:
    verdict: str = NOT_RUN
    reasons: list[Reason] = dataclasses.field(default_factory=list)
    notes: list[dict[str, str]] = dataclasses.field(default_factory=list)
    collective: t.Optional[str] = None
    ranks: t.Optional[int] = None
    ranks_basis: str = ""
    hosts: list[str] = dataclasses.field(default_factory=list)
    models: list[str] = dataclasses.field(default_factory=list)
    rows: list[Row] = dataclasses.field(default_factory=list)
    wrong: t.Optional[int] = None
    validated: bool = False
    complete: bool = False
    at_size: t.Optional[int] = None
    busbw: t.Optional[float] = None
    in_place_busbw: t.Optional[float] = None
    peak_busbw: t.Optional[float] = None
    printed_avg: t.Optional[float] = None
    utilization: t.Optional[dict[str, t.Any]] = None

    def add(self, code: str, hint: str = "") -> None:
        if not self.has(code):
            self.reasons.append(Reason(code, hint or HINTS.get(code, "")))

    def has(self, code: str) -> bool:
        return any(reason.code == code for reason in self.reasons)

    def note(self, code: str, hint: str) -> None:
        self.notes.append({"code": code, "hint": hint})

    def finish(self) -> Judgement:
        verdicts = {reason.verdict for reason in self.reasons}
        self.verdict = FAIL if FAIL in verdicts else NOT_RUN if NOT_RUN in verdicts else PASS
        return self
