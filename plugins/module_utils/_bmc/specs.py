# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The argument specifications of the BMC modules, shared with their action plugins. Private to h200.rack."""

from __future__ import annotations

import typing as t

from ansible.module_utils.basic import env_fallback

from .power_plan import RESET_TYPES, SHUTDOWNS, STATES

IPMI_RESET_TYPES = ("On", "ForceOff", "GracefulShutdown", "ForceRestart", "PowerCycle", "Nmi")

# Read on the controller, also when the module runs elsewhere.
FALLBACKS = {
    "bmc_username": "H200_RACK_BMC_USERNAME",
    "bmc_password": "H200_RACK_BMC_PASSWORD",
    "ca_path": "H200_RACK_BMC_CA_PATH",
}

ACCESS: dict[str, t.Any] = {
    "bmc_host": {"type": "str", "required": True},
    "bmc_username": {"type": "str", "required": True, "fallback": (env_fallback, [FALLBACKS["bmc_username"]])},
    "bmc_password": {
        "type": "str",
        "required": True,
        "no_log": True,
        "fallback": (env_fallback, [FALLBACKS["bmc_password"]]),
    },
    "timeout": {"type": "int", "default": 30},
}
REDFISH: dict[str, t.Any] = {
    **ACCESS,
    "validate_certs": {"type": "bool", "default": True},
    "ca_path": {"type": "path", "fallback": (env_fallback, [FALLBACKS["ca_path"]])},
    "system_id": {"type": "str"},
}
IPMI: dict[str, t.Any] = {
    **ACCESS,
    "port": {"type": "int"},
    "kg": {"type": "str", "no_log": True},
}
POWER: dict[str, t.Any] = {
    "state": {"type": "str", "choices": list(STATES)},
    "shutdown": {"type": "str", "choices": list(SHUTDOWNS), "default": "force"},
    "graceful_timeout": {"type": "int", "default": 120},
    "wait": {"type": "bool", "default": True},
    "wait_timeout": {"type": "int", "default": 300},
}

REDFISH_POWER: dict[str, t.Any] = {
    "argument_spec": {**REDFISH, **POWER, "reset_type": {"type": "str", "choices": list(RESET_TYPES)}},
    "mutually_exclusive": [("state", "reset_type")],
    "required_one_of": [("state", "reset_type")],
}
IPMI_POWER: dict[str, t.Any] = {
    "argument_spec": {
        **IPMI,
        **POWER,
        "reset_type": {"type": "str", "choices": list(IPMI_RESET_TYPES)},
    },
    "mutually_exclusive": [("state", "reset_type")],
    "required_one_of": [("state", "reset_type")],
}
REDFISH_BOOT: dict[str, t.Any] = {
    "argument_spec": {
        **REDFISH,
        "target": {"type": "str", "required": True, "choices": ["none", "pxe", "http", "disk", "cd", "usb", "bios"]},
        "persistence": {"type": "str", "choices": ["once", "continuous"], "default": "once"},
        "mode": {"type": "str", "choices": ["uefi", "legacy", "keep"], "default": "keep"},
        "http_boot_uri": {"type": "str"},
        "wait_timeout": {"type": "int", "default": 240},
    },
}
IPMI_BOOTDEV: dict[str, t.Any] = {
    "argument_spec": {
        **IPMI,
        "target": {"type": "str", "required": True, "choices": ["none", "pxe", "disk", "cd", "bios", "safe"]},
        "persistence": {"type": "str", "choices": ["once", "continuous"], "default": "once"},
        "mode": {"type": "str", "choices": ["uefi", "legacy"], "default": "uefi"},
        "wait_timeout": {"type": "int", "default": 60},
    },
}
REDFISH_INFO: dict[str, t.Any] = {
    "argument_spec": {
        **REDFISH,
        "gather": {
            "type": "list",
            "elements": "str",
            "choices": ["system", "nics", "managers", "firmware"],
            "default": ["system", "nics"],
        },
        "query": {"type": "str"},
        "wait_timeout": {"type": "int", "default": 300},
    },
}
