# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: mirror_problems
short_description: Say which problems of mirrors stop nodes
version_added: 0.1.0
description:
  - Turns what M(h200.rack.mirror_check) found into problems of the kind that the filter P(h200.rack.plan#filter)
    returns, as far as they stop a node - none of its mirrors is left that is in rotation and has what it needs, or its
    image does not fit it. The others are those of P(h200.rack.mirror_warnings#filter).
positional: checks
extends_documentation_fragment: [h200.rack.mirror_findings]
author:
  - The h200.rack maintainers (@h200)
"""

EXAMPLES = r"""
- name: The mirrors' problems are shown
  ansible.builtin.debug:
    msg: "{{ rack_plan | h200.rack.mirror_problems(mirror_checks.results) }}"
"""

RETURN = r"""
_value:
  description: The problems with C(node), C(variable), C(msg) and C(code).
  type: list
  elements: dict
"""

from ansible_collections.h200.rack.plugins.module_utils._plan.findings import mirror_problems


class FilterModule:
    """The filter mirror_problems."""

    def filters(self):
        return {"mirror_problems": mirror_problems}
