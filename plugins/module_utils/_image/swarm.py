# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A node's part in the swarm of one image: what has arrived, and when the mirrors are asked. Private to h200.rack.

The mirrors are web seeds: nothing but their HTTP server runs there, and the first pieces come without waiting for
anybody to be unchoked. They are let go as soon as every piece is held by some member, because from then on the members
have all that is needed between them, and asked again when what comes from the members is next to nothing.
"""

from __future__ import annotations

import os
import threading
import time
import typing as t

from ansible_collections.h200.rack.plugins.module_utils._common.errors import RackError

from .aria import Aria
from .manifest import WIRE_FILE

_POLL = 0.5
# Below this rate the swarm does not feed the node, and the mirrors are asked.
_FLOOR = 256 * 1024


class Status(t.NamedTuple):
    """What aria2c says; ``bitfield`` has the first piece in its highest bit, in whole bytes."""

    pieces: int
    piece_length: int
    bitfield: int
    completed: int
    uploaded: int
    speed: int
    peers: int

    def has(self, start: int, length: int) -> bool:
        """Whether all pieces under the range are there."""
        if not self.pieces:
            return False
        first, last = start // self.piece_length, (start + length - 1) // self.piece_length
        mask = (1 << (last - first + 1)) - 1
        return (self.bitfield >> (_width(self.pieces) - 1 - last)) & mask == mask


NOTHING = Status(0, 1, 0, 0, 0, 0, 0)


def _width(pieces: int) -> int:
    return -(-pieces // 8) * 8


def all_pieces(pieces: int) -> int:
    """The bitfield of a member that has everything."""
    return ((1 << pieces) - 1) << (_width(pieces) - pieces)


def wants_mirrors(status: Status, held_by_peers: int, asking: bool, starved: bool) -> bool:
    """Whether to fetch from the mirrors, too."""
    everything = all_pieces(status.pieces)
    if not everything:
        return asking
    if is_complete(status):
        return False
    if starved:
        return True
    # Once let go they are asked again for want only: what a member holds does not vanish because it was told late.
    return asking and (status.bitfield | held_by_peers) & everything != everything


def is_complete(status: Status) -> bool:
    return bool(status.pieces) and status.bitfield == all_pieces(status.pieces)


class Swarm:
    """aria2c over one torrent in ``folder``, from its start until :meth:`stop`."""

    def __init__(
        self,
        folder: str,
        metainfo: bytes,
        trackers: t.Sequence[str],
        web_seeds: t.Sequence[str],
        ca_path: str | None = None,
        stall_timeout: float = 5.0,
    ) -> None:
        self.path = os.path.join(folder, WIRE_FILE)
        self.status = NOTHING
        self.error = ""
        self._stall_timeout = stall_timeout
        self._web_seeds = list(web_seeds)
        self._asking = True
        self._changed = threading.Condition()
        self._stopping = False
        self._fed_at = self._grew_at = time.monotonic()
        self._aria = Aria(
            folder, [f"--bt-tracker={','.join(trackers)}", *([f"--ca-certificate={ca_path}"] if ca_path else [])]
        )
        try:
            self._gid = self._aria.add_torrent(metainfo, self._web_seeds)
        except BaseException:
            self._aria.stop()
            raise
        self._watcher = threading.Thread(target=self._watch, daemon=True)
        self._watcher.start()

    def wait(self, seconds: float) -> None:
        """Until something may have arrived."""
        with self._changed:
            if not self._stopping and not self.error:
                self._changed.wait(seconds)

    @property
    def stalled(self) -> bool:
        """Whether for a good while nothing to speak of came, from members and mirrors alike, or only wrong bytes."""
        now = time.monotonic()
        waited = max((now - self._fed_at) / 3, (now - self._grew_at) / 6)
        return bool(self.error) or waited > self._stall_timeout

    def stop(self) -> None:
        with self._changed:
            self._stopping = True
            self._changed.notify_all()
        self._watcher.join()
        self._aria.stop()

    def _watch(self) -> None:
        while True:
            try:
                self._look()
            except (RackError, OSError, ValueError, KeyError) as exc:
                self.error = str(exc) if self._aria.running else "aria2c has ended"
            with self._changed:
                self._changed.notify_all()
                if self.error or self._stopping or self._changed.wait_for(lambda: self._stopping, _POLL):
                    return

    def _look(self) -> None:
        keys = ["numPieces", "pieceLength", "bitfield", "completedLength", "uploadLength", "downloadSpeed"]
        value = self._aria.call("aria2.tellStatus", self._gid, [*keys, "connections", "status", "errorMessage"])
        if value["status"] not in ("active", "waiting", "complete"):
            raise RackError(f"aria2c: {value.get('errorMessage') or value['status']}", code="bittorrent")
        counts = (int(value[key]) for key in ("completedLength", "uploadLength", "downloadSpeed", "connections"))
        pieces, before = int(value["numPieces"]), self.status.bitfield
        self.status = Status(pieces, int(value["pieceLength"]), int(value.get("bitfield") or "0", 16), *counts)
        now = time.monotonic()
        if self.status.speed >= _FLOOR:
            self._fed_at = now
        # A torrent of other bytes than the members have is fetched again and again.
        if self.status.bitfield != before:
            self._grew_at = now
        starved = now - self._fed_at > self._stall_timeout
        wanted = wants_mirrors(self.status, self._held_by_peers(), self._asking, starved)
        if wanted != self._asking:
            urls: tuple[list[str], list[str]] = ([], self._web_seeds) if wanted else (self._web_seeds, [])
            self._aria.call("aria2.changeUri", self._gid, 1, *urls)
            self._asking = wanted

    def _held_by_peers(self) -> int:
        held = 0
        for peer in self._aria.call("aria2.getPeers", self._gid):
            held |= int(peer.get("bitfield") or "0", 16)
        return held
