# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Lines of a log with what launchers, log collectors and people put around them taken off. Private to h200.rack."""

from __future__ import annotations

import dataclasses
import re
import typing as t

_ESCAPES = re.compile(r"\x1b(?:\[[0-9;?]*[A-Za-z]|\][^\x07\x1b]*(?:\x07|\x1b\\\\)?)")
# Blanks that web pages and editors put in, and marks that nobody sees.
_BLANKS = {"\t": " ", "\xa0": " ", "\u202f": " ", "\u3000": " ", "\ufeff": "", "\u200b": "", "\u200c": "", "\u200d": ""}
# One element of a list of strings, as Ansible and others show the lines of an output.
_QUOTED = re.compile(r'\s*"(.*)",?')
_TYPES = r"(?:u?int(?:8|32|64)|half|float|double|bfloat16|char|fp8\w*|f8\w*|float8\w*|float(?:16|32|64))"
# Where a row begins, whatever stands before it: size, count, type.
_ROW = re.compile(r"(?<![\w.:\[-])(\d+)\s+(\d+)\s+(" + _TYPES + r")(?=\s|$)")
# Words that only nccl-tests prints after its comment mark. Nothing that can repeat stands before them: a line of blanks
# is not to cost the square of its length.
_HEAD = re.compile(
    r"(?:nThread\s+\d+\s+nGpus|nccl-tests version|Collective test (?:starting|concluded)|Using devices"
    r"|Rank\s+\d+\s|(?:size\s+count|bytes\s+N)\s+type|\(B\)\s+\(elements\)|Out of bounds values|Avg bus bandwidth"
    r"|Reducing maxBytes|Writing JSON output|NCCL Tests compiled|(?<=# )error: \S)"
)
_TAGS = (
    re.compile(r"[\[@]\d+,(\d+)\](?:\[[\w.:-]*\])?<std(?:out|err)>:"),
    re.compile(r"^\s*(\d+):\s"),
    re.compile(r"\brank=(\d+)\b"),
)
_NCCL = re.compile(r"NCCL (?:INFO|WARN|TRACE)")
# "node1:123:456 [0] misc/x.cc:63 NCCL WARN": it may begin right behind a row's last printed cell.
_NCCL_HEAD = re.compile(r"[A-Za-z][\w.-]*:\d+:\d+ \[\d+\] (?:\S+:\d+ )?$")
# What most lines of a log with NCCL_DEBUG=INFO begin with; nothing else has to be looked for in them.
_PURE_NCCL = re.compile(r"[\w.-]+:\d+:\d+ \[\d+\] (?:\S+:\d+ )?NCCL (?:INFO|WARN|TRACE)")
# No line of a log that means something to us is longer.
_LONGEST = 2000
_MARKS = re.compile(
    r"(?:\s*(?:\[(?:[\w.-]+@)?\d+,\d+\](?:\[[\w.:-]*\])?<std(?:out|err)>:|\([^()]*\bpid=\d+\)|[>#|]|\d+:(?=\s)))*\s*"
)


@dataclasses.dataclass(frozen=True)
class Line:
    """``text`` begins at its first meaningful mark; ``tag`` is the rank a launcher says it comes from."""

    text: str
    kind: str  # row, head, nccl, other
    tag: t.Optional[str] = None


def clean(text: str) -> t.Iterator[Line]:
    """Every line of ``text``, classified; one that has an NCCL line behind the beginning of a row gives two."""
    for mark, blank in _BLANKS.items():
        text = text.replace(mark, blank)
    for raw in text.splitlines():
        line = _plain(raw[:_LONGEST])
        if _PURE_NCCL.match(line):
            yield Line(line, "nccl")
            continue
        tag = next((m.group(1) for m in (pattern.search(line) for pattern in _TAGS) if m), None)
        nccl = _nccl_start(line)
        before = line if nccl is None else line[:nccl]
        row = _ROW.search(before)
        if row:
            yield Line(before[row.start() :], "row", tag)
        elif nccl is None:
            head = _HEAD.search(line)
            if head:
                yield Line(line[head.start() :], "head", tag)
            else:
                yield Line(_MARKS.sub("", line, count=1).strip(), "other", tag)
        if nccl is not None:
            yield Line(line[nccl:], "nccl", tag)


def _nccl_start(line: str) -> t.Optional[int]:
    found = _NCCL.search(line)
    if not found:
        return None
    head = _NCCL_HEAD.search(line, max(0, found.start() - 300), found.start())
    return head.start() if head else found.start()


def _plain(line: str) -> str:
    """Without colours and the quotes of a list."""
    if "\x1b" in line:
        line = _ESCAPES.sub("", line)
    line = line.rstrip()
    quoted = _QUOTED.fullmatch(line) if line.endswith(('"', '",')) else None
    return quoted.group(1).rstrip() if quoted else line


def once(lines: t.Sequence[Line]) -> t.Iterator[Line]:
    """Where all that nccl-tests says stands twice in a row, word for word (two copies into one log), each once."""
    said = [line for line in lines if line.kind in ("row", "head")]
    doubled = len(said) >= 4 and said[0::2] == said[1::2]
    count = 0
    for line in lines:
        count += line.kind in ("row", "head")
        if not (doubled and line.kind in ("row", "head") and count % 2 == 0):
            yield line
