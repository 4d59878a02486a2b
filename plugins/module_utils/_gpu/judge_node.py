# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every check of a node by its name. Private to h200.rack."""

from __future__ import annotations

import typing as t

from . import fabric_checks, gpu_checks, nic_checks
from .checks import Check
from .collect import Evidence
from .node import Node, Profile

# name: (the check, what of collect.COMMANDS it needs)
CHECKS: dict[str, tuple[t.Callable[[Node], Check], tuple[str, ...]]] = {
    "gpus": (gpu_checks.check_gpus, ("query", "csv")),
    "power_limit": (gpu_checks.check_power_limit, ("query",)),
    "persistence": (gpu_checks.check_persistence, ("query",)),
    "ecc": (gpu_checks.check_ecc, ("query",)),
    "remapped_rows": (gpu_checks.check_remapped_rows, ("query",)),
    "reset_required": (gpu_checks.check_reset_required, ("query",)),
    "clocks": (gpu_checks.check_clocks, ("query",)),
    "pcie": (gpu_checks.check_pcie, ("query",)),
    "nvlink": (fabric_checks.check_nvlink, ("nvlink",)),
    "fabric": (fabric_checks.check_fabric, ("query",)),
    "fabric_manager": (fabric_checks.check_fabric_manager, ("query", "fm_version", "fm_active")),
    "topology": (fabric_checks.check_topology, ("topology",)),
    "ports": (nic_checks.check_ports, ("ibstat",)),
    "port_counters": (nic_checks.check_port_counters, ("ibstat",)),
    "firmware": (nic_checks.check_firmware, ("query", "ibstat")),
    "xids": (gpu_checks.check_xids, ("journal",)),
}


def judge(
    evidence: Evidence,
    profile: Profile,
    names: t.Sequence[str] = (),
    under_load: bool = False,
    baseline: t.Optional[Profile] = None,
) -> tuple[Node, list[Check]]:
    """All checks of ``names`` (none: every one), in the order of CHECKS."""
    node = Node(evidence, profile, under_load, baseline)
    return node, [function(node) for name, (function, _parts) in CHECKS.items() if not names or name in names]


def needs(names: t.Sequence[str]) -> set[str]:
    """What of collect.COMMANDS the checks ``names`` need."""
    return {part for name, (_function, parts) in CHECKS.items() if not names or name in names for part in parts}
