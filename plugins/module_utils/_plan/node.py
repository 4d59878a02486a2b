# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One node of the plan: every variable with its default, placed in its rack's networks. Private to h200.rack."""

from __future__ import annotations

import typing as t

from ansible_collections.h200.rack.plugins.module_utils._common.errors import InvalidInput

from . import fields
from .addresses import Subnet, parse_address, split_bmc_address
from .problems import Problems
from .profiles import Known
from .servers import servers_of
from .subnets import place

Node = dict[str, t.Any]

#: The name that the boot card gets in the installed system, whatever the firmware and the kernel would call it.
BOOT_INTERFACE = "boot0"
_CONSOLE = {"x86_64": ["tty0", "ttyS0,115200n8"], "aarch64": ["tty0", "ttyAMA0,115200n8"]}
#: What the distributions ship and DHCP tells machines whose profile asks for nothing else.
_BINARY = {"x86_64": "snponly.efi", "aarch64": "ipxe-arm64.efi"}
_BIOS_BINARY = "undionly.kpxe"
_DEFAULT_USER = "rack"


def default_network(node: Node) -> dict[str, t.Any]:
    """The boot card with its static address, as cloud-init reads it."""
    card: dict[str, t.Any] = {
        "match": {"macaddress": node["boot_mac"]},
        "set-name": BOOT_INTERFACE,
        "dhcp4": False,
        "dhcp6": False,
        "addresses": [node["address"]],
    }
    if node["gateway"]:
        # Spelled out, because not every renderer of cloud-init knows the word default.
        card["routes"] = [{"to": "::/0" if ":" in node["gateway"] else "0.0.0.0/0", "via": node["gateway"]}]
    if node["dns"]:
        card["nameservers"] = {"addresses": node["dns"]}
        if node["domain"]:
            card["nameservers"]["search"] = [node["domain"]]
    return {"version": 2, "ethernets": {BOOT_INTERFACE: card}}


def _name(node: Node, problems: Problems) -> None:
    name = node["name"]
    try:
        node["hostname"] = fields.hostname(name)
    except ValueError as exc:
        problems.add(name, "inventory_hostname", str(exc))
        node["hostname"] = name
    domain = node["domain"] or ""
    node["fqdn"] = name.lower() if "." in name else ".".join(filter(None, (node["hostname"], domain)))


def _networks(node: Node, subnets: t.Sequence[Subnet], problems: Problems) -> None:
    subnet = None
    if node["ip"] and subnets:
        ip = parse_address(node["ip"])
        subnet = place(subnets, ip, "provisioning", node["name"], "ansible_host", problems)
    node["address"] = f"{node['ip']}/{subnet.prefix}" if subnet else None
    for key in ("prefix", "netmask", "gateway", "vlan"):
        node[key] = getattr(subnet, key) if subnet else None
    node["subnet"] = subnet.name if subnet else None
    node["dns"] = list(subnet.dns) if subnet else []
    node["ntp"] = list(subnet.ntp) if subnet else []
    if node["network"] is None and node["address"] and node["boot_mac"]:
        node["network"] = default_network(node)


def _bmc(node: Node, subnets: t.Sequence[Subnet], problems: Problems) -> None:
    node["bmc_host"] = node["bmc_port"] = None
    if not node["bmc_address"]:
        return
    node["bmc_host"], node["bmc_port"] = split_bmc_address(node["bmc_address"])
    try:
        ip = parse_address(node["bmc_host"])
    except ValueError:
        return  # a name; DNS knows where it is
    node["bmc_host"] = str(ip)
    # A site whose rack_subnets has no BMC network keeps that to itself.
    if any(subnet.role == "bmc" for subnet in subnets):
        place(subnets, ip, "bmc", node["name"], "rack_bmc_address", problems)


def _profile(node: Node, known: Known, problems: Problems) -> None:
    node["profile_name"], node["profile"] = node["profile"], None
    if not node["profile_name"]:
        return
    profile = known(node["profile_name"])
    if not isinstance(profile, InvalidInput):
        node["profile"] = profile
        return
    variable = str(profile.details.get("variable", "rack_profile"))
    msg = profile.msg[len(variable) + 2 :] if profile.msg.startswith(f"{variable}: ") else profile.msg
    problems.add(node["name"], variable, msg)


