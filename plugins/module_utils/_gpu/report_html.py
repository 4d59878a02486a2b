# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The rack's report as one HTML page that needs nothing else: styles and plots are in it. Private to h200.rack."""

from __future__ import annotations

import html
import math
import typing as t

_STYLE = """
:root { --pass: #2a7d4f; --fail: #b3261e; --look: #b26a00; --not_run: #6b7280; --line: #d5d9e0; --ink: #1d2530; }
* { box-sizing: border-box; }
body { font: 15px/1.45 system-ui, sans-serif; color: var(--ink); margin: 0 auto; max-width: 1080px; padding: 24px; }
h1 { font-size: 24px; margin: 0 0 4px; } h2 { font-size: 17px; margin: 32px 0 8px; }
.sub { color: #556; margin: 0 0 16px; } .sim { background: #fff3d6; border: 1px solid #e6c366; padding: 8px 12px; }
.tiles { display: flex; gap: 12px; flex-wrap: wrap; }
.tile { border: 1px solid var(--line); border-radius: 6px; padding: 10px 16px; min-width: 130px; }
.tile b { display: block; font-size: 24px; font-variant-numeric: tabular-nums; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; padding: 5px 10px 5px 0; vertical-align: top; }
th { border-bottom: 2px solid var(--line); font-weight: 600; } td { border-bottom: 1px solid var(--line); }
.pass { color: var(--pass); } .fail { color: var(--fail); }
.look { color: var(--look); } .not_run { color: var(--not_run); }
.v { font-weight: 600; white-space: nowrap; } svg { max-width: 100%; height: auto; display: block; }
svg text { font: 12px system-ui, sans-serif; fill: var(--ink); }
rect.pass { fill: var(--pass); } rect.fail { fill: var(--fail); } rect.look { fill: var(--look); }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e3e7ee; --line: #3a4250; --pass: #4fb37c; --fail: #ef6a61; --look: #e0a040; --not_run: #9aa3b0; }
  body { background: #14181f; } .sub { color: #9aa3b0; } .sim { background: #3a2f12; }
}
"""
# Beside the style sheet, for readers that do not apply it inside a drawing.
_FILL = {"pass": "#2a7d4f", "fail": "#b3261e", "look": "#b26a00", "not_run": "#6b7280"}
_WORDS = {"pass": "passed", "fail": "failed", "not_run": "not run", "look": "look"}


def page(report: t.Mapping[str, t.Any], title: str) -> str:
    """The page; every text of a node is escaped."""
    parts = [
        "<!doctype html>",
        '<html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{_e(title)}</title><style>{_STYLE}</style></head><body>",
        f'<h1>{_e(title)}</h1><p class="sub">Run {_e(report["run_id"])}</p>',
    ]
    if report["simulated"]:
        parts.append('<p class="sim">Made from <b>simulated</b> tools. It says nothing about hardware.</p>')
    parts += [_tiles(report), _outliers(report["outliers"]), _suspects(report["pairs"])]
    parts += [_plot(measure) for measure in report["measures"]]
    parts += [_together(report["rack"]), _checks(report["failed_checks"]), _nodes(report["nodes"]), "</body></html>"]
    return "\n".join(parts) + "\n"


def _e(value: t.Any) -> str:
    return html.escape(str(value), quote=True)


def _tiles(report: t.Mapping[str, t.Any]) -> str:
    counts = {word: sum(1 for row in report["nodes"] if row["verdict"] == word) for word in ("pass", "fail", "not_run")}
    share = report["first_pass_yield"]
    tiles = [
        ("pass", counts["pass"], f"of {report['total']} nodes passed"),
        ("fail", counts["fail"], "failed"),
        ("not_run", counts["not_run"], "not run as a whole"),
        ("", "–" if share is None else f"{share:.0%}", "first-pass yield of the rack"),
    ]
    cells = "".join(
        f'<div class="tile"><b class="{css}">{_e(number)}</b>{_e(text)}</div>' for css, number, text in tiles
    )
    return f'<div class="tiles">{cells}</div>'


def _outliers(found: t.Sequence[t.Mapping[str, t.Any]]) -> str:
    if not found:
        return ""
    lines = "".join(
        f'<tr><td>{_e(one["node"])}</td><td class="v {_e(one["verdict"])}">{_WORDS[one["verdict"]]}</td>'
        f"<td>{_e(one['title'])}</td><td>{_e(one['said'])}</td></tr>"
        for one in found
    )
    return f"<h2>Outliers</h2><table><tr><th>Node<th>Verdict<th>Of what<th>Figures</tr>{lines}</table>"


def _suspects(pairs: t.Mapping[str, t.Any]) -> str:
    if not pairs["bad_pairs"]:
        return ""
    words = []
    if pairs["nodes"]:
        words.append(f"All pairs of <b>{_e(', '.join(pairs['nodes']))}</b> are bad: the node is to blame.")
    for first, second in pairs["links"]:
        words.append(f"<b>{_e(first)}</b> and <b>{_e(second)}</b> are good with others: look at the link between them.")
    for first, second in pairs["undecided"]:
        words.append(f"{_e(first)} and {_e(second)} are bad together, and were in no other pair.")
    return "<h2>Pairs</h2>" + "".join(f"<p>{text}</p>" for text in words)


