#!/usr/bin/python
# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: redfish_boot
short_description: Set the boot override over Redfish, and prove it
version_added: 0.1.0
author: The h200.rack maintainers (@h200)
description:
  - Writes the override with the smallest request the BMC accepts, reads it back, and fails with C(not_applied) when
    the BMC accepted it but kept something else.
  - BMCs that want an ETag, a fuller request, or the request at their settings resource get it, each only after the
    error that calls for it. A firmware mode that the BMC changed by itself is put right.
extends_documentation_fragment:
  - h200.rack.attributes
  - h200.rack.bmc
  - h200.rack.bmc.redfish
attributes:
  diff_mode:
    support: full
  idempotent:
    support: full
options:
  target:
    description: What to boot from; V(none) removes the override.
    type: str
    required: true
    choices: [none, pxe, http, disk, cd, usb, bios]
  persistence:
    description: For the next boot, or until it is changed.
    type: str
    choices: [once, continuous]
    default: once
  mode:
    description: Firmware mode of that boot; V(keep) leaves it alone.
    type: str
    choices: [uefi, legacy, keep]
    default: keep
  http_boot_uri:
    description:
      - What to load with O(target=http); without it, DHCP says.
      - It goes into C(HttpBootUri) where the BMC has that, into BIOS attributes on Dell and HPE (in effect with the
        next restart), and nowhere else; RV(strategy) says where.
      - Letters, digits and C(:/._~%+,=-[]) only, because BMCs refuse others.
    type: str
  wait_timeout:
    description: Seconds for everything, including requests that are repeated because the machine is in POST.
    type: int
    default: 240
seealso:
  - module: h200.rack.redfish_power
  - module: h200.rack.ipmi_bootdev
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
      h200.rack.redfish_boot:
        target: pxe
        mode: uefi

# In AWX the account comes from a credential that sets H200_RACK_BMC_USERNAME and H200_RACK_BMC_PASSWORD.
- name: No account in the inventory
  hosts: rack_nodes
  gather_facts: false
  tasks:
    - name: Load iPXE by HTTP
      h200.rack.redfish_boot:
        bmc_host: "{{ rack_bmc_address }}"
        system_id: DGX
        target: http
        http_boot_uri: http://10.20.1.2/ipxe/snponly.efi

    - name: No override is left
      h200.rack.redfish_boot:
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
      description:
        - C(target), C(persistence), C(mode) and C(http_boot_uri), in the words of the options.
        - Null is what the BMC does not say.
      type: dict
      sample: {target: none, persistence: null, mode: uefi, http_boot_uri: null}
    after:
      description: The same at the end.
      type: dict
      sample: {target: pxe, persistence: once, mode: uefi, http_boot_uri: null}
strategy:
  description:
    - Where the override or the URI went. V(none) where nothing had to be done, V(system) or V(settings) for the
      resource that took the override, V(http_boot_uri), V(dell_bios) or V(hpe_bios) for the URI, V(dhcp) where the
      BMC takes no URI.
  type: str
  returned: success
  sample: system
pending_reboot:
  description: Whether BIOS attributes or a job of the BMC wait for the next restart.
  type: bool
  returned: success
would_send:
  description: The body of the first request that would be sent.
  type: dict
  returned: in check mode
  sample: {Boot: {BootSourceOverrideTarget: Pxe, BootSourceOverrideEnabled: Once}}
system_id:
  description: The system acted on.
  type: str
  returned: when it was chosen
  sample: DGX
auth:
  description: V(session), or V(basic) where the BMC has no session service or no free session.
  type: str
  returned: success
  sample: session
allowed_targets:
  description: The BMC's own words for the targets that it allows.
  type: list
  elements: str
  returned: when the wanted one is not among them
bmc_host:
  description: The BMC that was asked.
  type: str
  returned: always
error_class:
  description: What kind of failure it was.
  type: str
  returned: failure
  sample: not_applied
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
  sample: [Ami.1.0.OperationSupportedInFutureStateURI]
system_ids:
  description: The systems that the BMC has.
  type: list
  elements: str
  returned: when O(system_id) is needed or wrong
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.h200.rack.plugins.module_utils._bmc.as_module import exit_with
from ansible_collections.h200.rack.plugins.module_utils._bmc.redfish_boot import boot
from ansible_collections.h200.rack.plugins.module_utils._bmc.specs import REDFISH_BOOT


def main() -> None:
    exit_with(AnsibleModule(supports_check_mode=True, **REDFISH_BOOT), boot)


if __name__ == "__main__":
    main()
