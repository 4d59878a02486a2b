# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A node's evidence, parsed once, and what all checks of it share. Private to h200.rack."""

from __future__ import annotations

import re
import typing as t

from . import programs, smi, wiring
from .checks import Check, failed, not_run, passed
from .collect import Evidence

Profile = t.Mapping[str, t.Any]


class Node:
    """The evidence, parsed once."""

    def __init__(self, evidence: Evidence, profile: Profile, under_load: bool, baseline: t.Optional[Profile]) -> None:
        self.evidence = evidence
        self.profile = profile
        self.gpu: Profile = profile.get("gpu") or {}
        self.nics: Profile = profile.get("nics") or {}
        self.under_load = under_load
        self.baseline = baseline
        self.query = evidence.output("query")
        self.smi = smi.parse_query(self.query.out)
        self.csv = smi.parse_csv(evidence.output("csv").out)
        self.links = wiring.parse_nvlink(evidence.output("nvlink").out)
        self.topology = wiring.parse_topology(evidence.output("topology").out)
        self.fm_version = fm_version(evidence.output("fm_version").out)

    @property
    def simulated(self) -> bool:
        return self.evidence.simulated or self.smi.simulated


def unusable(name: str, expected: t.Any, tool: str, output: programs.Output) -> t.Optional[Check]:
    """The verdict where a tool gave nothing to judge."""
    if output.state == programs.MISSING:
        return not_run(name, expected, "TOOL_MISSING", f"{tool} is not installed, so nothing was measured")
    if output.state == programs.HUNG:
        return failed(
            name,
            f"{tool} did not answer",
            expected,
            "PROBE_HUNG",
            f"{tool} hung and was killed: look for an Xid in the kernel log, then reset the GPU or reboot the node",
        )
    if output.state == programs.FAILED and not output.out.strip():
        said = (output.err.strip().splitlines() or ["no output"])[-1][:200]
        return failed(
            name, f"{tool} ended with {output.rc}: {said}", expected, "TOOL_FAILED", "driver loaded? see its log"
        )
    return None


def each(
    node: Node,
    name: str,
    expected: t.Any,
    value: t.Callable[[smi.Gpu], t.Any],
    good: t.Callable[[t.Any], bool],
    code: str,
    hint: str,
) -> Check:
    """A check on every GPU: it passes only when each of them said it and each is right."""
    silent_tool = unusable(name, expected, "nvidia-smi", node.query)
    if silent_tool:
        return silent_tool
    if not node.smi.gpus:
        return not_run(name, expected, "NO_GPUS", "nvidia-smi listed no GPU")
    values = [value(gpu) for gpu in node.smi.gpus]
    bad = {gpu.bus_id: v for gpu, v in zip(node.smi.gpus, values) if v is not None and not good(v)}
    if bad:
        return failed(name, bad, expected, code, hint)
    silent = [gpu.bus_id for gpu, v in zip(node.smi.gpus, values) if v is None]
    if silent:
        return not_run(name, expected, "NOT_REPORTED", f"nvidia-smi said nothing about it for {', '.join(silent)}")
    return passed(name, compact(values), expected)


def compact(values: t.Sequence[t.Any]) -> t.Any:
    return values[0] if len({repr(v) for v in values}) == 1 else list(values)


def fm_version(text: str) -> t.Optional[str]:
    found = re.search(r"\d+\.\d+(?:\.\d+)?", text)
    return found.group() if found else None
