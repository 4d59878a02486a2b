# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: ways
short_description: Tell the ways of nodes, a line each
version_added: 0.1.0
description:
  - Names every stage with the seconds that it took. Under a way that ended in a failure stands its evidence.
options:
  _input:
    description: The value RV(h200.rack.node_state_info#module:nodes) of M(h200.rack.node_state_info).
    type: dict
    required: true
author:
  - The h200.rack maintainers (@h200)
"""

EXAMPLES = r"""
- name: The ways are told
  ansible.builtin.debug:
    msg: "{{ ledger.nodes | h200.rack.ways }}"
"""

RETURN = r"""
_value:
  description: The lines.
  type: list
  elements: str
"""

from ansible_collections.h200.rack.plugins.module_utils._state.telling import ways


class FilterModule:
    """The filter ways."""

    def filters(self):
        return {"ways": ways}
