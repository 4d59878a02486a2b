# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which hosts a boot server answers. Private to h200.rack."""

from __future__ import annotations

import typing as t


def dhcp_hosts(plan: t.Mapping[str, t.Any], boot_server: str, bmc: bool = False) -> list[dict[str, str]]:
    """The option ``dhcp_hosts`` of the role dhcp: the nodes that use this boot server, and their BMCs if wanted."""
    hosts = []
    for node in plan["nodes"].values():
        if boot_server not in node["boot_servers"]:
            continue
        hosts.append({"name": node["hostname"], "mac": node["boot_mac"], "address": node["ip"]})
        if bmc and node["bmc_mac"] and node["bmc_host"]:
            hosts.append({"name": f"{node['hostname']}-bmc", "mac": node["bmc_mac"], "address": node["bmc_host"]})
    return hosts
