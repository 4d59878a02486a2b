# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The result of a check as lines for a person. Private to h200.rack."""

from __future__ import annotations

import typing as t

_HEAD = ("mirror", "what", "digest", "MiB", "MiB/s", "signature", "content", "state")


def lines(mirrors: t.Sequence[t.Mapping[str, t.Any]], rows: t.Sequence[t.Mapping[str, t.Any]]) -> list[str]:
    """A line for each mirror and for each thing published on it."""
    cells = [_HEAD]
    for mirror in mirrors:
        state = "in rotation" if mirror["code"] == "ok" else f"{mirror['code']}: {mirror['msg']}"
        if mirror["certificate_ends"]:
            state += f", certificate until {mirror['certificate_ends'][:10]}"
        cells.append((mirror["mirror"], "/health", "", "", "", "", "", state))
        cells += [_row(row) for row in rows if row["mirror"] == mirror["mirror"]]
    widths = [max(len(row[column]) for row in cells) for column in range(len(_HEAD) - 1)]
    return ["  ".join([cell.ljust(width) for cell, width in zip(row, widths)] + [row[-1]]).rstrip() for row in cells]


def _row(row: t.Mapping[str, t.Any]) -> tuple[str, ...]:
    return (
        row["mirror"],
        f"{row['kind']} {row['name']}" if row["kind"] != "overlay" else "overlay",
        row["digest"][:12],
        f"{row['size'] / 2**20:.1f}" if row["size"] else "",
        f"{row['throughput'] / 2**20:.0f}" if row["throughput"] else "",
        row["signature"],
        "verified" if row["verified"] else "",
        "ok" if row["code"] == "ok" else f"{row['code']}: {row['msg']}",
    )
