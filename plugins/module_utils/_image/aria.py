# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""aria2c as a process that is told what to do over JSON-RPC on loopback. Private to h200.rack."""

from __future__ import annotations

import base64
import json
import os
import secrets
import socket
import threading
import time
import typing as t

from ansible_collections.h200.rack.plugins.module_utils._common.errors import RackError

from . import tools

_START = 15.0
_ANSWER = 30.0

# Chosen by tests/benchmark/image/bench_swarm.py, or keeps aria2c from doing something else as well.
OPTIONS = (
    "--enable-rpc=true",
    "--rpc-listen-all=false",
    "--quiet=true",
    "--file-allocation=none",
    "--allow-overwrite=true",
    "--auto-save-interval=0",
    "--disk-cache=32M",
    # One swarm, whose members the tracker knows: nothing is looked for elsewhere.
    "--enable-dht=false",
    "--enable-dht6=false",
    "--enable-peer-exchange=false",
    "--bt-enable-lpd=false",
    "--bt-tracker-interval=5",
    "--bt-tracker-connect-timeout=2",
    "--bt-tracker-timeout=5",
    "--peer-id-prefix=-HR0100-",
    # All members of the swarm are near, and there are no more than a rack or a few has.
    "--bt-max-peers=0",
    "--bt-request-peer-speed-limit=1000M",
    "--seed-time=1440",
    "--seed-ratio=0.0",
    # Members that all took the mirrors' pieces in order would hold the same ones, with nothing to exchange.
    "--stream-piece-selector=random",
    "--min-split-size=1M",
    "--max-connection-per-server=1",
    "--split=2",
    "--uri-selector=inorder",
    "--max-tries=0",
    "--retry-wait=1",
)


class AriaError(RackError):
    """aria2c did not do what it was told."""

    code = "bittorrent"


class Aria:
    """One aria2c, from its start until :meth:`stop`. Calls may come from several threads."""

    def __init__(self, folder: str, options: t.Sequence[str] = ()) -> None:
        self._port = _free_port()
        self._secret = secrets.token_hex(16)
        self._lock = threading.Lock()
        # The secret travels in a file: what stands on a command line can be read by every process.
        self._config = os.path.join(folder, "aria2.conf")
        descriptor = os.open(self._config, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w", encoding="ascii") as handle:
            handle.write(f"rpc-secret={self._secret}\n")
        command = ["aria2c", f"--conf-path={self._config}", f"--dir={folder}", *OPTIONS, *options]
        self._process = tools.start([*command, f"--rpc-listen-port={self._port}", f"--stop-with-process={os.getpid()}"])
        try:
            self._wait_for_rpc()
        except BaseException:
            self.stop()
            raise

    def _wait_for_rpc(self) -> None:
        deadline = time.monotonic() + _START
        while True:
            try:
                self.call("aria2.getVersion")
                return
            except (OSError, AriaError) as exc:
                if not self.running or time.monotonic() > deadline:
                    said = "".join(self._process.communicate()).strip()[-300:] if not self.running else ""
                    raise AriaError(f"aria2c did not start: {said or exc}") from exc
            time.sleep(0.05)

    @property
    def running(self) -> bool:
        return self._process.poll() is None

    def call(self, method: str, *parameters: t.Any) -> t.Any:
        """The result of one RPC. Raises OSError when nobody answers, :class:`AriaError` for an error."""
        body = json.dumps(
            {"jsonrpc": "2.0", "id": "1", "method": method, "params": [f"token:{self._secret}", *parameters]}
        ).encode("ascii")
        head = f"POST /jsonrpc HTTP/1.0\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n\r\n".encode("ascii")
        with self._lock, socket.create_connection(("127.0.0.1", self._port), _ANSWER) as connection:
            connection.sendall(head + body)
            answer = b"".join(iter(lambda: connection.recv(65536), b""))
        try:
            value = json.loads(answer.partition(b"\r\n\r\n")[2])
        except ValueError as exc:
            raise AriaError(f"aria2c answered {method} with something else than JSON") from exc
        if "error" in value:
            raise AriaError(f"aria2c: {method}: {value['error'].get('message')}")
        return value["result"]

    def add_torrent(self, metainfo: bytes, web_seeds: t.Sequence[str]) -> str:
        return self.call("aria2.addTorrent", base64.b64encode(metainfo).decode("ascii"), list(web_seeds))

    def stop(self) -> None:
        if self.running:
            # Asked kindly it would first tell every tracker and peer, for seconds.
            self._process.kill()
        self._process.communicate()
        if os.path.exists(self._config):
            os.unlink(self._config)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]
