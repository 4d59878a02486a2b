# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: plan
short_description: Resolve the inventory of a rack and find everything that is wrong with it
version_added: 0.1.0
description:
  - Reads the C(rack_*) variables of all nodes, boot servers and mirrors, fills in their defaults, and checks them
    together. All problems are found at once.
  - Passwords are looked for and never read. They do not appear in the result.
positional: groups
options:
  _input:
    description: The variable C(hostvars), or a mapping like it.
    type: dict
    required: true
  groups:
    description: The variable C(groups), or a mapping like it.
    type: dict
    required: true
  limit:
    description:
      - Names of the nodes of this run. Problems of other nodes are left out, unless they also concern these.
      - The default is all hosts of the group C(rack_nodes).
    type: list
    elements: str
  forks:
    description: The number of forks of this run, to be checked against O(batch). Not checked by default.
    type: int
  batch:
    description: How many nodes go at once, as the keyword C(serial) takes it. By default all of them.
    type: raw
  reimage:
    description: The value of C(rack_reimage), names of nodes.
    type: raw
  overwrite:
    description: The value of C(rack_overwrite), names of nodes.
    type: raw
author:
  - The h200.rack maintainers (@h200)
"""

EXAMPLES = r"""
- name: The plan is made once, on the controller
  ansible.builtin.set_fact:
    rack_plan: >-
      {{ hostvars | h200.rack.plan(groups, forks=ansible_forks, batch=rack_batch | default('100%'),
         reimage=rack_reimage | default([]), overwrite=rack_overwrite | default([])) }}

- name: Nothing is wrong with it
  ansible.builtin.assert:
    that: rack_plan.problems | length == 0
"""

RETURN = r"""
_value:
  description: The plan.
  type: dict
  contains:
    nodes:
      description: Every node by its name, with all variables resolved. C(rack_) is left out of their names.
      type: dict
    selected:
      description: Names of the nodes of this run.
      type: list
      elements: str
    reimage:
      description: Names of the nodes that are to be imaged anew.
      type: list
      elements: str
    overwrite:
      description: Names of the nodes on whose disks another system may be overwritten.
      type: list
      elements: str
    subnets:
      description: All subnets, with C(prefix) and C(netmask).
      type: list
      elements: dict
    mirrors:
      description: Every mirror by its name, with C(address), C(url), C(boot_url) (for iPXE), C(rack) and C(cache) (it
        has no store of its own).
      type: dict
    ca_certificate:
      description: The certificates that https mirrors are checked against, as PEM. Empty means what the system trusts.
      type: str
    boot_servers:
      description: Every boot server by its name, with C(address), C(url) and C(rack).
      type: dict
    mirror_urls:
      description: The URLs of all mirrors.
      type: list
      elements: str
    ipxe_builds:
      description: The site's own iPXE builds by name.
      type: dict
    ledger_host:
      description: The host that keeps the ledger.
      type: str
    images:
      description: Each image wanted, with C(image), C(name), C(digest), C(nodes) and C(mirrors).
      type: list
      elements: dict
    arches:
      description: The architectures of the nodes of this run.
      type: list
      elements: str
    problems:
      description: What is wrong, with C(node) (empty for the rack as a whole), C(variable) and C(msg).
      type: list
      elements: dict
"""

import os

from ansible.errors import AnsibleFilterError
from ansible_collections.h200.rack.plugins.module_utils._plan.addresses import NETADDR_ERROR
from ansible_collections.h200.rack.plugins.module_utils._plan.plan import make_plan


def plan(hostvars, groups, limit=None, forks=None, batch=None, reimage=None, overwrite=None):
    """The resolved plan of a rack."""
    if NETADDR_ERROR is not None:
        raise AnsibleFilterError("h200.rack.plan needs the Python package netaddr on the controller") from NETADDR_ERROR
    credentials = all(os.environ.get(f"H200_RACK_BMC_{name}") for name in ("USERNAME", "PASSWORD"))
    return make_plan(
        hostvars,
        groups,
        limit=limit,
        forks=forks,
        batch=batch,
        reimage=reimage,
        overwrite=overwrite,
        bmc_credentials=credentials,
    )


class FilterModule:
    """The filter plan."""

    def filters(self):
        return {"plan": plan}
