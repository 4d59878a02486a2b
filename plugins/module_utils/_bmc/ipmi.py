# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One IPMI session over pyghmi: a deadline in seconds, commands sent once unless they only read. Private to h200.rack.

pyghmi repeats every command as if it were idempotent and counts tries instead of seconds, so commands go out here
without its repetition, and their answers are awaited here.
"""

from __future__ import annotations

import contextlib
import struct
import time
import typing as t

from ansible.module_utils.basic import missing_required_lib

from .._common.deadline import Deadline
from .address import Address
from .bounded import TookTooLong, bounded
from .errors import BmcError, invalid
from .ipmi_session import PYGHMI_ERROR, AnswersInSha1, Base, Session, Sha1Session, forget

with contextlib.suppress(ImportError):  # told when a session is opened
    from pyghmi import exceptions as pyghmi_exceptions

RESEND_SECONDS = 1.5
LOGOUT_SECONDS = 2.0
LOGIN_TRIES = 3
# Completion code -> (error_class, what it means). IPMI 2.0, table 5-2.
CODES: dict[int, tuple[str, str]] = {
    0x80: ("unsupported", "parameter not supported"),
    0xC0: ("busy", "node busy"),
    0xC1: ("unsupported", "command not supported"),
    0xC2: ("unsupported", "command not supported on this channel"),
    0xC3: ("timeout", "the BMC timed out on the command"),
    0xC4: ("busy", "out of space"),
    0xC9: ("unsupported", "parameter out of range"),
    0xCC: ("unsupported", "invalid data in the request"),
    0xCE: ("bmc_bug", "the BMC could not answer"),
    0xD1: ("busy", "the BMC is being updated"),
    0xD2: ("busy", "the BMC is initialising"),
    0xD3: ("busy", "the destination is not available"),
    0xD4: ("auth", "the account's privilege is too low"),
    0xD5: ("unsupported", "not possible in the present state"),
    0xFF: ("bmc_bug", "unspecified error"),
}

# Text of pyghmi about a failed login -> (error_class, what to do, worth another try).
LOGIN_TEXTS: tuple[tuple[str, str, str, bool], ...] = (
    ("Incorrect password", "auth", "The password is wrong. Check bmc_password (and kg).", False),
    ("wrong Kg", "auth", "The BMC key does not match. Check kg.", False),
    ("Unauthorized name", "auth", "The account does not exist or may not use IPMI. Check bmc_username.", False),
    ("Unauthorized role", "auth", "The account may not log in as operator. Check its privilege.", False),
    ("Invalid role", "auth", "The account may not log in as operator. Check its privilege.", False),
    ("Insufficient resources", "session_limit", "The BMC has no free IPMI session; try again later.", True),
    (
        "No Cipher Suite match",
        "unsupported",
        "The BMC allows neither cipher suite 17 nor 3. Enable one of them.",
        False,
    ),
    ("MD5 required", "unsupported", "The BMC speaks IPMI 1.5 only. Enable IPMI 2.0 (RMCP+).", False),
    ("resolve", "unreachable", "Its name does not resolve. Check bmc_host and the DNS.", False),
)


class Silence(Exception):
    """A command was sent and no answer came."""


class Refusal(Exception):
    """A command was answered with a completion code other than 0."""

    def __init__(self, code: int) -> None:
        self.code = code
        self.error_class, self.meaning = CODES.get(code, ("bmc_bug", "an error of the BMC's own"))
        super().__init__(f"completion code 0x{code:02X}, {self.meaning}")


class Ipmi:
    """Use as a context manager: logs in on entry, logs out whatever happens."""

    def __init__(
        self, address: Address, username: str, password: str, *, kg: str | None, timeout: float, deadline: Deadline
    ) -> None:
        if PYGHMI_ERROR:
            raise BmcError("unsupported", missing_required_lib("pyghmi"), exception=PYGHMI_ERROR)
        if len(username.encode()) > 16:
            raise invalid("bmc_username: IPMI allows 16 bytes at most.")
        if len(password.encode()) > 20:
            raise invalid("bmc_password: IPMI allows 20 bytes at most.")
        self.address = address
        self.deadline = deadline
        self._timeout = timeout
        self._login_args = {
            "bmc": address.host,
            "userid": username,
            "password": password,
            "port": address.port,
            "kg": read_kg(kg),
        }
        self._session: t.Any = None
        self.cipher_suite = 0

    def __enter__(self) -> Ipmi:
        self.login()
        return self

    def __exit__(self, *unused: object) -> None:
        self.logout()

    def login(self) -> None:
        """Open the session; silence and full session tables are tried again within the time of one request."""
        self.logout()
        within = Deadline(min(self._timeout, self.deadline.remaining))
        kind: type[Session] = Session
        error = BmcError("timeout", f"No IPMI session with {self._where}.")
        for attempt in range(LOGIN_TRIES):
            forget()
            Session.dropped.clear()
            try:
                self._session = self._in_time(kind, within)
                self.cipher_suite = 3 if self._session.attemptedhash == 1 else 17
                return
            except AnswersInSha1:
                kind = Sha1Session
            except BmcError as exc:
                if attempt and exc.error_class == "timeout":
                    break  # what the earlier tries met says more
                error = exc
                if not exc.details.pop("again", False):
                    raise
            if attempt == LOGIN_TRIES - 1 or not within.pause(0.5):
                break
        raise error

    def _in_time(self, kind: type[Session], within: Deadline) -> t.Any:
        """pyghmi's blocking login in a thread of its own, because nothing else bounds it."""
        try:
            return bounded(within.remaining, lambda: kind(**self._login_args))
        except TookTooLong as exc:
            forget()
            raise BmcError("timeout", f"No IPMI session with {self._where} within {within.seconds:g} s.") from exc
        except AnswersInSha1:
            raise
        except Exception as exc:
            raise self._login_error(exc) from exc

    @property
    def _where(self) -> str:
        host = f"[{self.address.host}]" if ":" in self.address.host else self.address.host
        return f"{host}:{self.address.port} (UDP)"

    def _login_error(self, exc: Exception) -> BmcError:
        text = str(exc)
        if isinstance(exc, OSError):  # getaddrinfo
            text = "resolve"
        for needle, error_class, advice, again in LOGIN_TEXTS:
            if needle.lower() in text.lower():
                return BmcError(error_class, f"IPMI login at {self._where}: {advice}", again=again)
        silent = text in ("None", "", "timeout") or "no longer connected" in text
        if silent and Session.dropped:
            said = f"{self._where} answers, but not in IPMI ({Session.dropped[-1]})."
            return BmcError("timeout", f"{said} Check the address and the port.", again=True)
        if silent:
            return BmcError(
                "unreachable",
                f"No IPMI answer from {self._where}. Check the address, the port, and that IPMI over LAN is enabled.",
                again=True,
            )
        if isinstance(exc, pyghmi_exceptions.IpmiException):
            return BmcError("auth", f"IPMI login at {self._where} refused: {text}.")
        return BmcError("bmc_bug", f"IPMI login at {self._where}: {type(exc).__name__}: {text}.")

    def command(self, netfn: int, command: int, data: t.Sequence[int] = (), *, once: bool = False) -> bytes:
        """The data of the answer. Raises Refusal, or Silence when nothing came (after repeating, unless ``once``)."""
        if self._session is None:  # an earlier attempt to renew it failed
            self.login()
        within = Deadline(min(self._timeout, max(1.0, self.deadline.remaining)))
        while True:
            wait = within.remaining if once else min(RESEND_SECONDS, within.remaining)
            answer = self._exchange(netfn, command, data, wait)
            if answer is not None:
                if answer["code"]:
                    raise Refusal(answer["code"])
                return bytes(answer["data"])
            if once or within.expired:
                broken = f", only packets that are no IPMI ({Session.dropped[-1]})" if Session.dropped else ""
                raise Silence(f"no answer to command {netfn:#x}/{command:#x} within {within.elapsed:.0f} s{broken}")
            if not self._session.logged:
                self.login()

    def device_id(self) -> tuple[int, int] | None:
        """(manufacturer, product), None when the BMC does not say."""
        try:
            data = self.command(6, 1)
        except (Refusal, Silence):
            return None
        return (int.from_bytes(data[6:9], "little"), int.from_bytes(data[9:11], "little")) if len(data) >= 11 else None

    def _exchange(self, netfn: int, command: int, data: t.Sequence[int], wait: float) -> dict[str, t.Any] | None:
        """Send once, and wait; None when no answer came or the session broke."""
        session, box = self._session, []
        ends = time.monotonic() + wait

        def got(answer: dict[str, t.Any]) -> None:
            if answer.get("command") == command and answer.get("netfn") == netfn + 1:
                box.append(answer)  # anything else is a late answer to an earlier command

        def work() -> None:
            session.raw_command(netfn=netfn, command=command, data=list(data), retry=False, callback=got)
            while not box and time.monotonic() < ends:
                Base.wait_for_rsp(timeout=max(0.0, ends - time.monotonic()))

        try:
            bounded(wait + 1.0, work)
        except (TookTooLong, pyghmi_exceptions.IpmiException):
            session.logged = 0
            forget()
        finally:
            # With a callback, cleaning up is the caller's part in pyghmi.
            session.incommand = False
            session.evq.clear()
        return box[0] if box else None

    def logout(self) -> None:
        """Close the session; a BMC has few of them."""
        session, self._session = self._session, None
        if session is None:
            return
        with contextlib.suppress(Exception):
            if session.logged:
                number = struct.pack("<I", session.sessionid)
                self._session = session
                self._exchange(6, 0x3C, list(number), LOGOUT_SECONDS)
                session.logged = 0  # closed: logout() below only tidies up
        self._session = None
        with contextlib.suppress(Exception):
            session.logout()


def read_kg(text: str | None) -> bytes | None:
    """The option kg as key bytes."""
    if not text:
        return None
    if text.lower().startswith("0x"):
        try:
            key = bytes.fromhex(text[2:])
        except ValueError as exc:
            raise invalid("kg: after 0x an even number of hexadecimal digits must follow.") from exc
    else:
        key = text.encode()
    if not 1 <= len(key) <= 20:
        raise invalid("kg must have 1 to 20 bytes: up to 20 characters, or 0x and up to 40 hexadecimal digits.")
    return key
