# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The boot script that a node of the plan needs for an action. Private to h200.rack."""

from __future__ import annotations

import typing as t

RAMDISK_ACTIONS = ("deploy", "rescue")


def ipxe_node(
    node: t.Mapping[str, t.Any],
    action: str,
    ramdisks: t.Optional[t.Mapping[str, str]] = None,
    overlay: str = "",
    https: bool = False,
) -> dict[str, t.Any]:
    """An entry of the option ``nodes`` of ipxe_render; ``ramdisks``: digest by architecture. Raises ValueError.

    ``https`` says that the node's iPXE can check the certificates of https mirrors.
    """
    item = {
        "name": node["name"],
        "mac": node["boot_mac"],
        "action": action,
        "arch": node["arch"],
        "address": node["address"],
        "gateway": node["gateway"] or "",
        "hostname": node["hostname"],
        "console": list(node["console"]),
        "kernel_args": node["kernel_args"],
        "mirrors": list(node["mirrors" if https else "boot_mirrors"]),
        "fallback_mirrors": list(node.get("fallback_mirrors" if https else "fallback_boot_mirrors") or ()),
    }
    if node.get("ipxe_build"):
        item["ipxe_build"] = node["ipxe_build"]
    if action not in RAMDISK_ACTIONS:
        return item
    digest = (ramdisks or {}).get(node["arch"])
    if not digest:
        raise ValueError(f"{node['name']}: no ramdisk for {node['arch']} is published")
    return {**item, "ramdisk": f"ramdisk/{node['arch']}/{digest}", "overlay": overlay}
