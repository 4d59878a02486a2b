# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Everything ``image_write`` does, in order. Private to h200.rack.

Nothing on a disk is changed before the manifest's signature is checked, exactly one disk is found and it is fit.
"""

from __future__ import annotations

import json
import os
import typing as t

from ansible_collections.h200.rack.plugins.module_utils._common.deadline import Deadline
from ansible_collections.h200.rack.plugins.module_utils._common.errors import InvalidInput, RackError

from . import disks, efi, finish, gpt, probe, seed, transport
from .manifest import WIRE_FILE, Manifest
from .mirrors import Pool
from .request import Request, check, current_digest, fetch_manifest, require_fit
from .source import FromMirrors
from .target import Target, buffer
from .write import VerifyError, Writer

_EDGE = 1 << 20


class Done(t.NamedTuple):
    """The result of a deployment so far, the disk, and the partition table that it now has."""

    result: dict[str, t.Any]
    is_block: bool
    table: gpt.Table | None


def leave(request: Request, manifest: Manifest, done: Done) -> dict[str, t.Any]:
    """The boot entry and the way out of the ramdisk; a run that was cut off before them is completed by the next."""
    result, path = done.result, done.result["disk"]["path"]
    if not done.is_block:
        return result
    entry, entry_changed = efi.install(path, done.table, manifest, request.boot_order)
    left = finish.schedule(request.finish, path, done.table)
    changed = result["changed"] or entry_changed or left["method"] in ("reboot", "kexec")
    return {**result, "changed": changed, "boot_entry": entry, "finish": left}


class Layout(t.NamedTuple):
    """The bytes of the disk that do not come from the image as they are."""

    head: bytes
    table: gpt.Table | None
    backup: bytes
    backup_offset: int
    seed_offset: int | None


def deploy(request: Request, check_mode: bool = False) -> dict[str, t.Any]:
    """Write the image and what goes with it; returns the module's result. In check mode only the plan."""
    check(request)
    by_file = "path" in request.disk and os.path.isfile(str(request.disk["path"]))
    lsblk = None if by_file else probe.Lsblk()
    deadline = Deadline(request.timeout)
    pool = Pool(request.mirrors, deadline, request.stall_timeout, request.ca_path, request.fallback_mirrors)
    digest = request.digest or current_digest(pool, request.image)
    manifest, verification = fetch_manifest(pool, request, digest)
    try:
        found = [probe.file_as_disk(str(request.disk["path"]))] if lsblk is None else lsblk.disks()
        disk = disks.select(found, request.disk)
    finally:
        verification.finish()
    require_fit(disk, manifest, request)
    with Target(disk.path, writable=not check_mode) as target:
        work = Deployment(request, digest, manifest, disk, target, pool)
        done = work.run(check_mode)
    # Only now: while the disk is held, nothing on it can be mounted, and a kernel to start is on it.
    return done.result if check_mode else leave(request, manifest, done)


