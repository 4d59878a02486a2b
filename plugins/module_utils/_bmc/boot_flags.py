# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The IPMI boot flags (system boot options, parameter 5) as bits and as words. Private to h200.rack."""

from __future__ import annotations

import typing as t

VALID, PERSISTENT, UEFI = 0x80, 0x40, 0x20
LOCKED = 0x80  # in the parameter's own byte: the parameter is marked invalid

DEVICES: dict[str, int] = {"none": 0, "pxe": 1, "disk": 2, "safe": 3, "cd": 5, "bios": 6}
# Devices that somebody else may have set.
OTHERS: dict[int, str] = {
    4: "diagnostic",
    7: "remote_floppy",
    8: "remote_cd",
    9: "remote_media",
    11: "remote_disk",
    15: "usb",
}
NONE: dict[str, str | None] = {"target": "none", "persistence": None, "mode": None}


def encode(target: str, persistence: str, mode: str) -> list[int]:
    """The data of Set System Boot Options for parameter 5."""
    if target == "none":
        return [5, 0, 0, 0, 0, 0]
    flags = VALID | (PERSISTENT if persistence == "continuous" else 0) | (UEFI if mode == "uefi" else 0)
    return [5, flags, DEVICES[target] << 2, 0, 0, 0]


def decode(data: bytes, flags_kept: bool = True) -> dict[str, str | None]:
    """What Get System Boot Options answered: any cleared, invalid or empty override is the same "none".

    Without ``flags_kept``, the BMC keeps the device but no flags: what the flags would say is unknown.
    """
    if len(data) < 4 or data[1] & LOCKED or (flags_kept and not data[2] & VALID):
        return dict(NONE)
    number = (data[3] >> 2) & 0x0F
    if number == 0:
        return dict(NONE)
    names = {value: name for name, value in DEVICES.items()} | OTHERS
    if not flags_kept:
        return {**NONE, "target": names.get(number, f"device_{number}")}
    return {
        "target": names.get(number, f"device_{number}"),
        "persistence": "continuous" if data[2] & PERSISTENT else "once",
        "mode": "uefi" if data[2] & UEFI else "legacy",
    }


def mismatch(want: dict[str, str | None], have: dict[str, str | None], flags_kept: bool) -> bool:
    """Whether ``have`` is not what the task wants, as far as the BMC can tell."""
    return have != want if flags_kept else have["target"] != want["target"]


def wanted(params: dict[str, t.Any]) -> dict[str, str | None]:
    """The options of the task in the words of :func:`decode`."""
    if params["target"] == "none":
        return dict(NONE)
    return {name: params[name] for name in ("target", "persistence", "mode")}
