# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A recorded Redfish tree as a fake BMC: the recording is served as it is, writes take effect on top of it.

load() reads what people record BMCs with: one JSON file (URI -> body), a DMTF mockup (folders with index.json), or a
folder of flat files (_redfish_v1_Systems_1.json). What a recording cannot tell (ETags that must be sent, resources that
fail while the machine is off) may stand beside the resources under "manners", whose names are those of Personality.
"""

from __future__ import annotations

import copy
import json
import pathlib
import re
import typing as t

from . import personalities
from .bmc import ROOT, Bmc, Response, problem
from .machine import Machine
from .personalities import Personality

CAPTURES = pathlib.Path(__file__).parent / "captures"
BOOT_WRITABLE = ("BootSourceOverrideEnabled", "BootSourceOverrideTarget", "BootSourceOverrideMode", "HttpBootUri")
Tree = dict[str, t.Any]


def load(source: pathlib.Path) -> tuple[Tree, dict[str, t.Any]]:
    """The resources of a recording by URI without trailing slash, and its manners."""
    manners: dict[str, t.Any] = {}
    if source.is_file():
        recorded = json.loads(source.read_text())
        manners = recorded.pop("manners", {}) if "resources" in recorded else {}
        resources = recorded.get("resources", recorded)
    else:
        resources = dict(_files(source))
    tree = {"/" + path.strip("/"): body for path, body in resources.items()}
    if ROOT not in tree:  # the short form of the mockups begins below the root
        tree = {(ROOT + path).rstrip("/"): body for path, body in tree.items()}
    return tree, manners


def _files(folder: pathlib.Path) -> t.Iterator[tuple[str, t.Any]]:
    for file in sorted(folder.rglob("*.json")):
        inside = file.relative_to(folder)
        if file.name == "index.json":
            path = inside.parent.as_posix()
        elif file.name.startswith("_redfish"):
            path = file.stem.replace("_redfish_v1", ROOT, 1).replace("_", "/")
        else:
            continue
        try:
            body = json.loads(file.read_text())
        except ValueError:
            continue
        # Flat names lose underscores; the body says what the URI was.
        known = body.get("@odata.id") if isinstance(body, dict) else None
        yield (str(known) if file.name != "index.json" and known else "" if path == "." else path), body


class CapturedBmc(Bmc):
    """Behaves as its recording and ``manners`` say; the machine behind it is a simulated one."""

    def __init__(self, tree: Tree, manners: dict[str, t.Any] | None = None, **more: t.Any) -> None:
        manners = dict(manners or {})
        self.fails_when_off = manners.pop("fails_when_off", "")  # regular expression over URIs, answered 503
        self.any_case = manners.pop("any_case", False)  # whether URIs may be written in any case
        self.at_reset = manners.pop("at_reset", False)  # whether settings show at the system after a reset only
        self.recorded = dict(tree)
        self.host_path = manners.pop("host", "") or self._only_host()
        host = self.recorded[self.host_path]
        boot = host.get("Boot") or {}
        settings = (host.get("@Redfish.Settings") or {}).get("SettingsObject", {}).get("@odata.id", "")
        future = (self.recorded.get(settings.rstrip("/")) or {}).get("Boot") or {}
        self.bios_path = ((host.get("Bios") or {}).get("@odata.id") or "").rstrip("/")
        bios = self.recorded.get(self.bios_path) or {}
        named = {name: value for name, value in manners.items() if name in Personality.__dataclass_fields__}
        named.update({name: tuple(value) for name, value in named.items() if isinstance(value, list)})
        if "boot_rule" in named:
            named["boot_rule"] = getattr(personalities, named["boot_rule"])
        kind = Personality(
            "captured",
            **{
                "systems": (self.host_path.rsplit("/", 1)[1],),
                "reset_types": self._reset_types(host),
                "settings": settings.rstrip("/").rsplit("/", 1)[-1],
                "bios": bios.get("Attributes") if isinstance(bios, dict) else None,
                **named,
            },
        )
        machine = more.pop("machine", None) or Machine(power=host.get("PowerState") or "Off")
        super().__init__(kind, machine, **more)
        self.boot = {name: value for name, value in {**future, **boot}.items() if name in BOOT_WRITABLE}
        self.shown = dict(self.boot)  # what the system shows of it
        self._resets = 0

    @classmethod
    def of(cls, name: str, **more: t.Any) -> CapturedBmc:
        """One of the captures that come with the tests, by name, or any other by its path."""
        path = CAPTURES / f"{name}.json"
        return cls(*load(path if path.exists() else pathlib.Path(name)), **more)

    def _only_host(self) -> str:
        pattern = re.compile(rf"{ROOT}/Systems/[^/]+$", re.IGNORECASE)
        hosts = [path for path, body in self.recorded.items() if pattern.match(path) and "Boot" in body]
        if len(hosts) != 1:
            raise ValueError(f"not one host but {hosts}: name it under manners")
        return hosts[0]

    def _reset_types(self, host: dict[str, t.Any]) -> tuple[str, ...] | None:
        action = (host.get("Actions") or {}).get("#ComputerSystem.Reset") or {}
        listed = action.get("ResetType@Redfish.AllowableValues")
        info = self.recorded.get(str(action.get("@Redfish.ActionInfo")).rstrip("/"))
        if not listed and isinstance(info, dict):
            listed = next((item["AllowableValues"] for item in info["Parameters"] if item["Name"] == "ResetType"), None)
        return tuple(listed) if listed else None

    # -- answering ----------------------------------------------------------------------------------------

    def _answer(self, method: str, path: str, headers: dict[str, str], body: t.Any) -> Response:
        if self.any_case:
            known = [*self.recorded, f"{self.host_path}/Actions/ComputerSystem.Reset"]
            path = next((item for item in known if item.lower() == path.lower()), path)
        if method == "PATCH" and self.bios_path and path.lower() == f"{self.bios_path}/settings".lower():
            path = f"{ROOT}/Systems/{self.personality.host}/Bios/Settings"  # where the fake expects it
        return super()._answer(method, path, headers, body)

    def _root(self) -> dict[str, t.Any]:
        return self.recorded[ROOT]

    def _get(self, path: str) -> Response:
        off = self.machine.state == "Off"
        if off and self.fails_when_off and re.search(self.fails_when_off, path):
            return problem(503, "Ami.1.0.HMCCommuicationFailed", "The HMC does not answer.")
        if path not in self.recorded:
            return problem(404, "Base.1.18.ResourceMissingAtURI")
        body = copy.deepcopy(self.recorded[path])
        if not isinstance(body, dict):
            return Response(200, body)
        settings = f"{self.host_path}/{self.personality.settings}"
        if path == self.host_path:
            return self._tagged(self._live(body))
        if path == settings and self.personality.settings and isinstance(body.get("Boot"), dict):
            body["Boot"].update({name: value for name, value in self.boot.items() if name in body["Boot"]})
            return self._tagged(body)
        if path.lower() == f"{self.bios_path}/settings".lower() and isinstance(body.get("Attributes"), dict):
            body["Attributes"].update(self.bios_pending)
        return Response(200, body)

    def _live(self, body: dict[str, t.Any]) -> dict[str, t.Any]:
        """The recorded system with the machine's present state."""
        if "PowerState" in body:
            body["PowerState"] = self.machine.state
        if self.machine.last_reset and "LastResetTime" in body:
            body["LastResetTime"] = self.machine.last_reset
        if not self.at_reset or len(self.machine.done) != self._resets:
            self.shown, self._resets = dict(self.boot), len(self.machine.done)
        if isinstance(body.get("Boot"), dict):
            body["Boot"].update({name: value for name, value in self.shown.items() if name in body["Boot"]})
        return body
