# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The Boot object of a ComputerSystem as words and as properties to write. Private to h200.rack."""

from __future__ import annotations

import re
import typing as t
from urllib.parse import urlsplit

from .errors import BmcError, invalid
from .quirks import Traits

ENABLED = "BootSourceOverrideEnabled"
TARGET = "BootSourceOverrideTarget"
MODE = "BootSourceOverrideMode"
URI = "HttpBootUri"
ALLOWED = f"{TARGET}@Redfish.AllowableValues"
ALLOWED_ENABLED = f"{ENABLED}@Redfish.AllowableValues"

# Our word -> the BMCs' words for it, the usual one first.
TARGETS: dict[str, tuple[str, ...]] = {
    "none": ("None",),
    "pxe": ("Pxe",),
    "http": ("UefiHttp",),
    "disk": ("Hdd",),
    "cd": ("Cd", "UsbCd", "CD/DVD"),
    "usb": ("Usb", "UefiUsbKey"),
    "bios": ("BiosSetup",),
}
PERSISTENCE = {"once": "Once", "continuous": "Continuous"}
MODES = {"uefi": "UEFI", "legacy": "Legacy"}
Words = dict  # {"target", "persistence", "mode", "http_boot_uri"}


def boot_of(resource: t.Any) -> dict[str, t.Any]:
    boot = resource.get("Boot") if isinstance(resource, dict) else None
    return boot if isinstance(boot, dict) else {}


def decode(boot: dict[str, t.Any]) -> Words:
    """What the override is, in our words; a disabled or empty one is "none"."""
    target, enabled, mode = boot.get(TARGET), boot.get(ENABLED), boot.get(MODE)
    words = {word: name for name, names in TARGETS.items() for word in names}
    off = enabled == "Disabled" or target in (None, "", "None")
    return {
        "target": "none" if off else words.get(str(target), str(target)),
        "persistence": None if off else {v: k for k, v in PERSISTENCE.items()}.get(str(enabled)),
        "mode": {v: k for k, v in MODES.items()}.get(str(mode)),
        "http_boot_uri": uri_of(boot),
    }


def uri_of(boot: dict[str, t.Any]) -> str | None:
    """HttpBootUri, if it holds one ("None" is how sushy-tools writes that it does not)."""
    uri = boot.get(URI)
    return uri if isinstance(uri, str) and uri not in ("", "None") else None


def pick_target(word: str, boot: dict[str, t.Any], traits: Traits) -> str:
    """How this BMC spells the target."""
    names = TARGETS[word]
    allowed = boot.get(ALLOWED)
    if word == "none" or not isinstance(allowed, list) or not allowed:
        return names[0]
    for name in names:
        if name in allowed or name in traits.unlisted_targets:
            return name
    raise BmcError(
        "unsupported",
        f"This BMC cannot boot from {word} by override. It allows: {', '.join(map(str, allowed))}.",
        allowed_targets=allowed,
    )


def wanted(params: dict[str, t.Any], target: str, uri: str | None) -> dict[str, str]:
    """The properties that express the task, all of them."""
    if params["target"] == "none":
        want = {ENABLED: "Disabled", TARGET: "None"}
    else:
        want = {TARGET: target, ENABLED: PERSISTENCE[params["persistence"]]}
    if params["mode"] != "keep":
        want[MODE] = MODES[params["mode"]]
    if uri is not None:
        want[URI] = uri
    return want


def mismatch(want: dict[str, str], boot: dict[str, t.Any], traits: Traits) -> list[str]:
    """The properties of ``boot`` that are not as wanted; empty when the task is fulfilled."""
    wrong = []
    if want[ENABLED] == "Disabled":
        if decode(boot)["target"] != "none":
            wrong.append(TARGET)
    else:
        read_as = (want[TARGET], bool(want.get(URI)), boot.get(TARGET))
        if boot.get(TARGET) != want[TARGET] and read_as not in traits.reads_back_as:
            wrong.append(TARGET)
        stands_in = traits.once_is_continuous and boot.get(ENABLED) == "Continuous"
        if boot.get(ENABLED) != want[ENABLED] and not (stands_in and want[ENABLED] == "Once"):
            wrong.append(ENABLED)
    if MODE in want and boot.get(MODE) != want[MODE]:
        wrong.append(MODE)
    if URI in want and (uri_of(boot) or "") != want[URI]:
        wrong.append(URI)
    return wrong


def payloads(want: dict[str, str], boot: dict[str, t.Any], traits: Traits) -> list[dict[str, str]]:
    """What to send, the smallest first: BMCs differ in what they refuse (c.g #3509, #3690, #5091)."""
    mode = want.get(MODE) or boot.get(MODE) or (_only_mode(boot) if traits.full_request else None)
    full = {**want, MODE: mode} if mode in MODES.values() else dict(want)
    if want[ENABLED] == "Disabled":
        ladder = [{k: v for k, v in want.items() if k != TARGET}, want, {TARGET: "None"}, full]
    else:
        changed = {k: v for k, v in want.items() if k == TARGET or boot.get(k) != v}
        ladder = [changed, want, full]
    if traits.full_request:
        ladder = [full]
    elif traits.always_enabled:
        ladder = [item for item in ladder if ENABLED in item]
    unique: list[dict[str, str]] = []
    for item in ladder:
        if item not in unique:
            unique.append(item)
    return unique


def _only_mode(boot: dict[str, t.Any]) -> str | None:
    """The mode to name to a BMC that wants one and shows none: a DGX has null there, and allows UEFI alone."""
    allowed = boot.get(f"{MODE}@Redfish.AllowableValues")
    return MODES["uefi"] if MODE in boot and (not isinstance(allowed, list) or MODES["uefi"] in allowed) else None


def check_uri(uri: str) -> str:
    """Refuse what no BMC takes, or what only some do."""
    parts = urlsplit(uri)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise invalid("http_boot_uri must be an http:// or https:// URL with a host.")
    if "@" in parts.netloc:
        raise invalid("http_boot_uri must not carry a user or a password: BMCs show it to everyone.")
    if not re.fullmatch(r"[A-Za-z0-9:/._~%\[\]+,=@!-]+", uri):
        raise invalid(
            "http_boot_uri: use letters, digits and :/._~%+,=-[] only; BMCs refuse others, such as &, ? and spaces."
        )
    return uri
