# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One shape for a node, whatever Slurm version told of it and in which form. Private to h200.rack."""

from __future__ import annotations

import json
import re
import typing as t

from .._common.errors import RackError
from . import text as _text

# The base states; everything else Slurm adds to them is a flag.
BASE_STATES = ("UNKNOWN", "DOWN", "IDLE", "ALLOCATED", "ERROR", "MIXED", "FUTURE")
# The short forms of `scontrol show node` in plain text, by the mark behind the state.
_MARKS = {
    "*": "NOT_RESPONDING",
    "~": "POWERED_DOWN",
    "#": "POWERING_UP",
    "%": "POWERING_DOWN",
    "!": "POWER_DOWN",
    "$": "MAINTENANCE",
    "@": "REBOOT_REQUESTED",
    "^": "REBOOT_ISSUED",
    "-": "PLANNED",
}
_RUNNING = ("ALLOCATED", "MIXED", "COMPLETING")


class Node(t.NamedTuple):
    """A node as the controller sees it."""

    name: str
    base: str
    flags: tuple[str, ...]
    reason: str | None = None
    reason_user: str | None = None
    reason_since: str | None = None
    address: str | None = None
    gres: str = ""
    cfg_tres: str = ""
    real_memory: int | None = None
    cpus: int | None = None
    partitions: tuple[str, ...] = ()
    features: tuple[str, ...] = ()
    boot_time: str | None = None
    slurmd_start: str | None = None
    version: str | None = None

    @property
    def state(self) -> str:
        """As ``sinfo`` users know it: ``IDLE+DRAIN``."""
        return "+".join((self.base, *self.flags))

    @property
    def drained(self) -> bool:
        return "DRAIN" in self.flags

    @property
    def invalid(self) -> bool:
        return "INVALID_REG" in self.flags

    @property
    def responding(self) -> bool:
        return "NOT_RESPONDING" not in self.flags and self.base not in ("UNKNOWN", "FUTURE")

    @property
    def registered(self) -> bool:
        """Its slurmd has spoken with this controller since one of them started."""
        return self.responding and self.slurmd_start is not None

    @property
    def dynamic(self) -> bool:
        return any(flag.startswith("DYNAMIC") for flag in self.flags)

    @property
    def busy(self) -> bool:
        return self.base in _RUNNING or "COMPLETING" in self.flags

    @property
    def gpus(self) -> int:
        """The number of gpu in GRES, over all types."""
        return sum(int(match) for match in re.findall(r"(?:^|,)gpu(?::[^:,(]+)?:(\d+)", self.gres))


def split_state(value: str) -> tuple[str, tuple[str, ...]]:
    """``IDLE*+DRAIN`` → base and flags."""
    head, *flags = value.split("+")
    marks = [_MARKS[mark] for mark in head if mark in _MARKS]
    base = re.sub(r"[^A-Z_]", "", head.upper())
    return base, tuple(dict.fromkeys([*flags, *marks]))


def from_text(output: str) -> list[Node]:
    return [_node_of_text(record) for record in _text.records(output, "NodeName")]


def _node_of_text(record: dict[str, str]) -> Node:
    base, flags = split_state(record.get("State", "UNKNOWN"))
    reason, user, since = _text.split_reason(record.get("Reason"))
    return Node(
        name=record["NodeName"],
        base=base,
        flags=flags,
        reason=reason,
        reason_user=user,
        reason_since=since,
        address=record.get("NodeAddr"),
        gres=_no_null(record.get("Gres")) or "",
        cfg_tres=record.get("CfgTRES", ""),
        real_memory=_int(record.get("RealMemory")),
        cpus=_int(record.get("CPUTot")),
        partitions=_words(record.get("Partitions")),
        features=_words(record.get("AvailableFeatures")),
        boot_time=_time(record.get("BootTime")),
        slurmd_start=_time(record.get("SlurmdStartTime")),
        version=_no_null(record.get("Version")),
    )


def from_json(output: str) -> list[Node]:
    try:
        document = json.loads(output)
        nodes = document["nodes"]
    except (ValueError, KeyError, TypeError) as exc:
        raise RackError(f"scontrol --json printed something else: {output.strip()[:200]!r}", code="bad_output") from exc
    return [_node_of_json(node) for node in nodes]


def _node_of_json(node: dict[str, t.Any]) -> Node:
    words = node.get("state") or "UNKNOWN"
    words = [words] if isinstance(words, str) else list(words)
    words = [word.upper() for word in [*words, *(node.get("state_flags") or [])]]
    base = next((word for word in words if word in BASE_STATES), "UNKNOWN")
    return Node(
        name=node["name"],
        base=base,
        flags=tuple(dict.fromkeys(word for word in words if word not in BASE_STATES)),
        reason=node.get("reason") or None,
        reason_user=node.get("reason_set_by_user") or None,
        reason_since=_stamp(node.get("reason_changed_at")),
        address=node.get("address") or None,
        gres=node.get("gres") or "",
        cfg_tres=node.get("tres") or "",
        real_memory=_number(node.get("real_memory")),
        cpus=_number(node.get("cpus")),
        partitions=tuple(node.get("partitions") or ()),
        features=_words(node.get("features")),
        boot_time=_stamp(node.get("boot_time")),
        slurmd_start=_stamp(node.get("slurmd_start_time")),
        version=node.get("version") or None,
    )


def _number(value: t.Any) -> int | None:
    """A number as 22.05 writes it, or as newer ones do: ``{"set": true, "infinite": false, "number": 1}``."""
    if isinstance(value, dict):
        return int(value["number"]) if value.get("set") and not value.get("infinite") else None
    return None if value is None else int(value)


def _stamp(value: t.Any) -> str | None:
    number = _number(value)
    return str(number) if number else None


def _words(value: t.Any) -> tuple[str, ...]:
    if isinstance(value, str):
        value = (_no_null(value) or "").split(",")
    return tuple(word for word in value or () if word)


def _int(value: str | None) -> int | None:
    return int(value) if value and value.isdigit() else None


def _time(value: str | None) -> str | None:
    return None if value in (None, "", "None", "Unknown", "N/A") else value


def _no_null(value: str | None) -> str | None:
    return None if value in (None, "", "(null)", "N/A") else value
