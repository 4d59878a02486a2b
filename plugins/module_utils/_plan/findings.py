# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the checks of preflight found, as problems with a node and a variable. Private to h200.rack."""

from __future__ import annotations

import typing as t

from . import rotation

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


def mirror_problems(
    plan: t.Mapping[str, t.Any],
    checks: t.Sequence[t.Mapping[str, t.Any]],
    lost: t.Sequence[Problem] = (),
) -> list[Problem]:
    """What stops a node: no mirror is left that it could use, or its image does not fit it."""
    return [problem for problem, stops in _judged(plan, checks, lost) if stops]


def mirror_warnings(
    plan: t.Mapping[str, t.Any],
    checks: t.Sequence[t.Mapping[str, t.Any]],
    lost: t.Sequence[Problem] = (),
) -> list[Problem]:
    """What is wrong with mirrors that the nodes can do without, for others serve them."""
    return [problem for problem, stops in _judged(plan, checks, lost) if not stops]


def _judged(
    plan: t.Mapping[str, t.Any], checks: t.Sequence[t.Mapping[str, t.Any]], lost: t.Sequence[Problem]
) -> list[tuple[Problem, bool]]:
    """The problems of mirror_check, one call for each image of the plan, and whether each stops a node."""
    hosts = {mirror["url"]: name for name, mirror in plan["mirrors"].items()}
    usable = rotation.usable(plan, checks, lost)
    stuck = {name for entry in plan["images"] for name in entry["nodes"] if not usable[name]}
    needed = {host for name in stuck for host in rotation.all_mirrors(plan["nodes"][name], "mirror_hosts")}
    found: dict[str, tuple[Problem, bool]] = {}
    for problem in lost:
        found[str(problem)] = (dict(problem), problem["node"] in needed)
    for entry, check in zip(plan["images"], checks):
        for problem in check.get("problems", ()):
            nodes = [name for name in entry["nodes"] if rotation.concerns(problem, entry, plan["nodes"][name])]
            waiting = [
                name
                for name in nodes
                if name in stuck and problem["mirror"] in rotation.all_mirrors(plan["nodes"][name])
            ]
            told = _told(problem, hosts, waiting or nodes)
            stops = bool(waiting) or found.get(str(told), (told, False))[1]
            found[str(told)] = (told, stops)
        for unfit in _unfit(plan, entry, check.get("rows", ())):
            found[str(unfit)] = (unfit, True)
    return list(found.values())


_MIRROR_VARIABLES = {"tls": "rack_ca_certificate", "invalid": "rack_mirror_url"}


def _told(problem: t.Mapping[str, t.Any], hosts: t.Mapping[str, str], nodes: t.Sequence[str]) -> Problem:
    host = hosts.get(problem["mirror"], problem["mirror"])
    if problem["kind"] == "mirror" or problem["code"] in ("unreachable", "tls", "invalid"):
        told = {"node": host, "variable": _MIRROR_VARIABLES.get(problem["code"], "rack_mirrors")}
        if problem["code"] == "unreachable":
            told["variable"] = "ansible_host"
    elif problem["kind"] == "image":
        told = {"node": _some(nodes) or host, "variable": "rack_image"}
    else:
        told = {"node": host, "variable": "rack_arch" if problem["kind"] == "ramdisk" else "rack_mirrors"}
    return {**told, "msg": problem["msg"], "code": problem["code"]}


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
