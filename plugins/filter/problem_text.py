# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: problem_text
short_description: Problems as text, one line each
version_added: 0.1.0
description:
  - Each line holds the host, the variable and the message. A problem of the rack as a whole is that of C(rack).
options:
  _input:
    description: Problems with C(node), C(variable) and C(msg).
    type: list
    elements: dict
    required: true
author:
  - The h200.rack maintainers (@h200)
"""

EXAMPLES = r"""
- name: Nothing is wrong
  ansible.builtin.fail:
    msg: "{{ rack_plan.problems | h200.rack.problem_text }}"
  when: rack_plan.problems | length > 0
"""

RETURN = r"""
_value:
  description: The sorted lines.
  type: str
"""

from ansible_collections.h200.rack.plugins.module_utils._plan.findings import as_text


class FilterModule:
    """The filter problem_text."""

    def filters(self):
        return {"problem_text": as_text}
