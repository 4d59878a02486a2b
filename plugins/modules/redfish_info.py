#!/usr/bin/python
# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: redfish_info
short_description: Read a machine's identity, power, boot settings, NICs and firmware over Redfish
version_added: 0.1.0
author: The h200.rack maintainers (@h200)
description:
  - Reads one system and what belongs to it; other systems of the BMC are listed by id and never fetched.
extends_documentation_fragment:
  - h200.rack.attributes
  - h200.rack.bmc
  - h200.rack.bmc.redfish
attributes:
  check_mode:
    details: Only reads.
  diff_mode:
    support: none
  idempotent:
    support: full
options:
  gather:
    description:
      - What to read. Each NIC and each firmware entry is a request of its own.
    type: list
    elements: str
    choices: [system, nics, managers, firmware]
    default: [system, nics]
  query:
    description: A JMESPath expression over the returned values; its outcome is RV(result).
    type: str
  wait_timeout:
    description: Seconds for everything that O(gather) names.
    type: int
    default: 300
requirements:
  - jmespath, for O(query)
seealso:
  - module: h200.rack.redfish_power
  - module: h200.rack.redfish_boot
"""

EXAMPLES = r"""
- name: What the rack is made of
  hosts: rack_nodes
  gather_facts: false
  tasks:
    - name: The node is identified
      h200.rack.redfish_info:
        bmc_host: "{{ rack_bmc_address }}"
        bmc_username: "{{ rack_bmc_username }}"
        bmc_password: "{{ rack_bmc_password }}"
      register: node

    - name: It is the one that was ordered
      ansible.builtin.assert:
        that: node.system.serial == rack_serial

# In AWX the account comes from a credential that sets H200_RACK_BMC_USERNAME and H200_RACK_BMC_PASSWORD.
- name: No account in the inventory
  hosts: rack_nodes
  gather_facts: false
  tasks:
    - name: List MACs only
      h200.rack.redfish_info:
        bmc_host: 10.20.2.11
        gather: [nics]
        query: nics[].mac

    - name: List firmware versions of the BMC and of the machine
      h200.rack.redfish_info:
        bmc_host: 10.20.2.11
        gather: [managers, firmware]
"""

RETURN = r"""
service:
  description: The Redfish service; C(vendor), C(product), C(redfish_version), C(uuid).
  type: dict
  returned: success
  sample: {vendor: AMI, product: null, redfish_version: 1.11.0, uuid: null}
system_ids:
  description: The ids of all systems of the BMC.
  type: list
  elements: str
  returned: success, or when O(system_id) is wrong
  sample: [DGX, HGX_Baseboard_0]
system_id:
  description: The chosen system; null, with a warning, where O(system_id) would be needed.
  type: str
  returned: success
  sample: DGX
system:
  description: The chosen system; a value is null where the BMC does not give it.
  type: dict
  returned: success
  contains:
    model:
      description: Besides it C(name), C(manufacturer), C(sku), C(part_number), C(asset_tag), C(uuid), C(host_name).
      type: str
      sample: DGXH200
    serial:
      description: Serial number.
      type: str
    bios_version:
      description: Version of the BIOS.
      type: str
    power_state:
      description: Power state as the BMC words it.
      type: str
      sample: 'On'
    boot_progress:
      description: How far the last boot is, as the BMC words it.
      type: str
      sample: OSRunning
    health:
      description: Health as the BMC words it.
      type: str
      sample: OK
    processors:
      description: Number of processors.
      type: int
    memory_gib:
      description: Memory in GiB.
      type: float
    boot:
      description: The boot override, as M(h200.rack.redfish_boot) returns it.
      type: dict
    allowed_targets:
      description: The BMC's own words for the boot targets that it allows.
      type: list
      elements: str
    allowed_reset_types:
      description: The ResetTypes that it allows.
      type: list
      elements: str
nics:
  description: The host's network interfaces; empty where the BMC does not know them, or O(gather) lacks V(nics).
  type: list
  elements: dict
  returned: success
  sample: [{id: '1', mac: '00:5c:52:31:3a:9c', name: null, speed_mbps: 200000, link: LinkUp, uefi_path: null}]
  contains:
    id:
      description: The id of the interface.
      type: str
    mac:
      description: Its MAC address, the permanent one if the BMC tells both, in lower case.
      type: str
    speed_mbps:
      description: Speed of the link in Mbit/s.
      type: int
    link:
      description: State of the link as the BMC words it.
      type: str
    name:
      description: The BMC's name for it.
      type: str
    uefi_path:
      description: Its UEFI device path.
      type: str
managers:
  description: C(id), C(name), C(type), C(model), C(firmware_version), C(power_state) of the system's managers.
  type: list
  elements: dict
  returned: when gathered
firmware:
  description: C(id), C(name), C(version), C(updateable), C(release_date) of the firmware inventory.
  type: list
  elements: dict
  returned: when gathered
result:
  description: What O(query) found.
  type: raw
  returned: with O(query)
auth:
  description: V(session), or V(basic) where the BMC has no session service or no free session.
  type: str
  returned: success
  sample: session
bmc_host:
  description: The BMC that was asked.
  type: str
  returned: always
error_class:
  description: What kind of failure it was.
  type: str
  returned: failure
  sample: unreachable
  choices:
    [unreachable, tls, auth, session_limit, busy, unsupported, precondition, not_applied, timeout, bmc_bug, invalid]
retryable:
  description: Whether the same task may succeed later, unchanged.
  type: bool
  returned: failure
http_status:
  description: HTTP status of the answer that decided, if there was one.
  type: int
  returned: failure
message_ids:
  description: The Redfish MessageIds of that answer.
  type: list
  elements: str
  returned: failure
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.h200.rack.plugins.module_utils._bmc.as_module import exit_with
from ansible_collections.h200.rack.plugins.module_utils._bmc.redfish_info import info
from ansible_collections.h200.rack.plugins.module_utils._bmc.specs import REDFISH_INFO


def main() -> None:
    exit_with(AnsibleModule(supports_check_mode=True, **REDFISH_INFO), info)


if __name__ == "__main__":
    main()
