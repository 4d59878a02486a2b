#!/usr/bin/python
# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: acceptance_record
short_description: Keep what an acceptance measured as the record of one node and run
version_added: 0.1.0
author:
  - The h200.rack maintainers (@h200)
description:
  - Puts the results of probes together into one record with one verdict, and writes it as JSON on the host where the
    module runs, which is the one that keeps the ledger.
  - A record counts only for the node, serial number, boot and run it was made under. One made from simulated tools says
    so.
  - With O(must_pass) the task fails when the verdict is not V(pass), after the record was written.
options:
  node:
    description:
      - The node's name in the inventory.
    type: str
    required: true
  run_id:
    description:
      - The run.
    type: str
    required: true
  tier:
    description:
      - How thorough the test was.
    type: str
    required: true
    choices: [quick, standard, burn_in, pairwise, rack]
  parts:
    description:
      - Results of M(h200.rack.gpu_probe), M(h200.rack.nccl_probe), M(h200.rack.dcgm_probe) and
        M(h200.rack.gpu_burn_probe), under names of your choice.
    type: dict
    required: true
  required:
    description:
      - Parts that must be there. One that is missing makes the verdict V(not_run).
    type: list
    elements: str
    default: []
  serial:
    description:
      - The system's serial number by the inventory. The node must have it.
    type: str
    default: ""
  profile:
    description:
      - The name of the profile that the node was compared with.
    type: str
    default: ""
  must_pass:
    description:
      - Fail the task when the verdict is not V(pass).
    type: bool
    default: true
  path:
    description:
      - Where records are kept, as C(RUN_ID/NODE.TIER.json).
    type: path
    default: /var/lib/h200-rack/acceptance
extends_documentation_fragment:
  - h200.rack.attributes
attributes:
  check_mode:
    support: full
  diff_mode:
    support: none
  idempotent:
    support: full
    details:
      - The same results of the same run do not change the record.
  platform:
    platforms: posix
seealso:
  - module: h200.rack.acceptance_report
"""

EXAMPLES = r"""
- name: The node is looked at
  h200.rack.gpu_probe:
    profile: "{{ acceptance_profile }}"
  register: look

- name: What was seen is kept, and only a good node goes on
  h200.rack.acceptance_record:
    node: "{{ inventory_hostname }}"
    run_id: "{{ acceptance_run_id }}"
    tier: quick
    parts:
      gpu: "{{ look }}"
    serial: "{{ rack_serial | default('') }}"
  delegate_to: "{{ acceptance_record_host }}"
"""

RETURN = r"""
verdict:
  description: V(pass), V(fail) or V(not_run).
  returned: always
  type: str
  sample: pass
code:
  description: The code of the first reason.
  returned: when it is not a pass
  type: str
  sample: GPU_COUNT
reasons:
  description: Code, hint and part of everything that is not a pass.
  returned: always
  type: list
  elements: dict
  sample: []
simulated:
  description: Whether it was made from simulated tools.
  returned: always
  type: bool
  sample: false
tier:
  description: The tier.
  returned: always
  type: str
  sample: quick
record:
  description: Path of the record.
  returned: always
  type: str
  sample: /var/lib/h200-rack/acceptance/20261130T120000Z-1a2b/gpu001.quick.json
summary:
  description: C(node), C(run_id), C(tier), C(verdict), C(simulated), C(reasons), C(boot_id) of the record.
  returned: always
  type: dict
  sample: {"node": "gpu001", "tier": "quick", "verdict": "pass"}
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.h200.rack.plugins.module_utils._common.errors import RackError
from ansible_collections.h200.rack.plugins.module_utils._gpu import records


def main():
    module = AnsibleModule(
        argument_spec={
            "node": {"type": "str", "required": True},
            "run_id": {"type": "str", "required": True},
            "tier": {"type": "str", "required": True, "choices": list(records.TIERS)},
            "parts": {"type": "dict", "required": True},
            "required": {"type": "list", "elements": "str", "default": []},
            "serial": {"type": "str", "default": ""},
            "profile": {"type": "str", "default": ""},
            "must_pass": {"type": "bool", "default": True, "no_log": False},
            "path": {"type": "path", "default": "/var/lib/h200-rack/acceptance"},
        },
        supports_check_mode=True,
    )
    try:
        result, failure = records.keep(module.params, module.check_mode)
    except RackError as exc:
        module.fail_json(**exc.as_result())
    if failure is not None and module.params["must_pass"] and not module.check_mode:
        module.fail_json(**{**result, **failure})
    module.exit_json(**result)


if __name__ == "__main__":
    main()
