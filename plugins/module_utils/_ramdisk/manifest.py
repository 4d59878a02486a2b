# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a built ramdisk says about itself. Private to h200.rack."""

from __future__ import annotations

import hashlib
import json
import typing as t


def canonical(document: t.Mapping[str, t.Any]) -> bytes:
    """The one way to write a manifest, so that its digest can name it."""
    return json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=True).encode() + b"\n"


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def digest_of_file(path: str) -> tuple[str, int]:
    """sha256 and size of a file."""
    total = hashlib.sha256()
    size = 0
    with open(path, "rb") as handle:
        for block in iter(lambda: handle.read(1 << 20), b""):
            total.update(block)
            size += len(block)
    return total.hexdigest(), size


def packages(dpkg_status: str) -> list[str]:
    """``name=version`` of each package in a dpkg status file."""
    found = []
    for paragraph in dpkg_status.split("\n\n"):
        fields = dict(
            line.split(": ", 1) for line in paragraph.splitlines() if ": " in line and not line.startswith(" ")
        )
        if fields.get("Status", "").endswith(" installed"):
            found.append(f"{fields['Package']}={fields['Version']}")
    return sorted(found)
