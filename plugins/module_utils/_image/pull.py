# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Bring a mirror in step: fetch what it lacks from other mirrors, check all of it, switch ``current`` last.

Private to h200.rack. What is on its way stands in ``.pull-DIGEST`` beside the published folders, survives an
interrupted run and is continued by the next one; it gets its digest as a name only when every byte has been checked.
"""

from __future__ import annotations

import errno
import itertools
import os
import shutil
import typing as t

from ansible_collections.h200.rack.plugins.module_utils._common.atomic import write_atomic
from ansible_collections.h200.rack.plugins.module_utils._common.deadline import Deadline
from ansible_collections.h200.rack.plugins.module_utils._common.errors import InvalidInput, RackError

from . import ramdisk, store, torrent
from .fetch import CorruptChunk
from .manifest import (
    ARCHS,
    MANIFEST_FILE,
    MAX_MANIFEST,
    SIGNATURE_FILE,
    WIRE_FILE,
    Manifest,
    digest_of,
    is_digest,
    parse,
    parse_ramdisk,
    require_digest,
    require_name,
)
from .mirrors import NoMirrors, Pool
from .pull_files import fetch_file, fetch_frames
from .signature import public_key_pem, verify

_MAX_OVERLAY = 64 << 20
_RESERVE = 64 << 20


class Wanted(t.NamedTuple):
    """One published thing: ``kind`` image, ramdisk or overlay; ``name`` that of the image, or the architecture.

    One that is ``optional`` is better gone than damaged. ``current`` names the one that shall be the current one.
    """

    kind: str
    name: str
    digest: str | None
    current: bool = True
    optional: bool = False


class Request(t.NamedTuple):
    sources: tuple[str, ...]
    dest: str
    wanted: tuple[Wanted, ...]
    public_key: str | None = None
    ca_path: str | None = None
    recheck: bool = False
    make_current: bool = True
    keep: int = 3
    protect: tuple[str, ...] = ()
    timeout: float = 3600
    stall_timeout: float = 5
    lock_timeout: float = 600


class Item(t.NamedTuple):
    """What became of one wanted thing."""

    kind: str
    name: str
    digest: str
    state: str
    fetched_bytes: int


class Outcome(t.NamedTuple):
    changed: bool
    items: list[Item]
    removed: list[str]
    switched: list[str]


def pull(request: Request, check_mode: bool = False) -> Outcome:
    """Fetch what is wanted and not there, then name the current ones. One that fails does not stop the others."""
    root = store.require_root(request.dest)
    for wanted in request.wanted:
        _check(wanted)
    if request.public_key is not None:
        public_key_pem(request.public_key)
    puller = _Puller(request, root, check_mode)
    items, errors, switched, removed = [], [], [], []
    resolved: list[Wanted] = []
    for wanted in request.wanted:
        try:
            one = wanted._replace(digest=wanted.digest or _current(puller.pool(), wanted))
            resolved.append(one)
            items.append(puller.item(one))
        except RackError as exc:
            errors.append(exc)
            continue
        family = _family(root, one)
        if one.kind == "overlay" or not (request.make_current and one.current) or store.current(family) == one.digest:
            continue
        switched.append(f"{_folder(one)}/{store.CURRENT}")
        if not check_mode:
            store.switch(family, items[-1].digest)
    spared = (*request.protect, *(one.digest or "" for one in resolved if not one.optional))
    for family in dict.fromkeys(_family(root, one) for one in resolved if one.kind != "overlay"):
        removed += store.prune(family, request.keep, spared, check_mode)
    if errors:
        raise _all_of(errors)
    changed = bool(switched or removed) or any(item.state != "present" for item in items)
    return Outcome(changed, items, removed, switched)


def _all_of(errors: t.Sequence[RackError]) -> RackError:
    if len({exc.msg for exc in errors}) == 1:
        return errors[0]
    return RackError("; ".join(dict.fromkeys(exc.msg for exc in errors)), code=errors[0].code)


def _check(wanted: Wanted) -> None:
    if wanted.kind == "image":
        require_name(wanted.name, "images: name")
    elif wanted.kind == "ramdisk" and wanted.name not in ARCHS:
        raise InvalidInput(f"ramdisks: arch {wanted.name!r} is none of {', '.join(ARCHS)}")
    if wanted.digest is not None or wanted.kind == "overlay":
        require_digest(wanted.digest, f"{wanted.kind}s: digest")


def _folder(wanted: Wanted) -> str:
    return f"images/{wanted.name}" if wanted.kind == "image" else f"ramdisk/{wanted.name}"


def _family(root: str, wanted: Wanted) -> str:
    return os.path.join(root, *_folder(wanted).split("/"))


def _current(pool: Pool, wanted: Wanted) -> str:
    """What the first of the sources that answers calls current: sources stand in order of authority."""
    answers = pool.ask_each(f"/{_folder(wanted)}/{store.CURRENT}", 200)
    for data in answers.values():
        digest = data.decode("ascii", "replace").strip()
        if is_digest(digest):
            return digest
    raise NoMirrors(f"no source says which {_folder(wanted)} is current: {pool.complaints()}")


class _Puller:
    def __init__(self, request: Request, root: str, check_mode: bool) -> None:
        self._request = request
        self._root = root
        self._deadline = Deadline(request.timeout)
        self._check_mode = check_mode

    def pool(self) -> Pool:
        """The sources, all of them again for each thing: one that lacks this may have that."""
        if not self._request.sources:
            raise NoMirrors("sources: none is given, and not everything is there")
        return Pool(self._request.sources, self._deadline, self._request.stall_timeout, self._request.ca_path)

    def _each_alone(self) -> t.Iterator[Pool]:
        """Each source by itself, for a share of the time that is left."""
        sources = self._request.sources
        for source in sources if len(sources) > 1 else ():
            share = Deadline(self._deadline.remaining / (len(sources) + 1))
            yield Pool((source,), share, self._request.stall_timeout, self._request.ca_path)

    def item(self, wanted: Wanted) -> Item:
        digest = wanted.digest or ""
        try:
            state, count = self._get(wanted, digest)
        except OSError as exc:
            if exc.errno not in (errno.ENOSPC, errno.EDQUOT):
                raise
            raise RackError(f"dest: {self._root} has no room for {_folder(wanted)}", code="no_space") from exc
        return Item(wanted.kind, wanted.name, digest, state, count)

    def _get(self, wanted: Wanted, digest: str) -> tuple[str, int]:
        try:
            return self._overlay(digest) if wanted.kind == "overlay" else self._published(wanted, digest)
        except RackError as exc:
            needed = not wanted.optional or digest in self._request.protect
            # Sources that do not answer may still have it; only those that do can say that they have not.
            if needed or exc.code != NoMirrors.code or self._deadline.expired:
                raise
            self._discard(wanted, digest)
            return "removed", 0

    def _discard(self, wanted: Wanted, digest: str) -> None:
        """What is damaged and cannot be had anew leaves its address."""
        if wanted.kind == "overlay":
            os.unlink(os.path.join(self._root, "ramdisk", "overlay", f"{digest}.cpio"))
            return
        family = _family(self._root, wanted)
        with store.publishing(family, self._request.lock_timeout):
            doomed = os.path.join(family, f".new-{digest}")
            os.rename(os.path.join(family, digest), doomed)
            shutil.rmtree(doomed)

    def _overlay(self, digest: str) -> tuple[str, int]:
        folder = os.path.join(self._root, "ramdisk", "overlay")
        path = os.path.join(folder, f"{digest}.cpio")
        there = os.path.isfile(path)
        if there and ramdisk.describe(path)["sha256"] == digest:
            return "present", 0
        if self._check_mode:
            return "missing", 0
        os.makedirs(folder, exist_ok=True)
        data = self.pool().get(f"/ramdisk/overlay/{digest}.cpio", _MAX_OVERLAY, _must_be(digest))
        write_atomic(path, data)
        return "repaired" if there else "fetched", len(data)

    def _published(self, wanted: Wanted, digest: str) -> tuple[str, int]:
        family = _family(self._root, wanted)
        final = os.path.join(family, digest)
        if self._is_complete(wanted, final, digest):
            if wanted.kind == "image" and not self._check_mode:
                self._ensure_torrent(final)
            return "present", 0
        if self._check_mode:
            return "missing", 0
        with store.publishing(family, self._request.lock_timeout):
            there = os.path.isdir(final)
            staged = os.path.join(family, f".pull-{digest}")
            for entry in os.listdir(family):
                if entry.startswith(".pull-") and entry != os.path.basename(staged):
                    shutil.rmtree(os.path.join(family, entry))
            os.makedirs(staged, exist_ok=True)
            os.chmod(staged, 0o755)
            if there:
                self._keep_what_is_good(wanted, final, staged)
            count = self._fill(wanted, staged, digest)
            if there:
                # A damaged folder leaves the address before the sound one takes it: never half of each.
                doomed = os.path.join(family, f".new-{digest}")
                os.rename(final, doomed)
                store.commit(staged, family, digest)
                shutil.rmtree(doomed)
            else:
                store.commit(staged, family, digest)
        return "repaired" if there else "fetched", count

    def _is_complete(self, wanted: Wanted, folder: str, digest: str) -> bool:
        """Whether the folder has its manifest, its signature, and files of the right size, or content if asked."""
        if not store.has(os.path.dirname(folder), digest):
            return False
        if self._request.public_key is not None and not os.path.isfile(os.path.join(folder, SIGNATURE_FILE)):
            return False
        with open(os.path.join(folder, MANIFEST_FILE), "rb") as handle:
            files = _files(wanted, handle.read())
        for name, (size, sha256) in files.items():
            path = os.path.join(folder, name)
            if not os.path.isfile(path) or os.stat(path).st_size != size:
                return False
            if self._request.recheck and ramdisk.describe(path)["sha256"] != sha256:
                return False
        return not self._request.recheck or self._is_signed(folder)

    def _is_signed(self, folder: str) -> bool:
        if self._request.public_key is None:
            return True
        content = []
        for name in (MANIFEST_FILE, SIGNATURE_FILE):
            with open(os.path.join(folder, name), "rb") as handle:
                content.append(handle.read())
        try:
            verify(content[0], content[1], self._request.public_key, folder)
        except RackError:
            return False
        return True

    def _keep_what_is_good(self, wanted: Wanted, final: str, staged: str) -> None:
        """Start a repair from a copy of the damaged file: only the chunks that are wrong are fetched again."""
        source, copy = os.path.join(final, WIRE_FILE), os.path.join(staged, WIRE_FILE)
        if wanted.kind == "image" and os.path.isfile(source) and not os.path.exists(copy):
            shutil.copyfile(source, copy)

    def _fill(self, wanted: Wanted, staged: str, digest: str) -> int:
        """Make ``staged`` complete; returns the bytes fetched."""
        base = f"/{_folder(wanted)}/{digest}"
        pool = self.pool()
        data = pool.get(f"{base}/{MANIFEST_FILE}", MAX_MANIFEST, _must_be(digest))
        files = _files(wanted, data)
        if self._request.public_key is not None:
            signature = self._signature(pool, base, data, self._request.public_key)
            _store(os.path.join(staged, SIGNATURE_FILE), signature)
        self._require_space(staged, sum(size for size, _sha256 in files.values()))
        count = 0
        for name, (size, sha256) in files.items():
            path = os.path.join(staged, name)
            if wanted.kind == "image":
                count += fetch_frames(pool, f"{base}/{name}", path, parse(data))
            else:
                pools = itertools.chain([self.pool()], self._each_alone())
                count += fetch_file(pools, f"{base}/{name}", path, size, sha256)
            if ramdisk.describe(path)["sha256"] != sha256:
                os.unlink(path)
                raise CorruptChunk(f"{base}/{name}: what the sources gave has another sha256 than the manifest says")
        _store(os.path.join(staged, MANIFEST_FILE), data)
        if wanted.kind == "image":
            self._ensure_torrent(staged)
        return count

    def _ensure_torrent(self, folder: str) -> None:
        """The metainfo of an image is made here: it follows from what has been verified."""

        def load() -> Manifest:
            with open(os.path.join(folder, MANIFEST_FILE), "rb") as handle:
                return parse(handle.read())

        torrent.ensure(folder, load)

    def _signature(self, pool: Pool, base: str, data: bytes, key: str) -> bytes:
        """A good signature, from whichever source has one."""
        bad: list[RackError] = []

        def check(signature: bytes) -> None:
            try:
                verify(data, signature, key, base)
            except RackError as exc:
                bad.append(exc)
                raise

        try:
            return pool.get(f"{base}/{SIGNATURE_FILE}", 4096, check)
        except NoMirrors as exc:
            if bad:
                raise bad[0] from exc
            raise

    def _require_space(self, staged: str, needed: int) -> None:
        have = sum(os.stat(os.path.join(staged, name)).st_blocks * 512 for name in os.listdir(staged))
        state = os.statvfs(staged)
        free = state.f_bavail * state.f_frsize
        if free < needed - have + _RESERVE:
            raise RackError(
                f"dest: {self._root} has {free >> 20} MiB free, {(needed - have + _RESERVE) >> 20} MiB are needed",
                code="no_space",
            )


def _files(wanted: Wanted, data: bytes) -> dict[str, tuple[int, str]]:
    """Size and sha256 of each file that the manifest names."""
    if wanted.kind == "image":
        manifest = parse(data)
        if manifest.name != wanted.name:
            raise InvalidInput(f"images: the manifest is that of {manifest.name}, not of {wanted.name}")
        return {WIRE_FILE: (manifest.wire_size, manifest.wire_sha256)}
    value = parse_ramdisk(data)
    if value["arch"] != wanted.name:
        raise InvalidInput(f"ramdisks: the manifest is for {value['arch']}, not for {wanted.name}")
    return {name: (fields["size"], fields["sha256"]) for name, fields in value["files"].items()}


def _must_be(digest: str) -> t.Callable[[bytes], None]:
    def check(data: bytes) -> None:
        if digest_of(data) != digest:
            raise RackError(f"its sha256 is {digest_of(data)[:12]}…, not the digest asked for")

    return check


def _store(path: str, data: bytes) -> None:
    with open(path, "wb") as handle:
        handle.write(data)