def _together(tests: t.Sequence[t.Mapping[str, t.Any]]) -> str:
    if not tests:
        return ""
    rows = []
    for test in tests:
        use = test["utilization"] or {}
        against = f"{use['value']:.0%} of {use['reference']:g} GB/s ({use['basis']})" if use.get("reference") else ""
        codes = ", ".join(str(reason["code"]) for reason in test["reasons"] or [])
        speed = "" if test["busbw"] is None else f"{test['busbw']:g}"
        rows.append(
            f'<tr><td>{_e(test["collective"])}</td><td class="v {_e(test["verdict"])}">'
            f"{_WORDS.get(test['verdict'], _e(test['verdict']))}</td><td>{_e(test['nodes'])}</td><td>{_e(speed)}</td>"
            f"<td>{_e(against)}</td><td>{_e(codes)}</td></tr>"
        )
    head = "<tr><th>Collective<th>Verdict<th>Nodes<th>GB/s<th>Against<th>Reasons</tr>"
    return f"<h2>All nodes together</h2><table>{head}{''.join(rows)}</table>"


def _plot(measure: t.Mapping[str, t.Any]) -> str:
    """A bar for each node, the slowest first, with the reference as a line."""
    rows = [row for row in measure["nodes"] if row["value"] is not None]
    if not rows:
        return ""
    rows = sorted(rows, key=lambda row: row["value"])
    top = max([row["value"] for row in rows] + [measure["reference"] or 0]) or 1
    width, right, thick, gap = 560, 280, 14, 5
    left = min(max(7 * max(len(row["name"]) for row in rows) + 16, 80), 320)
    height = len(rows) * (thick + gap) + 34
    step = _step(top)
    out = [f'<svg viewBox="0 0 {left + width + right} {height}" role="img" aria-label="{_e(measure["title"])}">']
    mark = 0.0
    while mark <= top:
        x = left + width * mark / top
        out.append(f'<line x1="{x:.1f}" x2="{x:.1f}" y1="0" y2="{height - 24}" stroke="#d5d9e0"/>')
        out.append(f'<text x="{x:.1f}" y="{height - 8}" text-anchor="middle">{mark:g}</text>')
        mark += step
    for number, row in enumerate(rows):
        y = number * (thick + gap) + 2
        length = width * row["value"] / top
        label = row["name"]
        gpu = "" if row["worst"] is None else f" (GPU {row['worst']})"
        tip = f"{label}{gpu}: {row['value']:g} {measure['unit']} {row['reason']}".strip()
        out.append(f'<text x="{left - 8}" y="{y + thick - 3}" text-anchor="end">{_e(label)}</text>')
        out.append(
            f'<rect class="{_e(row["verdict"])}" fill="{_FILL.get(row["verdict"], "#6b7280")}" x="{left}" y="{y}" '
            f'width="{max(length, 1):.1f}" height="{thick}">'
            f"<title>{_e(tip)}</title></rect>"
        )
        words = "" if row["verdict"] == "pass" else f"{gpu} {row['reason']}"
        out.append(f'<text x="{left + length + 6:.1f}" y="{y + thick - 3}">{row["value"]:g}{_e(words)}</text>')
    if measure["reference"]:
        x = left + width * measure["reference"] / top
        out.append(
            f'<line x1="{x:.1f}" x2="{x:.1f}" y1="0" y2="{height - 24}" stroke="#6b7280" stroke-dasharray="4 3">'
            f"<title>{_e(measure['basis'])}</title></line>"
        )
    out.append("</svg>")
    heading = f"<h2>{_e(measure['title'])} ({_e(measure['unit'])})</h2>"
    if measure["reference"]:
        heading += f'<p class="sub">Dashed: {measure["reference"]:g} {_e(measure["unit"])}, {_e(measure["basis"])}.</p>'
    return heading + "".join(out)


def _step(top: float) -> float:
    rough = top / 6
    power = 10 ** math.floor(math.log10(rough))
    return next(power * factor for factor in (1, 2, 5, 10) if power * factor >= rough)


def _checks(entries: t.Sequence[t.Mapping[str, t.Any]]) -> str:
    if not entries:
        return "<h2>Failed checks</h2><p>None.</p>"
    rows = "".join(
        f'<tr><td class="v">{_e(entry["code"])}</td><td>{len(entry["nodes"])}</td>'
        f"<td>{_e(', '.join(entry['nodes']))}</td><td>{_e(entry['hint'])}</td></tr>"
        for entry in entries
    )
    return f"<h2>Failed checks</h2><table><tr><th>Code<th>Nodes<th>Which<th>What to do</tr>{rows}</table>"


def _nodes(nodes: t.Sequence[t.Mapping[str, t.Any]]) -> str:
    rows = []
    order = ("fail", "not_run", "pass")
    for row in sorted(nodes, key=lambda row: order.index(row["verdict"])):
        tiers = ", ".join(f"{tier}: {_WORDS.get(verdict, verdict)}" for tier, verdict in sorted(row["tiers"].items()))
        codes = ", ".join(dict.fromkeys(str(reason["code"]) for reason in row["reasons"]))
        rows.append(
            f'<tr><td>{_e(row["node"])}</td><td class="v {_e(row["verdict"])}">{_WORDS[row["verdict"]]}</td>'
            f"<td>{_e(tiers)}</td><td>{_e(codes)}</td><td>{_e(row['serial'])}</td>"
            f"<td>{_e((row['versions'] or {}).get('driver') or '')}</td></tr>"
        )
    return (
        "<h2>Nodes</h2><table><tr><th>Node<th>Verdict<th>Tiers<th>Reasons<th>Serial<th>Driver</tr>"
        + "".join(rows)
        + "</table>"
    )
