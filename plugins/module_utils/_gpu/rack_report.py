# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the records of a run say about a rack. Private to h200.rack."""

from __future__ import annotations

import typing as t

from . import rack_statistics
from .checks import FAIL, NOT_RUN, PASS, overall

Record = t.Mapping[str, t.Any]

# What is plotted: part of a record, the tiers whose records have it, the figure in it, title, unit.
_MEASURES: tuple[tuple[str, tuple[str, ...], str, str, str], ...] = (
    ("nccl", ("standard", "burn_in"), "busbw", "One node: all_reduce bus bandwidth", "GB/s"),
    ("nics", ("standard", "burn_in"), "busbw", "One node: every hop through the NICs", "GB/s"),
    ("burn", ("burn_in",), "rates", "gpu-burn: slowest GPU of the node", "Gflop/s"),
    ("pair", ("pairwise",), "busbw", "Pairs of nodes: ring bus bandwidth", "GB/s"),
)
# Tiers whose records are about the node they are named for. A pair's and a rack's record is about others too.
_OWN = ("quick", "standard", "burn_in")


def build(records: t.Sequence[Record], run_id: str, nodes: t.Sequence[str] = ()) -> dict[str, t.Any]:
    """The whole report as data; nodes without a record are listed as not run."""
    pairs = [part for record in records for key, part in record.get("parts", {}).items() if key == "pair"]
    blame = rack_statistics.suspects(pairs)
    paired = {str(host): _of_pairs(str(host), pairs, blame) for pair in pairs for host in _hosts(pair)}
    names = sorted({*nodes, *(str(record["node"]) for record in records), *paired})
    measures = [measure for measure in (_measure(records, spec) for spec in _MEASURES) if measure]
    apart = [one for measure in measures if measure["part"] != "pair" for one in _outliers(measure)]
    rows = [
        _node(
            name,
            [record for record in records if record["node"] == name],
            paired.get(name),
            [one for one in apart if one["node"] == name and one["verdict"] == FAIL],
        )
        for name in names
    ]
    together = [_together(name, part) for record in records for name, part in _parts_of_rack(record)]
    first = sum(1 for row in rows if row["first_pass"])
    return {
        "run_id": run_id,
        "simulated": any(bool(record.get("simulated")) for record in records),
        "nodes": rows,
        "accepted": sum(1 for row in rows if row["verdict"] == PASS),
        "total": len(rows),
        # Of the rack, and never a node's pass mark.
        "first_pass_yield": round(first / len(rows), 4) if rows else None,
        "measures": measures,
        "outliers": apart,
        "failed_checks": _failed_checks(rows),
        "bad": _bad(rows, blame, together),
        "pairs": blame,
        "rack": together,
    }


def _hosts(pair: t.Mapping[str, t.Any]) -> t.Sequence[t.Any]:
    return pair.get("target_hosts") or pair.get("hosts") or []


def _of_pairs(
    name: str, pairs: t.Sequence[t.Mapping[str, t.Any]], blame: t.Mapping[str, t.Any]
) -> tuple[str, list[dict[str, str]]]:
    """What a node's pairs say about the node: one good pair clears it."""
    if name in blame["nodes"]:
        return FAIL, [{"code": "PAIRS_BAD", "hint": "all its pairs are bad, so it is this node", "part": "pair"}]
    if any(pair.get("verdict") == PASS for pair in pairs if name in map(str, _hosts(pair))):
        return PASS, []
    hint = "its only pair was bad or not run, so it may be the other node: pair it with a good one"
    return NOT_RUN, [{"code": "PAIR_UNDECIDED", "hint": hint, "part": "pair"}]


def _outliers(measure: t.Mapping[str, t.Any]) -> list[dict[str, t.Any]]:
    """Nodes that their own gates let pass and that the others leave behind."""
    found = []
    for row in measure["nodes"]:
        if row["z"] is None or row["gated"] or row["verdict"] not in (FAIL, "look"):
            continue
        gpu = "" if row["worst"] is None else f", GPU {row['worst']}"
        words = f"{row['value']:g} {measure['unit']}{gpu}; the rack's median is {row['median']:g} (z {row['z']:g})"
        found.append(
            {"node": row["name"], "title": measure["title"], "verdict": row["verdict"], "z": row["z"], "said": words}
        )
    return found


