# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: todo
short_description: Decide what a run does with each node
version_added: 0.1.0
description:
  - Compares the plan with the ledger. A node whose image was never written and verified is imaged. A node that stopped
    or failed later is finished from there. A registered node is only looked at.
  - Also returns the boot script of every node of the plan, so that all scripts can be written at once.
positional: states
options:
  _input:
    description: What the filter P(h200.rack.plan#filter) returned.
    type: dict
    required: true
  states:
    description: The value RV(h200.rack.node_state_info#module:nodes) of M(h200.rack.node_state_info).
    type: dict
    required: true
  digests:
    description: The digest that each image's name stands for now.
    type: dict
    default: {}
  ramdisks:
    description: The digest of the ramdisk for each architecture. Without it no scripts are returned.
    type: dict
    default: {}
  overlay:
    description: The path of the ramdisk's overlay below the mirrors' root.
    type: str
    default: ''
  run_id:
    description: The id of this run. Nodes that it holds already are not refused.
    type: str
    default: ''
  take_over:
    description:
      - Ids of runs that a person knows to be dead, as a list or separated by commas. Their nodes are not refused.
      - Runs that this machine itself can tell to be dead need not be named.
    type: raw
    default: []
author:
  - The h200.rack maintainers (@h200)
"""

EXAMPLES = r"""
- name: What happens to each node is decided once
  ansible.builtin.set_fact:
    rack_decision: >-
      {{ rack_plan | h200.rack.todo(ledger.nodes, digests=mirrors.digests, ramdisks=mirrors.ramdisks, run_id=run.id) }}
"""

RETURN = r"""
_value:
  description: The decision.
  type: dict
  contains:
    nodes:
      description:
        - By node of this run C(will) (V(image), V(finish), V(verify) or V(nothing)), C(from_stage) (the first stage to
          be reached), C(reason), C(script) (the action of its boot script), C(digest), C(drain) (whether the scheduler
          may run jobs on it that must end first), C(allow_overwrite), C(host_keys) of a system written before, and
          C(take_over) (the dead run that still holds the node, for O(h200.rack.node_state#module:take_over)).
      type: dict
    actions:
      description: The action of the boot script of every node of the plan.
      type: dict
    scripts:
      description: The option O(h200.rack.ipxe_render#module:nodes) of M(h200.rack.ipxe_render), for all nodes.
      type: list
      elements: dict
    problems:
      description: Nodes that this run may not touch, with C(node), C(variable) and C(msg).
      type: list
      elements: dict
"""

from ansible.errors import AnsibleFilterError
from ansible_collections.h200.rack.plugins.module_utils._common.errors import RackError
from ansible_collections.h200.rack.plugins.module_utils._plan.scripts import ipxe_node
from ansible_collections.h200.rack.plugins.module_utils._state.runner import is_dead
from ansible_collections.h200.rack.plugins.module_utils._state.todo import dead_runs, decide
from ansible_collections.h200.rack.plugins.plugin_utils.ipxe_https import can_https


def todo(plan, states, digests=None, ramdisks=None, overlay="", run_id="", take_over=None):
    """What is done with each node, and the boot scripts that follow from it."""
    named = take_over.replace(",", " ").split() if isinstance(take_over, str) else take_over or []
    decision = decide(plan, states, digests or {}, run_id, dead_runs(states, map(str, named), is_dead))
    scripts = []
    if ramdisks:
        try:
            scripts = [
                ipxe_node(plan["nodes"][name], action, ramdisks, overlay, can_https(plan["nodes"][name]))
                for name, action in decision["actions"].items()
            ]
        except (ValueError, RackError) as exc:
            raise AnsibleFilterError(f"h200.rack.todo: {exc}") from exc
    return {**decision, "scripts": scripts}


class FilterModule:
    """The filter todo."""

    def filters(self):
        return {"todo": todo}
