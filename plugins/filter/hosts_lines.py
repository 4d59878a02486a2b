# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: hosts_lines
short_description: Lines of /etc/hosts for the whole rack
version_added: 0.1.0
description:
  - From the plan, for the option O(h200.rack.node_ready#role:node_ready_hosts) of the role
    P(h200.rack.node_ready#role).
positional: others
options:
  _input:
    description: What the filter P(h200.rack.plan#filter) returned.
    type: dict
    required: true
  others:
    description: Addresses by name of hosts that the plan does not hold, such as the scheduler's controller.
    type: dict
    default: {}
author:
  - The h200.rack maintainers (@h200)
"""

EXAMPLES = r"""
- name: The nodes know each other by name
  ansible.builtin.include_role:
    name: h200.rack.node_ready
  vars:
    node_ready_hosts: "{{ rack_plan | h200.rack.hosts_lines({'slurm01': '10.20.1.5'}) }}"
"""

RETURN = r"""
_value:
  description: The lines, each an address and its names.
  type: list
  elements: str
"""

from ansible_collections.h200.rack.plugins.module_utils._plan.hosts import hosts_lines


class FilterModule:
    """The filter hosts_lines."""

    def filters(self):
        return {"hosts_lines": hosts_lines}
