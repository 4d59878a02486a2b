# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: boot_problems
short_description: What the nodes' iPXE binaries could not carry out
version_added: 0.1.0
description:
  - Renders and checks the boot script that each node of a run would get, for the iPXE build that it boots, and returns
    what M(h200.rack.ipxe_render) would refuse as problems of the kind that the filter P(h200.rack.plan#filter) returns.
  - Names nodes whose profile asks for an iPXE binary that none of their boot servers is told to serve.
positional: hostvars
options:
  _input:
    description: What the filter P(h200.rack.plan#filter) returned.
    type: dict
    required: true
  hostvars:
    description: The variable C(hostvars), for O(h200.rack.netboot#role:netboot_binaries) of the boot servers.
    type: dict
    required: true
author:
  - The h200.rack maintainers (@h200)
"""

EXAMPLES = r"""
- name: Every node's iPXE can run its script
  ansible.builtin.assert:
    that: rack_plan | h200.rack.boot_problems(hostvars) | length == 0
"""

RETURN = r"""
_value:
  description: The problems with C(node), C(variable), C(msg) and C(code).
  type: list
  elements: dict
"""

import typing as t

from ansible_collections.h200.rack.plugins.filter.ipxe_node import ipxe_node
from ansible_collections.h200.rack.plugins.module_utils._boot.compose import refusals

# What the role netboot serves without being told, where the distribution has it.
_USUAL = {"snponly.efi", "ipxe.efi", "undionly.kpxe", "ipxe-arm64.efi"}
# What to change about a finding of the linter; about any other it is the node's own words in its script.
_VARIABLES = {"command": "rack_ipxe_build", "scheme": "rack_ipxe_build", "build": "rack_ipxe_build"}
# Which ramdisk and overlay is decided later, but not how long their names are.
_DIGEST = "0" * 64


def boot_problems(plan: dict[str, t.Any], hostvars: t.Mapping[str, t.Any]) -> list[dict[str, t.Any]]:
    """The filter itself."""
    # What the inventory does not say right is a problem already, and makes no script.
    wrong = {problem["node"] for problem in plan["problems"]}
    nodes = [plan["nodes"][name] for name in plan["selected"] if name not in wrong]
    items = [
        ipxe_node(node, "deploy", {node["arch"]: _DIGEST}, f"ramdisk/overlay/{_DIGEST}.cpio") for node in nodes
    ]  # fmt: skip
    params = {"nodes": items, "ipxe_build": "debian_2019", "ipxe_builds": plan.get("ipxe_builds") or {}}
    found = [
        {**refusal, "variable": _VARIABLES.get(refusal["code"], "rack_kernel_args")}
        for refusal in (refusals(params) if items else [])
    ]
    return found + [problem for node in nodes for problem in _unserved(node, hostvars)]


def _unserved(node: dict[str, t.Any], hostvars: t.Mapping[str, t.Any]) -> t.Iterator[dict[str, t.Any]]:
    for server in node["boot_servers"] if node["own_binary"] else ():
        if node["ipxe_binary"] not in {*_USUAL, *(hostvars[server].get("netboot_binaries") or {})}:
            yield {
                "node": node["name"],
                "variable": "rack_profile",
                "code": "unserved",
                "msg": f"its profile boots {node['ipxe_binary']}, which is not in netboot_binaries of {server}",
            }


class FilterModule:
    """What Ansible looks for."""

    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        return {"boot_problems": boot_problems}
