# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module gpu_probe without Ansible: collect, judge, report. Private to h200.rack."""

from __future__ import annotations

import typing as t

from ansible_collections.h200.rack.plugins.module_utils._common import profiles
from ansible_collections.h200.rack.plugins.module_utils._common.deadline import Deadline
from ansible_collections.h200.rack.plugins.module_utils._common.errors import InvalidInput

from . import judge_node
from .checks import PASS, Check, overall
from .collect import collect
from .node import Node


def probe(
    profile: t.Mapping[str, t.Any],
    checks: t.Sequence[str] = (),
    under_load: bool = False,
    port_counters: t.Optional[t.Mapping[str, t.Any]] = None,
    timeout: float = 45,
) -> dict[str, t.Any]:
    """The module's result."""
    if timeout <= 0:
        raise InvalidInput("timeout must be a number of seconds above zero", variable="timeout")
    expected = profiles.complete(profile)
    clock = Deadline(timeout)
    evidence = collect(judge_node.needs(checks), timeout)
    node, done = judge_node.judge(evidence, expected, checks, under_load, port_counters)
    return report(node, done, clock.elapsed)


def report(node: Node, done: t.Sequence[Check], seconds: float) -> dict[str, t.Any]:
    """What the module returns about ``done``."""
    evidence = node.evidence
    return {
        "verdict": overall(check.verdict for check in done),
        "checks": [check.as_dict() for check in done],
        "reasons": [
            {"code": check.code, "hint": f"{check.name}: {check.hint}"} for check in done if check.verdict != PASS
        ],
        "simulated": node.simulated,
        "boot_id": evidence.boot_id,
        "serials": {"system": evidence.serial, "gpus": {gpu.bus_id: gpu.serial for gpu in node.smi.gpus}},
        "versions": {
            "driver": node.smi.driver,
            "cuda": node.smi.cuda,
            "fabric_manager": node.fm_version,
            "vbios": sorted({gpu.vbios for gpu in node.smi.gpus if gpu.vbios}),
            "nic": sorted({port.firmware for port in evidence.ports if port.firmware}),
        },
        "port_counters": {port.name: port.counters for port in evidence.ports if port.counters is not None},
        "seconds": round(seconds, 2),
    }
