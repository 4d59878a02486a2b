# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""MAC addresses in one form. Private to h200.rack."""

from __future__ import annotations

import re

from ansible_collections.h200.rack.plugins.module_utils._common.errors import InvalidInput

_PAIRS = re.compile(r"^([0-9a-f]{2})([:-]?)([0-9a-f]{2})(?:\2[0-9a-f]{2}){4}$")
_CISCO = re.compile(r"^[0-9a-f]{4}\.[0-9a-f]{4}\.[0-9a-f]{4}$")


def canonical(text: object, owner: str = "") -> str:
    """``aa:bb:cc:dd:ee:ff`` from any of the usual notations; a wrong one is refused and names its ``owner``."""
    lower = str(text).strip().lower()
    digits = re.sub(r"[^0-9a-f]", "", lower)
    mac = ":".join(digits[i : i + 2] for i in range(0, len(digits), 2))
    where = f"{owner}: " if owner else ""
    if not (_PAIRS.match(lower) or _CISCO.match(lower)) or len(digits) != 12:
        raise InvalidInput(f"{where}{text!r} is not a MAC address, write it as aa:bb:cc:dd:ee:ff")
    if digits == "0" * 12 or int(digits[:2], 16) & 1:
        raise InvalidInput(f"{where}{mac} cannot be the MAC address of one port (it is zero or a group address)")
    return mac


def hyphenated(mac: str) -> str:
    """The form that iPXE's ``:hexhyp`` and pxelinux use, from the canonical one."""
    return mac.replace(":", "-")
