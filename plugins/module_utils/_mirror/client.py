# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One request to a mirror, as a node would send it: no proxy, no redirect, no encoding. Private to h200.rack."""

from __future__ import annotations

import http.client
import ssl
import time
import typing as t
import urllib.parse

from ansible_collections.h200.rack.plugins.module_utils._common.errors import RackError


class MirrorProblem(RackError):
    """The mirror is not what it should be; ``code`` says in which way."""

    code = "mirror"


class Answer(t.NamedTuple):
    status: int
    headers: t.Mapping[str, str]
    body: bytes
    seconds: float


class Trust(t.NamedTuple):
    """The certificates that https mirrors are checked against: a file, or PEM text; neither means the system's."""

    path: t.Optional[str] = None
    content: t.Optional[str] = None

    def context(self) -> ssl.SSLContext:
        """A context that checks names and times. Raises :class:`MirrorProblem`."""
        try:
            context = ssl.create_default_context(cafile=self.path or None, cadata=self.content or None)
        except (OSError, ValueError) as exc:
            option = f"ca_path: {self.path}" if self.path else "ca_content"
            raise MirrorProblem(f"{option} cannot be used as certificates: {exc}", code="invalid") from exc
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        return context


#: What the operating system trusts.
SYSTEM = Trust()


class Client:
    """Requests to one mirror. Not for more than one thread."""

    def __init__(self, url: str, timeout: float, trust: Trust = SYSTEM) -> None:
        parts = urllib.parse.urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise MirrorProblem(f"{url} is not an http or https URL", code="invalid")
        self.url = url.rstrip("/")
        self._parts = parts
        self._timeout = timeout
        self._context = trust.context() if parts.scheme == "https" else None
        self._connection: t.Optional[http.client.HTTPConnection] = None

    def _connect(self) -> http.client.HTTPConnection:
        if self._connection is None:
            host, port = self._parts.hostname or "", self._parts.port
            if self._context is not None:
                self._connection = http.client.HTTPSConnection(host, port, timeout=self._timeout, context=self._context)
            else:
                self._connection = http.client.HTTPConnection(host, port, timeout=self._timeout)
        return self._connection

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    @property
    def certificate_ends(self) -> str:
        """When the certificate of the open connection ends; empty without TLS or connection."""
        connection = self._connection.sock if self._connection is not None else None
        if not isinstance(connection, ssl.SSLSocket):
            return ""
        ends = str((connection.getpeercert() or {}).get("notAfter", ""))
        return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(ssl.cert_time_to_seconds(ends))) if ends else ""

    def request(self, method: str, path: str, limit: int, headers: t.Optional[dict[str, str]] = None) -> Answer:
        """Send one request; at most ``limit`` bytes are taken. Raises :class:`MirrorProblem`."""
        start = time.monotonic()
        try:
            connection = self._connect()
            connection.request(method, f"{self._parts.path.rstrip('/')}/{path}", headers=headers or {})
            answer = connection.getresponse()
            body = answer.read(limit + 1)
            if len(body) > limit:
                self.close()
                raise MirrorProblem(f"{self.url}/{path} is longer than {limit} bytes", code="too_long")
            if answer.length:
                raise MirrorProblem(f"{self.url}/{path} ended {answer.length} bytes too early", code="short")
        except ssl.SSLError as exc:
            self.close()
            raise MirrorProblem(f"{self.url}: TLS: {exc}", code="tls") from exc
        except (OSError, http.client.HTTPException) as exc:
            self.close()
            raise MirrorProblem(f"{self.url}: {exc or type(exc).__name__}", code="unreachable") from exc
        lowered = {key.lower(): value for key, value in answer.getheaders()}
        return Answer(answer.status, lowered, body, time.monotonic() - start)

    def get(self, path: str, limit: int) -> bytes:
        """A whole small file. Raises :class:`MirrorProblem`."""
        answer = self.request("GET", path, limit)
        _expect(answer, 200, f"{self.url}/{path}")
        return answer.body

    def size(self, path: str) -> int:
        """The size that HEAD tells. Raises :class:`MirrorProblem`."""
        answer = self.request("HEAD", path, 0)
        _expect(answer, 200, f"{self.url}/{path}")
        length = answer.headers.get("content-length", "")
        if not length.isdigit():
            raise MirrorProblem(f"{self.url}/{path}: HEAD tells no size", code="size")
        return int(length)

    def piece(self, path: str, offset: int, length: int, total: int) -> Answer:
        """A range of a file of known size, exactly. Raises :class:`MirrorProblem`."""
        wanted = f"bytes={offset}-{offset + length - 1}"
        answer = self.request("GET", path, length, {"Range": wanted})
        _expect(answer, 206, f"{self.url}/{path} ({wanted})")
        told = answer.headers.get("content-range", "")
        if told != f"bytes {offset}-{offset + length - 1}/{total}" or len(answer.body) != length:
            raise MirrorProblem(f"{self.url}/{path}: asked for {wanted} of {total}, got {told!r}", code="range")
        return answer


def _expect(answer: Answer, status: int, what: str) -> None:
    if answer.status != status:
        code = "missing" if answer.status == 404 else "http"
        raise MirrorProblem(f"{what}: HTTP status {answer.status} instead of {status}", code=code)
