# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What differs from vendor to vendor, each with the source it is known from. Private to h200.rack."""

from __future__ import annotations

import dataclasses
import re
import typing as t


@dataclasses.dataclass(frozen=True)
class Quirk:
    """A deviation; the fields after ``source`` say what to do about it."""

    name: str
    match: str  # regular expression over the names that identify() collects
    source: str
    always_enabled: bool = False  # send BootSourceOverrideEnabled even if it is unchanged
    full_request: bool = False  # send mode, enabled and target together, always
    unlisted_targets: tuple[str, ...] = ()  # work although the allowable values lack them
    once_is_continuous: bool = False  # knows no one-time override
    reads_back_as: tuple[tuple[str, bool, str], ...] = ()  # (target sent, with a URI, target read)
    http_uri: str = ""  # where the URI of an HTTP boot goes, if not into Boot.HttpBootUri


QUIRKS: tuple[Quirk, ...] = (
    Quirk(
        "supermicro_enabled",
        r"supermicro",
        "OpenStack Ironic, redfish/management.py, story 2008547: Enabled falls back to Once unless it is sent",
        always_enabled=True,
        unlisted_targets=("UefiHttp",),
    ),
    Quirk(
        "ami_full_request",
        r"^(ami|american megatrends.*|asrockrack|asrock rack.*)$",
        "OpenStack Ironic, VENDORS_REQUIRING_FULL_BOOT_REQUEST; NVIDIA libredfish nvidia_viking.rs (DGX H100)",
        full_request=True,
    ),
    Quirk(
        "dell_http_dev1",
        r"^dell",
        "NVIDIA libredfish #75 (XE9680), bmclib #463: no HttpBootUri; BIOS attributes HttpDev1EnDis and HttpDev1Uri",
        http_uri="dell_bios",
    ),
    Quirk(
        "hpe_url_boot_file",
        r"^(hpe|hewlett.packard.*)$",
        "NVIDIA libredfish #76 (iLO 6): HttpBootUri is in the schema but not writable; BIOS attribute UrlBootFile",
        http_uri="hpe_bios",
    ),
    Quirk(
        "sushy_emulator_boot",
        r"^(sushy emulator|redvirt service)$",
        "sushy-tools emulator/main.py: Enabled is ignored and always Continuous; UefiHttp becomes Pxe, with a URI Cd",
        once_is_continuous=True,
        reads_back_as=(("UefiHttp", False, "Pxe"), ("UefiHttp", True, "Cd")),
    ),
)

# (manufacturer id, product id) from Get Device ID -> why the valid bit of its boot flags means nothing.
IPMI_WITHOUT_VALID_BIT: dict[tuple[int, int], str] = {
    (0x1291, 0x0F02): "OpenIPMI ipmi_sim 2.0.33: answers with the device alone, all flags are 0",
}


@dataclasses.dataclass(frozen=True)
class Traits:
    """The sum of the quirks that apply to one machine."""

    names: tuple[str, ...] = ()
    always_enabled: bool = False
    full_request: bool = False
    unlisted_targets: tuple[str, ...] = ()
    once_is_continuous: bool = False
    reads_back_as: tuple[tuple[str, bool, str], ...] = ()
    http_uri: str = ""


def identify(root: dict[str, t.Any], system: dict[str, t.Any]) -> list[str]:
    """The names by which a machine can be known."""
    names = [root.get("Vendor"), root.get("Name"), system.get("Manufacturer")]
    oem = root.get("Oem")
    names += list(oem) if isinstance(oem, dict) else []
    return [name for name in names if isinstance(name, str)]


def traits(root: dict[str, t.Any], system: dict[str, t.Any]) -> Traits:
    """What to mind with this machine."""
    known_as = identify(root, system)
    hits = [quirk for quirk in QUIRKS if any(re.search(quirk.match, name.strip(), re.IGNORECASE) for name in known_as)]
    return Traits(
        names=tuple(quirk.name for quirk in hits),
        always_enabled=any(quirk.always_enabled for quirk in hits),
        full_request=any(quirk.full_request for quirk in hits),
        unlisted_targets=tuple(target for quirk in hits for target in quirk.unlisted_targets),
        once_is_continuous=any(quirk.once_is_continuous for quirk in hits),
        reads_back_as=tuple(pair for quirk in hits for pair in quirk.reads_back_as),
        http_uri=next((quirk.http_uri for quirk in hits if quirk.http_uri), ""),
    )
