# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What redfish_boot does. Private to h200.rack."""

from __future__ import annotations

import typing as t

from . import boot_words as bw
from . import http_boot, quirks
from .boot_override import BootOverride
from .entry import deadline_of
from .errors import BmcError, invalid
from .open_redfish import open_redfish
from .redfish import Redfish


def boot(params: dict[str, t.Any], check_mode: bool, warnings: list[str], secrets: list[str]) -> dict[str, t.Any]:
    """Set the boot override of the next start, and prove by reading that the BMC kept it."""
    uri = params["http_boot_uri"]
    if uri is not None:
        if params["target"] != "http":
            raise invalid("http_boot_uri needs target=http.")
        bw.check_uri(uri)
    with open_redfish(params, deadline_of(params), warnings, secrets) as client:
        system_id = client.choose_system(params["system_id"])
        try:
            result = _set(client, params, uri, check_mode, warnings)
        except BmcError as exc:
            exc.details["system_id"] = system_id
            raise
        return {**result, "system_id": system_id, "auth": client.auth}


def _set(
    client: Redfish, params: dict[str, t.Any], uri: str | None, check_mode: bool, warnings: list[str]
) -> dict[str, t.Any]:
    override = BootOverride(client, quirks.Traits())
    traits = override.traits = quirks.traits(client.root, override.system)
    if not override.boot:
        raise BmcError("unsupported", "This BMC offers no boot override for the system; use ipmi_bootdev or the BIOS.")
    strategy = http_boot.choose(override.boot, traits) if uri else "override"
    bios = http_boot.BiosUri(client, override.system, strategy, uri) if uri and strategy.endswith("_bios") else None
    before = override.words()
    before["http_boot_uri"] = bios.current if bios else before["http_boot_uri"]
    want = bw.wanted(
        params,
        bw.pick_target(params["target"], override.boot, traits),
        uri if strategy == "http_boot_uri" else _stale_uri(params, override.boot, traits),
    )
    before = {**override.words(want), "http_boot_uri": before["http_boot_uri"]}
    changed = bool(override.missing(want)) or bool(bios and bios.missing)
    if strategy == "dhcp":
        warnings.append("This BMC takes no URI; http_boot_uri must come from DHCP.")
    if check_mode or not changed:
        after = _predicted(params, before, uri if strategy != "dhcp" else None) if changed else before
        sent = bw.payloads(want, override.boot, traits)[0] if changed else {}
        return _result(changed, before, after, strategy, bios, would_send={"Boot": sent} if check_mode else None)
    if bios and bios.missing:
        bios.write()
    if override.missing(want):
        warnings += override.write(want)
    after = override.words(want)
    after["http_boot_uri"] = uri if bios else after["http_boot_uri"]
    strategy = override.strategy if strategy == "override" and override.strategy != "none" else strategy
    result = _result(
        before != after or bool(bios) or override.scheduled, before, after, strategy, bios, would_send=None
    )
    result["pending_reboot"] = result["pending_reboot"] or override.scheduled
    return result


def _stale_uri(params: dict[str, t.Any], boot_object: dict[str, t.Any], traits: quirks.Traits) -> str | None:
    """An empty HttpBootUri where an old one would be booted instead of what DHCP says."""
    if params["target"] != "http" or not bw.uri_of(boot_object):
        return None
    return "" if http_boot.choose(boot_object, traits) == "http_boot_uri" else None


def _predicted(params: dict[str, t.Any], before: bw.Words, uri: str | None) -> bw.Words:
    none = params["target"] == "none"
    return {
        "target": params["target"],
        "persistence": None if none else params["persistence"],
        "mode": before["mode"] if params["mode"] == "keep" else params["mode"],
        "http_boot_uri": uri if params["target"] == "http" else before["http_boot_uri"],
    }


def _result(
    changed: bool,
    before: bw.Words,
    after: bw.Words,
    strategy: str,
    bios: http_boot.BiosUri | None,
    would_send: dict[str, t.Any] | None,
) -> dict[str, t.Any]:
    result: dict[str, t.Any] = {
        "changed": changed,
        "boot": {"before": before, "after": after},
        "strategy": strategy if changed or bios or strategy == "dhcp" else "none",
        "pending_reboot": bool(bios and bios.missing),
        "diff": {"before": before, "after": after},
    }
    if would_send is not None:
        result["would_send"] = would_send
    return result
