# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How an image's chunks come to the node: by HTTP, or by BitTorrent where everything for it is there. Private."""

from __future__ import annotations

import contextlib
import typing as t

from ansible_collections.h200.rack.plugins.module_utils._common.errors import InvalidInput, RackError

from . import disks, scratch, tools, torrent
from .manifest import WIRE_FILE, Manifest
from .mirrors import Pool
from .source import FromMirrors, FromSwarm, Source
from .swarm import Swarm


class Wish(t.NamedTuple):
    """What was asked for."""

    transport: str
    trackers: tuple[str, ...] = ()
    scratch: dict[str, t.Any] | None = None
    allow_overwrite: bool = False
    stall_timeout: float = 5.0
    ca_path: str | None = None


class Transport(t.NamedTuple):
    """The source, and a report of it that is complete once the source was used."""

    source: Source
    report: dict[str, t.Any]


def check(wish: Wish) -> None:
    """Raise :class:`InvalidInput` for what cannot be meant."""
    if wish.transport == "bittorrent" and not wish.trackers:
        raise InvalidInput("trackers: bittorrent needs at least one")
    for url in wish.trackers:
        if not url.startswith(("http://", "https://", "udp://")) or "," in url:
            raise InvalidInput(f"trackers: {url!r} is not the URL of a tracker")
    if wish.scratch is not None:
        try:
            disks.check_hints(wish.scratch)
        except InvalidInput as exc:
            raise InvalidInput(f"scratch: {exc.msg}") from exc


@contextlib.contextmanager
def opened(
    wish: Wish,
    pool: Pool,
    folder: str,
    manifest: Manifest,
    root: str,
    list_disks: t.Callable[[], t.Sequence[disks.Disk]],
    mostly_there: bool,
) -> t.Iterator[Transport]:
    """The transport for the image in ``folder`` on the mirrors; ``root`` is the disk that it is written to.

    What speaks against BitTorrent is reported, and the image comes by HTTP.
    """
    mirrors = FromMirrors(pool, f"{folder}/{WIRE_FILE}", manifest.wire_size)
    if wish.transport == "http":
        yield Transport(mirrors, {"used": "http"})
        return
    with contextlib.ExitStack() as stack:
        try:
            if mostly_there:
                raise RackError("most of the image is on the disk already")
            metainfo = _metainfo(pool, folder)
            kind, place = _place(wish, manifest.wire_size, root, list_disks, stack)
            seeds = [f"{mirror.text}{folder}/{WIRE_FILE}" for mirror in pool.in_turn()]
            swarm = Swarm(place, metainfo, wish.trackers, seeds, wish.ca_path, wish.stall_timeout)
            stack.callback(swarm.stop)
            source = FromSwarm(swarm, mirrors)
            stack.callback(source.close)
        except (RackError, OSError) as exc:
            stack.close()
            yield Transport(mirrors, {"used": "http", "reason": getattr(exc, "msg", str(exc))})
            return
        report: dict[str, t.Any] = {"used": "bittorrent", "pieces": kind}
        yield Transport(source, report)
        status = swarm.status
        report.update(swarm_bytes=source.bytes, uploaded_bytes=status.uploaded, peers=status.peers, error=swarm.error)


def _metainfo(pool: Pool, folder: str) -> bytes:
    if not tools.available("aria2c"):
        raise RackError("aria2c is not installed here")
    for data in pool.ask_each(f"{folder}/{torrent.TORRENT_FILE}", torrent.MAX_TORRENT).values():
        return data
    raise RackError(f"no mirror has {torrent.TORRENT_FILE} of this image")


def _place(
    wish: Wish,
    size: int,
    root: str,
    list_disks: t.Callable[[], t.Sequence[disks.Disk]],
    stack: contextlib.ExitStack,
) -> tuple[str, str]:
    """Memory or disk, and the folder there, which lasts as long as ``stack``."""
    scratch.sweep()
    available = scratch.available_memory()
    if scratch.fits_memory(size, available):
        return "memory", stack.enter_context(scratch.in_memory(size))
    if wish.scratch is None:
        raise RackError(
            f"the image of {size >> 20} MiB does not fit into {available >> 20} MiB of free memory, of which "
            f"{scratch.RESERVE >> 20} MiB are for other things, and there is no scratch disk"
        )
    disk = scratch.choose_disk(list_disks(), wish.scratch, root, size, wish.allow_overwrite)
    return "disk", stack.enter_context(scratch.on_disk(disk))
