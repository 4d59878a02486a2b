#!/usr/bin/python
# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: redfish_power
short_description: Turn a machine on, off or around over Redfish, and prove it
version_added: 0.1.0
author: The h200.rack maintainers (@h200)
description:
  - Chooses the ResetType that realises the wanted state, sends it once, and waits until the BMC reports the state.
  - A request is never repeated once it may have taken effect; the state is read instead. Only refusals that certainly
    had no effect (a machine in POST, a power-on shortly after a power-off) are repeated, within O(wait_timeout).
extends_documentation_fragment:
  - h200.rack.attributes
  - h200.rack.bmc
  - h200.rack.bmc.redfish
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
      - Send exactly this ResetType, if the BMC allows it; exclusive with O(state).
      - Types that lead to On or Off do nothing where that is the state.
    type: str
    choices:
      - 'On'
      - ForceOn
      - ForceOff
      - GracefulShutdown
      - ForceRestart
      - GracefulRestart
      - PowerCycle
      - FullPowerCycle
      - PushPowerButton
      - Nmi
      - Pause
      - Resume
      - Suspend
seealso:
  - module: h200.rack.redfish_boot
  - module: h200.rack.ipmi_power
"""

EXAMPLES = r"""
- name: Nodes of the rack are on
  hosts: rack_nodes
  gather_facts: false
  module_defaults:
    group/h200.rack.bmc:
      bmc_host: "{{ rack_bmc_address }}"
      bmc_username: "{{ rack_bmc_username }}"
      bmc_password: "{{ rack_bmc_password }}"
      ca_path: "{{ rack_bmc_ca_path }}"
  tasks:
    - name: The node is on
      h200.rack.redfish_power:
        state: "on"

    - name: The node is shut down, by force after five minutes
      h200.rack.redfish_power:
        state: "off"
        shutdown: graceful_then_force
        graceful_timeout: 300
        wait_timeout: 600

# In AWX the account comes from a credential that sets H200_RACK_BMC_USERNAME and H200_RACK_BMC_PASSWORD.
- name: No account in the inventory
  hosts: rack_nodes
  gather_facts: false
  tasks:
    - name: Power-cycle a DGX
      h200.rack.redfish_power:
        bmc_host: "{{ rack_bmc_address }}"
        system_id: DGX
        state: cycled

    - name: Reach a BMC network through its jump host
      h200.rack.redfish_power:
        bmc_host: 10.20.2.11
        state: "on"
      delegate_to: jump01
"""

RETURN = r"""
power_state:
  description: Power state at the end, as the BMC words it; in check mode the one that would be reached.
  type: str
  returned: success
  sample: 'On'
previous_power_state:
  description: Power state at the start.
  type: str
  returned: when it was read
  sample: 'Off'
reset_types_sent:
  description: The ResetTypes sent, in order; in check mode those that would be sent.
  type: list
  elements: str
  returned: when the system was read
  sample: ['On']
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
  sample: 46.2
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
bmc_host:
  description: The BMC that was asked.
  type: str
  returned: always
error_class:
  description: What kind of failure it was.
  type: str
  returned: failure
  sample: session_limit
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
  sample: [IDRAC.2.8.PSU501]
allowed_reset_types:
  description: The ResetTypes that the BMC allows.
  type: list
  elements: str
  returned: when the wanted one is not among them
system_ids:
  description: The systems that the BMC has.
  type: list
  elements: str
  returned: when O(system_id) is needed or wrong
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.h200.rack.plugins.module_utils._bmc.as_module import exit_with
from ansible_collections.h200.rack.plugins.module_utils._bmc.redfish_power import power
from ansible_collections.h200.rack.plugins.module_utils._bmc.specs import REDFISH_POWER


def main() -> None:
    exit_with(AnsibleModule(supports_check_mode=True, **REDFISH_POWER), power)


if __name__ == "__main__":
    main()
