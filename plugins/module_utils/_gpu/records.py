# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The acceptance record of one node, run and tier. Private to h200.rack.

A record counts only for the node, serial number, boot and run it was made under.
"""

from __future__ import annotations

import json
import os
import re
import time as clock
import typing as t

from ansible_collections.h200.rack.plugins.module_utils._common.atomic import read_or_none, write_atomic
from ansible_collections.h200.rack.plugins.module_utils._common.errors import InvalidInput, RackError

from .checks import FAIL, NOT_RUN, PASS, overall

FORMAT = 1
TIERS = ("quick", "standard", "burn_in", "pairwise", "rack")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]*")
# What a part (the result of a probe) brings into the record; the rest of a module's result is Ansible's.
# What says nothing about the node, only about when and how often it was measured.
_OF_TRY = {"time": "", "attempts": 0, "first_verdict": ""}
_KEPT = (
    "verdict",
    "reasons",
    "notes",
    "checks",
    "busbw",
    "at_size",
    "peak_busbw",
    "utilization",
    "rows",
    "wrong",
    "validated",
    "complete",
    "ranks",
    "hosts",
    "target_hosts",
    "gpu_models",
    "collective",
    "nccl_version",
    "rates",
    "gpus",
    "command",
    "exit_code",
    "seconds",
    "stdout_tail",
    "stderr_tail",
    "simulated",
)


def build(
    node: str,
    run_id: str,
    tier: str,
    parts: t.Mapping[str, t.Mapping[str, t.Any]],
    *,
    serial: str = "",
    profile: str = "",
    required: t.Sequence[str] = (),
    time: str = "",
) -> dict[str, t.Any]:
    """One verdict over all parts; what is required and not there was not run."""
    kept = {name: {key: part[key] for key in _KEPT if key in part} for name, part in parts.items()}
    reasons = [
        {"code": str(reason.get("code", "")), "hint": str(reason.get("hint", "")), "part": name}
        for name, part in kept.items()
        for reason in part.get("reasons") or []
    ]
    verdicts = [str(part.get("verdict", NOT_RUN)) for part in kept.values()]
    for name in required:
        if name not in kept:
            verdicts.append(NOT_RUN)
            reasons.append({"code": "PART_MISSING", "hint": f"{name} was not run", "part": name})
    boots = sorted({str(part["boot_id"]) for part in parts.values() if part.get("boot_id")})
    serials = next((part["serials"] for part in parts.values() if part.get("serials")), {})
    if len(boots) > 1:
        verdicts.append(FAIL)
        reasons.append({"code": "REBOOTED", "hint": "the node was rebooted between the parts", "part": ""})
    measured = str(serials.get("system") or "")
    if serial and measured != serial:
        verdicts.append(FAIL)
        hint = f"the node's serial number is {measured or 'not readable'}, the inventory says {serial}"
        reasons.append({"code": "SERIAL", "hint": hint, "part": ""})
    return {
        "format": FORMAT,
        "node": node,
        "run_id": run_id,
        "tier": tier,
        "time": time,
        "verdict": overall(verdicts),
        # What the first try of this run came to; a later one replaces the rest of the record.
        "first_verdict": overall(verdicts),
        "attempts": 1,
        "reasons": reasons,
        "simulated": any(bool(part.get("simulated")) for part in parts.values()),
        "profile": profile,
        "boot_id": boots[0] if boots else "",
        "serials": serials,
        "versions": next((part["versions"] for part in parts.values() if part.get("versions")), {}),
        "parts": kept,
    }


def counts_for(record: t.Mapping[str, t.Any], *, node: str, run_id: str, serial: str = "", boot_id: str = "") -> bool:
    """Whether ``record`` says anything about this node, now. What is not given is not compared."""
    if record.get("node") != node or record.get("run_id") != run_id:
        return False
    if boot_id and record.get("boot_id") != boot_id:
        return False
    return not serial or (record.get("serials") or {}).get("system") == serial


def path_of(root: str, run_id: str, node: str, tier: str) -> str:
    for variable, value in (("run_id", run_id), ("node", node)):
        if not _NAME.fullmatch(value):
            raise InvalidInput(f"{variable}: {value!r} cannot be part of a file's name", variable=variable)
    if tier not in TIERS:
        raise InvalidInput(f"tier: {tier!r} is none of {', '.join(TIERS)}", variable="tier")
    return os.path.join(root, run_id, f"{node}.{tier}.json")


def encode(record: t.Mapping[str, t.Any]) -> bytes:
    return (json.dumps(record, indent=1, sort_keys=True) + "\n").encode()


def write(root: str, record: t.Mapping[str, t.Any], check_mode: bool = False) -> tuple[str, bool]:
    """Where the record is, and whether its file changed; an equal one keeps its time."""
    path = path_of(root, str(record["run_id"]), str(record["node"]), str(record["tier"]))
    old = load(path)
    if old is not None:
        if {**old, **_OF_TRY} == {**json.loads(encode(record)), **_OF_TRY}:
            return path, False
        first = old.get("first_verdict", old.get("verdict"))
        record = {**record, "first_verdict": first, "attempts": int(old.get("attempts", 1)) + 1}
    if not check_mode:
        try:
            os.makedirs(os.path.dirname(path), mode=0o755, exist_ok=True)
            write_atomic(path, encode(record))
        except OSError as exc:
            raise RackError(f"{path} cannot be written: {exc.strerror}", code="io") from exc
    return path, True


def load(path: str) -> t.Optional[dict[str, t.Any]]:
    """The record in ``path``; None where there is none or it is damaged."""
    try:
        data = read_or_none(path)
        record = json.loads(data) if data else None
    except (OSError, ValueError):
        return None
    return record if isinstance(record, dict) and record.get("format") == FORMAT else None


def load_run(root: str, run_id: str) -> list[dict[str, t.Any]]:
    """All records of a run, by node and tier."""
    path_of(root, run_id, "node", TIERS[0])
    folder = os.path.join(root, run_id)
    try:
        names = sorted(os.listdir(folder))
    except FileNotFoundError:
        return []
    found = [load(os.path.join(folder, name)) for name in names if name.endswith(".json")]
    return [record for record in found if record is not None and record.get("tier") in TIERS]


def keep(params: t.Mapping[str, t.Any], check_mode: bool) -> tuple[dict[str, t.Any], t.Optional[dict[str, t.Any]]]:
    """The module's result, and the words to fail with."""
    record = build(
        params["node"],
        params["run_id"],
        params["tier"],
        params["parts"],
        serial=params["serial"],
        profile=params["profile"],
        required=params["required"],
        time=clock.strftime("%Y-%m-%dT%H:%M:%SZ", clock.gmtime()),
    )
    path, changed = write(params["path"], record, check_mode)
    result = {key: record[key] for key in ("verdict", "reasons", "simulated", "tier")}
    summary = {key: record[key] for key in ("node", "run_id", "tier", "verdict", "simulated", "reasons", "boot_id")}
    return {**result, "changed": changed, "record": path, "summary": summary}, failure(record)


def failure(record: t.Mapping[str, t.Any]) -> t.Optional[dict[str, t.Any]]:
    """The words and codes with which a task fails; None for a pass."""
    if record["verdict"] == PASS:
        return None
    reasons = record["reasons"] or [{"code": "NOT_RUN", "hint": "nothing was measured", "part": ""}]
    words = "; ".join(f"{reason['code']} ({reason['hint']})" for reason in reasons[:4])
    more = f" and {len(reasons) - 4} more" if len(reasons) > 4 else ""
    outcome = "failed" if record["verdict"] == FAIL else "was not run as a whole"
    return {
        "msg": f"{record['node']}: {record['tier']} acceptance {outcome}: {words}{more}",
        "code": reasons[0]["code"],
        "reasons": reasons,
    }
