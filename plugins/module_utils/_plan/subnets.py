# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""All subnets of the inventory: read once, checked against each other, asked for addresses. Private to h200.rack."""

from __future__ import annotations

import json
import typing as t

from .addresses import Subnet, parse_subnet
from .problems import Problems


class Subnets:
    """Hosts mostly share one list; each distinct list is parsed once."""

    def __init__(self, problems: Problems) -> None:
        self._problems = problems
        self._lists: dict[str, list[Subnet]] = {}
        self._all: dict[Subnet, None] = {}

    def of(self, host: str, value: t.Any) -> list[Subnet]:
        """The subnets that ``host`` sees in its rack_subnets."""
        if value in (None, "", []):
            self._problems.add(host, "rack_subnets", "missing: no subnet is known for this host")
            return []
        key = json.dumps(value, sort_keys=True, default=str)
        if key not in self._lists:
            self._lists[key] = self._parse(value)
        return self._lists[key]

    def _parse(self, value: t.Any) -> list[Subnet]:
        if not isinstance(value, (list, tuple)):
            self._problems.add("", "rack_subnets", f"must be a list of subnets, not {type(value).__name__}")
            return []
        parsed = []
        for entry in value:
            try:
                parsed.append(parse_subnet(entry))
            except ValueError as exc:
                self._problems.add("", "rack_subnets", str(exc))
        self._all.update(dict.fromkeys(parsed))
        return parsed

    def all(self) -> list[Subnet]:
        return list(self._all)

    def check_overlaps(self) -> None:
        """No address may belong to two subnets, nor a name to two."""
        subnets = self.all()
        for number, one in enumerate(subnets):
            for other in subnets[number + 1 :]:
                if one.overlaps(other):
                    self._problems.add(
                        "", "rack_subnets", f"{one.name} ({one.cidr}) and {other.name} ({other.cidr}) overlap"
                    )
                elif one.name == other.name:
                    self._problems.add("", "rack_subnets", f"{one.cidr} and {other.cidr} are both named {one.name}")


def place(
    subnets: t.Sequence[Subnet], address: t.Any, role: str, host: str, variable: str, problems: Problems
) -> t.Optional[Subnet]:
    """The subnet of ``role`` that holds the address; None after saying why there is none."""
    holding = [subnet for subnet in subnets if subnet.holds(address)]
    if not holding:
        problems.add(host, variable, f"{address} is in none of the subnets in rack_subnets")
        return None
    right = [subnet for subnet in holding if subnet.role == role]
    if not right:
        named = ", ".join(f"{subnet.name} (role {subnet.role})" for subnet in holding)
        problems.add(host, variable, f"{address} is in {named}; it must be in a subnet of role {role}")
        return None
    if right[0].is_reserved(address) or str(address) == right[0].gateway:
        problems.add(host, variable, f"{address} is the network, broadcast or gateway address of {right[0].name}")
        return None
    return right[0]
