# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What redfish_info does: one system, and on request its NICs, managers and firmware. Private to h200.rack."""

from __future__ import annotations

import typing as t

from . import boot_words as bw
from .entry import deadline_of
from .errors import BmcError, invalid
from .open_redfish import open_redfish
from .redfish import Redfish
from .reset import Reset
from .systems import choose, next_page, path_of, system_id_of

JMESPATH_ERROR: str | None = None
try:
    import jmespath
    from jmespath import exceptions as jmespath_exceptions
except ImportError as exc:
    JMESPATH_ERROR = str(exc)

SERVICE = {"vendor": "Vendor", "product": "Product", "redfish_version": "RedfishVersion", "uuid": "UUID"}
SYSTEM = {
    "name": "Name",
    "manufacturer": "Manufacturer",
    "model": "Model",
    "sku": "SKU",
    "serial": "SerialNumber",
    "part_number": "PartNumber",
    "uuid": "UUID",
    "asset_tag": "AssetTag",
    "host_name": "HostName",
    "bios_version": "BiosVersion",
    "power_state": "PowerState",
}
NIC = {"name": "Name", "speed_mbps": "SpeedMbps", "link": "LinkStatus", "uefi_path": "UefiDevicePath"}
MANAGER = {
    "name": "Name",
    "type": "ManagerType",
    "model": "Model",
    "firmware_version": "FirmwareVersion",
    "power_state": "PowerState",
}
FIRMWARE = {"name": "Name", "version": "Version", "updateable": "Updateable", "release_date": "ReleaseDate"}


def info(params: dict[str, t.Any], check_mode: bool, warnings: list[str], secrets: list[str]) -> dict[str, t.Any]:
    """Read what was asked for, and nothing of the systems that were not chosen."""
    expression = _compiled(params["query"])
    with open_redfish(params, deadline_of(params), warnings, secrets) as client:
        facts: dict[str, t.Any] = {"service": _pick(client.root, SERVICE), "auth": client.auth}
        system = _choose(client, params["system_id"], facts, warnings)
        gather = params["gather"]
        if system and "system" in gather:
            facts["system"] = _system(client, system)
        if system and "nics" in gather:
            facts["nics"] = _nics(client, system, warnings)
        if "managers" in gather:
            facts["managers"] = _managers(client, system, warnings)
        if "firmware" in gather:
            facts["firmware"] = _firmware(client, warnings)
    if expression is not None:
        facts["result"] = expression.search(facts)
    return {"changed": False, **facts}


def _compiled(query: str | None) -> t.Any:
    """The JMESPath expression; a wrong one is told before the BMC is asked."""
    if query is None:
        return None
    if JMESPATH_ERROR:
        raise BmcError(
            "unsupported", f"query needs the Python library jmespath where the module runs: {JMESPATH_ERROR}."
        )
    try:
        return jmespath.compile(query)
    except jmespath_exceptions.JMESPathError as exc:
        raise invalid(f"query is no JMESPath expression: {' '.join(str(exc).split())}") from exc


def _choose(
    client: Redfish, wanted: str | None, facts: dict[str, t.Any], warnings: list[str]
) -> dict[str, t.Any] | None:
    """The chosen system's resource; without a system_id, several systems are a finding and no failure."""
    paths = client.list_systems()
    facts.update(system_ids=[system_id_of(path) for path in paths], system_id=None, system=None, nics=[])
    try:
        client.system_path = choose(paths, wanted)
    except BmcError as exc:
        if wanted:
            raise
        warnings.append(exc.msg)
        return None
    facts["system_id"] = client.system_id
    return client.read_system().body


def _system(client: Redfish, system: dict[str, t.Any]) -> dict[str, t.Any]:
    boot = bw.boot_of(system)
    found = _pick(system, SYSTEM)
    found["health"] = _of(system, "Status", "Health")
    found["boot_progress"] = _of(system, "BootProgress", "LastState")
    found["processors"] = _of(system, "ProcessorSummary", "Count")
    found["memory_gib"] = _of(system, "MemorySummary", "TotalSystemMemoryGiB")
    found["boot"] = bw.decode(boot)
    found["allowed_targets"] = boot.get(bw.ALLOWED) or []
    reset = Reset(client)
    reset.system = system
    try:
        found["allowed_reset_types"] = reset.allowed or []
    except BmcError:
        found["allowed_reset_types"] = []
    return found


def _nics(client: Redfish, system: dict[str, t.Any], warnings: list[str]) -> list[dict[str, t.Any]]:
    """The host's interfaces, from the system itself or, where it lists none, from its network adapters."""
    found = []
    for nic in _members(client, path_of(system.get("EthernetInterfaces")), warnings):
        mac = nic.get("PermanentMACAddress") or nic.get("MACAddress")
        if mac:
            found.append({"id": nic.get("Id"), "mac": str(mac).lower(), **_pick(nic, NIC)})
    if found:
        return found
    for interface in _members(client, path_of(system.get("NetworkInterfaces")), warnings):
        for function in _members(client, path_of(interface.get("NetworkDeviceFunctions")), warnings):
            mac = _of(function, "Ethernet", "PermanentMACAddress") or _of(function, "Ethernet", "MACAddress")
            if mac:
                found.append({"id": function.get("Id"), "mac": str(mac).lower(), **_pick(function, NIC)})
    return found


def _managers(client: Redfish, system: dict[str, t.Any] | None, warnings: list[str]) -> list[dict[str, t.Any]]:
    """The managers of the system; all of them only when no system was chosen or it names none."""
    links = _of(system or {}, "Links", "ManagedBy")
    paths = [path for path in map(path_of, links if isinstance(links, list) else []) if path]
    resources = (
        [body for path in paths for body in _one(client, path, warnings)]
        if paths
        else _members(client, path_of(client.root.get("Managers")), warnings)
    )
    return [{"id": item.get("Id"), **_pick(item, MANAGER)} for item in resources]


def _firmware(client: Redfish, warnings: list[str]) -> list[dict[str, t.Any]]:
    service = path_of(client.root.get("UpdateService"))
    for body in _one(client, service, warnings) if service else []:
        inventory = path_of(body.get("FirmwareInventory"))
        return [{"id": item.get("Id"), **_pick(item, FIRMWARE)} for item in _members(client, inventory, warnings)]
    return []


def _members(client: Redfish, path: str | None, warnings: list[str]) -> list[dict[str, t.Any]]:
    """The members of a collection; those that cannot be read are a warning (a baseboard while the host is off)."""
    found: list[dict[str, t.Any]] = []
    seen: list[str] = []
    while path and path not in seen:
        seen.append(path)
        parts = _one(client, path, warnings)
        path = next_page(parts[0]) if parts else None
        listed = parts[0].get("Members") if parts else None
        for target in map(path_of, listed if isinstance(listed, list) else []):
            if target and target not in seen:
                seen.append(target)
                found += _one(client, target, warnings)
    return found


def _one(client: Redfish, path: str, warnings: list[str]) -> list[dict[str, t.Any]]:
    """The resource, or nothing and a warning."""
    try:
        answer = client.try_get(path, tries=2)
    except BmcError as exc:
        warnings.append(f"{path} could not be read: {exc.msg}")
        return []
    if answer.ok and answer.is_object:
        return [answer.body]
    warnings.append(f"{path} could not be read (HTTP {answer.status}).")
    return []


def _pick(resource: dict[str, t.Any], names: dict[str, str]) -> dict[str, t.Any]:
    return {ours: resource.get(theirs) for ours, theirs in names.items()}


def _of(resource: dict[str, t.Any], *names: str) -> t.Any:
    value: t.Any = resource
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
    return value
