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

from . import disks, efi, finish, gpt, probe, seed
from .manifest import (
    MANIFEST_FILE,
    MAX_MANIFEST,
    SIGNATURE_FILE,
    Manifest,
    digest_of,
    is_digest,
    parse,
    require_digest,
    require_name,
)
from .mirrors import NoMirrors, Pool
from .signature import Verification, public_key_pem
from .target import Target, buffer
from .write import VerifyError, Writer

MARKER = "/etc/h200-rack/ramdisk"
_EDGE = 1 << 20
_BACKUP_ROOM = 1 << 20


class Request(t.NamedTuple):
    mirrors: tuple[str, ...]
    image: str
    disk: dict[str, t.Any]
    digest: str | None = None
    public_key: str = "/etc/h200-rack/image.pub"
    ca_path: str | None = None
    node: str | None = None
    allow_overwrite: bool = False
    require_ramdisk: bool = True
    verify: str = "sample"
    seed: dict[str, t.Any] | None = None
    boot_order: str = "network_first"
    finish: str = "none"
    timeout: float = 3600
    stall_timeout: float = 5
    progress_path: str | None = None


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
    _check(request)
    by_file = "path" in request.disk and os.path.isfile(str(request.disk["path"]))
    lsblk = None if by_file else probe.Lsblk()
    deadline = Deadline(request.timeout)
    pool = Pool(request.mirrors, deadline, request.stall_timeout, request.ca_path)
    digest = request.digest or _current_digest(pool, request.image)
    manifest, verification = _manifest(pool, request, digest)
    try:
        found = [probe.file_as_disk(str(request.disk["path"]))] if lsblk is None else lsblk.disks()
        disk = disks.select(found, request.disk)
    finally:
        verification.finish()
    _require_fit(disk, manifest, request)
    with Target(disk.path, writable=not check_mode) as target:
        work = Deployment(request, digest, manifest, disk, target, pool)
        done = work.run(check_mode)
    # Only now: while the disk is held, nothing on it can be mounted, and a kernel to start is on it.
    return done.result if check_mode else leave(request, manifest, done)


def _check(request: Request) -> None:
    require_name(request.image, "image")
    if request.digest is not None:
        require_digest(request.digest, "digest")
    public_key_pem(request.public_key)
    disks.check_hints(request.disk)
    if request.seed is not None:
        seed.check(request.seed)
    if request.require_ramdisk:
        require_ramdisk(request.node)


def require_ramdisk(node: str | None, marker: str = MARKER, cmdline: str = "/proc/cmdline") -> None:
    """Refuse to touch a disk on a machine that is not running the ramdisk, or is another node than meant."""
    if not os.path.exists(marker):
        raise InvalidInput(f"this machine does not run the ramdisk ({marker} is missing); no disk was touched")
    if node is not None:
        with open(cmdline, encoding="utf-8", errors="replace") as handle:
            names = [word[10:] for word in handle.read().split() if word.startswith("rack.node=")]
        if names != [node]:
            raise InvalidInput(
                f"node: this machine was booted as {', '.join(names) or 'nobody'}, not as {node}; no disk was touched"
            )


def _current_digest(pool: Pool, image: str) -> str:
    """The digest that the mirrors call current; they must agree, or the node would get what nobody chose."""
    said = {
        mirror: data.decode("ascii", "replace").strip()
        for mirror, data in pool.ask_each(f"/images/{image}/current", 200).items()
    }
    answers = {mirror: text for mirror, text in said.items() if is_digest(text)}
    if not answers:
        raise NoMirrors(f"image: no mirror says which version of {image} is current: {pool.complaints()}")
    if len(set(answers.values())) > 1:
        each = "; ".join(f"{mirror} says {digest[:12]}" for mirror, digest in answers.items())
        raise RackError(f"image: the mirrors disagree about the current {image}: {each}; give digest", code="stale")
    return next(iter(answers.values()))


def _manifest(pool: Pool, request: Request, digest: str) -> tuple[Manifest, Verification]:
    """The manifest of ``digest``, and the check of its signature, which is running."""
    folder = f"/images/{request.image}/{digest}"

    def is_it(data: bytes) -> None:
        if digest_of(data) != digest:
            raise RackError(f"its sha256 is {digest_of(data)[:12]}…, not the digest asked for")

    data = pool.get(f"{folder}/{MANIFEST_FILE}", MAX_MANIFEST, is_it)
    signature = pool.get(f"{folder}/{SIGNATURE_FILE}", 4096)
    what = f"{request.image} {digest[:12]}"
    verification = Verification(data, signature, request.public_key, what)
    try:
        manifest = parse(data, f"{what}: {MANIFEST_FILE}")
        if manifest.name != request.image:
            raise InvalidInput(f"image: the manifest {digest[:12]} is that of {manifest.name}, not of {request.image}")
    except RackError:
        verification.finish()
        raise
    return manifest, verification


def _require_fit(disk: disks.Disk, manifest: Manifest, request: Request) -> None:
    if disk.in_use:
        raise RackError(f"disk: {disk.describe()} is in use: {disk.in_use}", code="disk_busy", disk=disk.summary())
    if disk.unfit:
        raise RackError(f"disk: {disk.describe()} cannot be a root disk", code="disk_unfit", disk=disk.summary())
    is_file = disk.model == "regular file"
    if disk.sector_size != manifest.sector_size and not is_file:
        raise RackError(
            f"disk: {disk.describe()} has sectors of {disk.sector_size} bytes, the image is made for "
            f"{manifest.sector_size}; format the namespace for the latter or publish an image for the former",
            code="sector_size",
            disk=disk.summary(),
        )
    needed = manifest.minimum_disk
    if request.seed is not None:
        needed = max(needed, manifest.raw_size + seed.SIZE + _BACKUP_ROOM)
    if disk.size < needed:
        raise RackError(
            f"disk: {disk.describe()} is too small: the image needs {needed} bytes, the disk has {disk.size}",
            code="disk_too_small",
            disk=disk.summary(),
        )


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
        self._writer = Writer(pool, digest, manifest, target, self._report)
        self._marks: dict[str, float] = {}

    def run(self, check_mode: bool) -> Done:
        self._begin("first_chunk")
        layout = self._layout(self._writer.first_chunk())
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
        if self._disk.content and not compare:
            target.discard()
        # From here until the head is back, the disk has no partition table: it does not boot, and a second run
        # takes it for an empty one.
        self._erase_edges()
        self._begin("write")
        writer.write_rest(compare)
        seeded = seeding.result() if seeding else None
        if seeded and layout.seed_offset is not None:
            self._put(layout.seed_offset, seeded.image)
        if layout.backup:
            self._put(layout.backup_offset, layout.backup)
        target.sync()
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
        }


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
