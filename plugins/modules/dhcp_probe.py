#!/usr/bin/python
# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: dhcp_probe
short_description: Find DHCP servers that do not belong on a segment
version_added: 0.1.0
description:
  - Sends a DHCPDISCOVER on each interface that stands in one of the networks, once as an ordinary client and once as
    UEFI firmware does, and listens. Fails when a server answers that is not among those that may.
  - Takes no lease. Nothing follows an offer, and the client's address is the interface's own, so that a server has
    nothing else to keep than the offer it keeps for any client that asks and goes away.
  - Offers and acknowledgements to other machines that are heard meanwhile count as well.
  - A server that answers only machines it knows, and none of them boots just then, is not found.
  - Needs root (raw sockets) and the program C(ip).
author:
  - The h200.rack maintainers (@h200)
extends_documentation_fragment:
  - h200.rack.attributes
attributes:
  check_mode:
    support: full
    details: Asks in check mode as well, for it changes nothing.
  diff_mode:
    support: none
  idempotent:
    support: full
  platform:
    platforms: posix
options:
  networks:
    description: The networks, such as V(10.20.1.0/24). The interfaces with an address in one of them are asked on.
    type: list
    elements: str
    required: true
  expected:
    description: The addresses of the servers that may answer, besides those of the host itself.
    type: list
    elements: str
    default: []
  seconds:
    description: How long to listen. Some servers ping an address for 3 s before they offer it.
    type: float
    default: 4.0
"""

EXAMPLES = r"""
- name: Nobody else answers DHCP in the provisioning network
  h200.rack.dhcp_probe:
    networks: [10.20.1.0/24]
    expected: [10.20.1.2, 10.20.1.3]
"""

RETURN = r"""
interfaces:
  description: The interfaces that were asked on. Without any, nothing is known.
  returned: always
  type: list
  elements: str
servers:
  description: The servers that were heard.
  returned: always
  type: list
  elements: dict
  contains: &server
    interface:
      description: Where.
      type: str
    server:
      description: The address by which it names itself.
      type: str
    mac:
      description: The MAC address that the answer came from; a relay's if there is one between.
      type: str
    offered:
      description: The address that it offered; empty for a proxy.
      type: str
    relay:
      description: The relay that the answer came through.
      type: str
    boot_file:
      description: The boot file that it names.
      type: str
unexpected:
  description: Those of RV(servers) that may not answer.
  returned: always
  type: list
  elements: dict
  contains: *server
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.h200.rack.plugins.module_utils._boot import dhcp_probe
from ansible_collections.h200.rack.plugins.module_utils._common.errors import RackError


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "networks": {"type": "list", "elements": "str", "required": True},
            "expected": {"type": "list", "elements": "str", "default": []},
            "seconds": {"type": "float", "default": 4.0},
        },
        supports_check_mode=True,
    )
    links = module.run_command(["ip", "-json", "address", "show"], check_rc=True)[1]
    try:
        asked = dhcp_probe.ports(links, module.params["networks"])
        heard = dhcp_probe.probe(asked, module.params["seconds"])
    except RackError as exc:
        module.fail_json(**exc.as_result())
    except OSError as exc:
        module.fail_json(msg=f"the segment cannot be asked: {exc}")
    known = {*module.params["expected"], *dhcp_probe.own_addresses(links)}
    strange = [server for server in heard if server.answer.server not in known]
    result = {
        "interfaces": [port.name for port in asked],
        "servers": [{"interface": server.interface, **server.answer._asdict()} for server in heard],
        "unexpected": [{"interface": server.interface, **server.answer._asdict()} for server in strange],
    }
    if strange:
        module.fail_json(msg="; ".join(dhcp_probe.sentence(server) for server in strange), **result)
    module.exit_json(changed=False, **result)


if __name__ == "__main__":
    main()
