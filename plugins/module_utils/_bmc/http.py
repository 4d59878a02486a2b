# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""HTTP to one BMC, over sushy's connector: reads are retried, writes go out once. Private to h200.rack.

sushy repeats every method after a read time-out (a ForceRestart reached one BMC four times), so its own
retries are switched off here, and so are redirects, which would turn a POST into a GET.
"""

from __future__ import annotations

import logging
import os
import ssl
import traceback
import typing as t
from urllib.parse import urljoin, urlsplit

from .._common.deadline import Deadline
from .address import Address
from .answer import Answer
from .errors import BmcError, invalid
from .timed import TimedAdapter, TooMuch

SUSHY_ERROR: str | None = None
try:
    import requests
    from sushy import connector as sushy_connector
    from sushy import exceptions as sushy_exceptions
    from urllib3 import exceptions as urllib3_exceptions
except ImportError:
    SUSHY_ERROR = traceback.format_exc()

# sushy logs what BMCs say, which may be a secret: neither into the play's output nor into Ansible's log.
logging.getLogger("sushy").addHandler(logging.NullHandler())
logging.getLogger("sushy").propagate = False

READ_PAUSES = (0.5, 1.0, 2.0)
CONNECT_SECONDS = 10.0
RETRY_AFTER_MAX = 30.0  # how long one wait may be that the BMC asks for
TRANSIENT = (429, 500, 502, 503, 504)
MAX_REDIRECTS = 3
DEFAULT_PORTS = {"https": 443, "http": 80}


class NoAnswer(Exception):
    """The request may have reached the BMC, but no answer came back: in time (``late``), or at all."""

    def __init__(self, text: str, late: bool = False) -> None:
        super().__init__(text)
        self.late = late


class Http:
    """Requests to one BMC on one kept-alive connection."""

    def __init__(self, address: Address, verify: bool | str, timeout: float, deadline: Deadline) -> None:
        self.address = address
        self.deadline = deadline
        self._timeout = timeout
        self._answer: t.Any = None
        self._headers: dict[str, str] = {"Connection": "keep-alive"}
        self._connector = sushy_connector.Connector(
            address.url, verify=verify, response_callback=self._note, server_side_retries=1
        )
        session = self._connector._session
        # Neither a proxy nor ~/.netrc of the controller has a say about a BMC.
        session.trust_env = False
        for prefix in ("https://", "http://"):
            session.mount(prefix, TimedAdapter())

    def use_basic(self, username: str, password: str) -> None:
        self._headers.pop("X-Auth-Token", None)
        # As bytes: requests would encode text as Latin-1, and fail at the rest; RFC 7617 has UTF-8.
        self._connector.set_http_basic_auth(username.encode(), password.encode())

    def use_token(self, token: str) -> None:
        self._headers["X-Auth-Token"] = token

    def drop_token(self) -> None:
        self._headers.pop("X-Auth-Token", None)

    def close(self) -> None:
        self._connector.close()

    def fresh(self) -> None:
        """Begin the next request on a new connection: one that was kept may be just about to be closed by the BMC, and
        a request that must not be repeated would be lost on it."""
        self._connector.close()

    def get(self, path: str, tries: int = len(READ_PAUSES) + 1) -> Answer:
        """Read ``path``; trouble on the way and 5xx are tried again. Raises BmcError when no answer comes."""
        for pause in [*READ_PAUSES, None][-tries:]:
            last = pause is None
            try:
                answer = self._redirected(path)
            except NoAnswer as exc:
                if last or self.deadline.remaining <= pause:
                    raise self._lost(exc) from exc
            except BmcError as exc:
                if not exc.details.pop("again", False) or last or self.deadline.remaining <= pause:
                    raise
            else:
                final = answer.status not in TRANSIENT or answer.verdict[0] == "session_limit"
                if final or last:
                    return answer
                pause = max(pause, min(answer.retry_after or 0.0, RETRY_AFTER_MAX))
                if self.deadline.remaining <= pause:
                    return answer
            self.deadline.pause(pause or 0.0)
        raise AssertionError("unreachable")

    def write(
        self, method: str, path: str, data: dict[str, t.Any] | None, headers: dict[str, str] | None = None
    ) -> Answer:
        """Send once. Raises NoAnswer when the effect is unknown, BmcError when it certainly was not sent."""
        answer = self._once(method, path, data, headers)
        if answer.status in (307, 308):  # the BMC did nothing and names another URI of its own
            return self._once(method, self._target(answer), data, headers)
        return answer

    def _redirected(self, path: str) -> Answer:
        for _unused in range(MAX_REDIRECTS):
            answer = self._once("GET", path, None, None)
            if answer.status not in (301, 302, 303, 307, 308):
                return answer
            path = self._target(answer)
        raise BmcError("bmc_bug", f"The BMC redirects {path} in circles.", http_status=answer.status)

    def _target(self, answer: Answer) -> str:
        """Where a redirect leads; credentials are only taken along to the same origin."""
        location = answer.headers.get("location", "")
        try:
            there = urlsplit(urljoin(self.address.url + answer.path, location))
            origin = (there.scheme, there.hostname, there.port or DEFAULT_PORTS.get(there.scheme))
        except ValueError as exc:
            raise BmcError("bmc_bug", f"The BMC redirects to {location!r}, which is no URL.") from exc
        if origin != (self.address.scheme, self.address.host.lower(), self.address.port):
            raise BmcError(
                "invalid" if there.hostname == self.address.host.lower() else "bmc_bug",
                f"{self.address.url} redirects to {there.scheme}://{there.netloc}, and the credentials are not sent "
                "there. Put that URL into bmc_host if it is the right one.",
                http_status=answer.status,
            )
        return there.path + (f"?{there.query}" if there.query else "")

    def _once(self, method: str, path: str, data: dict[str, t.Any] | None, headers: dict[str, str] | None) -> Answer:
        if self.deadline.expired:
            raise BmcError("timeout", f"No time was left for {method} {path} after {self.deadline.seconds:g} s.")
        self._answer = None
        read = max(1.0, min(self._timeout, self.deadline.remaining))
        send = {"GET": self._connector.get, "POST": self._connector.post, "PATCH": self._connector.patch}
        send["DELETE"] = self._connector.delete
        try:
            send[method](
                path,
                data=data,
                headers={**self._headers, **(headers or {})},
                timeout=(min(read, CONNECT_SECONDS), read),
                server_side_retries_left=0,
                allow_redirects=False,
            )
        except sushy_exceptions.SushyError as exc:
            if self._answer is None:
                raise self._trouble(exc.__context__ or exc, method, path) from exc
        except requests.exceptions.RequestException as exc:
            raise self._trouble(exc, method, path) from exc
        except (AttributeError, TypeError, KeyError, ValueError) as exc:
            # sushy trips over error bodies that are not the objects it expects; we hold the answer itself.
            if self._answer is None:  # requests tripped over a Location that is no URL
                text = f"{method} {path}: the answer cannot be read, or redirects to what is no URL ({exc})"
                raise (BmcError("bmc_bug", f"{text}.") if method == "GET" else NoAnswer(text)) from exc
        got = self._answer
        return Answer(method, path, got.status_code, got.headers, got.content)

    def _note(self, response: t.Any) -> None:
        self._answer = response

    def _lost(self, exc: NoAnswer) -> BmcError:
        where = self.address.url
        if exc.late:
            return BmcError("timeout", f"{where} accepts connections but did not answer in time ({exc}).")
        plain = self.address.scheme == "http"
        hint = " If it speaks TLS there, give bmc_host with https:// or as a name alone." if plain else ""
        return BmcError("timeout", f"{where} accepts connections but closes them without an answer ({exc}).{hint}")

    def _trouble(self, exc: BaseException, method: str, path: str) -> Exception:
        """What a broken exchange means: certainly not sent (BmcError), or unknown (NoAnswer)."""
        where, text = self.address.url, _plain(exc)
        if "NO_CERTIFICATE_OR_CRL_FOUND" in text or "X509" in text or "PEM lib" in text:
            return invalid("ca_path: there is no certificate in it; it must be a PEM file or a folder of them.")
        if isinstance(exc, requests.exceptions.SSLError) or "handshake operation timed out" in text:
            return _tls(where, text)
        if isinstance(exc, requests.exceptions.ConnectTimeout):
            return BmcError(
                "unreachable", f"{where} does not answer. Check the address, the cable and the route.", again=True
            )
        if isinstance(exc, requests.exceptions.InvalidURL):
            return invalid(f"bmc_host: {where} is no usable address.")
        chain = list(_chain(exc))
        if any(isinstance(link, TooMuch) for link in chain):
            size = next(str(link) for link in chain if isinstance(link, TooMuch))
            said = f"{method} {path}: the BMC answers with {size}, which is no resource of a BMC"
            return BmcError("bmc_bug", f"{said}.") if method == "GET" else NoAnswer(said)
        reason = exc.args[0] if exc.args else None
        cause = getattr(reason, "reason", reason)
        if isinstance(cause, urllib3_exceptions.NewConnectionError):
            return BmcError(
                "unreachable",
                f"No connection to {where} ({_errno(text)}). Check the address, the port and the route.",
                again=True,
            )
        late = (requests.exceptions.ReadTimeout, urllib3_exceptions.ReadTimeoutError)
        if any(isinstance(link, late) for link in chain):
            return NoAnswer(f"{method} {path}: no complete answer within {self._timeout:g} s", late=True)
        return NoAnswer(f"{method} {path}: the connection broke before the answer")


def verification(validate_certs: bool, ca_path: str | None) -> bool | str:
    """What to verify certificates against: nothing, a file or folder of the site, or the system's own store."""
    if not validate_certs:
        return False
    if ca_path:
        ca_path = os.path.expanduser(ca_path)
        if not os.path.exists(ca_path):
            raise invalid(f"ca_path: there is no {ca_path}.")
        return ca_path
    system = ssl.get_default_verify_paths().cafile
    return system if system and os.path.exists(system) else True


