# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is wrong with an inventory, collected instead of raised: people fix a list once. Private to h200.rack."""

from __future__ import annotations

import typing as t


class Problems:
    """A list that grows; each entry names the host and the variable to look at."""

    def __init__(self) -> None:
        self.found: list[dict[str, t.Any]] = []

    def add(self, node: str, variable: str, msg: str) -> None:
        """Add a problem; ``node`` is empty when it is the rack's. What was said already is not said again."""
        problem = {"node": node, "variable": variable, "msg": msg}
        if problem not in self.found[-50:]:
            self.found.append(problem)

    def concerning(self, hosts: t.Iterable[str]) -> list[dict[str, t.Any]]:
        """The problems of the rack and of these hosts."""
        wanted = {"", *hosts}
        return [problem for problem in self.found if problem["node"] in wanted]
