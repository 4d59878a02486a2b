# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Xids and SXids in a kernel log, with what each asks for. Private to h200.rack."""

from __future__ import annotations

import dataclasses
import re
import typing as t

IGNORE, MONITOR, RESET, REBOOT, SUPPORT = "ignore", "monitor", "reset", "reboot", "support"
# What must happen before the node is good again. "ignore" is a program's fault, "monitor" one that was handled.
BLOCKING = (RESET, REBOOT, SUPPORT)

# NVIDIA's Xid catalogue and the tables of AWS and gpud agree on these; an Xid that is not here blocks, because
# nobody has said that it may be ignored.
_ACTIONS: dict[int, tuple[str, str]] = {
    8: (IGNORE, "a program's channel stopped"),
    13: (IGNORE, "exception in a program's kernel; hardware only if it follows the GPU"),
    31: (IGNORE, "memory page fault of a program"),
    32: (RESET, "corrupted push buffer"),
    43: (IGNORE, "a program's channel was stopped"),
    44: (RESET, "graphics engine fault in a context switch"),
    45: (IGNORE, "a program was ended before it was done"),
    46: (RESET, "the GPU stopped processing"),
    48: (RESET, "double-bit ECC error"),
    61: (RESET, "internal microcontroller warning"),
    62: (RESET, "internal microcontroller halted"),
    63: (MONITOR, "a row was remapped, or is to be at the next reset"),
    64: (RESET, "a row could not be recorded for remapping"),
    68: (IGNORE, "video processor exception of a program"),
    69: (IGNORE, "graphics engine class error of a program"),
    74: (RESET, "NVLink error; look at the link and its partner"),
    79: (REBOOT, "the GPU has fallen off the bus"),
    92: (MONITOR, "high rate of single-bit ECC errors"),
    94: (MONITOR, "contained memory error; the program was ended"),
    95: (RESET, "uncontained memory error"),
    109: (RESET, "context switch timeout"),
    110: (REBOOT, "security fault"),
    119: (RESET, "the GPU's system processor (GSP) did not answer"),
    120: (RESET, "error of the GPU's system processor (GSP)"),
    121: (MONITOR, "corrected C2C error"),
    136: (RESET, "NVLink initialisation failed"),
    137: (IGNORE, "a program's access over NVLink was refused"),
    140: (RESET, "unrecovered ECC error"),
    143: (RESET, "GPU initialisation error"),
    145: (RESET, "NVLink error (RLW)"),
    149: (RESET, "NVLink error (NETIR)"),
    150: (RESET, "NVLink error (MSE)"),
    158: (MONITOR, "GPU fatal timeout, reported together with another Xid"),
}

_XID = re.compile(r"NVRM: Xid \((?:PCI:)?([0-9A-Fa-f:.]+)(?:\s+GPU-I:\d+)?\): (\d+)(?:, )?(.*)")
_SXID = re.compile(r"SXid \((?:PCI:)?([0-9A-Fa-f:.]+)\): (\d+), (Fatal|Non-fatal)?(.*)")
# 154 names the action itself: "GPU recovery action changed from 0x0 (None) to 0x2 (Node Reboot Required)".
_RECOVERY = re.compile(r"to \S+ \(([^)]*)\)")
_RECOVERY_ACTIONS = (("reboot", REBOOT), ("reset", RESET), ("drain", RESET), ("none", IGNORE))


@dataclasses.dataclass(frozen=True)
class Xid:
    number: int
    bus_id: str
    action: str
    meaning: str
    count: int = 1
    switch: bool = False  # an NVSwitch's SXid

    @property
    def blocks(self) -> bool:
        return self.action in BLOCKING


def parse(text: str) -> list[Xid]:
    """Every kind of Xid and SXid of a kernel log once, with how often it came; a GPU's last 154 is its state."""
    found: dict[tuple[int, str, bool], Xid] = {}
    for line in text.splitlines():
        xid = _of_line(line)
        if xid is None:
            continue
        key = (xid.number, xid.bus_id, xid.switch)
        seen = found.get(key)
        found[key] = dataclasses.replace(xid, count=seen.count + 1) if seen else xid
    return list(found.values())


def _of_line(line: str) -> t.Optional[Xid]:
    gpu = _XID.search(line)
    if gpu:
        number = int(gpu.group(2))
        action, meaning = _ACTIONS.get(number, (SUPPORT, "not in the table: look it up in NVIDIA's Xid catalogue"))
        if number == 154:
            action, meaning = _recovery(gpu.group(3))
        return Xid(number, gpu.group(1).lower(), action, meaning)
    switch = _SXID.search(line)
    if switch:
        action = MONITOR if switch.group(3) == "Non-fatal" else RESET
        return Xid(
            int(switch.group(2)), switch.group(1).lower(), action, switch.group(4).strip(" ,")[:120], switch=True
        )
    return None


def _recovery(text: str) -> tuple[str, str]:
    named = _RECOVERY.search(text)
    words = named.group(1) if named else text
    for word, action in _RECOVERY_ACTIONS:
        if word in words.lower():
            return action, f"the driver asks for: {words}"
    return SUPPORT, f"the driver asks for: {words}"
