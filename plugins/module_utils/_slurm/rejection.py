# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""slurmctld's refusal of a node that is less than declared, as a code. Private to h200.rack."""

from __future__ import annotations

from .records import Node

# What slurmctld writes into a reason, as a code and what to do.
_REJECTIONS = (
    ("gres/gpu count", "GPU_COUNT", "the node has fewer GPUs than its profile; look at nvidia-smi and lspci there"),
    ("Low RealMemory", "LOW_MEMORY", "the node has less memory than its profile: a failed DIMM, or a wrong memory_mib"),
    ("Low socket*core*thread", "CPU_COUNT", "the node has fewer CPUs than its profile says"),
    ("Low CPUs", "CPU_COUNT", "the node has fewer CPUs than its profile says"),
)


def of(node: Node, logged: str | None) -> tuple[str, str, str] | None:
    """(code, what slurmctld said, hint) when slurmctld found the node to be less than declared."""
    if not node.invalid:
        return None
    said = node.reason if is_one(node.reason) else logged
    for mark, code, hint in _REJECTIONS:
        if mark in (said or ""):
            return code, said or "", hint
    return "INVALID_REG", said or node.state, "the node registered with other hardware than its profile says"


def is_one(text: str | None) -> bool:
    """Whether a reason is slurmctld's own, for hardware less than declared."""
    return any(mark in (text or "") for mark, _code, _hint in _REJECTIONS)
