# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: dnsmasq_plan
short_description: Check the DHCP plan of a rack and put it in dnsmasq's words
version_added: 0.1.0
description:
  - Checks hosts and subnets together. A wrong or doubled MAC address, a doubled address, and an address outside all
    subnets are refused, all at once, with the names of the hosts.
positional: subnets, lease, binaries, links
options:
  _input:
    description: The hosts, each with C(name), C(mac), C(address) and optionally C(ipxe_binary).
    type: list
    elements: dict
    required: true
  subnets:
    description: The subnets in the form of C(rack_subnets).
    type: list
    elements: dict
    required: true
  lease:
    description: The lease time in dnsmasq's notation.
    type: str
    default: 12h
  binaries:
    description: The iPXE binary of each architecture, to be checked along with the rest.
    type: dict
    default: {}
  links:
    description: The server's interfaces and addresses, as C(ip -json address) prints them.
    type: list
    elements: dict
    default: []
author:
  - The h200.rack maintainers (@h200)
"""

EXAMPLES = r"""
- name: The hosts file is shown
  ansible.builtin.debug:
    msg: "{{ (dhcp_hosts | h200.rack.dnsmasq_plan(dhcp_subnets)).hosts_file }}"
"""

RETURN = r"""
_value:
  description:
    - C(hosts_file), its content; C(subnets), those that the server answers in; C(binaries), for each iPXE binary that
      some hosts get instead of the one of their architecture, its C(name), its C(tag) and the C(firmware) it is for;
      C(interfaces), those of the server that stand in a subnet of the plan.
  type: dict
"""

import typing as t

from ansible.errors import AnsibleFilterError
from ansible_collections.h200.rack.plugins.module_utils._boot import dhcp
from ansible_collections.h200.rack.plugins.module_utils._common.errors import InvalidInput


def dnsmasq_plan(
    hosts: list[dict[str, t.Any]],
    subnets: list[dict[str, t.Any]],
    lease: str = "12h",
    binaries: dict[str, str] | None = None,
    links: list[dict[str, t.Any]] | None = None,
) -> dict[str, t.Any]:
    """The filter itself."""
    try:
        dhcp.check_binaries(binaries or {})
        plan = dhcp.plan(hosts, subnets)
        hosts_file = dhcp.hosts_file(plan, lease)
    except InvalidInput as exc:
        raise AnsibleFilterError(f"the DHCP plan cannot be right: {exc.msg}") from exc
    own = [{"name": name, "tag": tag, "firmware": dhcp.kind(name, name)} for name, tag in plan.binaries.items()]
    return {
        "hosts_file": hosts_file,
        "subnets": plan.subnets,
        "binaries": own,
        "interfaces": dhcp.interfaces(links or [], plan),
    }


class FilterModule:
    """What Ansible looks for."""

    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        return {"dnsmasq_plan": dnsmasq_plan}
