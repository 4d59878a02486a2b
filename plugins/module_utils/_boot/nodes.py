# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The nodes as the caller gives them, checked as a whole before anything is rendered. Private to h200.rack."""

from __future__ import annotations

import dataclasses
import ipaddress
import re
import typing as t

from ansible_collections.h200.rack.plugins.module_utils._common.errors import InvalidInput

from . import kernel_args, mac

ACTIONS = ("deploy", "local", "rescue", "poweroff", "installer", "custom")

# What an action cannot do without.
_NEEDS = {
    "deploy": ("ramdisk", "address", "mirrors"),
    "rescue": ("ramdisk", "address", "mirrors"),
    "installer": ("kernel", "initrds"),
    "custom": ("template",),
}
_NAME = re.compile(r"^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$")
_URL = re.compile(r"^https?://[^\s/?#]+(/[^\s?#]*)?$")
_PATH = re.compile(r"^[A-Za-z0-9._~/+@%=,-]+$")


@dataclasses.dataclass(frozen=True)
class Node:
    """One node and what it does when it next boots from the network."""

    name: str
    mac: str
    action: str
    arch: str = "x86_64"
    address: str = ""
    gateway: str = ""
    hostname: str = ""
    console: tuple[str, ...] = ()
    kernel_args: str = ""
    ramdisk: str = ""
    overlay: str = ""
    mirrors: tuple[str, ...] = ()
    fallback_mirrors: tuple[str, ...] = ()
    kernel: str = ""
    initrds: tuple[str, ...] = ()
    template: str = ""
    vars: t.Mapping[str, t.Any] = dataclasses.field(default_factory=dict)
    ipxe_build: str = ""

    @property
    def script(self) -> str:
        """The file that the entry script asks for."""
        return f"{mac.hyphenated(self.mac)}.ipxe"


def parse(items: t.Sequence[t.Mapping[str, t.Any]], mirrors: t.Sequence[str], build: str) -> list[Node]:
    """Check every node and return them all; every problem is reported at once."""
    problems: list[str] = []
    nodes: list[Node] = []
    for item in items:
        try:
            nodes.append(_one(item, mirrors, build))
        except InvalidInput as exc:
            problems.append(exc.msg)
    problems += [*_shared(nodes, "name"), *_shared(nodes, "mac"), *_shared(nodes, "address")]
    if problems:
        raise InvalidInput("; ".join(problems), problems=problems)
    return nodes


def _one(item: t.Mapping[str, t.Any], mirrors: t.Sequence[str], build: str) -> Node:
    name = str(item.get("name") or "")
    if not _NAME.match(name):
        raise InvalidInput(f"node {name!r}: a name holds letters, digits, dots, underscores and hyphens")
    owner = f"node {name}"
    known = {field.name for field in dataclasses.fields(Node)}
    values = {key: value for key, value in item.items() if key in known and value is not None}
    for key in ("console", "initrds", "mirrors", "fallback_mirrors"):
        values[key] = tuple(str(entry) for entry in values.get(key) or ())
    values["mirrors"] = values["mirrors"] or tuple(mirrors)
    values["mac"] = mac.canonical(values.get("mac"), owner)
    values["hostname"] = values.get("hostname") or name
    values["ipxe_build"] = values.get("ipxe_build") or build
    node = Node(**values)
    _check(node, owner)
    return node


def _check(node: Node, owner: str) -> None:
    if node.action not in ACTIONS:
        raise InvalidInput(f"{owner}: action {node.action!r} is none of {', '.join(ACTIONS)}")
    for need in _NEEDS.get(node.action, ()):
        if not getattr(node, need):
            raise InvalidInput(f"{owner}: the action {node.action} needs {need}")
    _check_addresses(node, owner)
    if not _NAME.match(node.hostname):
        raise InvalidInput(f"{owner}: hostname {node.hostname!r} is not a host name")
    for url in (*node.mirrors, *node.fallback_mirrors):
        if not _URL.match(url):
            raise InvalidInput(f"{owner}: mirror {url!r} is not a URL such as http://10.0.0.3, scheme included")
    for path in filter(None, (node.ramdisk, node.overlay)):
        if not _PATH.match(path) or ".." in path.split("/"):
            raise InvalidInput(f"{owner}: {path!r} is not a path below the mirror's root")
    for console in node.console:
        if not re.match(r"^[A-Za-z0-9,:./-]+$", console):
            raise InvalidInput(f"{owner}: console {console!r} is not a kernel console such as ttyS0,115200n8")
    kernel_args.check(node.kernel_args, owner)


def _check_addresses(node: Node, owner: str) -> None:
    if not node.address:
        return
    try:
        interface = ipaddress.IPv4Interface(node.address)
    except ValueError as exc:
        raise InvalidInput(f"{owner}: address {node.address!r} is not an IPv4 address with its prefix length") from exc
    if "/" not in node.address:
        raise InvalidInput(f"{owner}: address {node.address!r} lacks the prefix length of its subnet, such as /24")
    network = interface.network
    if network.prefixlen < 31 and interface.ip in (network.network_address, network.broadcast_address):
        raise InvalidInput(f"{owner}: {interface.ip} is the network or broadcast address of {network}")
    if node.gateway:
        try:
            gateway = ipaddress.IPv4Address(node.gateway)
        except ValueError as exc:
            raise InvalidInput(f"{owner}: gateway {node.gateway!r} is not an IPv4 address") from exc
        if gateway not in network:
            raise InvalidInput(f"{owner}: gateway {gateway} lies outside the node's subnet {network}")


def _shared(nodes: t.Sequence[Node], field: str) -> list[str]:
    owners: dict[str, list[str]] = {}
    for node in nodes:
        value = getattr(node, field)
        if value:
            owners.setdefault(value.split("/")[0], []).append(node.name)
    return [f"{field} {value} is given to {' and '.join(names)}" for value, names in owners.items() if len(names) > 1]
