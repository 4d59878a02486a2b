# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Boot servers and mirrors, and which of them a node uses. Private to h200.rack."""

from __future__ import annotations

import typing as t
import urllib.parse

from .addresses import parse_address, url_host
from .problems import Problems
from .reading import MISSING, read

MIRROR_URL = "rack_mirror_url"
BOOT_URL = "rack_mirror_boot_url"
CA = "rack_ca_certificate"


def read_servers(
    hosts: t.Sequence[str],
    hostvars: t.Mapping[str, t.Mapping[str, t.Any]],
    url_variable: str,
    problems: Problems,
) -> dict[str, dict[str, t.Any]]:
    """By host: its address, base URL, the one for iPXE, and rack."""
    servers = {}
    for host in hosts:
        variables = hostvars[host]
        address = read(host, variables, "ansible_host", problems)
        url = read(host, variables, url_variable, problems)
        address = host if address in MISSING else address
        try:
            address = str(parse_address(address))
        except ValueError:
            problems.add(
                host, "ansible_host", f"{address!r} is not an address, and nodes that boot cannot ask for names"
            )
            continue
        rack = read(host, variables, "rack_name", problems)
        scheme = "https" if url_variable == MIRROR_URL and read(host, variables, "mirror_tls", problems) else "http"
        url = f"{scheme}://{url_host(address)}" if url in MISSING else str(url).rstrip("/")
        if not _is_base_url(url):
            problems.add(
                host, url_variable, f"{url!r} is not an http or https URL of a server, without query or password"
            )
            continue
        servers[host] = {
            "name": host,
            "address": address,
            "url": url,
            "boot_url": _plain(url, read(host, variables, BOOT_URL, problems)),
            "rack": "" if rack in MISSING else str(rack),
            "cache": bool(read(host, variables, "mirror_origins", problems)),
        }
    return servers


def read_ca(hosts: t.Sequence[str], hostvars: t.Mapping[str, t.Mapping[str, t.Any]], problems: Problems) -> str:
    """The certificates that https mirrors are checked against; empty for those that the system trusts."""
    found = {str(read(host, hostvars[host], CA, problems) or "").strip() for host in hosts} - {""}
    if len(found) > 1:
        problems.add("", CA, "the mirrors have different ones: give all of them in one text")
    for text in found:
        if "-----BEGIN CERTIFICATE-----" not in text:
            problems.add("", CA, "is not a certificate in PEM form")
    return "\n".join(sorted(found))


def _is_base_url(url: str) -> bool:
    try:
        parts = urllib.parse.urlsplit(url)
        return (
            parts.scheme in ("http", "https")
            and bool(parts.hostname)
            and not (parts.query or parts.fragment or "@" in parts.netloc or parts.port == 0)
        )
    except ValueError:
        return False


def _plain(url: str, given: t.Any) -> str:
    """Where firmware and iPXE fetch from that cannot check the rack's certificates: the same server over HTTP."""
    if given not in MISSING:
        return str(given).rstrip("/")
    parts = urllib.parse.urlsplit(url)
    return f"http://{url_host(parts.hostname or '')}{parts.path}" if parts.scheme == "https" else url


def servers_of(rack: str, servers: t.Mapping[str, dict[str, t.Any]]) -> list[dict[str, t.Any]]:
    """Those of the node's rack, then those without a rack."""
    own = [server for server in servers.values() if rack and server["rack"] == rack]
    shared = [server for server in servers.values() if not server["rack"]]
    return own + shared
