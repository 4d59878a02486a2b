# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Boot servers and mirrors, and which of them a node uses. Private to h200.rack."""

from __future__ import annotations

import typing as t

from .addresses import parse_address, url_host
from .problems import Problems
from .reading import MISSING, read


def read_servers(
    hosts: t.Sequence[str],
    hostvars: t.Mapping[str, t.Mapping[str, t.Any]],
    url_variable: str,
    problems: Problems,
) -> dict[str, dict[str, t.Any]]:
    """By host: its address, base URL and rack."""
    servers = {}
    for host in hosts:
        variables = hostvars[host]
        address = read(host, variables, "ansible_host", problems)
        url = read(host, variables, url_variable, problems)
        address = host if address in MISSING else address
        try:
            address = str(parse_address(address))
        except ValueError:
            problems.add(
                host, "ansible_host", f"{address!r} is not an address, and nodes that boot cannot ask for names"
            )
            continue
        rack = read(host, variables, "rack_name", problems)
        servers[host] = {
            "name": host,
            "address": address,
            "url": f"http://{url_host(address)}" if url in MISSING else str(url).rstrip("/"),
            "rack": "" if rack in MISSING else str(rack),
        }
    return servers


def servers_of(rack: str, servers: t.Mapping[str, dict[str, t.Any]]) -> list[dict[str, t.Any]]:
    """Those of the node's rack, then those without a rack."""
    own = [server for server in servers.values() if rack and server["rack"] == rack]
    shared = [server for server in servers.values() if not server["rack"]]
    return own + shared
