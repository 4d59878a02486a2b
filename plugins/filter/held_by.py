# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: held_by
short_description: Name the nodes that a run holds
version_added: 0.1.0
description:
  - Finds the nodes whose lease belongs to a run and has not expired.
positional: run_id
options:
  _input:
    description: The value RV(h200.rack.node_state_info#module:nodes) of M(h200.rack.node_state_info).
    type: dict
    required: true
  run_id:
    description: The id of the run.
    type: str
    required: true
author:
  - The h200.rack maintainers (@h200)
"""

EXAMPLES = r"""
- name: The nodes of this run
  ansible.builtin.debug:
    msg: "{{ ledger.nodes | h200.rack.held_by(run_id) }}"
"""

RETURN = r"""
_value:
  description: The names, sorted.
  type: list
  elements: str
"""

from ansible_collections.h200.rack.plugins.module_utils._state.telling import held_by


class FilterModule:
    """The filter held_by."""

    def filters(self):
        return {"held_by": held_by}
