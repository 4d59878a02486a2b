# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Slurm's short form of many names, ``gpu[001-003,007]``. Private to h200.rack."""

from __future__ import annotations

import re
import typing as t

_TAIL = re.compile(r"(.*?)(\d+)")


def compress(names: t.Iterable[str]) -> str:
    """``gpu001, gpu002`` → ``gpu[001-002]``: one bracket per prefix and width, the order of first appearance."""
    groups: dict[tuple[str, int], list[int]] = {}
    singles: dict[str, None] = {}
    for name in dict.fromkeys(names):
        match = _TAIL.fullmatch(name)
        if match:
            groups.setdefault((match[1], len(match[2])), []).append(int(match[2]))
        else:
            singles[name] = None
    parts = list(singles)
    for (prefix, width), numbers in groups.items():
        ranges = _ranges(sorted(numbers), width)
        parts.append(f"{prefix}{ranges}" if len(numbers) == 1 else f"{prefix}[{ranges}]")
    return ",".join(parts)


def _ranges(numbers: list[int], width: int) -> str:
    spans: list[list[int]] = []
    for number in numbers:
        if spans and number == spans[-1][1] + 1:
            spans[-1][1] = number
        else:
            spans.append([number, number])
    return ",".join(f"{a:0{width}d}" if a == b else f"{a:0{width}d}-{b:0{width}d}" for a, b in spans)


def split(text: str) -> list[str]:
    """Split at the commas that stand outside brackets."""
    return [part for part in re.findall(r"(?:[^,\[\]]|\[[^\]]*\])+", text) if part]


def expand(text: str) -> list[str]:
    """``gpu[001-003],login`` → the single names; several brackets in one word multiply."""
    names: list[str] = []
    for part in split(text):
        names.extend(_expand_one(part))
    return names


def _expand_one(part: str) -> list[str]:
    match = re.search(r"\[([^\]]*)\]", part)
    if not match:
        return [part]
    head, rest = part[: match.start()], _expand_one(part[match.end() :])
    return [f"{head}{value}{tail}" for value in _values(match[1]) for tail in rest]


def _values(ranges: str) -> t.Iterator[str]:
    for span in ranges.split(","):
        first, dash, last = span.partition("-")
        if not dash:
            yield first
        else:
            yield from (f"{number:0{len(first)}d}" for number in range(int(first), int(last) + 1))
