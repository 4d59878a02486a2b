# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""As much of an HTTP client as a mirror needs: ranges over kept connections, received straight into a given buffer.

Private to h200.rack. The standard library's client costs a good part of a second to import in a freshly booted ramdisk
and copies every block; redirects, proxies, cookies and encodings are not wanted here.
"""

from __future__ import annotations

import contextlib
import socket
import time
import typing as t
import urllib.parse

from ansible_collections.h200.rack.plugins.module_utils._common.errors import InvalidInput, RackError

_MAX_HEAD = 32 * 1024


class MirrorError(RackError):
    """A mirror did not give what was asked for. ``lasting`` means that asking it again will not help."""

    code = "mirror"

    def __init__(self, msg: str, *, lasting: bool = False, **details: t.Any) -> None:
        super().__init__(msg, **details)
        self.lasting = lasting


class Url(t.NamedTuple):
    tls: bool
    host: str
    port: int
    path: str

    @property
    def authority(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == (443 if self.tls else 80) else f"{host}:{self.port}"


def parse_url(text: str) -> Url:
    """The base URL of a mirror. Raises :class:`InvalidInput`."""
    try:
        parts = urllib.parse.urlsplit(text)
        port = parts.port
    except ValueError as exc:
        raise InvalidInput(f"mirrors: {text!r} is not a URL: {exc}") from exc
    plain = text.isascii() and text.isprintable() and " " not in text
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment or not plain:
        raise InvalidInput(f"mirrors: {text!r} is not an http or https URL without query")
    if "@" in parts.netloc:
        raise InvalidInput("mirrors: a URL must not hold a password")
    tls = parts.scheme == "https"
    return Url(tls, parts.hostname, port or (443 if tls else 80), parts.path.rstrip("/"))


def tls_context(ca_path: str | None) -> t.Any:
    """A context that checks names and times, against ``ca_path`` alone when it is given."""
    import ssl

    try:
        context = ssl.create_default_context(cafile=ca_path)
    except (OSError, ssl.SSLError) as exc:
        raise InvalidInput(f"ca_path: {ca_path} cannot be used: {exc}") from exc
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    return context


class Connection:
    """One kept connection to one mirror. Not for more than one thread."""

    def __init__(self, url: Url, timeout: float, context: t.Any = None) -> None:
        self._url = url
        self._timeout = timeout
        self._context = context
        self._socket: socket.socket | None = None
        self._rest = b""

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None
        self._rest = b""

    def _open(self) -> socket.socket:
        try:
            plain = socket.create_connection((self._url.host, self._url.port), self._timeout)
            plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if not self._url.tls:
                return plain
            try:
                return self._context.wrap_socket(plain, server_hostname=self._url.host)
            except BaseException:
                plain.close()
                raise
        except OSError as exc:
            raise self._error(_explain(exc)) from exc

    def _error(self, what: str, lasting: bool = False) -> MirrorError:
        scheme = "https" if self._url.tls else "http"
        return MirrorError(f"{scheme}://{self._url.authority}: {what}", lasting=lasting)

    def _request(self, path: str, extra: str) -> tuple[int, dict[str, str]]:
        """Send a GET and read the answer's head; once more on a kept connection that the mirror closed meanwhile."""
        lines = f"GET {self._url.path}{path} HTTP/1.1\r\nHost: {self._url.authority}\r\nAccept-Encoding: identity\r\n"
        data = f"{lines}User-Agent: h200.rack\r\n{extra}\r\n".encode("ascii")
        if self._socket is not None:
            with contextlib.suppress(MirrorError):
                return self._exchange(data)
        return self._exchange(data)

    def _exchange(self, data: bytes) -> tuple[int, dict[str, str]]:
        """One request and its answer's head. A connection on which that failed is never used again."""
        try:
            return self._try_exchange(data)
        except MirrorError:
            self.close()
            raise

    def _try_exchange(self, data: bytes) -> tuple[int, dict[str, str]]:
        if self._socket is None:
            self._socket = self._open()
        self._socket.settimeout(self._timeout)
        self._rest = b""
        try:
            self._socket.sendall(data)
            head = b""
            while b"\r\n\r\n" not in head:
                block = self._socket.recv(4096)
                if not block:
                    raise self._error("closed the connection without an answer")
                head += block
                if len(head) > _MAX_HEAD:
                    raise self._error("does not speak HTTP", lasting=True)
        except OSError as exc:
            raise self._error(_explain(exc)) from exc
        head, _separator, self._rest = head.partition(b"\r\n\r\n")
        lines = head.decode("latin-1").split("\r\n")
        words = lines[0].split(" ", 2)
        if not words[0].startswith("HTTP/1.") or len(words) < 2 or not words[1].isdigit():
            raise self._error("does not speak HTTP", lasting=True)
        headers = {}
        for line in lines[1:]:
            key, _colon, value = line.partition(":")
            headers[key.strip().lower()] = value.strip()
        if "chunked" in headers.get("transfer-encoding", "").lower() or not headers.get("content-length", "").isdigit():
            raise self._error(f"answered {words[1]} without a length", lasting=words[1] in ("200", "206"))
        return int(words[1]), headers

    def get_range(self, path: str, start: int, view: memoryview, total: int, watch: Watch) -> t.Iterator[int]:
        """Receive the bytes from ``start`` into ``view``; yields how many have come each time some have.

        ``total`` is the size that the whole file must have.
        """
        end = start + len(view) - 1
        status, headers = self._request(path, f"Range: bytes={start}-{end}\r\n")
        wanted = f"bytes {start}-{end}/{total}"
        if status != 206 or headers.get("content-range", "") != wanted or int(headers["content-length"]) != len(view):
            self.close()
            got = headers.get("content-range", "") or f"{headers.get('content-type', 'no type')}"
            # What a mirror lacks or holds in another size it will not have a moment later; an overloaded one may.
            raise self._error(f"{path}: answered {status} ({got}) instead of {wanted}", lasting=status < 429)
        yield from self._receive(path, view, watch)

    def _receive(self, path: str, view: memoryview, watch: Watch) -> t.Iterator[int]:
        have = min(len(self._rest), len(view))
        view[:have] = self._rest[:have]
        self._rest = b""
        if self._socket is None:
            raise AssertionError("an answer is read of a connection that was never made")
        if have:
            yield have
        try:
            watch.start()
            while have < len(view):
                self._socket.settimeout(watch.patience)
                count = self._socket.recv_into(view[have:])
                if not count:
                    raise self._error(f"{path}: closed the connection {len(view) - have} bytes early")
                have += count
                yield count
                watch.saw(count)
        except OSError as exc:
            self.close()
            raise self._error(f"{path}: {_explain(exc)}") from exc
        except MirrorError:
            self.close()
            raise
        except GeneratorExit:
            if have < len(view):
                self.close()
            raise

    def get(self, path: str, limit: int, watch: Watch) -> bytes:
        """The whole small file at ``path``."""
        status, headers = self._request(path, "")
        length = int(headers["content-length"])
        if status != 200 or length > limit:
            self.close()
            what = f"answered {status}" if status != 200 else f"is {length} bytes long, more than {limit}"
            raise self._error(f"{path}: {what}", lasting=status < 429)
        data = bytearray(length)
        for _count in self._receive(path, memoryview(data), watch):
            pass
        return bytes(data)


class Watch:
    """Tells a stalled transfer: less than ``floor`` bytes/s over ``patience`` seconds."""

    def __init__(self, patience: float, floor: int = 16 * 1024) -> None:
        self.patience = patience
        self._floor = floor
        self.start()

    def start(self) -> None:
        self._since = time.monotonic()
        self._bytes = 0

    def saw(self, count: int) -> None:
        self._bytes += count
        spent = time.monotonic() - self._since
        if spent >= self.patience:
            if self._bytes < self._floor * spent:
                raise TimeoutError(f"stalled: {self._bytes} bytes in {spent:.1f} s")
            self.start()


def _explain(exc: OSError) -> str:
    """The error in words; certificates that are not valid now are mostly a clock that is wrong."""
    text = str(exc) or type(exc).__name__
    if isinstance(exc, socket.timeout) and "stalled" not in text:
        return f"stalled or does not answer ({text})"
    if "not yet valid" in text or "has expired" in text:
        return (
            f"{text}; this machine's clock says {time.strftime('%Y-%m-%d %H:%M:%S', time.gmtime())} UTC: is it right?"
        )
    return text