class Deployment:
    """One run on one disk."""

    def __init__(
        self, request: Request, digest: str, manifest: Manifest, disk: disks.Disk, target: Target, pool: Pool
    ) -> None:
        self._request = request
        self._digest = digest
        self._manifest = manifest
        self._disk = disk
        self._target = target
        self._pool = pool
        self._stage = "starting"
        self._folder = f"/images/{manifest.name}/{digest}"
        self._mirrors = FromMirrors(pool, f"{self._folder}/{WIRE_FILE}", manifest.wire_size)
        self._writer = Writer(pool, manifest, target, self._report)
        self._transport: dict[str, t.Any] = {"used": "none"}
        self._marks: dict[str, float] = {}

    def run(self, check_mode: bool) -> Done:
        self._begin("first_chunk")
        layout = self._layout(self._writer.first_chunk(self._mirrors))
        content = self._disk.content
        if content:
            self._begin("compare")
            host_keys = self._already(layout)
            if host_keys is not None:
                return self._done(layout, self._result(changed=False, already=True, host_keys=host_keys))
            if not self._request.allow_overwrite:
                raise RackError(
                    f"disk: {self._disk.describe()} holds {'; '.join(content)}; it is overwritten only when "
                    "allow_overwrite is true for this node",
                    code="foreign_content",
                    disk=self._disk.summary(),
                )
        if check_mode:
            return self._done(layout, self._result(changed=True, already=False, host_keys=[]))
        return self._done(layout, self._write(layout))

    def _done(self, layout: Layout, result: dict[str, t.Any]) -> Done:
        return Done(result, self._target.is_block, layout.table)

    def _layout(self, first: bytes) -> Layout:
        """The first chunk with this disk's partition table, and where its copy and the seed go."""
        table = gpt.parse(first)
        if table is None:
            if self._request.seed is not None:
                raise InvalidInput("seed: the image has no GUID partition table, so there is no place for a seed")
            return Layout(first, None, b"", 0, None)
        size, seed_offset = self._target.size, None
        if self._request.seed is not None:
            guid = seed.partition_guid(self._request.seed, self._digest)
            table = gpt.add_at_end(table, size, seed.SIZE, seed.PARTITION_NAME, guid)
            seed_offset = table.partitions[-1].first_lba * table.sector_size
        head, backup, backup_offset = gpt.apply(first, table, size)
        return Layout(head, table, backup, backup_offset, seed_offset)

    def _already(self, layout: Layout) -> list[str] | None:
        """The host keys in the seed when the disk holds exactly what would be written, else None."""
        for offset, data in ((0, layout.head), (layout.backup_offset, layout.backup)):
            if not self._holds(offset, data):
                return None
        keys: list[str] = []
        if layout.seed_offset is not None:
            key = seed.public_key_on(self._disk.path, layout.seed_offset)
            if key is None:
                return None
            keys = [key]
        return keys if self._writer.holds_all() else None

    def _holds(self, offset: int, data: bytes) -> bool:
        view = buffer(len(data) or 1)[: len(data)]
        self._target.read(offset, view)
        return view == data

    def _put(self, offset: int, data: bytes) -> None:
        view = buffer(len(data) or 1)[: len(data)]
        view[:] = data
        self._target.write(offset, view)

    def _write(self, layout: Layout) -> dict[str, t.Any]:
        request, target, writer = self._request, self._target, self._writer
        seeding = _Background(lambda: seed.build(request.seed, self._digest)) if request.seed is not None else None
        self._begin("prepare")
        compare = writer.looks_like_ours()
        # From here until the head is back, the disk has no partition table: it does not boot, and a second run
        # takes it for an empty one.
        self._erase_edges()
        if not compare and target.discard():
            # What a discarded range reads as is the disk's choice.
            self._erase_edges()
        self._begin("write")
        with transport.opened(
            request.wish, self._pool, self._folder, self._manifest, target.path, _disks_here, compare
        ) as opened:
            self._transport = opened.report
            writer.write_rest(opened.source, compare)
            seeded = seeding.result() if seeding else None
            if seeded and layout.seed_offset is not None:
                self._put(layout.seed_offset, seeded.image)
            if layout.backup:
                self._put(layout.backup_offset, layout.backup)
            target.sync()
            # Still a member of the swarm meanwhile: others may need what is here.
            self._verify(layout, seeded)
        self._begin("finish")
        self._put(0, layout.head)
        target.sync()
        if not self._holds(0, layout.head):
            self._erase_edges()
            raise VerifyError(f"{target.path}: the disk returns other bytes at 0")
        writer.counters.add(written=len(layout.head))
        partitions_seen = target.reread_partitions()
        result = self._result(True, False, [seeded.public_key] if seeded else [])
        result["partitions_reread"] = partitions_seen
        return result

    def _erase_edges(self) -> None:
        """Zeros where partition tables are: within the first chunk, and at the end of the disk."""
        size = self._target.size
        tail = max(0, size - _EDGE) // 4096 * 4096
        for offset, length in ((0, min(_EDGE, size, self._manifest.chunk_size)), (tail, size - tail)):
            self._target.zero(offset, length // 512 * 512)
        self._target.sync()
        self._target.reread_partitions()

    def _verify(self, layout: Layout, seeded: seed.Seed | None) -> None:
        if self._request.verify == "none":
            return
        self._begin("verify")
        writer = self._writer
        writer.verify(self._manifest.chunks[1:] if self._request.verify == "all" else writer.sample())
        for offset, data in ((layout.backup_offset, layout.backup), (layout.seed_offset, seeded and seeded.image)):
            if data and offset is not None and not self._holds(offset, data):
                raise VerifyError(f"{self._target.path}: the disk returns other bytes at {offset}")

    def _begin(self, stage: str) -> None:
        self._stage = stage
        self._marks[stage] = self._writer.counters.seconds
        self._report()

    def _stage_seconds(self) -> dict[str, float]:
        names, starts = list(self._marks), [*self._marks.values(), self._writer.counters.seconds]
        return {name: round(starts[index + 1] - starts[index], 3) for index, name in enumerate(names)}

    def _report(self) -> None:
        """Tell whoever looks how far the work is; losing a report harms nothing, so it is not synced."""
        path = self._request.progress_path
        if not path:
            return
        data = {"stage": self._stage, "image": self._manifest.name, "digest": self._digest}
        temporary = f"{path}.{os.getpid()}"
        with open(temporary, "w", encoding="ascii") as handle:
            json.dump({**data, **self._writer.counters.progress()}, handle)
        os.replace(temporary, path)

    def _result(self, changed: bool, already: bool, host_keys: list[str]) -> dict[str, t.Any]:
        counters, manifest = self._writer.counters, self._manifest
        seconds = counters.seconds
        return {
            "changed": changed,
            "already": already,
            "digest": self._digest,
            "version": manifest.version,
            "disk": self._disk.summary(),
            "overwrites": list(self._disk.content),
            "raw_size": manifest.raw_size,
            "written_bytes": counters.written,
            "skipped_bytes": counters.skipped,
            "unchanged_bytes": counters.unchanged,
            "fetched_bytes": counters.fetched,
            "verified_bytes": counters.verified,
            "mirrors_used": self._pool.used(),
            "seconds": round(seconds, 3),
            "stages": self._stage_seconds(),
            "throughput": int(manifest.raw_size / seconds) if seconds else 0,
            "host_keys": host_keys,
            "transport": self._transport,
        }


def _disks_here() -> list[disks.Disk]:
    return probe.Lsblk().disks()


class _Background:
    """One call in a thread of its own."""

    def __init__(self, call: t.Callable[[], t.Any]) -> None:
        import threading

        self._value: t.Any = None
        self._error: BaseException | None = None
        self._call = call
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._value = self._call()
        except BaseException as exc:
            self._error = exc

    def result(self) -> t.Any:
        self._thread.join()
        if self._error is not None:
            raise self._error
        return self._value


def diff(result: t.Mapping[str, t.Any]) -> dict[str, str]:
    """What is on the disk before and after, for diff mode."""
    disk = result["disk"]
    header = f"{disk['path']} (serial {disk['serial'] or 'unknown'})"
    image = f"image {result['digest']}\n"
    before = image if result["already"] else "".join(f"{line}\n" for line in result["overwrites"]) or "blank\n"
    return {"before_header": header, "after_header": header, "before": before, "after": image}
