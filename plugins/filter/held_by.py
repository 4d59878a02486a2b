# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: held_by
short_description: The nodes that a run holds
version_added: 0.1.0
description:
  - Names the nodes whose last lease is that of a run and was not released, expired or not.
positional: run_id
options:
  _input:
    description: The value RV(h200.rack.node_state_info#module:nodes) of M(h200.rack.node_state_info).
    type: dict
    required: true
  run_id:
    description: The run.
    type: str
    required: true
author:
  - The h200.rack maintainers (@h200)
"""

EXAMPLES = r"""
- name: Nodes that this run still holds are named
  ansible.builtin.debug:
    msg: "{{ ledger.nodes | h200.rack.held_by(run_id) }}"
"""

RETURN = r"""
_value:
  description: The names of the nodes.
  type: list
  elements: str
"""

from ansible_collections.h200.rack.plugins.module_utils._state.timeline import held_by


class FilterModule:
    """The filter held_by."""

    def filters(self):
        return {"held_by": held_by}
