# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where the URI of an HTTP boot goes: the standard property, BIOS attributes, or DHCP. Private to h200.rack."""

from __future__ import annotations

import typing as t

from . import boot_words as bw
from .errors import BmcError
from .patch import patch
from .quirks import Traits
from .redfish import Redfish
from .systems import path_of

# Strategy -> the BIOS attributes, in the order the BIOS wants them (the parent first), with %s for the URI.
BIOS_ATTRIBUTES: dict[str, dict[str, str]] = {
    "dell_bios": {"HttpDev1EnDis": "Enabled", "HttpDev1Uri": "%s"},
    "hpe_bios": {"UrlBootFile": "%s"},
}


def choose(boot: dict[str, t.Any], traits: Traits) -> str:
    """The strategy for a URI: http_boot_uri, dell_bios, hpe_bios or dhcp."""
    if traits.http_uri == "hpe_bios" or (traits.http_uri and bw.URI not in boot):
        return traits.http_uri
    return "http_boot_uri" if bw.URI in boot else "dhcp"


class BiosUri:
    """The URI kept in BIOS attributes, which take effect with the next restart."""

    def __init__(self, client: Redfish, system: dict[str, t.Any], strategy: str, uri: str) -> None:
        self.client = client
        self.want = {name: value.replace("%s", uri) for name, value in BIOS_ATTRIBUTES[strategy].items()}
        path = path_of(system.get("Bios"))
        if path is None:
            raise BmcError("unsupported", "This BMC has no BIOS resource to keep http_boot_uri in; set it by DHCP.")
        self.bios = client.get(path, "the BIOS attributes").body
        settings = self.bios.get("@Redfish.Settings")
        link = path_of(settings.get("SettingsObject")) if isinstance(settings, dict) else None
        self.path = link or f"{path}/Settings"
        self.uri_name = list(self.want)[-1]

    @property
    def current(self) -> str | None:
        return _attributes(self.bios).get(self.uri_name)

    @property
    def missing(self) -> dict[str, str]:
        have = _attributes(self.bios)
        return {name: value for name, value in self.want.items() if have.get(name) != value}

    def write(self) -> None:
        """Set what is missing and prove that it is pending."""
        absent = [name for name in self.want if name not in _attributes(self.bios)]
        if absent:
            raise BmcError("unsupported", f"The BIOS has no attribute {', '.join(absent)}; set the URI by DHCP.")
        pending = self.client.try_get(self.path)
        if pending.ok and self._holds(_attributes(pending.body)):
            return
        data: dict[str, t.Any] = {"Attributes": self.missing}
        if "@Redfish.SettingsApplyTime" in pending.body or "HttpDev1Uri" in self.want:
            data["@Redfish.SettingsApplyTime"] = {"ApplyTime": "OnReset"}
        answer = patch(self.client, self.path, data)
        if answer is not None and not answer.ok:
            raise answer.error("Setting the BIOS attributes for HTTP boot")
        now = self.client.get(self.path, "the pending BIOS attributes").body
        if not self._holds(_attributes(now)):
            raise BmcError("not_applied", f"The BMC accepted {self.uri_name} but does not show it as pending.")

    def _holds(self, attributes: dict[str, t.Any]) -> bool:
        return all(attributes.get(name) == value for name, value in self.missing.items())


def _attributes(resource: dict[str, t.Any]) -> dict[str, t.Any]:
    found = resource.get("Attributes")
    return found if isinstance(found, dict) else {}
