# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One fake BMC: the Redfish resources of a personality over a machine."""

from __future__ import annotations

import base64
import dataclasses
import json
import re
import time
import typing as t

from .faults import Entry, Fault, Log, Wire
from .machine import Machine
from .personalities import Personality, Refused, merge

ROOT = "/redfish/v1"


@dataclasses.dataclass
class Response:
    status: int
    body: t.Any = None
    headers: dict[str, str] = dataclasses.field(default_factory=dict)
    raw: bytes | None = None
    delay: float = 0.0
    drop: bool = False
    wire: Wire | None = None

    def content(self) -> bytes:
        if self.raw is not None:
            return self.raw
        return b"" if self.body is None else json.dumps(self.body).encode()


def problem(status: int, message_id: str, message: str = "") -> Response:
    note = {"MessageId": message_id, "Message": message or message_id.rsplit(".", 1)[-1], "Severity": "Critical"}
    return Response(
        status, {"error": {"code": message_id, "message": note["Message"], "@Message.ExtendedInfo": [note]}}
    )


class Bmc:
    def __init__(
        self,
        personality: Personality,
        machine: Machine | None = None,
        username: str = "admin",
        password: str = "s3cret-Pass",
        latency: float = 0.0,
        tree: dict[str, t.Any] | None = None,
    ) -> None:
        self.personality = dataclasses.replace(personality)
        self.machine = machine or Machine()
        self.username, self.password = username, password
        self.latency = latency
        self.tree = tree  # resources that are served as they are, before all else
        self.faults: list[Fault] = []
        self.log = Log()
        self.url = self.host = ""
        self.query = ""  # of the request being answered
        self.sessions: dict[str, str] = {}  # id -> token
        self._made = 0
        self._version = 1
        self.boot: dict[str, t.Any] = {"BootSourceOverrideEnabled": "Disabled", "BootSourceOverrideTarget": "None"}
        if personality.mode:
            self.boot["BootSourceOverrideMode"] = personality.mode
        if personality.uri:
            self.boot["HttpBootUri"] = ""
        self.bios = dict(personality.bios or {})
        self.bios_pending: dict[str, t.Any] = {}

    # -- one request --------------------------------------------------------------------------------------

    def handle(self, method: str, path: str, headers: dict[str, str], content: bytes) -> Response:
        """Answer a request and log it; faults come first."""
        try:
            body = json.loads(content) if content else None
        except ValueError:
            body = None
        self.query = path.partition("?")[2]
        path = path.split("?")[0]
        entry = Entry(method, path, body, headers)
        self.log.append(entry)
        fault = next((fault for fault in self.faults if fault.matches(method, path, body)), None)
        if fault is None:
            response = self._answer(method, path.rstrip("/"), headers, body)
        else:
            fault.times -= 1
            response = self._answer(method, path.rstrip("/"), headers, body) if fault.process else Response(500)
            if fault.status is not None:
                response = Response(fault.status, fault.body, dict(fault.headers))
            response.raw = fault.raw if fault.raw is not None else response.raw
            if not fault.process and fault.status is None and fault.raw is None and not fault.drop:
                response = self._answer(method, path.rstrip("/"), headers, body)
            response.delay, response.drop, response.wire = fault.delay, fault.drop, fault.wire
        entry.status = None if response.drop else response.status
        response.delay += self.latency
        return response

    def _answer(self, method: str, path: str, headers: dict[str, str], body: t.Any) -> Response:
        if path in ("", "/redfish"):
            return Response(200, {"v1": f"{ROOT}/"})
        if path == ROOT and method == "GET":
            return Response(200, self._root())
        if path == f"{ROOT}/SessionService/Sessions" and method == "POST" and self.personality.sessions:
            return self._login(body)
        if not self._authorized(headers):
            return problem(401, "Base.1.18.NoValidSession", "Log in first.")
        if method == "DELETE":
            return self._logout(path)
        if method == "POST":
            return self._reset(path, body)
        if method == "PATCH":
            return self._patch(path, headers, body if isinstance(body, dict) else {})
        return self._get(path)

    # -- sessions -----------------------------------------------------------------------------------------

    def _authorized(self, headers: dict[str, str]) -> bool:
        basic = base64.b64encode(f"{self.username}:{self.password}".encode()).decode()
        return headers.get("authorization") == f"Basic {basic}" or headers.get("x-auth-token") in self.sessions.values()

    def _login(self, body: t.Any) -> Response:
        if not isinstance(body, dict) or (body.get("UserName"), body.get("Password")) != (self.username, self.password):
            return problem(
                401, "Base.1.18.ResourceAtUriUnauthorized", f"Password {(body or {}).get('Password')} is wrong."
            )
        if len(self.sessions) >= self.personality.session_cap:
            return problem(503, "Base.1.18.SessionLimitExceeded", "Too many sessions.")
        self._made += 1
        number, token = str(self._made), f"token-{self._made}"
        self.sessions[number] = token
        path = f"{ROOT}/SessionService/Sessions/{number}"
        return Response(201, {"@odata.id": path, "Id": number}, {"X-Auth-Token": token, "Location": path})

    def _logout(self, path: str) -> Response:
        return Response(204) if self.sessions.pop(path.rsplit("/", 1)[-1], None) else Response(404)

    def expire_sessions(self) -> None:
        self.sessions.clear()

    # -- reading ------------------------------------------------------------------------------------------

    def _get(self, path: str) -> Response:
        for key in (f"{path}?{self.query}", path):
            if self.tree is not None and key in self.tree:
                return Response(200, self.tree[key])
        p = self.personality
        if path == f"{ROOT}/Systems":
            links = [{"@odata.id": f"{ROOT}/Systems/{name}"} for name in p.systems]
            links += [{"@odata.id": member} for member in p.garbage_members]
            return Response(200, {"Members": links, "Members@odata.count": len(links)})
        base = f"{ROOT}/Systems/{p.host}"
        if path == base:
            return self._tagged({**self._system(), "Boot": self._shown()})
        if path == f"{base}/{p.settings}" and p.settings:
            return self._tagged({"@odata.id": path, "Boot": {**self.boot}})
        if path == f"{base}/ResetActionInfo" and p.action_info == "live":
            return Response(200, {"Parameters": [{"Name": "ResetType", "AllowableValues": list(p.reset_types or ())}]})
        if path == f"{base}/Bios" and p.bios is not None:
            link = {"@odata.id": f"{base}/Bios/Settings"}
            return Response(200, {"Attributes": self.bios, "@Redfish.Settings": {"SettingsObject": link}})
        if path == f"{base}/Bios/Settings" and p.bios is not None:
            return Response(200, {"Attributes": {**self.bios, **self.bios_pending}})
        if path == f"{base}/EthernetInterfaces":
            return Response(200, {"Members": [{"@odata.id": f"{base}/EthernetInterfaces/1"}]})
        if path == f"{base}/EthernetInterfaces/1":
            return Response(
                200, {"Id": "1", "MACAddress": "5C:FF:35:00:00:01", "SpeedMbps": 200000, "LinkStatus": "LinkUp"}
            )
        if re.match(rf"{ROOT}/Systems/[^/]+", path) and p.siblings_fail_when_off and self.machine.state == "Off":
            return problem(503, "Ami.1.0.HMCCommuicationFailed", "The HMC does not answer.")
        if any(path == f"{ROOT}/Systems/{name}" for name in p.systems):
            return Response(200, {"Id": path.rsplit("/", 1)[-1], "PowerState": "On"})
        return problem(404, "Base.1.18.ResourceMissingAtURI")

    def _root(self) -> dict[str, t.Any]:
        p = self.personality
        root: dict[str, t.Any] = {"@odata.id": f"{ROOT}/", "RedfishVersion": "1.11.0", "Oem": p.oem}
        root["Systems"] = {"@odata.id": f"{ROOT}/Systems"}
        if p.vendor:
            root["Vendor"] = p.vendor
        if p.sessions:
            root["SessionService"] = {"@odata.id": f"{ROOT}/SessionService"}
            root["Links"] = {"Sessions": {"@odata.id": f"{ROOT}/SessionService/Sessions"}}
        return root

    def _system(self) -> dict[str, t.Any]:
        p = self.personality
        base = f"{ROOT}/Systems/{p.host}"
        action: dict[str, t.Any] = {"target": f"{base}/Actions/ComputerSystem.Reset"}
        if p.action_info:
            action["@Redfish.ActionInfo"] = f"{base}/ResetActionInfo"
        elif p.reset_types is not None:
            action["ResetType@Redfish.AllowableValues"] = list(p.reset_types)
        system = {
            "@odata.id": base,
            "Id": p.host,
            "Manufacturer": p.manufacturer,
            "Model": p.model,
            "SerialNumber": "FAKE0001",
            "BiosVersion": "1.2.3",
            "PowerState": self.machine.state,
            "Actions": {"#ComputerSystem.Reset": action},
            "EthernetInterfaces": {"@odata.id": f"{base}/EthernetInterfaces"},
        }
        if p.last_reset_time and self.machine.last_reset:
            system["LastResetTime"] = self.machine.last_reset
        if p.settings and not p.settings_hidden:
            system["@Redfish.Settings"] = {"SettingsObject": {"@odata.id": f"{base}/{p.settings}"}}
        if p.bios is not None:
            system["Bios"] = {"@odata.id": f"{base}/Bios"}
        return system

    def _shown(self) -> dict[str, t.Any]:
        boot = dict(self.boot)
        if self.personality.targets is not None:
            boot["BootSourceOverrideTarget@Redfish.AllowableValues"] = list(self.personality.targets)
        return boot

    def _tagged(self, body: dict[str, t.Any]) -> Response:
        """With the ETag where this BMC puts it."""
        headers = {}
        if self.personality.etag in ("strong", "weak"):
            headers["ETag"] = self._tag("W/" if self.personality.etag == "weak" else "")
        elif self.personality.etag == "body":
            body["@odata.etag"] = self._tag("")
        return Response(200, body, headers)

    def _tag(self, prefix: str) -> str:
        return f'{prefix}"v{self._version}"'

    # -- writing ------------------------------------------------------------------------------------------

    def _reset(self, path: str, body: t.Any) -> Response:
        p, machine = self.personality, self.machine
        if path != f"{ROOT}/Systems/{p.host}/Actions/ComputerSystem.Reset":
            return problem(404, "Base.1.18.ResourceMissingAtURI")
        name = body.get("ResetType") if isinstance(body, dict) else None
        if p.reset_types is not None and name not in p.reset_types:
            return problem(400, "Base.1.18.ActionParameterNotSupported")
        state = machine.state
        if name == "On" and state == "On":
            return problem(409, "IDRAC.2.8.PSU501", "The server is already powered ON.")
        off_at = machine.went_off_at
        if name == "On" and p.conflict_seconds and off_at and time.monotonic() - off_at < p.conflict_seconds:
            return problem(409, "Base.1.18.ActionParameterValueConflict")
        if name in ("ForceRestart", "GracefulRestart", "GracefulShutdown") and state == "Off":
            return problem(409, "Base.1.18.ResourceInUse", "The machine is off.")
        machine.reset(str(name))
        return Response(204)

    def _patch(self, path: str, headers: dict[str, str], body: dict[str, t.Any]) -> Response:
        p = self.personality
        base = f"{ROOT}/Systems/{p.host}"
        if path == f"{base}/Bios/Settings" and p.bios is not None:
            self.bios_pending.update(body.get("Attributes", {}))
            return Response(202, None, {"Location": f"{ROOT}/TaskService/Tasks/1"})
        if path not in (base, f"{base}/{p.settings}" if p.settings else base):
            return problem(404, "Base.1.18.ResourceMissingAtURI")
        if p.boot_written_at == "settings" and path == base:
            return problem(*p.elsewhere)
        refusal = self._check_etag(headers.get("if-match"))
        if refusal:
            return refusal
        on_at = self.machine.went_on_at
        if p.post_seconds and on_at and time.monotonic() - on_at < p.post_seconds:
            return problem(400, "iLO.2.14.UnableToModifyDuringSystemPOST")
        patch = body.get("Boot")
        if not isinstance(patch, dict) or not patch:
            return problem(400, "Base.1.18.PropertyMissing")
        unknown = [name for name in patch if name not in self.boot]
        if unknown:
            return problem(400, "Base.1.18.PropertyUnknown")
        try:
            self.boot = dict((p.boot_rule or merge)(dict(self.boot), patch))
        except Refused as exc:
            return problem(exc.status, exc.message_id)
        self._version += 1
        return Response(200, {})

    def _check_etag(self, given: str | None) -> Response | None:
        form, tag = self.personality.if_match, self._tag("")
        wanted = {
            "ignored": given,
            "exact": self._tag("W/" if self.personality.etag == "weak" else ""),
            "body": tag,
            "stripped": tag.strip('"'),
            "star": "*",
        }[form]
        if given == wanted:
            return None
        if given is None:
            return problem(self.personality.no_etag_status, "Base.1.18.PreconditionRequired")
        return problem(412, "Base.1.18.PreconditionFailed")
