#!/usr/bin/python
# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: node_check
short_description: Compare a freshly installed node with what it shall be
version_added: 0.1.0
description:
  - Waits for cloud-init, then reads host name, network, accounts, clock, services, GPUs and limits in one go
    and compares them with what is given. Changes nothing.
  - What becomes true by itself after a boot (clock, network, services, devices) is waited for.
options:
  hostname:
    description: The host name; compared up to the first dot.
    type: str
  network:
    description: The network configuration, cloud-init's version 2, that the node was given.
    type: dict
    default: {}
  users:
    description: Accounts that must exist.
    type: list
    elements: str
    default: []
  units:
    description: Services that must run and start at boot.
    type: list
    elements: str
    default: []
  cloud_init:
    description: Whether cloud-init must have finished without an error, where it is installed.
    type: bool
    default: true
  cloud_init_timeout:
    description: Seconds to wait for it.
    type: float
    default: 300
  time_sync:
    description: Whether the clock must be synchronised.
    type: bool
    default: true
  time:
    description:
      - The controller's time, in seconds since 1970; with it, the clock must not be further off than O(max_skew).
    type: float
  max_skew:
    description: Seconds.
    type: float
    default: 60
  gpus:
    description: The number of GPU devices; 0 checks none.
    type: int
    default: 0
  open_driver:
    description: Whether the GPU driver, where one is loaded, must be the open one.
    type: bool
    default: false
  memlock:
    description: Whether every user must be allowed to lock all memory, which RDMA needs.
    type: bool
    default: true
  acs_off:
    description:
      - Whether PCI bridges must let peers talk to each other directly, and the IOMMU must not translate. Not looked at
        in a virtual machine or a container.
    type: bool
    default: false
  nccl_conf:
    description: The content of C(/etc/nccl.conf). Without it, the file is only looked at for harmful lines.
    type: str
  hosts:
    description: Lines that C(/etc/hosts) must have.
    type: list
    elements: str
    default: []
  wait:
    description: Seconds to wait for what becomes true by itself.
    type: float
    default: 30
  must_pass:
    description: Whether the task fails when a check does, with RV(code).
    type: bool
    default: false
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
- name: It is known what the node still lacks
  h200.rack.node_check:
    hostname: gpu001
    units: [nvidia-persistenced.service]
    gpus: 8
  register: seen
"""

RETURN = r"""
code:
  description: The first failed check, as a code; C(GPU_COUNT), C(NETWORK), C(CLOUD_INIT), C(UNIT) and so on.
  type: str
  returned: on failure
  sample: GPU_COUNT
verdict:
  description: V(pass) when all checks passed, else V(fail).
  type: str
  returned: success
failed_checks:
  description: Names of those that did not pass.
  type: list
  elements: str
  returned: success
checks:
  description: All checks.
  type: list
  elements: dict
  returned: success
  contains:
    name:
      description: What was looked at.
      type: str
    measured:
      description: What it is.
      type: raw
    expected:
      description: What it shall be.
      type: raw
    verdict:
      description: V(pass) or V(fail).
      type: str
    hint:
      description: What to do, when it failed.
      type: str
boot_id:
  description: The id of this boot.
  type: str
  returned: success
units:
  description: By name, whether each of O(units) is installed, active and enabled, and ran in this boot.
  type: dict
  returned: success
to_start:
  description:
    - Those of O(units) that a start puts right. A fabric manager that ran in this boot is not among them, for a second
      start leaves GPUs on which NVLink SHARP fails until the node is rebooted.
  type: list
  elements: str
  returned: success
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.h200.rack.plugins.module_utils._node import run_check


def argument_spec():
    return {
        "hostname": {"type": "str"},
        "network": {"type": "dict", "default": {}},
        "users": {"type": "list", "elements": "str", "default": []},
        "units": {"type": "list", "elements": "str", "default": []},
        "cloud_init": {"type": "bool", "default": True},
        "cloud_init_timeout": {"type": "float", "default": 300},
        "time_sync": {"type": "bool", "default": True},
        "time": {"type": "float"},
        "max_skew": {"type": "float", "default": 60},
        "gpus": {"type": "int", "default": 0},
        "open_driver": {"type": "bool", "default": False},
        "memlock": {"type": "bool", "default": True},
        "acs_off": {"type": "bool", "default": False},
        "nccl_conf": {"type": "str"},
        "hosts": {"type": "list", "elements": "str", "default": []},
        "wait": {"type": "float", "default": 30},
        "must_pass": {"type": "bool", "default": False, "no_log": False},
    }


def main():
    module = AnsibleModule(argument_spec=argument_spec(), supports_check_mode=True)

    def command(argv):
        try:
            return module.run_command(argv, handle_exceptions=False, environ_update={"LC_ALL": "C"})
        except OSError as exc:
            return 127, "", f"{argv[0]}: {exc.strerror}"

    result = run_check.run(module.params, command)
    failure = run_check.failure(result)
    if failure and module.params["must_pass"]:
        module.fail_json(**{**result, **failure})
    module.exit_json(changed=False, **result)


if __name__ == "__main__":
    main()
