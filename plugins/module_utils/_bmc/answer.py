# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a BMC answered, and what that means. Private to h200.rack."""

from __future__ import annotations

import json
import time
import typing as t
from email.utils import parsedate_to_datetime

from .errors import BmcError

# The last part of a Redfish MessageId -> (error_class, certainly had no effect and may work later).
# Sources: DMTF Base registry 1.19, HPE iLO registry, Dell EEMI; infra-controller #5418 (AMI HMC), check_redfish #89
# (RAC0218).
MESSAGES: dict[str, tuple[str, bool]] = {
    "SessionLimitExceeded": ("session_limit", True),
    "CreateLimitReachedForResource": ("session_limit", True),
    "RAC0218": ("session_limit", True),
    "UnableToModifyDuringSystemPOST": ("busy", True),
    "InvalidOperationForSystemState": ("busy", True),
    "SystemPostInProgress": ("busy", True),
    "ServerInPOST": ("busy", True),
    "OperationNotAllowedDuringPOST": ("busy", True),
    "SYS518": ("busy", True),
    "SYS426": ("busy", True),
    "ServiceTemporarilyUnavailable": ("busy", True),
    "ServiceInUnknownState": ("busy", False),
    "ResourceInUse": ("busy", True),
    "ResourceInStandby": ("busy", True),
    "ResourceCannotBeDeleted": ("busy", False),
    "HMCCommuicationFailed": ("bmc_bug", False),
    "HMCCommunicationFailed": ("bmc_bug", False),
    "PasswordChangeRequired": ("auth", False),
    "InsufficientPrivilege": ("auth", False),
    "NoValidSession": ("auth", False),
    "UnauthorizedLoginAttempt": ("auth", False),
    "ResourceAtUriUnauthorized": ("auth", False),
    "AccessDenied": ("auth", False),
    "AccountForSessionNoLongerExists": ("auth", False),
    "ActionNotSupported": ("unsupported", False),
    "ActionParameterNotSupported": ("unsupported", False),
    "ActionParameterUnknown": ("unsupported", False),
    "ActionParameterValueNotInList": ("unsupported", False),
    "PropertyUnknown": ("unsupported", False),
    "PropertyNotWritable": ("unsupported", False),
    "PropertyNotWritableOrUnknown": ("unsupported", False),
    "PropertyValueNotInList": ("unsupported", False),
    "UnsupportedOperation": ("unsupported", False),
    "OperationNotAllowed": ("unsupported", False),
    "QueryNotSupported": ("unsupported", False),
    "PreconditionFailed": ("precondition", False),
    "PreconditionRequired": ("precondition", False),
}

STATUSES: dict[int, str] = {
    400: "unsupported",
    401: "auth",
    403: "auth",
    404: "unsupported",
    405: "unsupported",
    409: "busy",
    410: "unsupported",
    412: "precondition",
    423: "busy",
    428: "precondition",
    429: "busy",
    501: "unsupported",
    503: "busy",
    504: "timeout",
}

# Refused by definition, and perhaps not later. A bare 5xx says nothing about the effect.
REFUSED = (409, 423, 429)

ADVICE: dict[str, str] = {
    "auth": "Check bmc_username and bmc_password, and that the account may do this.",
    "session_limit": "The BMC has no free session; close others or wait until they expire.",
    "busy": "The BMC cannot do this now; try again later.",
    "unsupported": "This BMC does not do this.",
    "precondition": "The resource changed meanwhile, or the BMC wants an ETag it did not announce; try again.",
    "timeout": "The BMC gave up on the request; read the state before trying again.",
    "bmc_bug": "The BMC failed inside; try again, and reset the BMC if it persists.",
}


class Answer:
    """One HTTP answer, detached from the library it came through."""

    def __init__(self, method: str, path: str, status: int, headers: t.Mapping[str, str], content: bytes) -> None:
        self.method = method
        self.path = path
        self.status = status
        self.headers = {name.lower(): value for name, value in headers.items()}
        self.text = _text(content)
        try:
            # NaN and Infinity are no JSON and must not get into results.
            parsed = json.loads(self.text, parse_constant=lambda _unused: None) if content else None
        except (ValueError, RecursionError):
            parsed = None
        self.is_object = isinstance(parsed, dict)
        self.body: dict[str, t.Any] = parsed if isinstance(parsed, dict) else {}

    @property
    def ok(self) -> bool:
        return 200 <= self.status < 300

    @property
    def etag(self) -> str | None:
        return self.headers.get("etag") or None

    @property
    def retry_after(self) -> float | None:
        """Seconds, when the BMC named them or the time."""
        text = self.headers.get("retry-after", "").strip()
        if text.isascii() and text.isdecimal():
            return float(text[:6])
        try:
            return max(0.0, parsedate_to_datetime(text).timestamp() - time.time())
        except (TypeError, ValueError, IndexError, OverflowError):
            return None

    @property
    def _notes(self) -> list[dict[str, t.Any]]:
        error = self.body.get("error")
        notes = error.get("@Message.ExtendedInfo") if isinstance(error, dict) else None
        notes = notes if notes is not None else self.body.get("@Message.ExtendedInfo", [])
        notes = notes if isinstance(notes, list) else [notes]
        return [note for note in notes if isinstance(note, dict)]

    @property
    def message_ids(self) -> list[str]:
        found = [note.get("MessageId") or note.get("MessageID") for note in self._notes]
        error = self.body.get("error")
        if isinstance(error, dict):
            found.append(error.get("code"))
        return list(dict.fromkeys(item for item in found if isinstance(item, str) and item))

    @property
    def message(self) -> str:
        """The sentences of the BMC, or the beginning of what it sent instead."""
        said = [str(note["Message"]) for note in self._notes if note.get("Message")]
        error = self.body.get("error")
        if not said and isinstance(error, dict) and error.get("message"):
            said = [str(error["message"])]
        if not said and isinstance(error, str):
            said = [error]
        return " ".join(dict.fromkeys(said)) or " ".join(self.text[:200].split())

    @property
    def verdict(self) -> tuple[str, bool]:
        """(error_class, whether a refusal that certainly had no effect and may work later)."""
        for message_id in self.message_ids:
            known = MESSAGES.get(message_id.rsplit(".", 1)[-1])
            if known:
                return known
        error_class = STATUSES.get(self.status, "bmc_bug" if self.status >= 500 else "unsupported")
        return error_class, self.status in REFUSED

    def says(self, *endings: str) -> bool:
        """Whether one of the message ids ends with one of ``endings``."""
        return any(message_id.rsplit(".", 1)[-1] in endings for message_id in self.message_ids)

    def error(self, what: str, advice: str | None = None, **details: t.Any) -> BmcError:
        """This answer as a failure of ``what``."""
        error_class, _unused = self.verdict
        said = self.message
        parts = [f"{what}: the BMC answered HTTP {self.status}" + (f" ({said.rstrip('.')})." if said else ".")]
        parts.append(advice or ADVICE[error_class])
        return BmcError(error_class, " ".join(parts), http_status=self.status, message_ids=self.message_ids, **details)


def _text(content: bytes) -> str:
    """JSON is UTF-8; some BMCs send it with a byte order mark, or in Latin-1 (an asset tag with an umlaut)."""
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return content.decode("latin-1")
