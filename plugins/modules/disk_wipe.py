#!/usr/bin/python
# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: disk_wipe
short_description: Erase the disks of a node
version_added: 0.1.0
description:
  - Runs in the ramdisk of a node. Erases each disk in the best way that it says it supports, cryptographic erase,
    then the erase of user data, then overwriting with zeros, all disks at once.
  - A disk counts as erased only when its command succeeded and what stood at sampled places before is gone
    afterwards.
  - Removable, read-only and virtual media are left alone. When a disk is in use, nothing is erased.
author:
  - The h200.rack maintainers (@h200-rack)
extends_documentation_fragment:
  - h200.rack.attributes
attributes:
  check_mode:
    support: full
    details:
      - Says which disks would be erased, and how.
  diff_mode:
    support: none
  idempotent:
    support: none
    details:
      - Erases on every invocation.
  platform:
    platforms: posix
requirements:
  - C(lsblk) and C(wipefs) (util-linux), C(nvme) (nvme-cli) for NVMe disks, C(hdparm) for SATA disks.
options:
  node:
    description:
      - The node's name, as the boot script passes it to the kernel in C(rack.node).
    type: str
    required: true
  confirm:
    description:
      - The node's name once more, written by whoever wants its data gone.
    type: str
    required: true
  disk:
    description:
      - Hints as for M(h200.rack.image_write); every disk that fits all of them is erased. Without hints, all disks
        of the node.
    type: dict
  methods:
    description:
      - What may be done. They are tried in the order crypto, user_data, overwrite until one is proven to have worked.
    type: list
    elements: str
    choices: [crypto, user_data, overwrite]
    default: [crypto, user_data, overwrite]
  timeout:
    description:
      - Seconds for all disks together. A disk that is not done then has the verdict V(timeout).
    type: int
    default: 3600
  require_ramdisk:
    description:
      - Whether to refuse to work on a machine that does not run the ramdisk, or that was booted as another node
        than O(node).
    type: bool
    default: true
seealso:
  - module: h200.rack.image_write
"""

EXAMPLES = r"""
- name: The node's disks are erased
  h200.rack.disk_wipe:
    node: "{{ inventory_hostname }}"
    confirm: gpu001
    timeout: 7200
"""

RETURN = r"""
disks:
  description: For each disk what it is (disk), method, how, verdict (erased, failed, unsupported or timeout, in check
    mode would_erase), what was tried without success, and seconds.
  type: list
  elements: dict
  returned: always
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.h200.rack.plugins.module_utils._common.errors import RackError
from ansible_collections.h200.rack.plugins.module_utils._image import wipe


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "node": {"type": "str", "required": True},
            "confirm": {"type": "str", "required": True},
            "disk": {"type": "dict"},
            "methods": {
                "type": "list",
                "elements": "str",
                "choices": ["crypto", "user_data", "overwrite"],
                "default": ["crypto", "user_data", "overwrite"],
            },
            "timeout": {"type": "int", "default": 3600},
            "require_ramdisk": {"type": "bool", "default": True},
        },
        supports_check_mode=True,
    )
    options = dict(module.params)
    options["methods"] = tuple(options["methods"])
    try:
        outcome = wipe.wipe(wipe.Request(**options), module.check_mode)
    except RackError as exc:
        module.fail_json(**exc.as_result())
    if outcome.failed and not module.check_mode:
        bad = [disk["disk"]["path"] for disk in outcome.disks if disk["verdict"] != "erased"]
        module.fail_json(msg=f"not erased: {', '.join(bad)}; see disks", disks=outcome.disks)
    module.exit_json(changed=outcome.changed, disks=outcome.disks)


if __name__ == "__main__":
    main()
