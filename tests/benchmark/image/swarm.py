# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One aria2c that takes part in the swarm of an image's file. For the benchmark only, so far."""

from __future__ import annotations

import json
import os
import pathlib
import secrets
import socket
import time
import typing as t

from ansible_collections.h200.rack.plugins.module_utils._common.errors import RackError
from ansible_collections.h200.rack.plugins.module_utils._image import tools
from torrent import TORRENT_FILE

_START = 10.0


class Status(t.NamedTuple):
    pieces: int
    bitfield: int
    piece_length: int
    completed: int
    uploaded: int
    peers: int

    def has(self, start: int, length: int) -> bool:
        """Whether all pieces under the range are there."""
        first, last = start // self.piece_length, (start + length - 1) // self.piece_length
        # Bit 0 is piece 0 and stands leftmost, in whole bytes.
        width = -(-self.pieces // 4) * 4
        mask = (1 << (last - first + 1)) - 1
        return (self.bitfield >> (width - 1 - last)) & mask == mask


class Swarm:
    """aria2c over one torrent in ``folder``, from its start until :meth:`stop`."""

    def __init__(self, folder: str, metainfo: bytes, trackers: t.Sequence[str], seed: bool = False) -> None:
        self._port = _free_port()
        self._secret = secrets.token_hex(16)
        torrent = os.path.join(folder, TORRENT_FILE)
        if not seed:
            with pathlib.Path(torrent).open("wb") as handle:
                handle.write(metainfo)
        # The secret travels in a file: what stands on a command line can be read by every process.
        self._config = os.path.join(folder if not seed else "/run", f".aria2-{os.getpid()}.conf")
        descriptor = os.open(self._config, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w", encoding="ascii") as handle:
            handle.write(f"rpc-secret={self._secret}\n")
        self._process = tools.start(
            [
                "aria2c",
                f"--conf-path={self._config}",
                f"--dir={folder}",
                *OPTIONS,
                # A seeder must never begin anew over the published file; a node may over what an earlier run left.
                *(("--check-integrity=true",) if seed else ("--allow-overwrite=true",)),
                f"--rpc-listen-port={self._port}",
                f"--bt-tracker={','.join(trackers)}",
                torrent,
            ]
        )
        self._wait_for_rpc()

    def _wait_for_rpc(self) -> None:
        deadline = time.monotonic() + _START
        while True:
            try:
                self._gid = self._call("aria2.tellActive", ["gid"])[0]["gid"]
                return
            except (OSError, IndexError, RackError) as exc:
                if self._process.poll() is not None or time.monotonic() > deadline:
                    self.stop()
                    said = "".join(self._process.communicate())[-300:]
                    raise RackError(f"aria2c did not start: {said or exc}", code="bittorrent") from exc
                time.sleep(0.1)

    def _call(self, method: str, *parameters: t.Any) -> t.Any:
        body = json.dumps(
            {"jsonrpc": "2.0", "id": "1", "method": method, "params": [f"token:{self._secret}", *parameters]}
        ).encode("ascii")
        head = f"POST /jsonrpc HTTP/1.0\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n\r\n".encode("ascii")
        with socket.create_connection(("127.0.0.1", self._port), 60) as connection:
            connection.sendall(head + body)
            answer = b"".join(iter(lambda: connection.recv(65536), b""))
        value = json.loads(answer.partition(b"\r\n\r\n")[2])
        if "error" in value:
            raise RackError(f"aria2c: {value['error'].get('message')}", code="bittorrent")
        return value["result"]

    def status(self) -> Status:
        keys = ["numPieces", "bitfield", "pieceLength", "completedLength", "uploadLength", "connections", "status"]
        value = self._call("aria2.tellStatus", self._gid, keys)
        if value["status"] == "error":
            raise RackError("aria2c: the download failed", code="bittorrent")
        field = value.get("bitfield") or "0"
        numbers = (int(value[key]) for key in ("pieceLength", "completedLength", "uploadLength", "connections"))
        return Status(len(field) * 4, int(field, 16), *numbers)

    def stop(self) -> None:
        if self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(5)
            except Exception:
                self._process.kill()
                self._process.wait()
        if os.path.exists(self._config):
            os.unlink(self._config)


# Each of these was chosen by tests/benchmark/image/bench_swarm.py, or keeps aria2c from doing something else as well.
OPTIONS = (
    "--enable-rpc=true",
    "--rpc-listen-all=false",
    "--quiet=true",
    "--file-allocation=none",
    "--auto-save-interval=0",
    "--enable-dht=false",
    "--enable-dht6=false",
    "--bt-enable-lpd=false",
    "--bt-max-peers=0",
    "--bt-max-open-files=4",
    "--bt-request-peer-speed-limit=1000M",
    "--bt-tracker-interval=5",
    "--bt-tracker-connect-timeout=2",
    "--bt-tracker-timeout=5",
    "--peer-id-prefix=-HR0100-",
    "--seed-time=1440",
    "--seed-ratio=0.0",
    "--disk-cache=32M",
    "--min-split-size=1M",
)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]
