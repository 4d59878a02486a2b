# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The options of ipxe_render, for the action plugin and the module alike. Private to h200.rack."""

from __future__ import annotations

import typing as t

from .nodes import ACTIONS

_NODE: dict[str, dict[str, t.Any]] = {
    "name": {"type": "str", "required": True},
    "mac": {"type": "str", "required": True},
    "action": {"type": "str", "required": True, "choices": list(ACTIONS)},
    "arch": {"type": "str", "choices": ["x86_64", "aarch64"], "default": "x86_64"},
    "address": {"type": "str"},
    "gateway": {"type": "str"},
    "hostname": {"type": "str"},
    "console": {"type": "list", "elements": "str"},
    "kernel_args": {"type": "str"},
    "ramdisk": {"type": "str"},
    "overlay": {"type": "str"},
    "mirrors": {"type": "list", "elements": "str"},
    "fallback_mirrors": {"type": "list", "elements": "str"},
    "kernel": {"type": "str"},
    "initrds": {"type": "list", "elements": "str"},
    "template": {"type": "str"},
    "vars": {"type": "dict"},
    "ipxe_build": {"type": "str"},
}

_SCRIPT: dict[str, dict[str, t.Any]] = {
    "name": {"type": "str", "required": True},
    "content": {"type": "str", "required": True},
    "node": {"type": "str"},
    "action": {"type": "str"},
    "keep": {"type": "bool", "default": False},
}

ARGUMENT_SPEC: dict[str, dict[str, t.Any]] = {
    "dest": {"type": "path", "default": "/srv/h200-rack/boot"},
    "nodes": {"type": "list", "elements": "dict", "options": _NODE},
    "mirrors": {"type": "list", "elements": "str"},
    "unknown_action": {"type": "str", "choices": ["local", "poweroff", "shell"]},
    "prune": {"type": "bool", "default": False},
    "template_dir": {"type": "path"},
    "ipxe_build": {"type": "str", "default": "debian_2019"},
    "ipxe_builds": {"type": "dict"},
    "scripts": {"type": "list", "elements": "dict", "options": _SCRIPT},
}
