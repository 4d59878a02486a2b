# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How the BMCs of H200-class machines differ. The comments say where a manner is known from."""

from __future__ import annotations

import dataclasses
import typing as t

Boot = dict
ALL_RESETS = ("On", "ForceOff", "GracefulShutdown", "GracefulRestart", "ForceRestart", "PowerCycle", "Nmi")
USUAL_TARGETS = ("None", "Pxe", "Hdd", "Cd", "Usb", "BiosSetup", "UefiHttp")


class Refused(Exception):
    """A PATCH that this BMC does not take."""

    def __init__(self, status: int, message_id: str) -> None:
        super().__init__(message_id)
        self.status, self.message_id = status, message_id


@dataclasses.dataclass
class Personality:
    name: str
    vendor: str | None = None
    manufacturer: str = "Contoso"
    model: str = "Server"
    systems: tuple[str, ...] = ("1",)
    garbage_members: tuple[str, ...] = ()
    host: str = ""  # the system that is the host; default the first
    siblings_fail_when_off: bool = False
    reset_types: tuple[str, ...] | None = ALL_RESETS
    action_info: str = ""  # "", live or dead
    targets: tuple[str, ...] | None = USUAL_TARGETS
    mode: str | None = "UEFI"  # None: the property does not exist
    uri: bool = False  # whether HttpBootUri exists
    settings_hidden: bool = False  # there, and not linked
    settings: str = ""  # last part of the URI of the settings resource
    boot_written_at: str = "system"  # or settings
    elsewhere: tuple[int, str] = (400, "Base.1.18.PropertyNotWritable")
    etag: str = "none"  # none, strong, weak, body
    if_match: str = "ignored"  # ignored, or the only form that is taken: exact, stripped, body, star
    no_etag_status: int = 428
    sessions: bool = True
    session_cap: int = 8
    bios: dict[str, t.Any] | None = None
    conflict_seconds: float = 0.0  # 409 to On for so long after Off
    post_seconds: float = 0.0  # boot changes are refused for so long after On
    boot_rule: t.Callable[[Boot, Boot], Boot] | None = None  # (current, patch) -> what is stored
    last_reset_time: bool = True
    oem: dict[str, t.Any] = dataclasses.field(default_factory=dict)

    def __post_init__(self) -> None:
        self.host = self.host or self.systems[0]


def merge(current: Boot, patch: Boot) -> Boot:
    return {**current, **patch}


def silent_revert(current: Boot, patch: Boot) -> Boot:
    """bmclib #459: 200, and the mode is Legacy and the override disabled afterwards, unless the mode is sent too."""
    if "BootSourceOverrideMode" in patch:
        return merge(current, patch)
    return merge(current, {**patch, "BootSourceOverrideMode": "Legacy", "BootSourceOverrideEnabled": "Disabled"})


def full_only(current: Boot, patch: Boot) -> Boot:
    """Ironic VENDORS_REQUIRING_FULL_BOOT_REQUEST: all three or nothing."""
    needed = {"BootSourceOverrideMode", "BootSourceOverrideEnabled", "BootSourceOverrideTarget"}
    if not needed <= set(patch):
        raise Refused(400, "Base.1.8.PropertyMissing")
    return merge(current, patch)


def no_uri(current: Boot, patch: Boot) -> Boot:
    """libredfish #76: HttpBootUri is there and cannot be written."""
    if "HttpBootUri" in patch:
        raise Refused(400, "iLO.2.14.PropertyNotWritableOrUnknown")
    return merge(current, patch)


def ignored(current: Boot, patch: Boot) -> Boot:
    return current


_ALL = [
    Personality("plain"),
    Personality(
        "dgx_h200",  # nv-redfish bmc_quirks.rs; libredfish nvidia_viking.rs
        vendor="AMI",
        manufacturer="NVIDIA",
        model="DGXH200",
        systems=("DGX", "HGX_Baseboard_0"),
        garbage_members=("/redfish/v1/Systems/HGX_Baseboard_0/LogServices/FDR",),
        siblings_fail_when_off=True,
        uri=True,
        settings="SD",
        boot_written_at="settings",
        elsewhere=(400, "Ami.1.0.OperationSupportedInFutureStateURI"),
        etag="body",
        if_match="body",
        boot_rule=full_only,
    ),
    Personality(
        "dell_idrac9",  # XE9680: libredfish #75
        vendor="Dell",
        manufacturer="Dell Inc.",
        model="PowerEdge XE9680",
        systems=("System.Embedded.1",),
        reset_types=(
            "On",
            "ForceOff",
            "ForceRestart",
            "GracefulRestart",
            "GracefulShutdown",
            "PushPowerButton",
            "Nmi",
            "PowerCycle",
        ),
        etag="strong",
        bios={"HttpDev1EnDis": "Disabled", "HttpDev1Uri": ""},
        oem={"Dell": {}},
    ),
    Personality(
        "dell_idrac10",  # c.g #11297, LP#2162995
        vendor="Dell",
        manufacturer="Dell Inc.",
        model="PowerEdge XE9780",
        systems=("System.Embedded.1",),
        settings="Settings",
        boot_written_at="settings",
        elsewhere=(400, "IDRAC.3.0.SYS471.PropertyNotWritable"),
        etag="strong",
        conflict_seconds=0.3,
        bios={"HttpDev1EnDis": "Disabled", "HttpDev1Uri": ""},
        oem={"Dell": {}},
    ),
    Personality(
        "supermicro_8gpu",  # bmclib #459
        vendor="Supermicro",
        manufacturer="Supermicro",
        model="SYS-821GE-TNHR",
        targets=("None", "Pxe", "Hdd", "UsbCd", "BiosSetup"),
        uri=True,
        etag="weak",
        boot_rule=silent_revert,
        oem={"Supermicro": {}},
    ),
    Personality(
        "hpe_ilo6",
        vendor="HPE",
        manufacturer="HPE",
        model="ProLiant DL380a Gen11",
        reset_types=("On", "ForceOff", "GracefulShutdown", "ForceRestart", "Nmi", "PushPowerButton", "GracefulRestart"),
        uri=True,
        etag="weak",
        post_seconds=0.3,
        bios={"UrlBootFile": ""},
        boot_rule=no_uri,
        oem={"Hpe": {}},
    ),
    Personality(
        "lenovo_xcc", vendor="Lenovo", manufacturer="Lenovo", etag="strong", if_match="exact", no_etag_status=412
    ),
    Personality("gigabyte_weak", manufacturer="Giga Computing", etag="weak", if_match="stripped", no_etag_status=412),
    Personality("star_only", manufacturer="Contoso", etag="strong", if_match="star"),
    Personality(
        "openbmc_gb300",  # redfish_ctl captures: no mode, reset types by ActionInfo
        vendor="OpenBMC",
        manufacturer="NVIDIA",
        systems=("System_0", "HGX_Baseboard_0"),
        reset_types=ALL_RESETS,
        action_info="live",
        targets=("None", "Pxe", "Hdd", "Cd", "Usb", "BiosSetup"),
        mode=None,
        etag="strong",
    ),
    Personality("dead_action_info", reset_types=ALL_RESETS, action_info="dead"),
    Personality("no_sessions", sessions=False),
    Personality("four_nodes", systems=("Node1", "Node2", "Node3", "Node4")),
    Personality("host_and_dpu", systems=("System.Embedded.1", "Bluefield")),
    Personality("ignores_override", boot_rule=ignored),
]
PERSONALITIES: dict[str, Personality] = {item.name: item for item in _ALL}
