# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Lines of a known_hosts file. Private to h200.rack."""

from __future__ import annotations

import typing as t


def known_hosts(keys: t.Sequence[str], addresses: t.Sequence[str], port: int = 22) -> str:
    """One line per public key, valid for all the addresses. Raises ValueError for what is no public key."""
    names = ",".join(address if port == 22 else f"[{address}]:{port}" for address in addresses)
    if not names or any(blank in names for blank in " \n\t"):
        raise ValueError(f"not addresses: {list(addresses)!r}")
    lines = []
    for key in keys:
        words = str(key).split()
        if len(words) < 2 or "PRIVATE" in key:
            raise ValueError("not a public host key")
        lines.append(f"{names} {words[0]} {words[1]}\n")
    return "".join(lines)
