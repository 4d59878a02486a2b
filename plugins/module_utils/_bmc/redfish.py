# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A Redfish service with an open session and one chosen system. Private to h200.rack."""

from __future__ import annotations

import time
import typing as t

from .._common.deadline import Deadline
from .._common.errors import RackError
from . import systems
from .address import Address
from .answer import Answer
from .errors import BmcError
from .http import Http, NoAnswer, verification

ROOT = "/redfish/v1/"
LOGOUT_SECONDS = 15.0
MAX_PAGES = 50
# Answers to a login that say "no sessions here", not "wrong password".
NO_SESSIONS = (404, 405, 410, 501)


class Redfish:
    """Use as a context manager: logs in on entry, logs out whatever happens."""

    def __init__(
        self,
        address: Address,
        username: str,
        password: str,
        *,
        validate_certs: bool = True,
        ca_path: str | None = None,
        timeout: float = 30.0,
        deadline: Deadline,
    ) -> None:
        self.deadline = deadline
        # How long to repeat what the BMC refuses; the time of one request is left for reading and telling why.
        self.patience = Deadline(max(0.0, deadline.seconds - timeout))
        self.http = Http(address, verification(validate_certs, ca_path), timeout, deadline)
        self.auth = "none"
        self.warnings: list[str] = []
        self.root: dict[str, t.Any] = {}
        self.system_path = ""
        self._base = ""
        self._timeout = timeout
        self._username = username
        self._password = password
        self._sessions: list[str] = []  # to be closed
        self._renewed = False
        self.secrets: list[str] = []

    def __enter__(self) -> Redfish:
        try:
            self._login()
        except BaseException:
            self._logout()
            raise
        return self

    def __exit__(self, *unused: object) -> None:
        self._logout()

    # -- requests -----------------------------------------------------------------------------------------

    def get(self, path: str, what: str, tries: int = 4) -> Answer:
        """Read ``path`` or fail with ``what`` could not be read."""
        answer = self.try_get(path, tries)
        if not answer.ok:
            raise answer.error(f"Reading {what}")
        if not answer.is_object:
            raise BmcError(
                "bmc_bug",
                f"Reading {what}: {self.http.address.url}{path} answered with something that is no JSON object. "
                "Is this a Redfish service?",
                http_status=answer.status,
            )
        return answer

    def try_get(self, path: str, tries: int = 4) -> Answer:
        """Read ``path``; any HTTP status is an answer."""
        self._confine(path)
        answer = self.http.get(path, tries)
        return self.http.get(path, tries) if self._relogin(answer) else answer

    def write(self, method: str, path: str, data: dict[str, t.Any], headers: dict[str, str] | None = None) -> Answer:
        """Send once; a 401 of an expired session did nothing, so that one is sent again with a new session."""
        self._confine(path)
        answer = self.http.write(method, path, data, headers)
        return self.http.write(method, path, data, headers) if self._relogin(answer) else answer

    def _confine(self, path: str) -> None:
        """No request ever goes below another system, whatever a link in the BMC's answers says."""
        path = path.split("?")[0].rstrip("/")
        if not self._base or not systems.is_below(path, self._base):
            return
        own = self.system_path.lower()
        if not own or (path.lower() != own and not systems.is_below(path, own)):
            raise BmcError("bmc_bug", f"The BMC's answers lead to {path}, which belongs to another system.")

    def pages(self, path: str, what: str) -> t.Iterator[dict[str, t.Any]]:
        """The parts of a collection, following their links; a link back to a part already read ends it."""
        page: str | None = path
        read: list[str] = []
        while page and page not in read and len(read) < MAX_PAGES:
            read.append(page)
            body = self.get(page, what).body
            yield body
            page = systems.next_page(body)

    # -- the system ---------------------------------------------------------------------------------------

    def list_systems(self) -> list[str]:
        """The paths of all systems, from the collection alone."""
        base = systems.path_of(self.root.get("Systems")) or "/redfish/v1/Systems"
        found: list[str] = []
        for body in self.pages(base, "the list of systems"):
            found += [path for path in systems.members(body, base) if path not in found]
        self._base = base
        return found

    def choose_system(self, wanted: str | None) -> str:
        """Settle which system this task is about; nothing of the others is read from here on."""
        self.system_path = systems.choose(self.list_systems(), wanted)
        return self.system_id

    @property
    def system_id(self) -> str:
        return systems.system_id_of(self.system_path)

    def read_system(self, tries: int = 4) -> Answer:
        return self.get(self.system_path, f"system {self.system_id}", tries)

    # -- the session --------------------------------------------------------------------------------------

    def _login(self) -> None:
        answer = self.http.get(ROOT)
        if answer.ok and not (answer.is_object and ("RedfishVersion" in answer.body or "Systems" in answer.body)):
            raise BmcError(
                "bmc_bug",
                f"{self.http.address.url}{ROOT} answers, but not with a Redfish service root. "
                "Check the address, the port, and whether Redfish is enabled.",
                http_status=answer.status,
            )
        if answer.status in (400, 404, 405, 410):
            raise answer.error("Looking for Redfish", f"{self.http.address.url} has no {ROOT}: check bmc_host.")
        if not answer.ok and answer.status not in (401, 403):
            raise answer.error("Reading the Redfish service root")
        self.root = answer.body
        sessions = self._sessions_path()
        if sessions is None or not self._create_session(sessions):
            self._use_basic()
        if not self.root:  # a root behind a password: against the specification, but seen
            self.root = self.get(ROOT, "the Redfish service root").body

    def _sessions_path(self) -> str | None:
        links = self.root.get("Links")
        path = systems.path_of(links.get("Sessions")) if isinstance(links, dict) else None
        service = systems.path_of(self.root.get("SessionService"))
        return path or (f"{service}/Sessions" if service else None)

    def _create_session(self, path: str) -> bool:
        """Log in; False when the BMC has no session (left) for us, so that basic authentication is worth a try."""
        answer = self._login_answer(path)
        error_class, _unused = answer.verdict
        if not answer.ok:
            if error_class == "session_limit":
                self.warnings.append("The BMC has no free session; basic authentication was used.")
            elif answer.status in (401, 403) or error_class == "auth":
                raise answer.error("Logging in")
            elif answer.status not in NO_SESSIONS:
                said = f"The BMC refused a session (HTTP {answer.status}); basic authentication was used."
                self.warnings.append(said)
            return False
        token = answer.headers.get("x-auth-token")
        if not token:
            self.warnings.append("The BMC made a session without a token; basic authentication was used.")
        uri = self._session_uri(answer, path)
        if uri:
            self._sessions.append(uri)
        else:
            self.warnings.append("The BMC did not say where its session is, so it could not be closed.")
        if not token:
            return False
        self.secrets.append(token)
        self.http.use_token(token)
        self.auth = "session"
        return True

    def _login_answer(self, path: str) -> Answer:
        """Tried a second time, on a new connection: BMCs close kept ones when they like, and at worst a session that
        nobody knows of is left to expire."""
        data = {"UserName": self._username, "Password": self._password}
        for last in (False, True):
            try:
                return self.http.write("POST", path, data)
            except NoAnswer as exc:
                if last or exc.late:
                    raise BmcError("timeout", f"Logging in: {exc}.") from exc
                self.http.fresh()
        raise AssertionError("unreachable")

    def _session_uri(self, answer: Answer, path: str) -> str | None:
        uri = systems.path_of(answer.headers.get("location")) or systems.path_of(answer.body)
        if not uri and isinstance(answer.body.get("Id"), (str, int)):
            uri = f"{path}/{answer.body['Id']}"
        # A Location that names no session (the collection, a task) must not be deleted.
        return uri if uri and uri != path.rstrip("/") and "/session" in uri.lower() else None

    def _use_basic(self) -> None:
        self.http.use_basic(self._username, self._password)
        self.auth = "basic"

    def _relogin(self, answer: Answer) -> bool:
        """Once per task: a session that ended early (time-out, BMC restart) is replaced."""
        if self.auth != "session" or self._renewed:
            return False
        if answer.status != 401 and not (answer.status == 403 and answer.says("NoValidSession")):
            return False
        self._renewed = True
        self.http.drop_token()
        path = self._sessions_path()
        if path is None or not self._create_session(path):
            self._use_basic()
        return True

    def _logout(self) -> None:
        """Close the session, for which the time of one request is left after the task's own deadline; a failure is
        only worth a warning."""
        self.http.deadline = Deadline(min(LOGOUT_SECONDS, self._timeout))
        left = [session for session in self._sessions if not self._closed(session)]
        if left:
            self.warnings.append("The session could not be closed; it stays until the BMC expires it.")
        self._sessions = []
        self.http.close()

    def _closed(self, session: str) -> bool:
        """Delete one; that it is gone already is as good."""
        for attempt in range(2):
            try:
                answer = self.http.write("DELETE", session, None)
            except (NoAnswer, RackError):  # a deadline too
                answer = None
            if answer is not None and (answer.status < 500 or answer.status == 501):
                return True
            if attempt == 0:
                time.sleep(0.5)
        return False
