# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: timeline
short_description: How long each stage of a node took
version_added: 0.1.0
description:
  - Turns the history of a node into rows for a table.
options:
  _input:
    description: The value RV(h200.rack.node_state#module:history) of M(h200.rack.node_state).
    type: list
    elements: dict
    required: true
author:
  - The h200.rack maintainers (@h200)
"""

EXAMPLES = r"""
- name: The stages are shown with their times
  ansible.builtin.debug:
    msg: "{{ ledger.nodes['gpu001'].history | h200.rack.timeline }}"
"""

RETURN = r"""
_value:
  description:
    - A row for each event with C(stage), C(time), C(seconds) since the event before, C(total) since the first,
      C(run_id), and for a failure C(code) and C(failed_stage).
  type: list
  elements: dict
"""

from ansible_collections.h200.rack.plugins.module_utils._state.timeline import timeline


class FilterModule:
    """The filter timeline."""

    def filters(self):
        return {"timeline": timeline}
