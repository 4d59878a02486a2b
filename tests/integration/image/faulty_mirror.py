# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A mirror on loopback that fails in the way it is told."""

from __future__ import annotations

import http.server
import pathlib
import socket
import ssl
import threading
import time
import typing as t

FAULTS = (
    "",  # none
    "dies",  # after some bytes of the image it is gone, connections and all
    "stalls",  # stops in the middle of a range and keeps the connection
    "trickles",  # a few bytes each second
    "truncated",  # the file is shorter than it was published
    "corrupt",  # right length, wrong bytes
    "html",  # an error page with status 200
    "html_206",  # an error page of the right length, as a range
    "stale",  # another version's file under this digest, of another size
    "busy",  # 503 for a while
    "cuts",  # closes in the middle of every range
    "no_range",  # ignores Range
)


class FaultyMirror:
    """Serves ``root``; the fault concerns the image's file only, unless it is about the whole server."""

    def __init__(self, root: pathlib.Path, fault: str = "", rate: int = 0, tls: ssl.SSLContext | None = None) -> None:
        assert fault in FAULTS
        self.root = root
        self.fault = fault
        self.rate = rate
        self.sent = 0
        self.dead = False
        self._tls = tls
        self._port = 0
        self._sockets: set[socket.socket] = set()
        self._lock = threading.Lock()
        self._files: dict[pathlib.Path, tuple[int, bytes]] = {}
        self.start()

    @property
    def url(self) -> str:
        return f"{'https' if self._tls else 'http'}://127.0.0.1:{self._port}"

    def start(self) -> None:
        """Listen, at the same port when it was up before."""
        owner = self

        class Handler(_Handler):
            mirror = owner

        class Server(http.server.ThreadingHTTPServer):
            daemon_threads = True
            allow_reuse_address = True

            def handle_error(self, request: t.Any, client_address: t.Any) -> None:
                """Broken connections are what these tests are about."""

        self.dead = False
        self._server = Server(("127.0.0.1", self._port), Handler)
        self._port = self._server.server_address[1]
        if self._tls:
            self._server.socket = self._tls.wrap_socket(self._server.socket, server_side=True)
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Gone at once, with every connection."""
        if self.dead:
            return
        self.dead = True
        self._server.shutdown()
        self._server.server_close()
        with self._lock:
            for connection in self._sockets:
                try:
                    connection.shutdown(socket.SHUT_RDWR)
                except OSError:
                    continue
            self._sockets.clear()

    def content(self, path: pathlib.Path) -> bytes:
        """The file, read once for all requests as long as it does not change."""
        state = path.stat()
        known = self._files.get(path)
        if known is None or known[0] != state.st_mtime_ns:
            known = self._files[path] = (state.st_mtime_ns, path.read_bytes())
        return known[1]

    def remember(self, connection: socket.socket) -> None:
        with self._lock:
            self._sockets.add(connection)

    def count(self, number: int) -> None:
        with self._lock:
            self.sent += number


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    mirror: FaultyMirror

    def setup(self) -> None:
        super().setup()
        self.mirror.remember(self.connection)

    def log_message(self, *_arguments: t.Any) -> None:
        """Say nothing."""

    def _page(self, status: int, body: bytes = b"<html>error</html>") -> None:
        self.send_response(status)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self) -> None:
        path = self.mirror.root / self.path.lstrip("/")
        if not path.is_file():
            self._page(404)
            return
        data = self.mirror.content(path)
        fault = self.mirror.fault if path.name == "image.raw.zst" else ""
        header = self.headers.get("Range")
        if fault in ("html", "no_range"):
            self._page(200, b"<html>error</html>" if fault == "html" else data)
            return
        if fault == "busy":
            self._page(503)
            return
        if fault == "truncated":
            data = data[: len(data) // 2]
        if fault == "stale":
            data = data[4096:]
        if header is None:
            self._page(200, data)
            return
        first, last = (int(word) for word in header.partition("=")[2].split("-"))
        if last >= len(data):
            self._page(416)
            return
        body = data[first : last + 1]
        if fault == "corrupt":
            body = body[: len(body) // 2] + bytes([body[len(body) // 2] ^ 0xFF]) + body[len(body) // 2 + 1 :]
        if fault == "html_206":
            body = b"<html>error</html>".ljust(len(body))
        self.send_response(206)
        self.send_header("Content-Range", f"bytes {first}-{last}/{len(data)}")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self._send(body, fault)

    def _send(self, body: bytes, fault: str) -> None:
        half = len(body) // 2
        for offset in range(0, len(body), 64 * 1024):
            if self.mirror.dead or (fault == "cuts" and offset >= half > 0):
                self.close_connection = True
                return
            if fault == "dies" and self.mirror.sent > 5 << 20:
                threading.Thread(target=self.mirror.stop, daemon=True).start()
                self.close_connection = True
                return
            if offset >= half:
                self._hold(fault)
            block = body[offset : offset + 64 * 1024]
            self.wfile.write(block)
            self.mirror.count(len(block))
            if self.mirror.rate:
                time.sleep(len(block) / self.mirror.rate)

    def _hold(self, fault: str) -> None:
        while fault == "stalls" and not self.mirror.dead:
            time.sleep(0.05)
        if fault == "trickles":
            for _second in range(300):
                if self.mirror.dead:
                    return
                self.wfile.write(b"x")
                time.sleep(0.2)
