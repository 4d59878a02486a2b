#!/usr/bin/python
# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: ipmi_power
short_description: Turn a machine on, off or around over IPMI, and prove it
version_added: 0.1.0
author: The h200.rack maintainers (@h200)
description:
  - The same options and results as M(h200.rack.redfish_power), over IPMI 2.0.
  - A power request is sent once and never repeated when its answer is lost; the chassis status is read instead.
  - IPMI shows a restart only if the power goes off. V(restarted) by O(shutdown=force) is believed when the BMC accepts
    it and the power is on; V(cycled) is proven by the power being off in between.
extends_documentation_fragment:
  - h200.rack.attributes
  - h200.rack.bmc
  - h200.rack.bmc.ipmi
  - h200.rack.bmc.power
attributes:
  diff_mode:
    support: full
  idempotent:
    support: partial
    details: O(state=restarted), O(state=cycled) and restarting O(reset_type)s act every time.
options:
  reset_type:
    description:
      - Send exactly this request, in Redfish's words; exclusive with O(state).
      - Types that lead to On or Off do nothing where that is the state.
    type: str
    choices:
      - 'On'
      - ForceOff
      - GracefulShutdown
      - ForceRestart
      - PowerCycle
      - Nmi
seealso:
  - module: h200.rack.ipmi_bootdev
  - module: h200.rack.redfish_power
"""

EXAMPLES = r"""
- name: Nodes without Redfish are on
  hosts: rack_nodes
  gather_facts: false
  tasks:
    - name: The node is on
      h200.rack.ipmi_power:
        bmc_host: "{{ rack_bmc_address }}"
        bmc_username: "{{ rack_bmc_username }}"
        bmc_password: "{{ rack_bmc_password }}"
        state: "on"

# In AWX the account comes from a credential that sets H200_RACK_BMC_USERNAME and H200_RACK_BMC_PASSWORD.
- name: No account in the inventory
  hosts: rack_nodes
  gather_facts: false
  tasks:
    - name: Power-cycle a node
      h200.rack.ipmi_power:
        bmc_host: 10.20.2.11
        kg: "0x0011223344"
        state: cycled
"""

RETURN = r"""
power_state:
  description: Power state at the end, V(On) or V(Off); in check mode the one that would be reached.
  type: str
  returned: success
  sample: 'On'
previous_power_state:
  description: Power state at the start.
  type: str
  returned: when it was read
  sample: 'Off'
reset_types_sent:
  description: The requests sent, in order, in Redfish's words; in check mode those that would be sent.
  type: list
  elements: str
  returned: when the power state was read
  sample: [ForceOff, 'On']
restart_seen:
  description:
    - Whether the power state or the BMC's records showed the restart that was sent; null when none was sent.
    - V(false) comes with a warning.
  type: bool
  returned: success
waited_seconds:
  description: Seconds from the login to the proof.
  type: float
  returned: success
  sample: 12.4
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
  sample: auth
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
from ansible_collections.h200.rack.plugins.module_utils._bmc.ipmi_power import power
from ansible_collections.h200.rack.plugins.module_utils._bmc.specs import IPMI_POWER


def main() -> None:
    exit_with(AnsibleModule(supports_check_mode=True, **IPMI_POWER), power)


if __name__ == "__main__":
    main()
