# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Publish a disk image: one pass computes every digest and compresses on all cores. Private to h200.rack."""

from __future__ import annotations

import collections
import concurrent.futures
import contextlib
import errno
import hashlib
import json
import os
import tempfile
import typing as t

from ansible_collections.h200.rack.plugins.module_utils._common.errors import InvalidInput, RackError

from . import gpt, inspect, store, tools, torrent
from .manifest import (
    MANIFEST_FILE,
    MAX_CHUNK,
    MAX_RAW,
    MIN_CHUNK,
    SIGNATURE_FILE,
    WIRE_FILE,
    Chunk,
    Manifest,
    digest_of,
    dump,
    parse,
    require_digest,
    require_name,
)
from .signature import sign

try:
    import zstandard

    ZSTANDARD_ERROR = None
except ImportError as exc:
    zstandard = None
    ZSTANDARD_ERROR = exc

_HEAD = 1 << 20
_CONVERTED = ("qcow2", "vmdk", "vdi", "vpc", "vhdx")


class Request(t.NamedTuple):
    """What is to be published, and how."""

    source: str
    name: str
    version: str
    dest: str
    arch: str = "x86_64"
    boot: str = "auto"
    chunk_size: int = 4 * 1024 * 1024
    level: int = 3
    signing_key: str | None = None
    minimum_disk: int | None = None
    contents: dict[str, str] = {}
    keep: int = 3
    protect: tuple[str, ...] = ()
    make_current: bool = True
    lock_timeout: float = 600


class Outcome(t.NamedTuple):
    changed: bool
    digest: str | None
    manifest: Manifest | None
    removed: list[str]
    diff: dict[str, str]


def publish(request: Request, check_mode: bool = False) -> Outcome:
    """Make the image of ``request`` available under its digest and, unless told otherwise, the current one."""
    _check(request)
    family = os.path.join(store.require_root(request.dest), "images", request.name)
    with _as_raw(request) as raw_path:
        facts = _facts(request, raw_path)
        if check_mode:
            return _plan(request, family, raw_path, facts)
        with store.publishing(family, request.lock_timeout):
            known = _same_as_current(family, raw_path, facts)
            if known and _signature_as_wanted(request, family, known):
                manifest = _load(family, known)
                made = torrent.ensure(os.path.join(family, known), lambda: manifest)
                outcome = _outcome(request, family, known, manifest, known)
                return outcome._replace(changed=outcome.changed or made)
            return _publish(request, family, raw_path, facts)


def _check(request: Request) -> None:
    require_name(request.name, "name")
    require_name(request.version, "version")
    for digest in request.protect:
        require_digest(digest, "protect")
    if not MIN_CHUNK <= request.chunk_size <= MAX_CHUNK or request.chunk_size & (request.chunk_size - 1):
        raise InvalidInput(f"chunk_size: {request.chunk_size} is no power of two from {MIN_CHUNK} to {MAX_CHUNK}")
    if request.chunk_size < _HEAD:
        # The first chunk must hold the partition table, which the writer completes before it writes it last.
        raise InvalidInput(f"chunk_size: {request.chunk_size} is less than {_HEAD}")
    if not 1 <= request.level <= 19:
        raise InvalidInput(f"compression_level: {request.level} is not from 1 to 19")
    if not os.path.isfile(request.source):
        raise InvalidInput(f"source: {request.source} is not a file")
    if request.signing_key and not os.path.isfile(request.signing_key):
        raise InvalidInput(f"signing_key: {request.signing_key} is not a file")


@contextlib.contextmanager
def _as_raw(request: Request) -> t.Iterator[str]:
    """The path of the image's raw bytes; other formats are converted beside the destination."""
    kind = _format(request.source)
    if kind == "raw":
        yield request.source
        return
    with tempfile.TemporaryDirectory(prefix=".convert-", dir=request.dest) as folder:
        path = os.path.join(folder, "raw")
        tools.run(["qemu-img", "convert", "-f", kind, "-O", "raw", request.source, path], "source")
        yield path


