# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Lines of a log with what launchers, log collectors and people put around them taken off. Private to h200.rack."""

from __future__ import annotations

import dataclasses
import re
import typing as t

_ANSI = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
_TYPES = r"(?:u?int(?:8|32|64)|half|float|double|bfloat16|char|fp8\w*|f8\w*|float8\w*|float(?:16|32|64))"
# Where a row begins, whatever stands before it: size, count, type.
_ROW = re.compile(r"(?<![\w.:\[-])(\d+)\s+(\d+)\s+(" + _TYPES + r")(?=\s|$)")
# Words that only nccl-tests prints after its comment mark.
_HEAD = re.compile(
    r"#?\s*(?:nThread\s+\d+\s+nGpus|nccl-tests version|Collective test (?:starting|concluded)|Using devices"
    r"|Rank\s+\d+\s|\s*(?:size\s+count|bytes\s+N)\s+type|\s*\(B\)\s+\(elements\)|Out of bounds values|Avg bus bandwidth"
    r"|Reducing maxBytes|Writing JSON output|NCCL Tests compiled)"
)
_TAGS = (
    re.compile(r"\[\d+,(\d+)\]<std(?:out|err)>:"),
    re.compile(r"^\s*(\d+):\s"),
    re.compile(r"\brank=(\d+)\b"),
)
_NCCL = re.compile(r"NCCL (?:INFO|WARN|TRACE)")
# "node1:123:456 [0] misc/x.cc:63 NCCL WARN": it may begin right behind a row's last printed cell.
_NCCL_HEAD = re.compile(r"[A-Za-z][\w.-]*:\d+:\d+ \[\d+\] (?:\S+:\d+ )?$")
# No line of a log that means something to us is longer.
_LONGEST = 4000


@dataclasses.dataclass(frozen=True)
class Line:
    """``text`` begins at its first meaningful mark; ``tag`` is the rank a launcher says it comes from."""

    text: str
    kind: str  # row, head, nccl, other
    tag: t.Optional[str] = None


def clean(text: str) -> t.Iterator[Line]:
    """Every line of ``text``, classified; one that has an NCCL line behind the beginning of a row gives two."""
    for raw in text.splitlines():
        line = _ANSI.sub("", raw[:_LONGEST]).replace("\r", "").rstrip()
        tag = next((m.group(1) for m in (pattern.search(line) for pattern in _TAGS) if m), None)
        nccl = _nccl_start(line)
        before = line if nccl is None else line[:nccl]
        row = _ROW.search(before)
        if row:
            yield Line(before[row.start() :], "row", tag)
        elif nccl is None:
            head = _HEAD.search(line)
            if head:
                yield Line(line[head.start() :].lstrip("# \t"), "head", tag)
            else:
                yield Line(_unmarked(line), "other", tag)
        if nccl is not None:
            yield Line(line[nccl:], "nccl", tag)


def _nccl_start(line: str) -> t.Optional[int]:
    found = _NCCL.search(line)
    if not found:
        return None
    head = _NCCL_HEAD.search(line, max(0, found.start() - 300), found.start())
    return head.start() if head else found.start()


def _unmarked(line: str) -> str:
    """Without the tags of launchers and the marks of quotes and comments before it."""
    previous = None
    while previous != line:
        previous = line
        line = re.sub(r"^\s*(?:\[\d+,\d+\]<std(?:out|err)>:|\([^()]*\bpid=\d+\)|[>#|]|\d+:(?=\s))\s*", "", line)
    return line.strip()
