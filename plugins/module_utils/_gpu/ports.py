# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""InfiniBand and RoCE ports: sysfs, ``ibstat``, ``ibstatus`` and ``ibv_devinfo``. Private to h200.rack."""

from __future__ import annotations

import dataclasses
import os
import pathlib
import re
import typing as t

SYSFS = "/sys/class/infiniband"
# Counters whose growth during a test means a bad link; since boot they prove nothing.
COUNTERS = ("link_downed", "link_error_recovery", "symbol_error", "port_rcv_errors", "local_link_integrity_errors")


@dataclasses.dataclass(frozen=True)
class Port:
    """One port; None is what the source did not say."""

    name: str
    state: t.Optional[str] = None  # Active, Down, Init, …
    physical: t.Optional[str] = None  # LinkUp, Polling, Disabled, …
    rate_gbps: t.Optional[float] = None
    link_layer: t.Optional[str] = None
    firmware: t.Optional[str] = None
    kind: t.Optional[str] = None
    counters: t.Optional[dict[str, int]] = None

    @property
    def up(self) -> bool:
        return self.state == "Active" and self.physical in (None, "LinkUp")


_CA = re.compile(r"^CA '([^']+)'")
_KEY = re.compile(r"^\s*([A-Za-z][A-Za-z _]*?):\s*(.*?)\s*$")
_STATUS = re.compile(r"^Infiniband device '([^']+)' port (\d+) status")


def parse_ibstat(text: str) -> list[Port]:
    """``ibstat``, or as much of it as came before an ibpanic."""
    ports: list[Port] = []
    name = ""
    card: dict[str, str] = {}
    port: t.Optional[dict[str, str]] = None

    def finish() -> None:
        if name and port is not None:
            suffix = f"/{port['number']}" if port["number"] != "1" else ""
            ports.append(
                Port(
                    name + suffix,
                    port.get("State"),
                    port.get("Physical state"),
                    _number(port.get("Rate")),
                    port.get("Link layer"),
                    card.get("Firmware version"),
                    card.get("CA type"),
                )
            )

    for line in text.splitlines():
        start = _CA.match(line)
        if start:
            finish()
            name, card, port = start.group(1), {}, None
            continue
        number = re.match(r"^\s+Port (\d+):\s*$", line)
        if number:
            finish()
            port = {"number": number.group(1)}
            continue
        pair = _KEY.match(line)
        if pair and name:
            (card if port is None else port)[pair.group(1)] = pair.group(2)
    finish()
    return ports


def parse_ibstatus(text: str) -> list[Port]:
    """``ibstatus``, which prints sysfs."""
    ports: list[Port] = []
    current: t.Optional[tuple[str, dict[str, str]]] = None

    def finish() -> None:
        if current is not None:
            name, values = current
            ports.append(
                Port(
                    name,
                    _word(values.get("state")),
                    _word(values.get("phys state")),
                    _number(values.get("rate")),
                    values.get("link_layer"),
                )
            )

    for line in text.splitlines():
        start = _STATUS.match(line)
        if start:
            finish()
            suffix = f"/{start.group(2)}" if start.group(2) != "1" else ""
            current = (start.group(1) + suffix, {})
            continue
        pair = _KEY.match(line)
        if pair and current is not None:
            current[1][pair.group(1)] = pair.group(2)
    finish()
    return ports


def parse_devinfo(text: str) -> list[Port]:
    """``ibv_devinfo``: names, states and firmware, no rates."""
    ports: list[Port] = []
    for block in re.split(r"(?m)^hca_id:\s*", text)[1:]:
        name = block.split(None, 1)[0] if block.split() else ""
        values = {m.group(1): m.group(2) for m in map(_KEY.match, block.splitlines()[1:]) if m}
        state = values.get("state", "").replace("PORT_", "").split(" ")[0].capitalize() or None
        ports.append(Port(name, state, None, None, values.get("link_layer"), values.get("fw_ver")))
    return ports


def read_sysfs(root: str = SYSFS) -> list[Port]:
    """The ports the kernel knows, without starting a program."""
    ports = []
    try:
        names = sorted(os.listdir(root))
    except OSError:
        return []
    for name in names:
        base = os.path.join(root, name)
        try:
            numbers = sorted(os.listdir(os.path.join(base, "ports")), key=int)
        except (OSError, ValueError):
            continue
        for number in numbers:
            port = os.path.join(base, "ports", number)
            ports.append(
                Port(
                    name + (f"/{number}" if number != "1" else ""),
                    _word(_read(port, "state")),
                    _word(_read(port, "phys_state")),
                    _number(_read(port, "rate")),
                    _read(port, "link_layer"),
                    _read(base, "fw_ver"),
                    _read(base, "hca_type"),
                    _counters(os.path.join(port, "counters")),
                )
            )
    return ports


def _counters(folder: str) -> dict[str, int]:
    values = {name: _read(folder, name) for name in COUNTERS}
    return {name: int(value) for name, value in values.items() if value is not None and value.isdigit()}


def _read(folder: str, name: str) -> t.Optional[str]:
    try:
        return pathlib.Path(folder, name).read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return None


def _word(value: t.Optional[str]) -> t.Optional[str]:
    """``4: ACTIVE`` and ``5: LinkUp`` in ibstat's words."""
    if not value:
        return None
    word = value.split(":")[-1].strip()
    return word.capitalize() if word.isupper() else word


def _number(value: t.Optional[str]) -> t.Optional[float]:
    found = re.match(r"\d+(?:\.\d+)?", value) if value else None
    return float(found.group()) if found else None
