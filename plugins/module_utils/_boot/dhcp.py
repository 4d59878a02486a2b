# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The DHCP plan of a rack: subnets and hosts, checked as a whole, as dnsmasq reads them. Private to h200.rack."""

from __future__ import annotations

import ipaddress
import re
import typing as t

from ansible_collections.h200.rack.plugins.module_utils._common.errors import InvalidInput

from . import mac

_LABEL = re.compile(r"^[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?$")
_BINARY = re.compile(r"^[A-Za-z0-9][A-Za-z0-9._/-]*$")
# What firmware can start at all: a BIOS hangs on an EFI binary, and UEFI on a BIOS one.
UEFI, BIOS = "uefi", "bios"
_FIRMWARE = {"bios": BIOS, "x86_64": UEFI, "aarch64": UEFI}
_KINDS = {".efi": UEFI, ".kpxe": BIOS, ".kkpxe": BIOS, ".pxe": BIOS}
_LEASE = re.compile(r"^([0-9]+[mhdw]?|infinite)$")
# A node boots from the provisioning network; the others are served only where a host of the plan lies in them.
_ALWAYS = "provisioning"


class Host(t.NamedTuple):
    """One line of the hosts file."""

    name: str
    mac: str
    address: ipaddress.IPv4Address
    binary: str = ""


class Plan(t.NamedTuple):
    """Checked hosts, and the subnets that the server answers in."""

    hosts: list[Host]
    subnets: list[dict[str, t.Any]]

    @property
    def binaries(self) -> dict[str, str]:
        """A tag for each iPXE binary that some hosts get instead of the one of their architecture."""
        own = sorted({host.binary for host in self.hosts if host.binary})
        return {binary: f"binary-{number}" for number, binary in enumerate(own, 1)}


def kind(binary: str, owner: str) -> str:
    """The firmware that starts ``binary``, which its name must tell."""
    if not _BINARY.match(binary) or ".." in binary.split("/"):
        raise InvalidInput(f"{owner}: {binary!r} is not a path below the TFTP root")
    found = next((firmware for suffix, firmware in _KINDS.items() if binary.endswith(suffix)), "")
    if not found:
        raise InvalidInput(
            f"{owner}: {binary} is no binary for a network boot, its name ends in none of {', '.join(_KINDS)}"
        )
    return found


def check_binaries(binaries: t.Mapping[str, str]) -> None:
    """The binary of each architecture; the classic mistake is one for a BIOS that every machine gets."""
    for arch, binary in binaries.items():
        if arch not in _FIRMWARE:
            raise InvalidInput(f"dhcp_ipxe_binaries: {arch!r} is none of {', '.join(_FIRMWARE)}")
        if kind(binary, f"dhcp_ipxe_binaries.{arch}") != _FIRMWARE[arch]:
            raise InvalidInput(f"dhcp_ipxe_binaries.{arch}: {binary} does not run on this firmware")


def plan(hosts: t.Sequence[t.Mapping[str, t.Any]], subnets: t.Sequence[t.Mapping[str, t.Any]]) -> Plan:
    """Check hosts and subnets together; every problem is reported at once."""
    problems: list[str] = []
    networks = _networks(subnets, problems)
    parsed: list[Host] = []
    for item in hosts:
        try:
            parsed.append(_host(item, [network for network, _subnet in networks]))
        except InvalidInput as exc:
            problems.append(exc.msg)
    for field in ("name", "mac", "address"):
        problems += _shared(parsed, field)
    if problems:
        raise InvalidInput("; ".join(problems), problems=problems)
    return Plan(parsed, [_served(net, subnet) for net, subnet in networks if _is_served(net, subnet, parsed)])


def interfaces(links: t.Sequence[t.Mapping[str, t.Any]], plan: Plan) -> list[str]:
    """The interfaces of a host with an address in a subnet of the plan, from what ``ip -json address`` says."""
    networks = [ipaddress.IPv4Network(subnet["cidr"]) for subnet in plan.subnets]
    found = set()
    for link in links:
        own = [entry["local"] for entry in link.get("addr_info", ()) if entry.get("family") == "inet"]
        if any(ipaddress.IPv4Address(address) in network for address in own for network in networks):
            found.add(str(link["ifname"]))
    return sorted(found)


