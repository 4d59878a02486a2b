# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The plan of the whole inventory and everything that is wrong with it. Private to h200.rack."""

from __future__ import annotations

import typing as t

from . import duplicates
from .consent import check_forks, named_nodes
from .duplicates import Claim
from .fields import NODE_FIELDS
from .node import Node, complete
from .problems import Problems
from .profiles import Profiles
from .reading import read, read_fields
from .rotation import all_mirrors
from .servers import MIRROR_URL, read_ca, read_servers
from .slurm import check_declarable
from .subnets import Subnets

HostVars = t.Mapping[str, t.Mapping[str, t.Any]]
Groups = t.Mapping[str, t.Sequence[str]]

_SERVERS = ("rack_mirrors", "rack_boot_servers", "rack_slurm_controllers")


def make_plan(
    hostvars: HostVars,
    groups: Groups,
    limit: t.Optional[t.Sequence[str]] = None,
    forks: t.Optional[int] = None,
    batch: t.Any = None,
    reimage: t.Any = None,
    overwrite: t.Any = None,
    bmc_credentials: bool = False,
) -> dict[str, t.Any]:
    """Resolve every node of the group rack_nodes.

    ``limit`` names the nodes of this run: problems of the others are left out. ``bmc_credentials`` says that user
    name and password of the BMCs come from the environment.
    """
    problems = Problems()
    names = list(groups.get("rack_nodes", ()))
    if not names:
        problems.add("", "rack_nodes", "the group rack_nodes is empty or absent")
    mirrors = read_servers(groups.get("rack_mirrors", ()), hostvars, MIRROR_URL, problems)
    boot_servers = read_servers(groups.get("rack_boot_servers", ()), hostvars, "rack_boot_url", problems)
    if groups.get("rack_mirrors") and mirrors.get(groups["rack_mirrors"][0], {}).get("cache"):
        problems.add(
            groups["rack_mirrors"][0], "mirror_origins", "the first mirror publishes, and so cannot be a cache"
        )
    subnets = Subnets(problems)
    profiles = Profiles()
    nodes: dict[str, Node] = {}
    ledger_hosts: dict[str, None] = {}
    for name in names:
        # Once only: Ansible makes all variables of a host anew for each look.
        variables = hostvars[name]
        values = read_fields(name, variables, NODE_FIELDS, problems)
        if not bmc_credentials:
            _check_credentials(name, variables, problems)
        seen = subnets.of(name, read(name, variables, "rack_subnets", problems))
        known = profiles.known_to(read(name, variables, "rack_profiles", problems))
        nodes[name] = complete(name, values, known, seen, mirrors, boot_servers, problems)
        ledger_hosts[read(name, variables, "rack_ledger_host", problems) or ""] = None
        if groups.get("rack_slurm_controllers"):
            check_declarable(nodes[name], problems)
    subnets.check_overlaps()
    duplicates.report(_claims(nodes.values(), {**mirrors, **boot_servers}.values()), problems)
    selected = names if limit is None else [name for name in names if name in set(limit)]
    if names and not selected:
        problems.add("", "rack_limit", "none of the nodes named is a host of the group rack_nodes")
    check_forks(forks, batch, len(selected), problems)
    consent = {
        "reimage": named_nodes("rack_reimage", reimage, nodes, problems),
        "overwrite": named_nodes("rack_overwrite", overwrite, nodes, problems),
    }
    return {
        "nodes": nodes,
        "selected": selected,
        **consent,
        "subnets": [subnet.as_dict() for subnet in subnets.all()],
        "mirrors": mirrors,
        "boot_servers": boot_servers,
        "ca_certificate": read_ca(groups.get("rack_mirrors", ()), hostvars, problems),
        "mirror_urls": [mirror["url"] for mirror in mirrors.values()],
        "ipxe_builds": {name: build for node in nodes.values() for name, build in node["ipxe_builds"].items()},
        "ledger_host": _ledger_host(sorted(filter(None, map(str, ledger_hosts))), hostvars, groups, problems),
        "images": _images(nodes, selected),
        "arches": sorted({nodes[name]["arch"] for name in selected if nodes[name]["arch"]}),
        "problems": problems.concerning([*selected, *(host for group in _SERVERS for host in groups.get(group, ()))]),
    }


def _check_credentials(name: str, variables: t.Mapping[str, t.Any], problems: Problems) -> None:
    """Whether they are there; their values are nobody's business here."""
    for variable, fallback in (
        ("rack_bmc_username", "H200_RACK_BMC_USERNAME"),
        ("rack_bmc_password", "H200_RACK_BMC_PASSWORD"),
    ):
        if variable not in variables:
            problems.add(name, variable, f"missing, and {fallback} is not in the environment of the controller")


def _ledger_host(given: t.Sequence[str], hostvars: HostVars, groups: Groups, problems: Problems) -> str:
    """One host keeps the ledger: the one that all nodes name, or the first boot server."""
    if len(given) > 1:
        problems.add("", "rack_ledger_host", f"the nodes name several hosts: {', '.join(given)}")
    host = next(iter([*given, *groups.get("rack_boot_servers", ())]), "")
    if not host:
        problems.add("", "rack_boot_servers", "the group rack_boot_servers is empty or absent")
    elif host not in hostvars:
        problems.add("", "rack_ledger_host", f"{host!r} is not a host of the inventory")
    return host


def _claims(nodes: t.Iterable[Node], servers: t.Iterable[dict[str, t.Any]]) -> t.Iterator[Claim]:
    for node in nodes:
        name = node["name"]
        yield Claim("host name", node["hostname"], name, "inventory_hostname")
        for kind, key, variable in (
            ("MAC address", "boot_mac", "rack_boot_mac"),
            ("address", "ip", "ansible_host"),
            ("serial number", "serial", "rack_serial"),
        ):
            if node[key]:
                yield Claim(kind, node[key], name, variable)
        part = (node["bmc_port"], node["bmc_system_id"]) if node["bmc_port"] or node["bmc_system_id"] else None
        if node["bmc_host"]:
            yield Claim("address", node["bmc_host"], name, "rack_bmc_address", part)
        if node["bmc_mac"]:
            yield Claim("MAC address", node["bmc_mac"], name, "rack_bmc_mac", part)
        if node["position"]:
            yield Claim("position", (node["rack"], node["position"]), name, "rack_position")
    for server in servers:
        if not server["address"].startswith("127."):
            yield Claim("address", server["address"], server["name"], "ansible_host")


def _images(nodes: t.Mapping[str, Node], selected: t.Sequence[str]) -> list[dict[str, t.Any]]:
    """Each image once, with the nodes that want it and the mirrors they would take it from."""
    images: dict[str, dict[str, t.Any]] = {}
    for name in selected:
        node = nodes[name]
        if node["image"]:
            entry = images.setdefault(
                node["image"],
                {"image": node["image"], "name": node["image_name"], "digest": node["image_digest"], "nodes": []},
            )
            entry["nodes"].append(name)
    for entry in images.values():
        entry["mirrors"] = list(dict.fromkeys(url for name in entry["nodes"] for url in all_mirrors(nodes[name])))
    return list(images.values())
