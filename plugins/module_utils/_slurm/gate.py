# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""May this node be released? The acceptance records decide. Private to h200.rack."""

from __future__ import annotations

import re
import typing as t

Record = t.Mapping[str, t.Any]


class Verdict(t.NamedTuple):
    passed: bool
    code: str  # what becomes the reason of a node that stays drained
    msg: str


class Now(t.NamedTuple):
    """What a record must have been made under to count."""

    node: str
    run_id: str
    boot_id: str | None  # None: any


def judge(now: Now, records: t.Sequence[Record], required: t.Sequence[str], allow_simulated: bool) -> Verdict:
    """Every required tier needs a record of this node, run and boot that passed; nothing else counts."""
    node, run_id = now.node, now.run_id
    for tier in required:
        mine = [item for item in records if item.get("tier") == tier and item.get("node") == node]
        current = [item for item in mine if item.get("run_id") == run_id]
        if not current:
            older = f" (one of run {mine[-1].get('run_id')} does not count)" if mine else ""
            return Verdict(False, "NOT_ACCEPTED", f"{node}: no {tier} acceptance record of run {run_id}{older}")
        if now.boot_id and current[-1].get("boot_id") not in ("", None, now.boot_id):
            return Verdict(False, "NOT_ACCEPTED", f"{node}: was rebooted since its {tier} acceptance; accept it again")
        verdict = _judge_one(node, tier, current[-1], allow_simulated)
        if not verdict.passed:
            return verdict
    return Verdict(True, "", "")


def _judge_one(node: str, tier: str, record: Record, allow_simulated: bool) -> Verdict:
    outcome = record.get("verdict")
    if outcome != "pass":
        code = _word(_first_code(record) or f"ACCEPTANCE_{str(outcome or 'not_run').upper()}")
        return Verdict(False, code, f"{node}: {tier} acceptance is {outcome or 'not_run'} ({code})")
    if record.get("simulated") and not allow_simulated:
        return Verdict(
            False,
            "SIMULATED",
            f"{node}: the {tier} acceptance record was made from simulated tools; it admits to no real cluster",
        )
    return Verdict(True, "", "")


def _first_code(record: Record) -> str | None:
    for reason in record.get("reasons") or ():
        code = reason.get("code") if isinstance(reason, t.Mapping) else reason
        if code:
            return str(code)
    return None


def _word(code: str) -> str:
    return re.sub(r"[^A-Za-z0-9._+-]", "_", code)[:80]
