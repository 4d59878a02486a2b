# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a person must say by name, and what a run needs of Ansible itself. Private to h200.rack."""

from __future__ import annotations

import re
import typing as t

from .problems import Problems

_YES = ("true", "yes", "on", "1", "all", "*")


def named_nodes(variable: str, value: t.Any, nodes: t.Container[str], problems: Problems) -> list[str]:
    """The nodes in rack_reimage or rack_overwrite: a list, or a text with names between commas or blanks."""
    if value in (None, "", False) or value == []:
        return []
    if isinstance(value, str):
        value = [value] if value.strip() in _YES else re.split(r"[\s,]+", value.strip())
    if not isinstance(value, (list, tuple)) or any(isinstance(name, bool) or str(name) in _YES for name in value):
        problems.add("", variable, f'{value!r} names no node; name each one, as in -e \'{{"{variable}": ["gpu001"]}}\'')
        return []
    names = list(dict.fromkeys(str(name) for name in value if name not in (None, "")))
    for name in names:
        if name not in nodes:
            problems.add("", variable, f"{name!r} is not a host of the group rack_nodes")
    return [name for name in names if name in nodes]


def batch_size(batch: t.Any, count: int) -> int:
    """How many of ``count`` nodes go at once, when ``batch`` is what the keyword serial takes. Raises ValueError."""
    if isinstance(batch, (list, tuple)):
        return max((batch_size(item, count) for item in batch), default=count)
    if batch in (None, ""):
        return count
    found = re.match(r"(\d+)(%?)\Z", str(batch).strip())
    if not found or not int(found[1]):
        raise ValueError(f"{batch!r} is neither a number of nodes nor a percentage")
    size = max(1, count * int(found[1]) // 100) if found[2] else int(found[1])
    return min(size, count)


def check_forks(forks: t.Any, batch: t.Any, count: int, problems: Problems) -> None:
    """With fewer forks than nodes that go at once, some would wait for others unseen."""
    try:
        needed = batch_size(batch, count)
    except ValueError as exc:
        problems.add("", "rack_batch", str(exc))
        return
    if forks is None or int(forks) >= needed:
        return
    problems.add(
        "",
        "ansible_forks",
        f"{forks} forks for {needed} nodes at once: set forks = {needed} under [defaults] in ansible.cfg, "
        f"or give -f {needed}, or set Forks to {needed} in the AWX job template; "
        "or let fewer nodes go at once by rack_batch",
    )
