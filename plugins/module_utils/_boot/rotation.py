# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which mirror a node asks first. Private to h200.rack."""

from __future__ import annotations

import hashlib
import typing as t


def rotate(name: str, mirrors: t.Sequence[str]) -> list[str]:
    """The mirrors in the order in which the node ``name`` tries them.

    Each node ranks the mirrors by a hash of its own name and theirs: the load spreads evenly, the order of
    the list does not matter, and adding or losing a mirror moves only the nodes that have to move.
    """
    return sorted(mirrors, key=lambda mirror: hashlib.sha256(f"{name}\0{mirror}".encode()).digest())
