# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: seed
short_description: What the installed system of a node is told at its first boot
version_added: 0.1.0
description:
  - Makes the option O(h200.rack.image_write#module:seed) of M(h200.rack.image_write) from a node of the plan.
options:
  _input:
    description: One of the C(nodes) that the filter P(h200.rack.plan#filter) returned.
    type: dict
    required: true
author:
  - The h200.rack maintainers (@h200)
"""

EXAMPLES = r"""
- name: The image is written with the node's seed
  h200.rack.image_write:
    seed: "{{ node | h200.rack.seed }}"
"""

RETURN = r"""
_value:
  description: C(hostname), C(fqdn), C(users) and C(network_config).
  type: dict
"""

from ansible_collections.h200.rack.plugins.module_utils._plan.seed import seed


class FilterModule:
    """The filter seed."""

    def filters(self):
        return {"seed": seed}
