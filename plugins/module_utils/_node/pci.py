# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PCI bridges that redirect peer-to-peer traffic (ACS), read from their configuration space. Private to h200.rack."""

from __future__ import annotations

import glob
import os
import pathlib

# A capability of the extended space is 16 bits of id, 4 of version, 12 of offset of the next.
_FIRST, _ACS, _CONTROL = 0x100, 0x000D, 6
_BRIDGE = "0x0604"


def bridges_with_acs(root: str = "/sys/bus/pci/devices") -> list[str]:
    """Addresses of the bridges whose ACS control is not zero: GPUs and NICs behind them cannot reach each other."""
    found = []
    for device in sorted(glob.glob(os.path.join(root, "*"))):
        if _content(os.path.join(device, "class")).decode(errors="replace").startswith(_BRIDGE):
            control = acs_control(_content(os.path.join(device, "config")))
            if control:
                found.append(os.path.basename(device))
    return found


def acs_control(config: bytes) -> int | None:
    """The ACS control word, or None when the device has no such capability (or is not readable that far)."""
    offset, seen = _FIRST, set()
    while offset >= _FIRST and offset + 8 <= len(config) and offset not in seen:
        seen.add(offset)
        header = int.from_bytes(config[offset : offset + 4], "little")
        if header & 0xFFFF == _ACS:
            return int.from_bytes(config[offset + _CONTROL : offset + _CONTROL + 2], "little")
        offset = header >> 20
    return None


def _content(path: str) -> bytes:
    try:
        return pathlib.Path(path).read_bytes()
    except OSError:
        return b""
