#!/usr/bin/python
# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: slurm_info
short_description: Read a Slurm controller's nodes, partitions, version and files
version_added: 0.1.0
description:
  - Reads what C(scontrol) tells, in one shape for all Slurm versions.
  - Runs where C(scontrol) works; O(files) needs the controller itself.
options:
  nodes:
    description: Only these nodes. A name that the controller does not know is returned with C(present=false).
    type: list
    elements: str
  jobs:
    description: Whether to list the jobs of each node in O(nodes).
    type: bool
    default: false
  files:
    description: Whether to return the configuration files that slurmd needs on a node without the configless mode.
    type: bool
    default: false
  config_dir:
    description: Where they are.
    type: path
    default: /etc/slurm
  wait:
    description: Seconds to wait for a controller that does not answer.
    type: float
    default: 10
attributes:
  check_mode:
    support: full
  diff_mode:
    support: none
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
- name: What is on the nodes that shall be imaged again is known
  h200.rack.slurm_info:
    nodes: "{{ rack_reimage }}"
    jobs: true
  delegate_to: slurm01
  register: slurm
"""

RETURN = r"""
version:
  description: Slurm's version.
  type: str
  returned: success
  sample: 22.05.8
nodes:
  description: By name, what the controller knows of the node.
  type: dict
  returned: success
  sample:
    gpu001:
      present: true
      state: IDLE+DRAIN
      reason: h200.rack:run7:provisioning
      gres: gpu:h200:8
      drained: true
      registered: true
      jobs: []
partitions:
  description: By name, the fields of C(scontrol show partition).
  type: dict
  returned: success
config:
  description: The fields of C(scontrol show config).
  type: dict
  returned: success
files:
  description: By name, the content of C(slurm.conf), of what it includes, and of the files beside it.
  type: dict
  returned: when O(files=true)
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.h200.rack.plugins.module_utils._common.errors import RackError
from ansible_collections.h200.rack.plugins.module_utils._slurm import command, run_info


def argument_spec():
    return {
        "nodes": {"type": "list", "elements": "str"},
        "jobs": {"type": "bool", "default": False},
        "files": {"type": "bool", "default": False},
        "config_dir": {"type": "path", "default": "/etc/slurm"},
        "wait": {"type": "float", "default": 10},
    }


def main():
    module = AnsibleModule(argument_spec=argument_spec(), supports_check_mode=True)
    try:
        result = run_info.run(module.params, command.runner(module))
    except RackError as exc:
        module.fail_json(**exc.as_result())
    module.exit_json(changed=False, **result)


if __name__ == "__main__":
    main()
