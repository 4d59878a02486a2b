#!/usr/bin/python
# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: slurm_node
short_description: Drain, release and remove one Slurm node, and prove it
version_added: 0.1.0
description:
  - Brings one node of a running Slurm controller to a state with C(scontrol), and reads it back.
  - A drain made here carries the reason C(h200.rack:RUN:CODE). Only such a drain is ever ended by
    O(state=resumed); what
    a person or another program drained is left alone and reported in RV(held_by).
  - Runs where C(scontrol) works, best on the controller. Slurm 22.05 and newer.
options:
  name:
    description: The node's name in Slurm.
    type: str
    required: true
  state:
    description:
      - V(present) waits until the node's slurmd registered, with O(gres) when that is given. It changes nothing.
      - V(drained) drains the node for O(reason).
      - V(resumed) releases a node that is drained for a reason of O(run_id) and whose O(records) admit it.
      - V(absent) drains a dynamic node, waits for its jobs and deletes it. Nodes in the controller's files are
        removed by
        the role P(h200.rack.slurm#role), all at once.
    type: str
    choices: [present, drained, resumed, absent]
    default: present
  reason:
    description:
      - The code in the reason of a drain, one word such as C(GPU_COUNT). The prefix and the run are put before it.
    type: str
    default: provisioning
  run_id:
    description:
      - This run. Needed for O(state=drained) and O(state=absent).
      - With O(state=resumed), a drain of another run is not ended.
    type: str
  gres:
    description: The GRES that the node must have, such as C(gpu:h200:8).
    type: str
  restarted_from:
    description:
      - With O(state=present), the RV(slurmd_start) that was seen before slurmd was started anew.
      - The controller keeps what an earlier slurmd told it, also while the new one does not come up. That is not taken
        for the new one's registration.
    type: str
  was_invalid:
    description:
      - With O(state=present), whether RV(invalid) was true before slurmd was started anew. It stays so until the new
        one speaks, and is waited out.
    type: bool
    default: false
  dynamic:
    description:
      - With O(state=present), whether the node makes itself known (C(slurmd -Z)). A node that the controller does not
        know is then waited for.
    type: bool
    default: false
  wait:
    description: Seconds for the whole, waiting for a controller that is away included.
    type: float
    default: 120
  wait_for_jobs:
    description: With O(state=drained), return when no job is left on the node.
    type: bool
    default: false
  foreign_drain:
    description: Whether a drain that is not ours fails O(state=resumed), or is only reported in RV(held_by).
    type: str
    choices: [fail, keep]
    default: fail
  required:
    description:
      - With O(state=resumed), the acceptance tiers that the node must have passed in this run.
      - A node that has not stays drained, with the failing code as its reason.
    type: list
    elements: str
    default: []
  records:
    description: With O(state=resumed), the acceptance records to look in.
    type: list
    elements: dict
    default: []
    suboptions:
      node:
        description: The node that was measured.
        type: str
        required: true
      run_id:
        description: The run that measured it.
        type: str
        required: true
      tier:
        description: What was measured, such as C(quick).
        type: str
        required: true
      verdict:
        description: The outcome.
        type: str
        choices: [pass, fail, not_run]
        required: true
      boot_id:
        description: The boot that was measured.
        type: str
        default: ""
      simulated:
        description: Whether it was made from simulated tools.
        type: bool
        default: false
      reasons:
        description: What failed, the most telling first; each a code or a mapping with C(code).
        type: list
        elements: raw
        default: []
  boot_id:
    description: The boot that the node is in. When given, a record of another boot does not count.
    type: str
  allow_simulated:
    description: Whether records made from simulated tools admit a node. Only a virtual rack sets this.
    type: bool
    default: false
attributes:
  check_mode:
    support: full
  diff_mode:
    support: full
  idempotent:
    support: full
  platform:
    platforms: posix
extends_documentation_fragment:
  - h200.rack.attributes
author:
  - The h200.rack maintainers (@h200)
"""

EXAMPLES = r"""
- name: Gpu001 takes no new jobs and has none left
  h200.rack.slurm_node:
    name: gpu001
    state: drained
    reason: reimage
    run_id: "{{ slurm_run_id }}"
    wait_for_jobs: true
    wait: 3600
  delegate_to: slurm01

- name: Gpu001 is registered with eight GPUs
  h200.rack.slurm_node:
    name: gpu001
    gres: gpu:h200:8
  delegate_to: slurm01

- name: Gpu001 takes jobs, since its acceptance passed
  h200.rack.slurm_node:
    name: gpu001
    state: resumed
    run_id: "{{ slurm_run_id }}"
    required: [quick]
    records: "{{ acceptance_records }}"
  delegate_to: slurm01
"""

RETURN = r"""
state:
  description: The node's state now, with its flags, or C(absent).
  type: str
  returned: success
  sample: IDLE+DRAIN
previous_state:
  description: The state before.
  type: str
  returned: success
  sample: IDLE
reason:
  description: The reason now.
  type: str
  returned: success
  sample: h200.rack:run7:provisioning
present:
  description: Whether the controller knows the node.
  type: bool
  returned: success
registered:
  description: Whether the node's slurmd has spoken with the controller since one of them started.
  type: bool
  returned: when present
slurmd_start:
  description: When the node's slurmd started, as it told the controller.
  type: str
  returned: when present
invalid:
  description: Whether the controller refused its registration, since it has less than declared.
  type: bool
  returned: when present
drained:
  description: Whether the node takes no new jobs.
  type: bool
  returned: when present
jobs:
  description: Ids of the jobs that hold the node.
  type: list
  elements: str
  returned: success
gres:
  description: The node's GRES.
  type: str
  returned: when present
  sample: gpu:h200:8
held_by:
  description: Who drained it and why, when that is not h200.rack.
  type: dict
  returned: when drained by others
  contains:
    reason:
      description: Their reason.
      type: str
    user:
      description: The user that set it.
      type: str
    since:
      description: When, as Slurm tells it.
      type: str
code:
  description:
    - What kind of failure this is, such as C(GPU_COUNT), C(controller_unreachable), C(foreign_drain), C(timeout).
  type: str
  returned: failure
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.h200.rack.plugins.module_utils._common.errors import RackError
from ansible_collections.h200.rack.plugins.module_utils._slurm import command, run_node


def argument_spec():
    record = {
        "node": {"type": "str", "required": True},
        "run_id": {"type": "str", "required": True},
        "tier": {"type": "str", "required": True},
        "verdict": {"type": "str", "required": True, "choices": ["pass", "fail", "not_run"]},
        "boot_id": {"type": "str", "default": ""},
        "simulated": {"type": "bool", "default": False},
        "reasons": {"type": "list", "elements": "raw", "default": []},
    }
    return {
        "name": {"type": "str", "required": True},
        "state": {"type": "str", "choices": ["present", "drained", "resumed", "absent"], "default": "present"},
        "reason": {"type": "str", "default": "provisioning"},
        "run_id": {"type": "str"},
        "gres": {"type": "str"},
        "restarted_from": {"type": "str"},
        "was_invalid": {"type": "bool", "default": False},
        "dynamic": {"type": "bool", "default": False},
        "wait": {"type": "float", "default": 120},
        "wait_for_jobs": {"type": "bool", "default": False},
        "foreign_drain": {"type": "str", "choices": ["fail", "keep"], "default": "fail"},
        "required": {"type": "list", "elements": "str", "default": []},
        "records": {"type": "list", "elements": "dict", "default": [], "options": record},
        "boot_id": {"type": "str"},
        "allow_simulated": {"type": "bool", "default": False},
    }


def main():
    module = AnsibleModule(
        argument_spec=argument_spec(),
        required_if=[("state", "drained", ["run_id"]), ("state", "absent", ["run_id"])],
        supports_check_mode=True,
    )
    try:
        result = run_node.run(module.params, command.runner(module), module.check_mode)
    except RackError as exc:
        module.fail_json(**exc.as_result())
    module.exit_json(**result)


if __name__ == "__main__":
    main()