def _tls(where: str, text: str) -> BmcError:
    if "handshake operation timed out" in text:
        advice = "The TLS handshake was not answered: it may speak plain HTTP there (http://…), or is overloaded."
    elif "WRONG_VERSION_NUMBER" in text or "UNKNOWN_PROTOCOL" in text or "RECORD_LAYER_FAILURE" in text:
        advice = "It speaks plain HTTP there: correct the port, or give bmc_host as http://… if that is what you want."
    elif "certificate has expired" in text:
        advice = "Its certificate has expired: renew it on the BMC (and check the clocks)."
    elif "doesn't match" in text or "mismatch" in text or "not valid for" in text:
        advice = "Its certificate names another host: use that name in bmc_host or renew the certificate."
    elif "CERTIFICATE_VERIFY_FAILED" in text or "certificate verify failed" in text:
        advice = "Its certificate is not signed by a known CA: set ca_path to the CA's certificate."
    else:
        advice = "The TLS handshake failed: the BMC may only know obsolete versions or ciphers."
    return BmcError("tls", f"{where}: {advice} [{_tls_reason(text)}]")


def _tls_reason(text: str) -> str:
    start = text.find("[SSL")
    return text[start + 1 :].split("]")[0] if start >= 0 else "TLS error"


def _chain(exc: BaseException | None) -> t.Iterator[BaseException]:
    """``exc`` and what it wraps: requests and urllib3 hide the cause in arguments as often as in the context."""
    seen: list[BaseException] = []
    todo = [exc]
    while todo:
        link = todo.pop()
        if isinstance(link, BaseException) and link not in seen:
            seen.append(link)
            yield link
            todo += [link.__cause__, link.__context__, getattr(link, "reason", None), *link.args]


def _plain(exc: BaseException) -> str:
    return " ".join(str(exc).split())


def _errno(text: str) -> str:
    for words in ("Connection refused", "No route to host", "Network is unreachable", "Host is down"):
        if words in text:
            return words.lower()
    return "not possible"
