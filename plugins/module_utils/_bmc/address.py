# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reading the option bmc_host: a name, an address, host:port or a URL. Private to h200.rack."""

from __future__ import annotations

import ipaddress
import re
import socket
import typing as t
from urllib.parse import urlsplit

from .bounded import TookTooLong, bounded
from .errors import BmcError, invalid

_NAME = re.compile(r"^[A-Za-z0-9_]([A-Za-z0-9_.-]*[A-Za-z0-9_.])?$")


class Address(t.NamedTuple):
    scheme: str
    host: str
    port: int

    @property
    def url(self) -> str:
        """The origin, with brackets around an IPv6 address."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        default = {"https": 443, "http": 80}.get(self.scheme)
        return f"{self.scheme}://{host}" if self.port == default else f"{self.scheme}://{host}:{self.port}"


def parse_redfish(text: str) -> Address:
    """Where the Redfish service is; HTTPS unless the URL says http."""
    text = text.strip()
    if "://" not in text:
        host, port = _split(text)
        return Address("https", host, port or 443)
    parts = urlsplit(text)
    if parts.scheme not in ("http", "https"):
        raise invalid(f"bmc_host: the scheme must be https or http, not {parts.scheme!r}.")
    if "@" in parts.netloc:
        raise invalid("bmc_host: put the user and the password into bmc_username and bmc_password, not into the URL.")
    if parts.path.rstrip("/") not in ("", "/redfish", "/redfish/v1") or parts.query or parts.fragment:
        raise invalid("bmc_host: the URL must end after the host and the port, like https://bmc01.example.com:8443.")
    host, port = _split(parts.netloc)
    return Address(parts.scheme, host, port or (443 if parts.scheme == "https" else 80))


def parse_ipmi(text: str, port: int | None) -> Address:
    """Where the IPMI service is; ``port`` (the option) wins over one written into ``text``."""
    text = text.strip()
    if "://" in text:
        raise invalid("bmc_host: IPMI has no URLs; give a name or an address, with :port if it is not 623.")
    host, written = _split(text)
    return Address("ipmi", host, port or written or 623)


def check_name(host: str, seconds: float) -> None:
    """Fail within ``seconds`` if ``host`` is a name that does not resolve; DNS servers may be gone, too."""
    try:
        ipaddress.ip_address(host)
        return
    except ValueError:
        pass
    try:
        bounded(seconds, lambda: socket.getaddrinfo(host, None))
    except (TookTooLong, OSError, UnicodeError) as exc:
        late = f" within {seconds:g} s" if isinstance(exc, TookTooLong) else ""
        advice = "Check bmc_host and the DNS."
        raise BmcError("unreachable", f"The name {host} does not resolve{late}. {advice}") from exc


def _split(text: str) -> tuple[str, int | None]:
    """``text`` as host and port; understands bare and bracketed IPv6."""
    bracketed = re.match(r"^\[([^\]]+)\](?::(\d+))?$", text)
    if bracketed:
        return _ipv6(bracketed.group(1)), _port(bracketed.group(2))
    if text.count(":") > 1:
        return _ipv6(text), None
    host, unused, port = text.partition(":")
    if unused and not port:
        raise invalid("bmc_host: a port is missing after the colon.")
    if not _NAME.match(host):
        raise invalid("bmc_host must be a host name, an address, host:port or a URL.")
    return host, _port(port)


def _ipv6(text: str) -> str:
    try:
        ipaddress.IPv6Address(text)
    except ValueError as exc:
        raise invalid(f"bmc_host: {text!r} is not an IPv6 address.") from exc
    return text


def _port(text: str | None) -> int | None:
    if not text:
        return None
    if not text.isdecimal() or not 0 < int(text) < 65536:
        raise invalid(f"bmc_host: {text!r} is not a port (1 to 65535).")
    return int(text)
