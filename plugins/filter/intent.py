# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: intent
short_description: Tell what a run is going to do
version_added: 0.1.0
description:
  - Says for each node of the run the boot override, power action, script, image and disk.
positional: decision
options:
  _input:
    description: What the filter P(h200.rack.plan#filter) returned.
    type: dict
    required: true
  decision:
    description: What the filter P(h200.rack.todo#filter) returned.
    type: dict
    required: true
author:
  - The h200.rack maintainers (@h200)
"""

EXAMPLES = r"""
- name: What happens is told
  ansible.builtin.debug:
    msg: "{{ rack_plan | h200.rack.intent(rack_decision) }}"
"""

RETURN = r"""
_value:
  description: The lines.
  type: list
  elements: str
"""

from ansible_collections.h200.rack.plugins.module_utils._state.telling import intent


class FilterModule:
    """The filter intent."""

    def filters(self):
        return {"intent": intent}