def _format(source: str) -> str:
    """The format by its first bytes, never by its suffix; what qemu-img does not know is raw."""
    with open(source, "rb") as handle:
        magic = handle.read(8)
    if magic[:4] in (b"QFI\xfb", b"KDMV", b"cone") or magic == b"vhdxfile" or magic[:4] == b"# Di":
        if not tools.available("qemu-img"):
            raise RackError(
                "source: qemu-img is not installed; it is needed for anything but raw images", code="missing"
            )
        info = json.loads(tools.run(["qemu-img", "info", "--output=json", source], "source"))
        kind = info.get("format", "raw")
        if info.get("backing-filename"):
            raise InvalidInput(f"source: {source} has a backing file; publish a complete image")
        return kind if kind in _CONVERTED else "raw"
    if magic[:4] == b"\x28\xb5\x2f\xfd" or magic[:2] == b"\x1f\x8b" or magic[:6] == b"\xfd7zXZ\0":
        raise InvalidInput(f"source: {source} is compressed; unpack it first")
    return "raw"


class _Facts(t.NamedTuple):
    """The manifest's fields that do not come from the chunks."""

    raw_size: int
    sector_size: int
    fields: dict[str, t.Any]


def _facts(request: Request, raw_path: str) -> _Facts:
    size = os.stat(raw_path).st_size
    with open(raw_path, "rb") as handle:
        head = handle.read(_HEAD)
    sector = gpt.detect_sector_size(head) or 512
    if not 0 < size <= MAX_RAW or size % sector:
        raise InvalidInput(f"source: {size} bytes are not a disk of {sector}-byte sectors")
    found = inspect.contents(raw_path, head)
    found.update(request.contents)
    inspect.require_same_driver(found)
    minimum = request.minimum_disk if request.minimum_disk is not None else size
    if minimum < size:
        raise InvalidInput(f"minimum_disk: {minimum} is less than the image's {size} bytes")
    return _Facts(
        size,
        sector,
        {
            "name": request.name,
            "version": request.version,
            "arch": request.arch,
            "boot": inspect.boot_of(head) if request.boot == "auto" else request.boot,
            "sector_size": sector,
            "raw_size": size,
            "chunk_size": request.chunk_size,
            "minimum_disk": minimum,
            "contents": found,
        },
    )


def _load(family: str, digest: str) -> Manifest:
    path = os.path.join(family, digest, MANIFEST_FILE)
    with open(path, "rb") as handle:
        return parse(handle.read(), path)


def _same_as_current(family: str, raw_path: str, facts: _Facts) -> str | None:
    """The current digest when it is exactly this image, found without compressing: stops at the first difference."""
    digest = store.current(family)
    if digest is None or not store.has(family, digest):
        return None
    manifest = _load(family, digest)
    if any(getattr(manifest, key) != value for key, value in facts.fields.items()):
        return None
    with open(raw_path, "rb") as handle:
        for chunk in manifest.chunks:
            if hashlib.sha256(handle.read(chunk.raw_length)).hexdigest() != chunk.sha256:
                return None
    return digest


def _signature_as_wanted(request: Request, family: str, digest: str) -> bool:
    folder = os.path.join(family, digest)
    if not request.signing_key:
        return True
    with open(os.path.join(folder, MANIFEST_FILE), "rb") as handle:
        wanted = sign(handle.read(), request.signing_key)
    try:
        with open(os.path.join(folder, SIGNATURE_FILE), "rb") as handle:
            return handle.read() == wanted
    except FileNotFoundError:
        return False


def _plan(request: Request, family: str, raw_path: str, facts: _Facts) -> Outcome:
    known = _same_as_current(family, raw_path, facts) if os.path.isdir(family) else None
    if known and _signature_as_wanted(request, family, known):
        outcome = _outcome(request, family, known, _load(family, known), known, check_mode=True)
        return outcome._replace(changed=outcome.changed or torrent.missing(os.path.join(family, known)))
    return Outcome(True, None, None, [], store.diff(family, store.current(family), "a new digest", []))


def _outcome(
    request: Request, family: str, digest: str, manifest: Manifest, before: str | None, check_mode: bool = False
) -> Outcome:
    removed = store.prune(family, request.keep, request.protect, check_mode)
    after = store.current(family)
    return Outcome(
        bool(removed) or before != after, digest, manifest, removed, store.diff(family, before, after, removed)
    )


