# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: slurm_nodes
short_description: The nodes of the plan as Slurm declares them
version_added: 0.1.0
description:
  - Makes the option O(h200.rack.slurm_config#module:nodes) of M(h200.rack.slurm_config) from the plan.
options:
  _input:
    description: What the filter P(h200.rack.plan#filter) returned.
    type: dict
    required: true
author:
  - The h200.rack maintainers (@h200)
"""

EXAMPLES = r"""
- name: The scheduler knows every node
  ansible.builtin.include_role:
    name: h200.rack.slurm
    tasks_from: controller
  vars:
    slurm_rack_nodes: "{{ rack_plan | h200.rack.slurm_nodes }}"
"""

RETURN = r"""
_value:
  description: The nodes with C(name), C(address), C(profile) and C(scalable_unit).
  type: list
  elements: dict
"""

from ansible_collections.h200.rack.plugins.module_utils._plan.slurm import slurm_nodes


class FilterModule:
    """The filter slurm_nodes."""

    def filters(self):
        return {"slurm_nodes": slurm_nodes}
