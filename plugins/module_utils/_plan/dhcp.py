# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which hosts a boot server answers. Private to h200.rack."""

from __future__ import annotations

import ipaddress
import typing as t

#: Below the TFTP root, and the root of HTTP as well.
_BINARIES = "ipxe"


def dhcp_hosts(plan: t.Mapping[str, t.Any], boot_server: str, bmc: bool = False) -> list[dict[str, str]]:
    """The option ``dhcp_hosts`` of the role dhcp: the nodes that use this boot server, and their BMCs if wanted."""
    networks = [ipaddress.ip_network(subnet["cidr"]) for subnet in plan["subnets"] if subnet["role"] == "bmc"]
    hosts: list[dict[str, str]] = []
    bmcs: set[str] = set()  # one BMC may serve several nodes of a chassis
    for node in plan["nodes"].values():
        if boot_server not in node["boot_servers"]:
            continue
        host = {"name": node["hostname"], "mac": node["boot_mac"], "address": node["ip"]}
        if node["own_binary"]:
            host["ipxe_binary"] = f"{_BINARIES}/{node['ipxe_binary']}"
        hosts.append(host)
        if bmc and node["bmc_mac"] not in ("", *bmcs) and _lies_in(node["bmc_host"], networks):
            bmcs.add(node["bmc_mac"])
            hosts.append({"name": f"{node['hostname']}-bmc", "mac": node["bmc_mac"], "address": node["bmc_host"]})
    return hosts


def _lies_in(address: t.Optional[str], networks: t.Sequence[t.Any]) -> bool:
    """Whether a BMC is known by an address of a BMC network, and not by a name or through somebody else's network."""
    try:
        return any(ipaddress.ip_address(address or "") in network for network in networks)
    except ValueError:
        return False
