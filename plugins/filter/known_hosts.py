# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: known_hosts
short_description: Lines of a known_hosts file from public host keys
version_added: 0.1.0
description:
  - Makes a line for each key that is valid for all the addresses.
positional: addresses, port
options:
  _input:
    description: Public host keys.
    type: list
    elements: str
    required: true
  addresses:
    description: Names and addresses of the host.
    type: list
    elements: str
    required: true
  port:
    description: The port of its SSH server.
    type: int
    default: 22
author:
  - The h200.rack maintainers (@h200)
"""

EXAMPLES = r"""
- name: The host key is in this run's known hosts
  ansible.builtin.copy:
    content: "{{ written.host_keys | h200.rack.known_hosts([ansible_host]) }}"
    dest: "{{ known_hosts_file }}"
    mode: "0600"
"""

RETURN = r"""
_value:
  description: The lines.
  type: str
"""

from ansible.errors import AnsibleFilterError
from ansible_collections.h200.rack.plugins.module_utils._plan.known_hosts import known_hosts as lines


def known_hosts(keys, addresses, port=22):
    """Lines of a known_hosts file."""
    try:
        return lines(keys, addresses, int(port))
    except ValueError as exc:
        raise AnsibleFilterError(f"h200.rack.known_hosts: {exc}") from exc


class FilterModule:
    """The filter known_hosts."""

    def filters(self):
        return {"known_hosts": known_hosts}
