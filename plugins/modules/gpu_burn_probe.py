#!/usr/bin/python
# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: gpu_burn_probe
short_description: Run gpu-burn and judge errors and the rate of every GPU
version_added: 0.1.0
author:
  - The h200.rack maintainers (@h200)
description:
  - gpu-burn ends with 0 also when a GPU is faulty, and its C(OK) says nothing about speed. This module wants every GPU
    tested, no error, and every GPU's rate near the median of its node.
  - A bad GPU is a result, not an error of the module. Use RV(verdict).
options:
  seconds:
    description:
      - How long to burn.
    type: int
    default: 3600
  gpus:
    description:
      - How many GPUs must have been tested.
    type: int
    required: true
  minimum_rate:
    description:
      - What every GPU must reach, in Gflop/s. Without it a GPU is only held against the others of its node.
    type: float
  grace:
    description:
      - Seconds beyond O(seconds) until it and all it started are ended.
    type: int
    default: 300
  program:
    description:
      - The program.
    type: str
    default: gpu_burn
  arguments:
    description:
      - Arguments before the number of seconds, such as C(-tc).
    type: list
    elements: str
    default: []
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
  - module: h200.rack.dcgm_probe
"""

EXAMPLES = r"""
- name: Four hours of load leave no error and no slow GPU
  h200.rack.gpu_burn_probe:
    seconds: 14400
    gpus: 8
    arguments: [-tc]
  register: burn
  failed_when: burn.verdict != "pass"
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
  sample: gpu_burn -tc 14400
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
rates:
  description: The last rate of every GPU in Gflop/s, for comparing nodes.
  returned: when it came to its end
  type: list
  elements: float
  sample: [51420.0, 51377.0]
gpus:
  description: Verdict of gpu-burn on every GPU.
  returned: when it came to its end
  type: dict
  sample: {"0": "OK", "1": "OK"}
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.h200.rack.plugins.module_utils._common.errors import RackError
from ansible_collections.h200.rack.plugins.module_utils._gpu.stress import run_burn


def main():
    module = AnsibleModule(
        argument_spec={
            "seconds": {"type": "int", "default": 3600},
            "gpus": {"type": "int", "required": True},
            "minimum_rate": {"type": "float"},
            "grace": {"type": "int", "default": 300},
            "program": {"type": "str", "default": "gpu_burn"},
            "arguments": {"type": "list", "elements": "str", "default": []},
        },
        supports_check_mode=True,
    )
    try:
        module.exit_json(changed=False, **run_burn(module.params, module.check_mode))
    except RackError as exc:
        module.fail_json(**exc.as_result())


if __name__ == "__main__":
    main()
