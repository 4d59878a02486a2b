# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the checks of preflight found, as problems with a node and a variable. Private to h200.rack."""

from __future__ import annotations

import typing as t

Problem = dict[str, t.Any]

#: The variable to look at, by the error class of a BMC module.
_BMC_VARIABLES = {
    "auth": "rack_bmc_password",
    "tls": "rack_bmc_ca_path",
    "unsupported": "rack_bmc_protocol",
    "invalid": "rack_bmc_system_id",
}
#: And by the option that Ansible itself finds wrong.
_BMC_OPTIONS = {
    "bmc_username": "rack_bmc_username",
    "bmc_password": "rack_bmc_password",
    "ca_path": "rack_bmc_ca_path",
    "system_id": "rack_bmc_system_id",
}


def bmc_problem(node: str, failure: t.Mapping[str, t.Any]) -> Problem:
    """A failed BMC module."""
    error_class = failure.get("error_class") or ""
    msg = str(failure.get("msg") or "no answer")
    variable = _BMC_VARIABLES.get(error_class)
    if not error_class:
        variable = next((name for option, name in _BMC_OPTIONS.items() if option in msg), None)
    return {"node": node, "variable": variable or "rack_bmc_address", "msg": msg, "code": error_class}


def _some(names: t.Sequence[str], shown: int = 3) -> str:
    more = len(names) - shown
    return ", ".join(names[:shown]) + (f" and {more} more" if more > 0 else "")


def mirror_problems(plan: t.Mapping[str, t.Any], checks: t.Sequence[t.Mapping[str, t.Any]]) -> list[Problem]:
    """The problems of mirror_check, one call for each image of the plan; what a mirror has at all is said once."""
    hosts = {mirror["url"]: name for name, mirror in plan["mirrors"].items()}
    found: list[Problem] = []
    for entry, check in zip(plan["images"], checks):
        for problem in check.get("problems", ()):
            nodes = _some(entry["nodes"])
            if problem["code"] in ("unreachable", "tls", "invalid"):
                told = {"node": hosts.get(problem["mirror"], problem["mirror"]), "variable": "ansible_host"}
            elif problem["kind"] == "ramdisk":
                told = {"node": hosts.get(problem["mirror"], problem["mirror"]), "variable": "rack_arch"}
            else:
                told = {"node": nodes, "variable": "rack_image"}
            new = {**told, "msg": problem["msg"], "code": problem["code"]}
            if new not in found:
                found.append(new)
        found += _unfit(plan, entry, check.get("rows", ()))
    return found


def _unfit(
    plan: t.Mapping[str, t.Any], entry: t.Mapping[str, t.Any], rows: t.Sequence[t.Mapping[str, t.Any]]
) -> list[Problem]:
    """Nodes that could not start the image that they are to get."""
    facts = next((row for row in rows if row["kind"] == "image" and row.get("arch")), None)
    found: list[Problem] = []
    if facts is None:
        return found
    for name in entry["nodes"]:
        node = plan["nodes"][name]
        firmware = "bios" if node["boot_method"] == "bios_pxe" else "uefi"
        wrong = ""
        if node["arch"] != facts["arch"]:
            wrong = f"{entry['image']} is an image for {facts['arch']}, and rack_arch is {node['arch']}"
        elif facts["boot"] not in ("both", firmware):
            wrong = f"{entry['image']} boots by {facts['boot']} only, and rack_boot_method is {node['boot_method']}"
        if wrong:
            found.append({"node": name, "variable": "rack_image", "msg": wrong, "code": "unfit"})
    return found


def as_text(problems: t.Sequence[Problem]) -> str:
    """A line for each problem, sorted by host."""
    lines = {
        # Some messages come from tools, with lines of their own.
        f"{problem['node'] or 'rack'}: {problem['variable']}: {' '.join(str(problem['msg']).split())}"
        for problem in problems
    }
    return "\n".join(sorted(lines))
