# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: acceptance_pairs
short_description: Pair nodes up for tests, in rounds whose pairs share no node
version_added: 0.1.0
description:
  - Every node is paired with the next in a ring, so that each is in two pairs and a bad node is in two bad ones.
options:
  _input:
    description: Names of the nodes.
    type: list
    elements: str
    required: true
author:
  - The h200.rack maintainers (@h200)
"""

EXAMPLES = r"""
- name: The pairs of each round are shown
  ansible.builtin.debug:
    msg: "{{ groups['rack_nodes'] | h200.rack.acceptance_pairs }}"
"""

RETURN = r"""
_value:
  description: A list of rounds, each a mapping of the node that starts a pair's test to the two nodes.
  type: list
  elements: dict
"""

from ansible_collections.h200.rack.plugins.module_utils._gpu.rack_statistics import pairs


class FilterModule:
    """The filter acceptance_pairs."""

    def filters(self):
        return {"acceptance_pairs": pairs}
