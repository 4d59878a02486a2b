#!/usr/bin/python
# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: node_state
short_description: Record how far a node is on its way, and hold it for one run
version_added: 0.1.0
description:
  - Appends to the ledger of a node, a file of JSON lines on one host, that a stage of its way was reached or that
    the node failed.
  - The stages are C(declared), C(bmc_ok), C(netboot_set), C(powered), C(ramdisk_up), C(written), C(local_boot),
    C(os_up), C(ready), C(accepted) and C(registered), in this order. Leaving one out is refused. Going back to an
    earlier one is allowed and recorded. A re-image begins with C(declared).
  - A run holds a node by a lease, which every event renews. While another run holds the node, the module fails, says
    who holds it and until when, and writes nothing. A lease that has expired is taken over, which is recorded too.
  - Called without O(stage), the module only takes or renews the lease. An event is written when the run does not hold
    the node yet, or when less than half of its lease is left.
  - An event either is in the ledger as a whole or is not there at all, even when the host dies while it is written.
extends_documentation_fragment:
  - h200.rack.attributes
attributes:
  check_mode:
    support: full
  diff_mode:
    support: full
  idempotent:
    support: full
    details:
      - The same stage with the same evidence as the last event, by the run that holds the node, changes nothing.
  platform:
    platforms: posix