def _console(node: Node, problems: Problems) -> None:
    if node["console"] == ():
        profile = node["profile"] or {}
        arch = node["arch"] or "x86_64"
        node["console"] = list(profile.get("console") or []) if arch == "x86_64" else []
        node["console"] = node["console"] or list(_CONSOLE[arch])
    if node["boot_method"] == "bios_pxe" and node["arch"] == "aarch64":
        problems.add(node["name"], "rack_boot_method", "bios_pxe: an aarch64 server has no BIOS")


def _accounts(node: Node) -> None:
    given = list(node["users"] or ())
    node["os_user"] = node["os_user"] or (given[0]["name"] if given else _DEFAULT_USER)
    keys = node["authorized_keys"] or []
    accounts = [{**user, "ssh_authorized_keys": user.get("ssh_authorized_keys") or keys} for user in given]
    if node["os_user"] not in [user["name"] for user in given]:
        # Ansible must get in, whatever the image knows.
        sudo = {} if node["os_user"] == "root" else {"sudo": "ALL=(ALL) NOPASSWD:ALL"}
        accounts.append({"name": node["os_user"], **sudo, "ssh_authorized_keys": keys})
    node["users"] = accounts


def _servers(node: Node, mirrors: t.Any, boot_servers: t.Any, problems: Problems) -> None:
    rack = node["rack"]
    own_mirrors, own_boot_servers = servers_of(rack, mirrors), servers_of(rack, boot_servers)
    for group, found in (("rack_mirrors", own_mirrors), ("rack_boot_servers", own_boot_servers)):
        if not found:
            where = f"with rack_name {rack} or without a rack_name" if rack else "without a rack_name"
            problems.add(node["name"], "rack_name", f"no host of the group {group} serves this node: none {where}")
    # Where the rack has a cache, the mirrors behind it are asked only when its own ones fail.
    near = [server for server in own_mirrors if server["rack"]]
    near = near if any(server["cache"] for server in near) else own_mirrors
    far = [server for server in own_mirrors if server not in near]
    for prefix, found in (("", near), ("fallback_", far)):
        node[f"{prefix}mirrors"] = [server["url"] for server in found]
        node[f"{prefix}boot_mirrors"] = [server["boot_url"] for server in found]
        node[f"{prefix}mirror_hosts"] = [server["name"] for server in found]
    node["boot_servers"] = [server["name"] for server in own_boot_servers]
    node["boot_urls"] = [server["url"] for server in own_boot_servers]
    usual = _BIOS_BINARY if node["boot_method"] == "bios_pxe" else _BINARY[node["arch"] or "x86_64"]
    asked = ((node["profile"] or {}).get("boot") or {}).get("ipxe_binary")
    # The known profiles name the usual binary of x86_64, whatever firmware and processor the node has.
    node["own_binary"] = bool(asked) and asked not in (_BINARY["x86_64"], usual) and node["boot_method"] != "bios_pxe"
    node["ipxe_binary"] = asked if node["own_binary"] else usual
    node["http_boot_uri"] = f"{own_boot_servers[0]['url']}/ipxe/{node['ipxe_binary']}" if own_boot_servers else None


def complete(
    name: str,
    values: dict[str, t.Any],
    known: Known,
    subnets: t.Sequence[Subnet],
    mirrors: t.Mapping[str, dict[str, t.Any]],
    boot_servers: t.Mapping[str, dict[str, t.Any]],
    problems: Problems,
) -> Node:
    """The node with everything that follows from its variables."""
    node: Node = {**values, "name": name, "rack": values["name"] or ""}
    node["image_name"], node["image_digest"] = fields.split_image(node["image"]) if node["image"] else (None, "")
    _name(node, problems)
    _networks(node, subnets, problems)
    _bmc(node, subnets, problems)
    _profile(node, known, problems)
    _console(node, problems)
    _accounts(node)
    node["ipxe_builds"] = node["ipxe_builds"] or {}
    _servers(node, mirrors, boot_servers, problems)
    return node
