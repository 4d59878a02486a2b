# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the records of a run say about a rack. Private to h200.rack."""

from __future__ import annotations

import typing as t

from . import rack_statistics

Record = t.Mapping[str, t.Any]

# Plots: the part of a record and the figure, its title and unit.
_MEASURES: tuple[tuple[str, tuple[str, ...], str, str, str], ...] = (
    ("nccl", ("standard", "burn_in"), "busbw", "One node: all_reduce bus bandwidth", "GB/s"),
    ("nics", ("standard", "burn_in"), "busbw", "One node: every hop through the NICs", "GB/s"),
    ("burn", ("burn_in",), "rates", "gpu-burn: slowest GPU of the node", "Gflop/s"),
    ("pair", ("pairwise",), "busbw", "Pairs of nodes: ring bus bandwidth", "GB/s"),
)


def build(records: t.Sequence[Record], run_id: str, nodes: t.Sequence[str] = ()) -> dict[str, t.Any]:
    """The whole report as data; nodes without a record are listed as not run."""
    names = sorted({*nodes, *(str(record["node"]) for record in records)})
    rows = [_node(name, [record for record in records if record["node"] == name]) for name in names]
    accepted = sum(1 for row in rows if row["verdict"] == "pass")
    pairs = [part for record in records for key, part in record.get("parts", {}).items() if key == "pair"]
    return {
        "run_id": run_id,
        "simulated": any(bool(record.get("simulated")) for record in records),
        "nodes": rows,
        "accepted": accepted,
        "total": len(rows),
        # Of the rack, and never a node's pass mark.
        "first_pass_yield": round(accepted / len(rows), 4) if rows else None,
        "measures": [measure for measure in (_measure(records, spec) for spec in _MEASURES) if measure],
        "failed_checks": _failed_checks(records),
        "pairs": rack_statistics.suspects(pairs),
    }


def _node(name: str, records: t.Sequence[Record]) -> dict[str, t.Any]:
    verdicts = [str(record["verdict"]) for record in records]
    verdict = (
        "not_run" if not verdicts else "fail" if "fail" in verdicts else "not_run" if "not_run" in verdicts else "pass"
    )
    return {
        "node": name,
        "verdict": verdict,
        "tiers": {str(record["tier"]): str(record["verdict"]) for record in records},
        "reasons": [reason for record in records for reason in record.get("reasons", [])],
        "serial": next((s for s in (_serial(record) for record in records) if s), ""),
        "boot_id": next((str(record["boot_id"]) for record in records if record.get("boot_id")), ""),
        "versions": next((record["versions"] for record in records if record.get("versions")), {}),
        "simulated": any(bool(record.get("simulated")) for record in records),
    }


def _serial(record: Record) -> str:
    return str((record.get("serials") or {}).get("system") or "")


def _measure(
    records: t.Sequence[Record], spec: tuple[str, tuple[str, ...], str, str, str]
) -> t.Optional[dict[str, t.Any]]:
    part_name, tiers, key, title, unit = spec
    values: dict[str, t.Any] = {}
    floors = []
    for record in records:
        part = record.get("parts", {}).get(part_name)
        if record.get("tier") not in tiers or not part:
            continue
        values[str(record["node"])] = part.get(key)
        use = part.get("utilization") or {}
        if use.get("reference"):
            floors.append((float(use["reference"]), str(use.get("basis", ""))))
    if not values:
        return None
    reference = max(floors) if floors else None
    return {
        "part": part_name,
        "title": title,
        "unit": unit,
        "reference": reference[0] if reference else None,
        "basis": reference[1] if reference else "",
        "nodes": rack_statistics.outliers(values),
    }


def _failed_checks(records: t.Sequence[Record]) -> list[dict[str, t.Any]]:
    """How often each reason came, and on which nodes."""
    found: dict[str, dict[str, t.Any]] = {}
    for record in records:
        for reason in record.get("reasons", []):
            entry = found.setdefault(str(reason["code"]), {"code": reason["code"], "hint": reason["hint"], "nodes": []})
            if record["node"] not in entry["nodes"]:
                entry["nodes"].append(record["node"])
    return sorted(found.values(), key=lambda entry: (-len(entry["nodes"]), entry["code"]))