options:
  node:
    description:
      - The node's name in the inventory.
    type: str
    required: true
  stage:
    description:
      - The stage that the node is in now.
    type: str
    choices:
      - declared
      - bmc_ok
      - netboot_set
      - powered
      - ramdisk_up
      - written
      - local_boot
      - os_up
      - ready
      - accepted
      - registered
      - failed
  code:
    description:
      - A stable word for what went wrong. Needed with, and only allowed with, O(stage=failed).
    type: str
  failed_stage:
    description:
      - The stage that was being worked on when the node failed.
      - The default is the one after the stage reached last.
    type: str
    choices:
      - declared
      - bmc_ok
      - netboot_set
      - powered
      - ramdisk_up
      - written
      - local_boot
      - os_up
      - ready
      - accepted
      - registered
  evidence:
    description:
      - What proves the stage, or shows the failure.
      - Values under keys that look like secrets (for example C(password) or C(token)) and private keys are not written.
        Strings longer than 2000 characters are cut. More than 16 KiB in all is refused.
    type: dict
    default: {}
  earlier:
    description:
      - Stages that were reached just before O(stage), to be recorded with it in one call, in their order.
    type: list
    elements: dict
    default: []
    suboptions:
      stage:
        description:
          - The stage.
        type: str
        required: true
        choices:
          - declared
          - bmc_ok
          - netboot_set
          - powered
          - ramdisk_up
          - written
          - local_boot
          - os_up
          - ready
          - accepted
          - registered
      evidence:
        description:
          - What proves it.
        type: dict
        default: {}
  run_id:
    description:
      - What tells this run from all others. The same for all tasks of a run.
    type: str
    required: true
  holder:
    description:
      - Whom a run that is refused should talk to, for example V(alice@controller1) or an AWX job.
      - The default is the value of O(run_id).
    type: str
  process:
    description:
      - Which process of which machine the run is, as the lookup P(h200.rack.this_run#lookup) says. It lets a later run
        on the same machine see that this one is dead.
    type: str
    default: ''
  take_over:
    description:
      - The id of a run that is known to be dead. Its lease is taken over although it has not expired.
      - Without effect on the lease of any other run.
    type: str
  lease:
    description:
      - For how many seconds from now other runs are refused. Longer than the longest stage takes.
    type: int
    default: 3600
  release:
    description:
      - Let the node go, after recording O(stage) if one is given.
    type: bool
    default: false
  path:
    description:
      - The folder of the ledgers. It is made when it is absent.
    type: path
    default: /var/lib/h200-rack/ledger
seealso:
  - module: h200.rack.node_state_info
author:
  - The h200.rack maintainers (@h200)
"""

EXAMPLES = r"""
- name: The node is taken by this run
  h200.rack.node_state:
    node: "{{ inventory_hostname }}"
    stage: declared
    run_id: "{{ run_id }}"
    holder: alice@controller1
    evidence:
      image: ubuntu-24.04-h200@9f2c1e
  delegate_to: "{{ rack_ledger_host }}"

- name: Two stages are recorded by one call
  h200.rack.node_state:
    node: "{{ inventory_hostname }}"
    earlier:
      - stage: declared
        evidence:
          image: ubuntu-24.04-h200
    stage: bmc_ok
    evidence:
      protocol: redfish
    run_id: "{{ run_id }}"
  delegate_to: "{{ rack_ledger_host }}"

- name: The failure is on record and the node is free for the next run
  h200.rack.node_state:
    node: "{{ inventory_hostname }}"
    stage: failed
    failed_stage: ramdisk_up
    code: timeout
    evidence:
      msg: no SSH from the ramdisk within 300 s
    run_id: "{{ run_id }}"
    release: true
  delegate_to: "{{ rack_ledger_host }}"
"""

RETURN = r"""
stage:
  description: The stage that the node is in now. Null when nothing is known of it.
  returned: success
  type: str
  sample: ramdisk_up
previous_stage:
  description: The stage that the node was in before RV(stage).
  returned: success
  type: str
  sample: powered
history:
  description: The stage events of the node's current way, since it was last C(declared).
  returned: success
  type: list
  elements: dict
  contains:
    time:
      description: When it was recorded, in UTC.
      type: str
      sample: "2026-11-30T15:04:05.678Z"
    stage:
      description: The stage.
      type: str
    previous:
      description: The stage before.
      type: str
    evidence:
      description: What proves it.
      type: dict
    code:
      description: What went wrong. Only with the stage C(failed).
      type: str
    failed_stage:
      description: The stage that was being worked on. Only with the stage C(failed).
      type: str
    run_id:
      description: The run that recorded it.
      type: str
    holder:
      description: Who ran it.
      type: str
    until:
      description: When the lease ends that the event renewed.
      type: str
    process:
      description: The value of O(process), when there was one.
      type: str
lease:
  description: Who holds the node. Null when nobody does. Also returned when another run holds it.
  returned: success, or another run holds the node
  type: dict
  contains:
    run_id:
      description: The run.
      type: str
    holder:
      description: Who runs it.
      type: str
    until:
      description: When it ends, in UTC.
      type: str
    process:
      description: The value of O(process). Empty when it is not known.
      type: str
    expired:
      description: Whether it has ended.
      type: bool
code:
  description: Why the module failed.
  returned: failure
  type: str
  choices: [held, order, damaged, invalid, timeout, io]
  sample: held
"""

import json

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.h200.rack.plugins.module_utils._common.errors import RackError
from ansible_collections.h200.rack.plugins.module_utils._state.record import Request, record
from ansible_collections.h200.rack.plugins.module_utils._state.stages import ALL_STAGES, STAGES


def told(summary):
    """One side of the diff."""
    lease = summary["lease"] or {}
    view = {"stage": summary["stage"], "run_id": lease.get("run_id"), "holder": lease.get("holder")}
    return json.dumps(view, indent=2, sort_keys=True) + "\n"


def main():
    module = AnsibleModule(
        argument_spec={
            "node": {"type": "str", "required": True},
            "stage": {"type": "str", "choices": list(ALL_STAGES)},
            "code": {"type": "str"},
            "failed_stage": {"type": "str", "choices": list(STAGES)},
            "evidence": {"type": "dict", "default": {}},
            "earlier": {
                "type": "list",
                "elements": "dict",
                "default": [],
                "options": {
                    "stage": {"type": "str", "required": True, "choices": list(STAGES)},
                    "evidence": {"type": "dict", "default": {}},
                },
            },
            "run_id": {"type": "str", "required": True},
            "holder": {"type": "str"},
            "process": {"type": "str", "default": ""},
            "take_over": {"type": "str"},
            "lease": {"type": "int", "default": 3600},
            "release": {"type": "bool", "default": False},
            "path": {"type": "path", "default": "/var/lib/h200-rack/ledger"},
        },
        supports_check_mode=True,
    )
    params = dict(module.params)
    folder = params.pop("path")
    params["holder"] = params["holder"] or params["run_id"]
    try:
        result = record(folder, Request(**params), check_mode=module.check_mode)
    except RackError as exc:
        module.fail_json(**exc.as_result())
    before = result.pop("before")
    if module._diff and result["changed"]:
        header = f"{params['node']} in {folder}"
        result["diff"] = {
            "before": told(before),
            "after": told(result),
            "before_header": header,
            "after_header": header,
        }
    module.exit_json(**result)


if __name__ == "__main__":
    main()
