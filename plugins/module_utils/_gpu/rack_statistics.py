# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Slow nodes and GPUs among many, and the node or link that bad pairs share. Private to h200.rack."""

from __future__ import annotations

import collections
import statistics
import typing as t

from ansible_collections.h200.rack.plugins.module_utils._common.errors import InvalidInput

Value = t.Union[float, t.Sequence[float]]

# Modified z-scores (0.6745 (x - median) / MAD) of Azure's fleet tests: below -3 out, below -2 worth a look.
FAIL_Z, LOOK_Z = -3.0, -2.0
# Rounded figures can have a MAD of 0, and then everything is an outlier: it is never taken for less than this share
# of the median.
MAD_FLOOR = 0.005
# A node's statistics say nothing among fewer.
MIN_NODES = 10


def outliers(
    values: t.Mapping[str, Value],
    minimum: t.Optional[float] = None,
    higher_is_better: bool = True,
    min_nodes: int = MIN_NODES,
    mad_floor: float = MAD_FLOOR,
) -> list[dict[str, t.Any]]:
    """Every node with its value, score and verdict (pass, look, fail), the worst first.

    A node with several values, one for each GPU, is as good as its worst. ``minimum`` is the absolute gate, which
    finds what statistics cannot: a rack that is slow as a whole, and anything among few nodes.
    """
    single = {name: _worst(name, value, higher_is_better) for name, value in values.items()}
    slowest = {
        name: list(value).index(single[name])
        for name, value in values.items()
        if single[name] is not None and _many(value)
    }
    known = {name: value for name, value in single.items() if value is not None}
    enough = len(known) >= min_nodes
    median = statistics.median(known.values()) if known else 0.0
    spread = max(statistics.median(abs(v - median) for v in known.values()), mad_floor * abs(median)) if known else 0.0
    found = []
    for name, value in single.items():
        score = None
        if value is not None and enough and spread > 0:
            score = 0.6745 * (value - median) / spread * (1 if higher_is_better else -1)
        verdict, reason = _verdict(value, score, minimum, higher_is_better)
        found.append(
            {
                "name": name,
                "value": value,
                "worst": slowest.get(name),
                "z": None if score is None else round(score, 2),
                "median": round(median, 4),
                "verdict": verdict,
                "reason": reason,
            }
        )
    order = {"fail": 0, "not_run": 1, "look": 2, "pass": 3}
    return sorted(found, key=lambda one: (order[one["verdict"]], one["z"] if one["z"] is not None else 0, one["name"]))


def _verdict(
    value: t.Optional[float], score: t.Optional[float], minimum: t.Optional[float], higher_is_better: bool
) -> tuple[str, str]:
    if value is None:
        return "not_run", "not measured"
    if minimum is not None and (value < minimum if higher_is_better else value > minimum):
        return "fail", f"{value:g} is beyond the limit of {minimum:g}"
    if score is None:
        return "pass", ""
    if score < FAIL_Z:
        return "fail", f"z {score:.1f} from the rack's median"
    if score < LOOK_Z:
        return "look", f"z {score:.1f} from the rack's median"
    return "pass", ""


def _many(value: t.Any) -> bool:
    return isinstance(value, (list, tuple))


def _worst(name: str, value: t.Any, higher_is_better: bool) -> t.Optional[float]:
    if value is None:
        return None
    numbers = list(value) if _many(value) else [value]
    if not numbers:
        return None
    for number in numbers:
        if isinstance(number, bool) or not isinstance(number, (int, float)):
            raise InvalidInput(f"{name}: {number!r} is not a number", variable=name)
    return float(min(numbers) if higher_is_better else max(numbers))


def pairs(nodes: t.Sequence[str]) -> list[dict[str, list[str]]]:
    """Rounds of pairs that share no node: each node with its next in a ring. Keyed by the node that leads the pair."""
    if len(set(nodes)) != len(nodes):
        raise InvalidInput("a node is named twice", variable="nodes")
    count = len(nodes)
    if count < 2:
        return []
    if count == 2:
        return [{nodes[0]: [nodes[0], nodes[1]]}]
    rounds: list[dict[str, list[str]]] = [{}, {}]
    for index in range(count - 1):
        rounds[index % 2][nodes[index]] = [nodes[index], nodes[index + 1]]
    last = {nodes[-1]: [nodes[-1], nodes[0]]}
    if count % 2 == 0:
        rounds[1].update(last)
        return rounds
    return [*rounds, last]


def suspects(results: t.Sequence[t.Mapping[str, t.Any]]) -> dict[str, t.Any]:
    """Who is to blame for bad pairs.

    A node all of whose pairs are bad, in two or more, is a suspect. A bad pair whose nodes are both good elsewhere is a
    link. A bad pair of nodes that were in no other pair stays open.
    """
    by_node: dict[str, list[bool]] = collections.defaultdict(list)
    bad: list[tuple[str, str]] = []
    for result in results:
        # A test that never ran names no hosts itself.
        hosts = [str(host) for host in result.get("target_hosts") or result.get("hosts") or []]
        if len(hosts) != 2:
            continue
        good = result.get("verdict") == "pass"
        for host in hosts:
            by_node[host].append(good)
        if not good:
            bad.append((hosts[0], hosts[1]))
    always = {node for node, seen in by_node.items() if len(seen) > 1 and not any(seen)}
    open_pairs, links = [], []
    for first, second in bad:
        if first in always or second in always:
            continue
        if any(by_node[first]) and any(by_node[second]):
            links.append([first, second])
        else:
            open_pairs.append([first, second])
    return {"nodes": sorted(always), "links": links, "undecided": open_pairs, "bad_pairs": [list(pair) for pair in bad]}
