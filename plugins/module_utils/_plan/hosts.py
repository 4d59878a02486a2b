# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Lines of /etc/hosts for the whole rack. Private to h200.rack."""

from __future__ import annotations

import typing as t


def hosts_lines(plan: t.Mapping[str, t.Any], others: t.Optional[t.Mapping[str, str]] = None) -> list[str]:
    """Address and names of every node and server; ``others``: address by name of hosts that are not in the plan."""
    lines = {node["ip"]: " ".join(dict.fromkeys((node["fqdn"], node["hostname"]))) for node in plan["nodes"].values()}
    for server in (*plan["boot_servers"].values(), *plan["mirrors"].values()):
        lines.setdefault(server["address"], server["name"])
    for name, address in (others or {}).items():
        lines.setdefault(address, name)
    return [f"{address} {names}" for address, names in lines.items()]
