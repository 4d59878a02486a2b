#!/usr/bin/python
# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: dcgm_probe
short_description: Run DCGM's diagnosis and judge it
version_added: 0.1.0
author:
  - The h200.rack maintainers (@h200)
description:
  - Runs C(dcgmi diag -j) and reads its JSON, that of DCGM 3 and that of DCGM 4.
  - A test passes when it ran on every GPU and passed. Skipped is not passed. Persistence mode that is off is told as a
    configuration error and not as bad hardware.
  - A bad GPU is a result, not an error of the module. Use RV(verdict).
options:
  level:
    description:
      - V(1) takes seconds, V(2) about two minutes, V(3) fifteen, V(4) one to two hours.
    type: int
    choices: [1, 2, 3, 4]
    default: 2
  gpus:
    description:
      - How many GPUs must have been tested.
    type: int
    required: true
  parameters:
    description:
      - DCGM's own parameters. Its defaults for H200 SXM hardly test anything. They accept a memory bandwidth of 2333
        MB/s and all NVLinks down, so name C(memory_bandwidth.minimum_bandwidth) (in MB/s) and
        C(pcie.gpu_nvlinks_expected_up).
    type: dict
    default: {}
  optional:
    description:
      - Tests that may be skipped, for their plugins come in packages of their own.
    type: list
    elements: str
    default: [eud, cpu_eud, nccl_tests]
  timeout:
    description:
      - Seconds until it and all it started are ended.
    type: int
    default: 1200
  program:
    description:
      - The program.
    type: str
    default: dcgmi
extends_documentation_fragment:
  - h200.rack.attributes
attributes:
  check_mode:
    support: full
    details:
      - The command is returned and nothing is run.
  diff_mode:
    support: none
  idempotent:
    support: full
    details:
      - Nothing is changed. Running it again measures again.
  platform:
    platforms: posix
seealso:
  - module: h200.rack.gpu_probe
  - module: h200.rack.gpu_burn_probe
"""

EXAMPLES = r"""
- name: DCGM finds nothing in fifteen minutes
  h200.rack.dcgm_probe:
    level: 3
    gpus: 8
    parameters:
      memory_bandwidth.minimum_bandwidth: 2212500
      pcie.gpu_nvlinks_expected_up: 18
  register: dcgm
  failed_when: dcgm.verdict != "pass"
"""

RETURN = r"""
verdict:
  description: V(fail) when any check failed, V(pass) when all ran and passed, else V(not_run).
  returned: success
  type: str
  sample: pass
checks:
  description: Each with C(name), C(verdict), C(measured), C(expected), C(code) and C(hint).
  returned: success
  type: list
  elements: dict
  sample: []
reasons:
  description: Code and hint of every check that did not pass.
  returned: success
  type: list
  elements: dict
  sample: []
command:
  description: The command line.
  returned: success
  type: str
  sample: dcgmi diag -r 3 -j
simulated:
  description: Whether the tools of this node are simulated, as in the virtual rack.
  returned: success
  type: bool
  sample: false
exit_code:
  description: Exit code; null where it had to be ended.
  returned: when it was run
  type: int
  sample: 0
elapsed:
  description: Seconds that it ran.
  returned: when it was run
  type: float
  sample: 122.4
stdout_tail:
  description: The end of what it printed.
  returned: when it was run
  type: str
  sample: ""
stderr_tail:
  description: The end of what it complained of.
  returned: when it was run
  type: str
  sample: ""
versions:
  description: Versions of driver and DCGM.
  returned: when it gave a diagnosis
  type: dict
  sample: {"driver": "570.211.01", "dcgm": "4.2.3"}
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.h200.rack.plugins.module_utils._common.errors import RackError
from ansible_collections.h200.rack.plugins.module_utils._gpu.stress import run_dcgm


def main():
    module = AnsibleModule(
        argument_spec={
            "level": {"type": "int", "choices": [1, 2, 3, 4], "default": 2},
            "gpus": {"type": "int", "required": True},
            "parameters": {"type": "dict", "default": {}},
            "optional": {"type": "list", "elements": "str", "default": ["eud", "cpu_eud", "nccl_tests"]},
            "timeout": {"type": "int", "default": 1200},
            "program": {"type": "str", "default": "dcgmi"},
        },
        supports_check_mode=True,
    )
    try:
        module.exit_json(changed=False, **run_dcgm(module.params, module.check_mode))
    except RackError as exc:
        module.fail_json(**exc.as_result())


if __name__ == "__main__":
    main()
