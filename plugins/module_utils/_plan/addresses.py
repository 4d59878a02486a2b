# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Addresses, MAC addresses and subnets, as netaddr reads them. Private to h200.rack."""

from __future__ import annotations

import dataclasses
import re
import typing as t
import urllib.parse

try:
    import netaddr

    NETADDR_ERROR: t.Optional[ImportError] = None
except ImportError as exc:
    NETADDR_ERROR = exc

ROLES = ("provisioning", "bmc", "production", "storage", "fabric")
SUBNET_KEYS = ("name", "cidr", "gateway", "dns", "ntp", "vlan", "relay", "role")

_MAC = re.compile(r"[0-9a-f]{12}\Z")


@dataclasses.dataclass(frozen=True)
class Subnet:
    """One entry of rack_subnets."""

    name: str
    cidr: str
    role: str
    version: int
    first: int
    last: int
    prefix: int
    netmask: str
    gateway: str = ""
    dns: tuple[str, ...] = ()
    ntp: tuple[str, ...] = ()
    vlan: t.Optional[int] = None
    relay: str = ""

    def holds(self, address: netaddr.IPAddress) -> bool:
        return address.version == self.version and self.first <= int(address) <= self.last

    def is_reserved(self, address: netaddr.IPAddress) -> bool:
        """Whether it is the network's own or its broadcast address."""
        return self.version == 4 and self.prefix < 31 and int(address) in (self.first, self.last)

    def overlaps(self, other: Subnet) -> bool:
        return self.version == other.version and self.first <= other.last and other.first <= self.last

    def as_dict(self) -> dict[str, t.Any]:
        """What roles and templates read."""
        return {
            "name": self.name,
            "cidr": self.cidr,
            "role": self.role,
            "version": self.version,
            "prefix": self.prefix,
            "netmask": self.netmask,
            "gateway": self.gateway,
            "dns": list(self.dns),
            "ntp": list(self.ntp),
            "vlan": self.vlan,
            "relay": self.relay,
        }


def parse_address(text: t.Any) -> netaddr.IPAddress:
    """An IPv4 or IPv6 address written out in full. Raises ValueError."""
    try:
        return netaddr.IPAddress(str(text), flags=netaddr.INET_PTON)
    except (netaddr.AddrFormatError, ValueError, TypeError) as exc:
        raise ValueError(f"{text!r} is not an IPv4 or IPv6 address") from exc


def parse_mac(text: t.Any) -> str:
    """A MAC address in any common spelling, as ``aa:bb:cc:dd:ee:ff``. Raises ValueError."""
    if isinstance(text, int):
        raise ValueError(f"{text!r} is not a MAC address: put it into quotes, YAML took it for a number")
    digits = re.sub(r"[:.\-]", "", str(text).strip().lower())
    if not _MAC.match(digits):
        raise ValueError(f"{text!r} is not a MAC address")
    if int(digits[:2], 16) & 1 or not int(digits, 16):
        raise ValueError(f"{text!r} is not the MAC address of a single network card")
    return ":".join(digits[place : place + 2] for place in range(0, 12, 2))


def url_host(address: str) -> str:
    """The address as a URL spells it."""
    return f"[{address}]" if ":" in address else address


def split_bmc_address(text: str) -> tuple[str, t.Optional[int]]:
    """Host and port of ``name``, ``address``, ``host:port``, ``[v6]:port`` or a URL. Raises ValueError."""
    text = str(text).strip()
    if "://" not in text and text.count(":") > 1 and not text.startswith("["):
        return text, None
    parts = urllib.parse.urlsplit(text if "://" in text else f"//{text}")
    if parts.username is not None or parts.password is not None:
        raise ValueError("a user name or password does not belong into an address")
    if not parts.hostname:
        raise ValueError(f"{text!r} names no host")
    return parts.hostname, parts.port


def _addresses(value: t.Any, what: str) -> tuple[str, ...]:
    if value in (None, ""):
        return ()
    items = value if isinstance(value, (list, tuple)) else [value]
    try:
        return tuple(str(parse_address(item)) for item in items)
    except ValueError as exc:
        raise ValueError(f"{what}: {exc}") from exc


def parse_subnet(entry: t.Any) -> Subnet:
    """One entry of rack_subnets. Raises ValueError."""
    if not isinstance(entry, t.Mapping):
        raise ValueError(f"{entry!r} is not a mapping with name, cidr and role")
    label = entry.get("name") or entry.get("cidr") or "a subnet without a name"
    unknown = sorted(set(entry) - set(SUBNET_KEYS))
    if unknown:
        raise ValueError(f"{label}: no such key: {', '.join(unknown)} (known: {', '.join(SUBNET_KEYS)})")
    for key in ("name", "cidr"):
        if not entry.get(key):
            raise ValueError(f"{label}: {key} is missing")
    role = entry.get("role", "provisioning")
    if role not in ROLES:
        raise ValueError(f"{label}: no such role: {role!r} (known: {', '.join(ROLES)})")
    return _checked_subnet(entry, str(label), str(role))


def _checked_subnet(entry: t.Mapping[str, t.Any], label: str, role: str) -> Subnet:
    try:
        network = netaddr.IPNetwork(str(entry["cidr"]))
    except (netaddr.AddrFormatError, ValueError) as exc:
        raise ValueError(f"{label}: {entry['cidr']!r} is not a network like 10.1.0.0/24") from exc
    if "/" not in str(entry["cidr"]) or network.ip != network.network:
        raise ValueError(f"{label}: {entry['cidr']!r} is not a network; {network.cidr} would be one")
    gateway = _addresses(entry.get("gateway"), f"{label}: gateway")[:1]
    if gateway and netaddr.IPAddress(gateway[0]) not in network:
        raise ValueError(f"{label}: the gateway {gateway[0]} is outside {network}")
    vlan = entry.get("vlan")
    if vlan is not None and not (str(vlan).isdigit() and 1 <= int(vlan) <= 4094):
        raise ValueError(f"{label}: {vlan!r} is not a VLAN (1 to 4094)")
    return Subnet(
        name=str(entry["name"]),
        cidr=str(network),
        role=role,
        version=network.version,
        first=int(network.first),
        last=int(network.last),
        prefix=network.prefixlen,
        netmask=str(network.netmask),
        gateway=gateway[0] if gateway else "",
        dns=_addresses(entry.get("dns"), f"{label}: dns"),
        ntp=tuple(str(item) for item in _listed(entry.get("ntp"))),
        vlan=None if vlan is None else int(vlan),
        relay=(*_addresses(entry.get("relay"), f"{label}: relay"), "")[0],
    )


def _listed(value: t.Any) -> list[t.Any]:
    if value in (None, ""):
        return []
    return list(value) if isinstance(value, (list, tuple)) else [value]
