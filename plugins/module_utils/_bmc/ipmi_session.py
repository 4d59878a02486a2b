# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""pyghmi's session, made fit for BMCs that it gives up on. Private to h200.rack."""

from __future__ import annotations

import struct
import traceback
import typing as t

PYGHMI_ERROR: str | None = None
try:
    from pyghmi.ipmi.private.session import Session as Base
except ImportError:
    PYGHMI_ERROR = traceback.format_exc()
    Base = object  # type: ignore[assignment,misc]

RAKP2_HEAD, SHA1_BYTES = 40, 20
# What pyghmi or the arithmetic below it throws at malformed packets.
BROKEN = (struct.error, AssertionError, IndexError, KeyError, TypeError, ValueError, OSError)


class AnswersInSha1(Exception):
    """The BMC accepted cipher suite 17 and computes as in suite 3 (pyghmi's own server and thus VirtualBMC)."""


class Session(Base):  # type: ignore[misc,valid-type]
    """pyghmi's session, for BMCs that pyghmi gives up on."""

    sha1 = False
    dropped: t.ClassVar[list[str]] = []  # why the last packet was dropped, since the last login began

    def _initsession(self) -> None:
        super()._initsession()
        if self.sha1:
            self.attemptedhash = 1

    def _handle_ipmi_packet(self, data: t.Any, *args: t.Any, **more: t.Any) -> t.Any:
        try:
            return super()._handle_ipmi_packet(data, *args, **more)
        except BROKEN as exc:  # whoever sent it: the answer may still come
            self.dropped[:] = [f"{type(exc).__name__}: {exc}"]
            return None

    def _got_rakp2(self, data: t.Any) -> t.Any:
        if data[0] == 0:  # XCC3 does not return the tag (xcat-core #7555); it only tells retries apart
            data[0] = self.rmcptag
        if data[1] == 0 and self.attemptedhash == 256 and len(data) == RAKP2_HEAD + SHA1_BYTES:
            raise AnswersInSha1
        return super()._got_rakp2(data)


class Sha1Session(Session):
    sha1 = True


def forget() -> None:
    """Empty pyghmi's tables: it would hand out a half-open session of an earlier try. We have one session at a time."""
    for sessions in list(Base.bmc_handlers.values()):
        for session in list(sessions.values()):
            session.logging = False  # ends the loop of a login that was given up
    for table in (Base.bmc_handlers, Base.initting_sessions, Base.waiting_sessions, Base.keepalive_sessions):
        table.clear()
