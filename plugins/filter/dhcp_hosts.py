# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: dhcp_hosts
short_description: The hosts that the DHCP server on a boot server answers
version_added: 0.1.0
description:
  - Makes the option O(h200.rack.dhcp#role:dhcp_hosts) of the role P(h200.rack.dhcp#role) from the plan.
positional: boot_server
options:
  _input:
    description: What the filter P(h200.rack.plan#filter) returned.
    type: dict
    required: true
  boot_server:
    description: The name of the boot server. Nodes that use another one are left out.
    type: str
    required: true
  bmc:
    description: Whether BMCs whose C(rack_bmc_mac) is known are answered too.
    type: bool
    default: false
author:
  - The h200.rack maintainers (@h200)
"""

EXAMPLES = r"""
- name: DHCP answers the nodes of the plan
  ansible.builtin.include_role:
    name: h200.rack.dhcp
  vars:
    dhcp_hosts: "{{ rack_plan | h200.rack.dhcp_hosts(inventory_hostname) }}"
"""

RETURN = r"""
_value:
  description: The hosts with C(name), C(mac) and C(address).
  type: list
  elements: dict
"""

from ansible_collections.h200.rack.plugins.module_utils._plan.dhcp import dhcp_hosts


class FilterModule:
    """The filter dhcp_hosts."""

    def filters(self):
        return {"dhcp_hosts": dhcp_hosts}
