# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a run is going to do with each node, in words. Private to h200.rack."""

from __future__ import annotations

import typing as t

_TARGET = {"uefi_http": "http (uefi)", "uefi_pxe": "pxe (uefi)", "bios_pxe": "pxe (legacy)"}


def _image_steps(node: t.Mapping[str, t.Any], todo: t.Mapping[str, t.Any]) -> list[str]:
    disk = ", ".join(f"{key} {value}" for key, value in node["root_disk"].items())
    overwrite = ", whatever is on it" if todo["allow_overwrite"] else ", if it is empty"
    steps = ["drain it in Slurm"] if todo["drain"] else []
    return [
        *steps,
        f"boot override {_TARGET[node['boot_method']]} once by {node['bmc_protocol']}",
        "power on, or restart",
        f"boot script {todo['script']}",
        f"write {node['image_name']}@{todo['digest'] or '?'} to the disk with {disk}{overwrite}",
        "boot script local, boot override disk, restart",
    ]


def _steps(node: t.Mapping[str, t.Any], todo: t.Mapping[str, t.Any]) -> list[str]:
    if todo["will"] == "image":
        return _image_steps(node, todo)
    script = [f"boot script {todo['script']}"]
    if todo["will"] == "finish":
        restart = ["boot override disk, restart"] if todo["from_stage"] == "local_boot" else []
        return [*script, *restart, f"go on to {todo['from_stage']}"]
    return [*script, "no power action", "look at it"] if todo["will"] == "verify" else script


def intent(plan: t.Mapping[str, t.Any], decision: t.Mapping[str, t.Any]) -> dict[str, t.Any]:
    """By node: what will be done, why, and the steps in their order."""
    return {
        name: {"will": todo["will"], "because": todo["reason"], "steps": _steps(plan["nodes"][name], todo)}
        for name, todo in decision["nodes"].items()
    }
