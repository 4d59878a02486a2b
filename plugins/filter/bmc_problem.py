# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: bmc_problem
short_description: Say which variable is behind the failure of a BMC module
version_added: 0.1.0
description:
  - Turns the result of a failed BMC module into a problem of the kind that the filter P(h200.rack.plan#filter) returns.
positional: node
options:
  _input:
    description: The result of the failed task.
    type: dict
    required: true
  node:
    description: The node's name.
    type: str
    required: true
author:
  - The h200.rack maintainers (@h200)
"""

EXAMPLES = r"""
- name: The BMC's answer is kept for the list of problems
  ansible.builtin.set_fact:
    preflight_problem: "{{ ansible_failed_result | h200.rack.bmc_problem(inventory_hostname) }}"
"""

RETURN = r"""
_value:
  description: The problem with C(node), C(variable), C(msg) and C(code).
  type: dict
"""

from ansible_collections.h200.rack.plugins.module_utils._plan import findings


def bmc_problem(failure, node):
    """The problem behind a failed BMC module."""
    return findings.bmc_problem(node, failure)


class FilterModule:
    """The filter bmc_problem."""

    def filters(self):
        return {"bmc_problem": bmc_problem}
