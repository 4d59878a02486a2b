#!/usr/bin/python
# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: gpu_probe
short_description: Compare a node's GPUs, NVLinks and compute NICs with what its profile expects
version_added: 0.1.0
author:
  - The h200.rack maintainers (@h200)
description:
  - Reads what the node says about itself (C(nvidia-smi), fabric manager, InfiniBand or RoCE ports, kernel log) and
    compares it with the expected hardware. Nothing is changed, and nothing is learned from the node.
  - Every check has a measured value, an expected one and a verdict. A tool that is not installed makes its checks
    V(not_run), and a node with anything not run is not accepted.
  - A bad node is a result, not an error of the module. Use RV(verdict).
options:
  profile:
    description:
      - The expected hardware, a resolved profile. A mapping with just C(name) of a profile of the collection
        (C(h200_sxm), C(h200_nvl), C(h100_sxm), C(dgx_h200)), or with C(base) and what differs from it, is completed.
    type: dict
    required: true
  checks:
    description:
      - The checks to make; by default all of them.
    type: list
    elements: str
    choices:
      - gpus
      - power_limit
      - persistence
      - ecc
      - remapped_rows
      - reset_required
      - clocks
      - pcie
      - nvlink
      - fabric
      - fabric_manager
      - topology
      - ports
      - port_counters
      - firmware
      - xids
    default: []
  under_load:
    description:
      - Say that the GPUs are busy now, so that the PCIe generation counts as well. Links of idle GPUs step down.
    type: bool
    default: false
  port_counters:
    description:
      - RV(port_counters) of an earlier probe. Error counters must not have grown since.
    type: dict
  timeout:
    description:
      - Seconds for all tools together. One that does not answer in time is killed with all it started, and its checks
        fail with C(PROBE_HUNG).
    type: int
    default: 45
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
notes:
  - Reading the kernel log since boot needs root.
seealso:
  - module: h200.rack.nccl_probe
"""

EXAMPLES = r"""
- name: The node has what an H200 node must have
  h200.rack.gpu_probe:
    profile:
      name: h200_sxm
  register: node
  failed_when: node.verdict != "pass"

- name: Links are trained to their full speed while the GPUs work
  h200.rack.gpu_probe:
    profile: "{{ acceptance_profile }}"
    checks: [pcie, clocks, port_counters]
    under_load: true
    port_counters: "{{ node.port_counters }}"
"""

RETURN = r"""
verdict:
  description: V(fail) when any check failed, V(pass) when all ran and passed, else V(not_run).
  returned: success
  type: str
  sample: pass
checks:
  description: Every check that was asked for.
  returned: success
  type: list
  elements: dict
  contains:
    name:
      description: The check.
      type: str
    verdict:
      description: V(pass), V(fail) or V(not_run).
      type: str
    measured:
      description: What the node says; for a failure, the parts that are wrong.
      type: raw
    expected:
      description: What the profile says.
      type: raw
    code:
      description: >-
        Empty, or why it did not pass: C(TOOL_MISSING), C(TOOL_FAILED), C(PROBE_HUNG), C(NOT_REPORTED),
        C(NOT_READABLE), C(LOG_CUT), C(NO_GPUS), C(NO_LOAD), C(GPU_COUNT), C(GPU_MODEL), C(GPU_MEMORY),
        C(DEVICE_NODES), C(POWER_LIMIT), C(PERSISTENCE_OFF), C(ECC_ERRORS), C(ROW_REMAP_PENDING),
        C(ROW_REMAP_FAILED), C(RESET_REQUIRED), C(THROTTLED), C(PCIE_LINK), C(NVLINK_DOWN), C(FABRIC_NOT_READY),
        C(FM_VERSION), C(FM_NOT_ACTIVE), C(NVLINK_TOPOLOGY), C(NIC_TOPOLOGY), C(NUMA_HIDDEN), C(PORT_MISSING),
        C(PORT_DOWN), C(PORT_LAYER), C(PORT_RATE), C(PORT_ERRORS), C(FIRMWARE_VERSION), C(FIRMWARE_MIXED), C(XID).
      type: str
    hint:
      description: What to do about it.
      type: str
  sample:
    - name: nvlink
      verdict: fail
      measured: {"GPU3": "17 links up, down: 7"}
      expected: {"links": 18, "gbs": 26.562}
      code: NVLINK_DOWN
      hint: links are inactive or slow
reasons:
  description: Code and hint of every check that did not pass.
  returned: success
  type: list
  elements: dict
  sample: [{"code": "NVLINK_DOWN", "hint": "nvlink: links are inactive or slow"}]
simulated:
  description: Whether the tools of this node are simulated, as in the virtual rack.
  returned: success
  type: bool
  sample: false
boot_id:
  description: The boot that was looked at.
  returned: success
  type: str
  sample: 0a1b2c3d-0000-4000-8000-000000000000
serials:
  description: Serial numbers of the system and of the GPUs by PCI address.
  returned: success
  type: dict
  sample: {"system": "S1234", "gpus": {"00000000:18:00.0": "1650000000001"}}
versions:
  description: Versions of driver, CUDA, fabric manager, VBIOS and NIC firmware.
  returned: success
  type: dict
  sample: {"driver": "570.211.01", "cuda": "12.8", "fabric_manager": "570.211.01"}
port_counters:
  description: Error counters of the ports now, to be passed to a later probe.
  returned: success
  type: dict
  sample: {"mlx5_0": {"link_downed": 0, "symbol_error": 0}}
seconds:
  description: How long it took.
  returned: success
  type: float
  sample: 1.2
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.h200.rack.plugins.module_utils._common.errors import RackError
from ansible_collections.h200.rack.plugins.module_utils._gpu.gpu_probe import probe
from ansible_collections.h200.rack.plugins.module_utils._gpu.judge_node import CHECKS


def main():
    module = AnsibleModule(
        argument_spec={
            "profile": {"type": "dict", "required": True},
            "checks": {"type": "list", "elements": "str", "choices": list(CHECKS), "default": []},
            "under_load": {"type": "bool", "default": False},
            "port_counters": {"type": "dict"},
            "timeout": {"type": "int", "default": 45},
        },
        supports_check_mode=True,
    )
    try:
        module.exit_json(changed=False, **probe(**module.params))
    except RackError as exc:
        module.fail_json(**exc.as_result())


if __name__ == "__main__":
    main()