def _node(
    name: str,
    records: t.Sequence[Record],
    paired: t.Optional[tuple[str, list[dict[str, str]]]],
    outliers: t.Sequence[t.Mapping[str, t.Any]],
) -> dict[str, t.Any]:
    own = [record for record in records if record["tier"] in _OWN]
    newest = max(own, key=lambda record: str(record.get("time") or ""), default=None)
    tiers = {}
    reasons: list[t.Any] = []
    for record in own:
        outdated = newest is not None and _other_machine(record, newest)
        tiers[str(record["tier"])] = NOT_RUN if outdated else str(record["verdict"])
        if outdated:
            hint = f"{record['tier']}: made under another boot or serial number than the newest record"
            reasons.append({"code": "OUTDATED", "hint": hint, "part": ""})
        else:
            reasons += record.get("reasons", [])
    for one in outliers:
        tiers["statistics"] = FAIL
        reasons.append({"code": "OUTLIER", "hint": f"{one['title']}: {one['said']}", "part": "statistics"})
    if paired is not None:
        tiers["pairwise"] = paired[0]
        reasons += paired[1]
    return {
        "node": name,
        "verdict": overall(tiers.values()),
        "first_pass": bool(tiers)
        and set(tiers.values()) == {PASS}
        and all(record.get("first_verdict", record["verdict"]) == PASS for record in own),
        "tiers": tiers,
        "reasons": reasons,
        "serial": next((s for s in (_serial(record) for record in records) if s), ""),
        "boot_id": next((str(record["boot_id"]) for record in records if record.get("boot_id")), ""),
        "versions": next((record["versions"] for record in records if record.get("versions")), {}),
        "simulated": any(bool(record.get("simulated")) for record in records),
    }


def _other_machine(record: Record, newest: Record) -> bool:
    """A record counts only for the boot and the serial number it was made under."""
    pairs = ((record.get("boot_id"), newest.get("boot_id")), (_serial(record), _serial(newest)))
    return any(ours and theirs and ours != theirs for ours, theirs in pairs)


def _serial(record: Record) -> str:
    return str((record.get("serials") or {}).get("system") or "")


def _measure(
    records: t.Sequence[Record], spec: tuple[str, tuple[str, ...], str, str, str]
) -> t.Optional[dict[str, t.Any]]:
    part_name, tiers, key, title, unit = spec
    values: dict[str, t.Any] = {}
    refused: dict[str, str] = {}
    references = []
    for record in records:
        part = record.get("parts", {}).get(part_name)
        if record.get("tier") not in tiers or not part:
            continue
        name = " + ".join(map(str, _hosts(part))) if part_name == "pair" else str(record["node"])
        values[name] = part.get(key)
        if part.get("verdict") == FAIL:
            refused[name] = ", ".join(str(reason.get("code")) for reason in part.get("reasons") or []) or "failed"
        use = part.get("utilization") or {}
        if use.get("reference"):
            references.append((float(use["reference"]), str(use.get("basis", ""))))
    if not values:
        return None
    reference = max(references) if references else None
    rows = rack_statistics.outliers(values)
    for row in rows:
        row["gated"] = row["name"] in refused
        # The absolute gate was applied where the node was measured, with its own reference.
        if row["name"] in refused and row["value"] is not None:
            row.update(verdict=FAIL, reason=refused[row["name"]])
    rows.sort(key=lambda row: row["verdict"] != FAIL)
    return {
        "part": part_name,
        "title": title,
        "unit": unit,
        "reference": reference[0] if reference else None,
        "basis": reference[1] if reference else "",
        "nodes": rows,
    }


def _parts_of_rack(record: Record) -> list[tuple[str, t.Mapping[str, t.Any]]]:
    return list(record.get("parts", {}).items()) if record.get("tier") == "rack" else []


def _together(name: str, part: t.Mapping[str, t.Any]) -> dict[str, t.Any]:
    """One test over all nodes."""
    kept = {key: part.get(key) for key in ("verdict", "busbw", "at_size", "utilization", "ranks", "reasons")}
    return {"collective": name, "nodes": len(_hosts(part)), **kept}


def _bad(
    rows: t.Sequence[t.Mapping[str, t.Any]], blame: t.Mapping[str, t.Any], together: t.Sequence[t.Mapping[str, t.Any]]
) -> list[str]:
    """Every node, link and test over the rack that was measured and is not good, a sentence each."""
    words = [
        f"{row['node']}: {', '.join(dict.fromkeys(str(reason['code']) for reason in row['reasons'])) or row['verdict']}"
        for row in rows
        if row["verdict"] != PASS and (row["tiers"] or not together)
    ]
    words += [
        f"link {first} - {second}: bad, though both nodes are good with others" for first, second in blame["links"]
    ]
    words += [f"all nodes, {test['collective']}: {_codes(test)}" for test in together if test["verdict"] != PASS]
    return words


def _codes(test: t.Mapping[str, t.Any]) -> str:
    return ", ".join(str(reason.get("code")) for reason in test["reasons"] or []) or str(test["verdict"])


def _failed_checks(rows: t.Sequence[t.Mapping[str, t.Any]]) -> list[dict[str, t.Any]]:
    """How often each reason came, and on which nodes."""
    found: dict[str, dict[str, t.Any]] = {}
    for row in rows:
        for reason in row["reasons"]:
            entry = found.setdefault(str(reason["code"]), {"code": reason["code"], "hint": reason["hint"], "nodes": []})
            if row["node"] not in entry["nodes"]:
                entry["nodes"].append(row["node"])
    return sorted(found.values(), key=lambda entry: (-len(entry["nodes"]), entry["code"]))
