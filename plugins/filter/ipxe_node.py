# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: ipxe_node
short_description: What a node's boot script is rendered from
version_added: 0.1.0
description:
  - Makes an entry of the option O(h200.rack.ipxe_render#module:nodes) of M(h200.rack.ipxe_render) from a node of the
    plan.
positional: action
options:
  _input:
    description: One of the C(nodes) that the filter P(h200.rack.plan#filter) returned.
    type: dict
    required: true
  action:
    description: What the node does when it next boots from the network.
    type: str
    required: true
  ramdisks:
    description: The digest of the ramdisk for each architecture. Needed for the actions V(deploy) and V(rescue).
    type: dict
    default: {}
  overlay:
    description: The path of the ramdisk's overlay below the mirrors' root.
    type: str
    default: ''
author:
  - The h200.rack maintainers (@h200)
"""

EXAMPLES = r"""
- name: The node boots its disk from now on
  h200.rack.ipxe_render:
    nodes: ["{{ node | h200.rack.ipxe_node('local') }}"]
"""

RETURN = r"""
_value:
  description: The entry.
  type: dict
"""

from ansible.errors import AnsibleFilterError
from ansible_collections.h200.rack.plugins.module_utils._common.errors import RackError
from ansible_collections.h200.rack.plugins.module_utils._plan import scripts
from ansible_collections.h200.rack.plugins.plugin_utils.ipxe_https import can_https


def ipxe_node(node, action, ramdisks=None, overlay=""):
    """An entry of the option nodes of ipxe_render."""
    try:
        return scripts.ipxe_node(node, action, ramdisks, overlay, can_https(node))
    except (ValueError, RackError) as exc:
        raise AnsibleFilterError(f"h200.rack.ipxe_node: {exc}") from exc


class FilterModule:
    """The filter ipxe_node."""

    def filters(self):
        return {"ipxe_node": ipxe_node}
