#!/usr/bin/python
# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: ipmi_bootdev
short_description: Set the boot device over IPMI, and prove it
version_added: 0.1.0
author: The h200.rack maintainers (@h200)
description:
  - Sets the IPMI boot flags, reads them back, and fails with C(not_applied) when the BMC kept something else.
  - UEFI is the default mode; plain IPMI tools ask for legacy boot unless told otherwise.
  - A cleared, expired or empty override is the same V(none).
extends_documentation_fragment:
  - h200.rack.attributes
  - h200.rack.bmc
  - h200.rack.bmc.ipmi
attributes:
  diff_mode:
    support: full
  idempotent:
    support: full
options:
  target:
    description:
      - What to boot from; V(none) removes the override.
      - V(safe) is the disk in safe mode; V(bios) the setup program.
    type: str
    required: true
    choices: [none, pxe, disk, cd, bios, safe]
  persistence:
    description: For the next boot, or until it is changed.
    type: str
    choices: [once, continuous]
    default: once
  mode:
    description: Firmware mode of that boot.
    type: str
    choices: [uefi, legacy]
    default: uefi
  wait_timeout:
    description: Seconds for everything, including requests that are repeated because the BMC is busy.
    type: int
    default: 60
seealso:
  - module: h200.rack.ipmi_power
  - module: h200.rack.redfish_boot
"""

EXAMPLES = r"""
- name: Nodes of the rack boot from the network, once
  hosts: rack_nodes
  gather_facts: false
  module_defaults:
    group/h200.rack.bmc:
      bmc_host: "{{ rack_bmc_address }}"
      bmc_username: "{{ rack_bmc_username }}"
      bmc_password: "{{ rack_bmc_password }}"
  tasks:
    - name: The next boot is a network boot
      h200.rack.ipmi_bootdev:
        target: pxe

    - name: The node restarts into it
      h200.rack.ipmi_power:
        state: cycled

# In AWX the account comes from a credential that sets H200_RACK_BMC_USERNAME and H200_RACK_BMC_PASSWORD.
- name: No account in the inventory
  hosts: rack_nodes
  gather_facts: false
  tasks:
    - name: No override is left
      h200.rack.ipmi_bootdev:
        bmc_host: "{{ rack_bmc_address }}"
        target: none
"""

RETURN = r"""
boot:
  description: The override at the start and at the end; in check mode the one that would be set.
  type: dict
  returned: success, or when the BMC did not keep it
  contains:
    before:
      description: C(target), C(persistence) and C(mode); the latter two are null without an override.
      type: dict
      sample: {target: none, persistence: null, mode: null}
    after:
      description: The same at the end.
      type: dict
      sample: {target: pxe, persistence: once, mode: uefi}
strategy:
  description: V(boot_flags), or V(none) where nothing had to be done.
  type: str
  returned: success
cipher_suite:
  description: The cipher suite of the session, V(17) or V(3).
  type: int
  returned: success
  sample: 17
completion_code:
  description: The IPMI completion code that decided.
  type: int
  returned: when the BMC refused
bmc_host:
  description: The BMC that was asked.
  type: str
  returned: always
error_class:
  description: What kind of failure it was.
  type: str
  returned: failure
  sample: not_applied
  choices: [unreachable, auth, session_limit, busy, unsupported, not_applied, timeout, bmc_bug, invalid]
retryable:
  description: Whether the same task may succeed later, unchanged.
  type: bool
  returned: failure
http_status:
  description: Always null; for the same handling as the Redfish modules.
  type: int
  returned: failure
message_ids:
  description: Always empty; for the same handling as the Redfish modules.
  type: list
  elements: str
  returned: failure
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.h200.rack.plugins.module_utils._bmc.as_module import exit_with
from ansible_collections.h200.rack.plugins.module_utils._bmc.ipmi_bootdev import bootdev
from ansible_collections.h200.rack.plugins.module_utils._bmc.specs import IPMI_BOOTDEV


def main() -> None:
    exit_with(AnsibleModule(supports_check_mode=True, **IPMI_BOOTDEV), bootdev)


if __name__ == "__main__":
    main()