def _publish(request: Request, family: str, raw_path: str, facts: _Facts) -> Outcome:
    before = store.current(family)
    try:
        with store.staging(family) as folder:
            manifest, metainfo = _compress(raw_path, os.path.join(folder, WIRE_FILE), facts, request.level)
            for name, content in torrent.files(metainfo).items():
                _write(os.path.join(folder, name), content)
            data = dump(manifest)
            digest = digest_of(data)
            _write(os.path.join(folder, MANIFEST_FILE), data)
            if request.signing_key:
                _write(os.path.join(folder, SIGNATURE_FILE), sign(data, request.signing_key))
            changed = _settle(request, folder, family, digest)
    except OSError as exc:
        if exc.errno in (errno.ENOSPC, errno.EDQUOT):
            raise RackError(
                f"dest: {request.dest} has no room for the image; nothing was published", code="no_space"
            ) from exc
        raise
    if request.make_current and store.current(family) != digest:
        store.switch(family, digest)
    outcome = _outcome(request, family, digest, manifest, before)
    return outcome._replace(changed=outcome.changed or changed)


def _settle(request: Request, folder: str, family: str, digest: str) -> bool:
    """Put the staged image under its digest; when that is there already, only a missing signature is added."""
    final = os.path.join(family, digest)
    if not store.has(family, digest):
        store.commit(folder, family, digest)
        return True
    made = torrent.ensure(final, lambda: _load(family, digest))
    if request.signing_key and not _signature_as_wanted(request, family, digest):
        os.chmod(os.path.join(folder, SIGNATURE_FILE), 0o644)
        os.replace(os.path.join(folder, SIGNATURE_FILE), os.path.join(final, SIGNATURE_FILE))
        return True
    return made


def _write(path: str, data: bytes) -> None:
    with open(path, "wb") as handle:
        handle.write(data)


class _Piece(t.NamedTuple):
    length: int
    sha256: str
    zero: bool
    wire: bytes


def _compress(raw_path: str, wire_path: str, facts: _Facts, level: int) -> tuple[Manifest, torrent.Metainfo]:
    """Write the frames of all chunks to ``wire_path`` and return the manifest, and what a swarm knows the file by.

    The digest over the whole raw image runs in a thread of its own beside the compressing ones; at most a few
    chunks for each core are in memory.
    """
    cores = os.cpu_count() or 1
    size = facts.fields["chunk_size"]
    zeros = bytes(size)
    raw_hash, wire_hash = hashlib.sha256(), hashlib.sha256()
    pieces = torrent.Pieces(torrent.piece_length(facts.raw_size))
    chunks: list[Chunk] = []
    raw = wire = 0
    pending: collections.deque[tuple[concurrent.futures.Future[_Piece], concurrent.futures.Future[None]]]
    pending = collections.deque()

    def piece(data: bytes) -> _Piece:
        zero = data == zeros[: len(data)]
        frame = zstandard.ZstdCompressor(level=level, write_content_size=True).compress(data)
        return _Piece(len(data), hashlib.sha256(data).hexdigest(), zero, frame)

    with contextlib.ExitStack() as stack:
        workers = stack.enter_context(concurrent.futures.ThreadPoolExecutor(cores))
        whole = stack.enter_context(concurrent.futures.ThreadPoolExecutor(1))
        source = stack.enter_context(open(raw_path, "rb", buffering=0))
        out = stack.enter_context(open(wire_path, "wb"))
        left = facts.raw_size
        while left or pending:
            while left and len(pending) < 2 * cores + 2:
                data = _read_exactly(source, min(size, left))
                left -= len(data)
                pending.append((workers.submit(piece, data), whole.submit(raw_hash.update, data)))
            done, hashed = pending.popleft()
            made = done.result()
            hashed.result()
            wire_hash.update(made.wire)
            pieces.add(made.wire)
            out.write(made.wire)
            chunks.append(Chunk(raw, made.length, wire, len(made.wire), made.sha256, made.zero))
            raw += made.length
            wire += len(made.wire)
    manifest = Manifest(
        raw_sha256=raw_hash.hexdigest(),
        wire_size=wire,
        wire_sha256=wire_hash.hexdigest(),
        chunks=tuple(chunks),
        **facts.fields,
    )
    return manifest, pieces.metainfo()


def _read_exactly(source: t.BinaryIO, length: int) -> bytes:
    data = source.read(length)
    while len(data) < length:
        more = source.read(length - len(data))
        if not more:
            raise RackError("source: the image became shorter while it was read", code="source")
        data += more
    return data
