# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Read a slurm.conf with what it includes, as far as our own changes depend on it. Private to h200.rack."""

from __future__ import annotations

import os
import pathlib
import re
import typing as t

from . import hostlist

_LISTED = ("nodename", "partitionname", "nodeset", "downnodes", "switchname", "frontendname")


class Conf(t.NamedTuple):
    """``settings`` by lower-case key; ``lines`` are the (file, key, words) of node, partition and set lines."""

    settings: dict[str, str]
    lines: list[tuple[str, str, dict[str, str]]]
    includes: set[str]

    def names(self, key: str, not_in: t.Container[str] = ()) -> set[str]:
        """All names that lines of ``key`` (such as ``nodename``) define, but for those in the files ``not_in``."""
        found: set[str] = set()
        for path, kind, words in self.lines:
            if kind == key and os.path.basename(path) not in not_in:
                found.update(hostlist.expand(words[key]))
        return found - {"DEFAULT"}


def read(path: str, opener: t.Callable[[str], str] | None = None) -> Conf:
    """Parse ``path`` and its includes. A file that is not there reads as empty."""
    conf = Conf({}, [], set())
    _read_into(conf, path, os.path.dirname(path), opener or _content, 0)
    return conf


def _content(path: str) -> str:
    try:
        return pathlib.Path(path).read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return ""


def _read_into(conf: Conf, path: str, folder: str, opener: t.Callable[[str], str], depth: int) -> None:
    for line in _logical_lines(opener(path)):
        include = re.match(r"\s*include\s+(\S+)", line, re.IGNORECASE)
        if include:
            target = os.path.join(folder, include[1])
            conf.includes.add(target)
            if depth < 5:
                _read_into(conf, target, folder, opener, depth + 1)
            continue
        words = fields(line)
        key = next(iter(words), None)
        if key in _LISTED:
            conf.lines.append((path, key, words))
        else:
            conf.settings.update(words)


def _logical_lines(content: str) -> t.Iterator[str]:
    for line in re.sub(r"\\\n", " ", content).splitlines():
        bare = re.sub(r"(?<!\\)#.*", "", line).strip()
        if bare:
            yield bare


def fields(line: str) -> dict[str, str]:
    """``Key=value Other="a b"`` with lower-case keys."""
    found = re.findall(r'([A-Za-z_]\w*)\s*=\s*("[^"]*"|\S*)', line)
    return {key.lower(): value.strip('"') for key, value in found}
