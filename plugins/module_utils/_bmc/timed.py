# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""HTTP answers that must be complete within one time-out. Private to h200.rack.

A time-out of requests starts anew with every byte: a BMC that sends one byte a second, or headers without end, holds
its client for ever. Here the time-out covers the whole answer, from the status line to the last byte of the body.
"""

from __future__ import annotations

import http.client
import io
import time
import typing as t

try:
    from requests.adapters import HTTPAdapter
    from urllib3.connection import HTTPConnection, HTTPSConnection
    from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool
except ImportError:  # told to the user when a connection is opened
    HTTPAdapter = HTTPConnection = HTTPSConnection = object  # type: ignore[assignment,misc]
    HTTPConnectionPool = HTTPSConnectionPool = object  # type: ignore[assignment,misc]

# The largest answers seen are BIOS registries of about 4 MiB, which we never read.
MAX_BYTES = 16 * 1024 * 1024


class TooMuch(OSError):
    """An answer larger than any resource of a BMC."""


class _Reader(io.RawIOBase):
    """What comes from ``sock``, until its present time-out is over or it was too much."""

    def __init__(self, sock: t.Any) -> None:
        seconds = sock.gettimeout()
        self._ends = None if seconds is None else time.monotonic() + seconds
        self._sock = sock
        self._raw = sock.makefile("rb", buffering=0)  # keeps the socket open until the body is read
        self._left = MAX_BYTES

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: t.Any) -> int | None:
        if self._ends is not None:
            left = self._ends - time.monotonic()
            if left <= 0:
                raise TimeoutError("timed out")
            self._sock.settimeout(left)
        count = self._raw.readinto(buffer)
        self._left -= count or 0
        if self._left < 0:
            raise TooMuch(f"more than {MAX_BYTES // 2**20} MiB")
        return count

    def close(self) -> None:
        self._raw.close()
        super().close()


class _Response(http.client.HTTPResponse):
    def __init__(self, sock: t.Any, *args: t.Any, **more: t.Any) -> None:
        super().__init__(sock, *args, **more)
        self.fp.close()
        self.fp = io.BufferedReader(_Reader(sock))


class _Http(HTTPConnection):
    response_class = _Response


class _Https(HTTPSConnection):
    response_class = _Response


class _HttpPool(HTTPConnectionPool):
    ConnectionCls = _Http


class _HttpsPool(HTTPSConnectionPool):
    ConnectionCls = _Https


class TimedAdapter(HTTPAdapter):
    """For requests.Session.mount()."""

    def init_poolmanager(self, *args: t.Any, **more: t.Any) -> None:
        super().init_poolmanager(*args, **more)
        self.poolmanager.pool_classes_by_scheme = {"http": _HttpPool, "https": _HttpsPool}
