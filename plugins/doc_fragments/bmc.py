# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Options and attributes that the BMC modules share."""

from __future__ import annotations


class ModuleDocFragment:
    # What every BMC module has.
    DOCUMENTATION = r"""
options:
  bmc_host:
    description:
      - The BMC; a name, an address (IPv4, or IPv6 with or without brackets) or C(host:port) with IPv6 in brackets.
      - For Redfish also a URL, which is how plain HTTP is asked for.
    type: str
    required: true
  bmc_username:
    description:
      - Account on the BMC.
      - Without it, E(H200_RACK_BMC_USERNAME) is read on the controller.
    type: str
    required: true
  bmc_password:
    description:
      - Password of the account.
      - Without it, E(H200_RACK_BMC_PASSWORD) is read on the controller.
    type: str
    required: true
  timeout:
    description:
      - Seconds that the answer to one request may take, until its last byte.
      - The whole task ends after O(wait_timeout) and once this time; closing its session may add this time again, but
        no more than 15 seconds.
    type: int
    default: 30
attributes:
  action:
    description: Has a corresponding action plugin, so that it (or a part of it) is executed on the controller.
    support: full
    details:
      - The work is done in the controller's own process; no connection to the inventory host is made.
      - With C(delegate_to) and a connection that is not local, the module runs on that host, which needs the library.
  async:
    description: Supports being used with the C(async) keyword.
    support: none
    details: Raise C(forks) instead; a waiting task costs the controller next to nothing.
  check_mode:
    support: full
    details: Reads the BMC and returns what would be sent.
  platform:
    platforms: posix
notes:
  - C(module_defaults) with C(group/h200.rack.bmc) sets the account once for all BMC modules of a play.
  - Every failure says what kind it is in RV(ignore:error_class), and in RV(ignore:retryable) whether to try again.
"""

    # What the Redfish modules have besides.
    REDFISH = r"""
options:
  validate_certs:
    description: Whether to check the certificate of the BMC.
    type: bool
    default: true
  ca_path:
    description:
      - File (PEM) or folder of the CA certificates to trust, instead of those of the system; on the host that the
        module runs on, usually the controller.
      - Without it, E(H200_RACK_BMC_CA_PATH) is read on the controller.
    type: path
  system_id:
    description:
      - The ComputerSystem to act on, as its id or its URI.
      - Not needed where the BMC has one system, or one that is neither an HGX baseboard nor a DPU by its URI.
        Otherwise the task fails with the list of ids.
    type: str
requirements:
  - sushy >= 5.11 (Python >= 3.11) where the module runs, usually the controller
"""

    # What the IPMI modules have besides.
    IPMI = r"""
options:
  port:
    description: UDP port of the BMC, unless O(bmc_host) carries it; otherwise 623.
    type: int
  kg:
    description:
      - BMC key Kg for two-key login, as up to 20 characters of text, or as C(0x) and up to 40 hexadecimal digits.
    type: str
requirements:
  - pyghmi >= 1.5.77 where the module runs, usually the controller
"""

    # What the power modules have in common.
    POWER = r"""
options:
  state:
    description:
      - V(on) and V(off) do nothing where the machine is in that state.
      - V(restarted) restarts the operating system's machine; where it is off, it is turned on and a warning says so.
      - V(cycled) turns the power off, proves it, and turns it on again.
      - V(restarted) and V(cycled) act on every run.
    type: str
    choices: ['on', 'off', restarted, cycled]
  shutdown:
    description:
      - How to take a running machine down.
      - V(force) does not ask the operating system.
      - V(graceful) asks it, and fails after O(graceful_timeout).
      - V(graceful_then_force) asks it, and after O(graceful_timeout) forces it, with one request each.
    type: str
    choices: [force, graceful, graceful_then_force]
    default: force
  graceful_timeout:
    description: Seconds that the operating system has for a shutdown.
    type: int
    default: 120
  wait:
    description: Whether to wait until the BMC reports the wanted state.
    type: bool
    default: true
  wait_timeout:
    description:
      - Seconds for everything, including requests repeated because they were refused without effect (a machine in
        POST, a power-on shortly after a power-off).
    type: int
    default: 300
"""