def hosts_file(plan: Plan, lease: str) -> str:
    """The lines for ``dhcp-hostsfile``, sorted by address so that a diff shows only what changed."""
    if not _LEASE.match(lease):
        raise InvalidInput(f"the lease time {lease!r} is none of dnsmasq's, such as 45m, 12h, 1d or infinite")
    tags = {binary: f"set:own-{kind(binary, binary)},set:{tag}," for binary, tag in plan.binaries.items()}
    lines = [
        f"{host.mac},{tags.get(host.binary, '')}{host.address},{host.name},{lease}"
        for host in sorted(plan.hosts, key=lambda host: host.address)
    ]
    return "\n".join(["# By the role h200.rack.dhcp; changes are overwritten.", *lines, ""])


def _networks(
    subnets: t.Sequence[t.Mapping[str, t.Any]], problems: list[str]
) -> list[tuple[ipaddress.IPv4Network, t.Mapping[str, t.Any]]]:
    networks: list[tuple[ipaddress.IPv4Network, t.Mapping[str, t.Any]]] = []
    for subnet in subnets:
        name = subnet.get("name") or subnet.get("cidr")
        try:
            network = ipaddress.ip_network(str(subnet.get("cidr")))
        except ValueError as exc:
            problems.append(f"subnet {name}: cidr {subnet.get('cidr')!r} is not a network ({exc})")
            continue
        if not isinstance(network, ipaddress.IPv4Network):
            continue
        for other, _subnet in networks:
            if other.overlaps(network):
                problems.append(f"subnet {name}: {network} overlaps {other}")
        gateway = subnet.get("gateway")
        if gateway and ipaddress.ip_address(str(gateway)) not in network:
            problems.append(f"subnet {name}: gateway {gateway} lies outside {network}")
        networks.append((network, subnet))
    return networks


def _host(item: t.Mapping[str, t.Any], networks: t.Sequence[ipaddress.IPv4Network]) -> Host:
    name = str(item.get("name") or "")
    owner = f"host {name}"
    label = name.split(".", maxsplit=1)[0]
    if not _LABEL.match(label):
        raise InvalidInput(f"{owner}: {label!r} is not a host name (letters, digits, hyphens)")
    canonical = mac.canonical(item.get("mac"), owner)
    try:
        address = ipaddress.IPv4Address(str(item.get("address")).split("/", maxsplit=1)[0])
    except ValueError as exc:
        raise InvalidInput(f"{owner}: address {item.get('address')!r} is not an IPv4 address") from exc
    home = next((network for network in networks if address in network), None)
    if home is None:
        raise InvalidInput(f"{owner}: address {address} lies in none of the subnets {', '.join(map(str, networks))}")
    if home.prefixlen < 31 and address in (home.network_address, home.broadcast_address):
        raise InvalidInput(f"{owner}: {address} is the network or broadcast address of {home}")
    binary = str(item.get("ipxe_binary") or "")
    if binary:
        kind(binary, f"{owner}: ipxe_binary")
    return Host(label, canonical, address, binary)


def _shared(hosts: t.Sequence[Host], field: str) -> list[str]:
    owners: dict[str, list[str]] = {}
    for host in hosts:
        owners.setdefault(str(getattr(host, field)), []).append(host.name)
    return [f"{field} {value} is given to {' and '.join(names)}" for value, names in owners.items() if len(names) > 1]


def _is_served(network: ipaddress.IPv4Network, subnet: t.Mapping[str, t.Any], hosts: t.Sequence[Host]) -> bool:
    return subnet.get("role", _ALWAYS) == _ALWAYS or any(host.address in network for host in hosts)


def _served(network: ipaddress.IPv4Network, subnet: t.Mapping[str, t.Any]) -> dict[str, t.Any]:
    """What the template needs of a subnet, addresses in the forms that dnsmasq wants."""
    return {
        "tag": "net-" + re.sub(r"[^a-z0-9]+", "-", str(subnet.get("name") or network).lower()).strip("-"),
        "cidr": str(network),
        "network": str(network.network_address),
        "netmask": str(network.netmask),
        "gateway": str(subnet.get("gateway") or ""),
        "dns": _listed(subnet.get("dns")),
        "ntp": _listed(subnet.get("ntp")),
        "boots": subnet.get("role", _ALWAYS) == _ALWAYS,
    }


def _listed(value: t.Any) -> list[str]:
    if not value:
        return []
    return [str(entry) for entry in ([value] if isinstance(value, str) else value)]
