# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""HTTP(S) for any number of fake BMCs in one thread, each with a port (or an address) of its own."""

from __future__ import annotations

import asyncio
import http.client
import pathlib
import ssl
import subprocess
import threading
import typing as t

from .bmc import Bmc

CERT_DAYS = 30


class Fleet:
    """Serves ``bmcs`` on loopback for the time of a with block."""

    def __init__(
        self, bmcs: t.Sequence[Bmc], tls: pathlib.Path | None = None, host: str = "127.0.0.1", first_port: int = 0
    ) -> None:
        self.bmcs = list(bmcs)
        self._tls = tls
        self._host = host
        self._first_port = first_port
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._servers: list[asyncio.AbstractServer] = []

    def __enter__(self) -> Fleet:
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._start(), self._loop).result(60)
        return self

    def __exit__(self, *unused: object) -> None:
        asyncio.run_coroutine_threadsafe(self._stop(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)

    async def _start(self) -> None:
        context = None
        if self._tls:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(self._tls / "bmc.pem", self._tls / "bmc.key")
        for number, bmc in enumerate(self.bmcs):
            port = self._first_port + number if self._first_port else 0
            server = await asyncio.start_server(_handler(bmc), self._host, port, ssl=context, backlog=64)
            port = server.sockets[0].getsockname()[1]
            host = f"[{self._host}]" if ":" in self._host else self._host
            bmc.host = f"{host}:{port}"
            bmc.url = f"{'https' if context else 'http'}://{bmc.host}"
            self._servers.append(server)

    async def _stop(self) -> None:
        for server in self._servers:
            server.close()
        for task in asyncio.all_tasks():
            if task is not asyncio.current_task():
                task.cancel()


def _handler(bmc: Bmc) -> t.Callable[[asyncio.StreamReader, asyncio.StreamWriter], t.Awaitable[None]]:
    async def connection(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while await _exchange(bmc, reader, writer):
                pass
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError, ValueError, OSError):
            pass
        finally:
            writer.close()

    return connection


async def _exchange(bmc: Bmc, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
    first = await reader.readexactly(1)
    if not first.isalpha():  # a TLS hello at a plain port
        writer.write(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")
        await writer.drain()
        return False
    head = first + await reader.readuntil(b"\r\n\r\n")
    request, *lines = head.decode("latin-1").rstrip("\r\n").split("\r\n")
    method, path, _version = request.split(" ", 2)
    headers = {name.strip().lower(): value.strip() for name, value in (line.split(":", 1) for line in lines)}
    content = await reader.readexactly(int(headers.get("content-length") or 0))
    response = bmc.handle(method, path, headers, content)
    if response.delay:
        await asyncio.sleep(response.delay)
    if response.drop:
        writer.transport.abort()
        return False
    body = response.content()
    keep = headers.get("connection", "keep-alive").lower() != "close"
    answer = [f"HTTP/1.1 {response.status} {http.client.responses.get(response.status, 'Unknown')}"]
    answer += [f"{name}: {value}" for name, value in response.headers.items()]
    answer += ["Content-Type: application/json", f"Content-Length: {len(body)}"]
    answer += [f"Connection: {'keep-alive' if keep else 'close'}", "", ""]
    head = "\r\n".join(answer).encode("latin-1")
    for part, pause in response.wire(head, body) if response.wire else [(head + body, 0)]:
        writer.write(part)
        await writer.drain()
        await asyncio.sleep(pause)
    return keep and response.wire is None


def make_certificates(folder: pathlib.Path, name: str = "bmc", days: int = CERT_DAYS) -> pathlib.Path:
    """A CA (ca.pem) and a certificate (``name``.pem, ``name``.key) for localhost and the loopback addresses."""

    def openssl(*args: str) -> None:
        subprocess.run(["openssl", *args], cwd=folder, check=True, capture_output=True)

    key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
    extensions = folder / "extensions.cnf"
    extensions.write_text("subjectAltName=DNS:localhost,IP:127.0.0.1,IP:::1\nbasicConstraints=CA:FALSE\n")
    if not (folder / "ca.pem").exists():
        ca = ["-addext", "basicConstraints=critical,CA:TRUE", "-addext", "keyUsage=critical,keyCertSign,cRLSign"]
        openssl("req", "-x509", *key, "-keyout", "ca.key", "-out", "ca.pem", "-days", "30", "-subj", "/CN=Rack CA", *ca)
    openssl("req", *key, "-keyout", f"{name}.key", "-out", f"{name}.csr", "-subj", "/CN=localhost")
    openssl(
        *("x509", "-req", "-in", f"{name}.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial"),
        *("-days", str(days), "-extfile", "extensions.cnf", "-out", f"{name}.pem"),
    )
    return folder
