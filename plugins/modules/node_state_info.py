#!/usr/bin/python
# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: node_state_info
short_description: Read how far nodes are on their way
version_added: 0.1.0
description:
  - Reads the ledgers that M(h200.rack.node_state) writes, of many nodes at once, without a lease and without a lock.
extends_documentation_fragment:
  - h200.rack.attributes
attributes:
  check_mode:
    support: full
  diff_mode:
    support: none
  idempotent:
    support: full
  platform:
    platforms: posix
options:
  nodes:
    description:
      - Names of the nodes. A node without a ledger is returned too, without a stage.
      - The default is every node that has a ledger.
    type: list
    elements: str
    default: []
  path:
    description:
      - The folder of the ledgers.
    type: path
    default: /var/lib/h200-rack/ledger
seealso:
  - module: h200.rack.node_state
author:
  - The h200.rack maintainers (@h200)
"""

EXAMPLES = r"""
- name: The stages of all nodes are read once
  h200.rack.node_state_info:
    nodes: "{{ groups['rack_nodes'] }}"
  delegate_to: "{{ rack_ledger_host }}"
  register: ledger
"""

RETURN = r"""
nodes:
  description: What is known of each node, by its name.
  returned: success
  type: dict
  contains:
    stage:
      description: The stage that the node is in. Null when nothing is known of it.
      type: str
    previous_stage:
      description: The stage that the node was in before.
      type: str
    history:
      description: The stage events of the current way, as M(h200.rack.node_state) returns them.
      type: list
      elements: dict
    lease:
      description:
        - Who holds the node, with C(run_id), C(holder), C(until), C(process) and C(expired). Null when nobody does.
      type: dict
    error:
      description: Why this node's ledger cannot be read. Null when it can.
      type: str
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.h200.rack.plugins.module_utils._common.errors import RackError
from ansible_collections.h200.rack.plugins.module_utils._state.record import info


def main():
    module = AnsibleModule(
        argument_spec={
            "nodes": {"type": "list", "elements": "str", "default": []},
            "path": {"type": "path", "default": "/var/lib/h200-rack/ledger"},
        },
        supports_check_mode=True,
    )
    try:
        module.exit_json(changed=False, nodes=info(module.params["path"], module.params["nodes"]))
    except RackError as exc:
        module.fail_json(**exc.as_result())


if __name__ == "__main__":
    main()
