# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One mirror and one thing published on it: sizes by HEAD, content by Range, the signature. Private to h200.rack."""

from __future__ import annotations

import hashlib
import random
import typing as t

from . import manifest
from .catalog import OVERLAYS, ROOTS, read_current
from .client import Client, MirrorProblem
from .manifest import MANIFEST, MAX_MANIFEST, SIGNATURE, WIRE, Published
from .signature import Verifier
from .unpack import Unpack

Row = dict[str, t.Any]
_MAX_OVERLAY = 64 << 20
_PIECE = 1 << 20


class Wanted(t.NamedTuple):
    """Something published: an image, a ramdisk or an overlay, by its name (or architecture), maybe by digest."""

    kind: str
    name: str
    digest: str = ""

    @property
    def folder(self) -> str:
        return f"{ROOTS[self.kind]}/{self.name}"


class Settings(t.NamedTuple):
    sample: int = 2
    timeout: float = 10.0
    unpack: t.Optional[Unpack] = None
    verifier: t.Optional[Verifier] = None


def new_row(url: str, wanted: Wanted) -> Row:
    return {
        "mirror": url,
        "kind": wanted.kind,
        "name": wanted.name,
        "digest": wanted.digest,
        "current": "",
        "arch": "",
        "boot": "",
        "version": "",
        "signature": "",
        "size": 0,
        "sampled_bytes": 0,
        "verified": False,
        "seconds": 0.0,
        "throughput": 0,
        "code": "ok",
        "msg": "",
    }


def check_one(client: Client, wanted: Wanted, settings: Settings) -> Row:
    """The row of one mirror and one thing published. Never raises: what is wrong is in ``code`` and ``msg``."""
    row = new_row(client.url, wanted)
    try:
        if wanted.kind == "overlay":
            _check_overlay(client, row)
        else:
            _check_published(client, wanted, settings, row)
    except MirrorProblem as exc:
        row["code"], row["msg"] = exc.code, exc.msg
    row["throughput"] = int(row["sampled_bytes"] / row["seconds"]) if row["seconds"] else 0
    row["seconds"] = round(row["seconds"], 4)
    return row


def _check_overlay(client: Client, row: Row) -> None:
    path = f"{ROOTS['ramdisk']}/{OVERLAYS}/{row['digest']}.cpio"
    data = client.get(path, _MAX_OVERLAY)
    if hashlib.sha256(data).hexdigest() != row["digest"]:
        raise MirrorProblem(f"{client.url}/{path} is damaged: it does not have its sha256", code="damaged")
    row.update(size=len(data), verified=True)


def _check_published(client: Client, wanted: Wanted, settings: Settings, row: Row) -> None:
    # Nodes that name a digest do not need the pointer.
    row["current"] = "" if wanted.digest else read_current(client, wanted.folder)
    row["digest"] = wanted.digest or row["current"]
    folder = f"{wanted.folder}/{row['digest']}"
    where = f"{client.url}/{folder}/{MANIFEST}"
    data = client.get(f"{folder}/{MANIFEST}", MAX_MANIFEST)
    published = manifest.read(wanted.kind, data, row["digest"], where)
    row.update(arch=published.arch, boot=published.boot, version=published.version)
    if settings.verifier is not None:
        _check_signature(client, folder, data, settings.verifier, row)
    row["size"] = _check_sizes(client, folder, published)
    if wanted.kind == "image":
        _sample_frames(client, folder, published, row, settings)
    else:
        _sample_bytes(client, folder, published, row, settings)


def _check_signature(client: Client, folder: str, data: bytes, verifier: Verifier, row: Row) -> None:
    try:
        signature = client.get(f"{folder}/{SIGNATURE}", 4096)
    except MirrorProblem as exc:
        code = "signature" if exc.code == "missing" else exc.code
        raise MirrorProblem(f"{client.url}/{folder}: the manifest is not signed: {exc.msg}", code=code) from exc
    if not verifier.is_good(data, signature):
        raise MirrorProblem(f"{client.url}/{folder}: the signature is not one of the rack's key", code="signature")
    row["signature"] = "good"


def _check_sizes(client: Client, folder: str, published: Published) -> int:
    for name, size in published.files.items():
        found = client.size(f"{folder}/{name}")
        if found != size:
            raise MirrorProblem(
                f"{client.url}/{folder}/{name} has {found} bytes, its manifest says {size}", code="size"
            )
    return sum(published.files.values())


def _sample_frames(client: Client, folder: str, published: Published, row: Row, settings: Settings) -> None:
    """Take some chunks as a node would, and look into them where zstd can be unpacked here."""
    decode = settings.unpack
    pieces = random.sample(published.pieces, min(settings.sample, len(published.pieces)))
    for piece in pieces:
        path = f"{folder}/{WIRE}"
        answer = client.piece(path, piece.offset, piece.length, published.files[WIRE])
        row["sampled_bytes"] += len(answer.body)
        row["seconds"] += answer.seconds
        if decode is not None and _sha256(decode, answer.body) != piece.sha256:
            raise MirrorProblem(
                f"{client.url}/{path}: the chunk at {piece.offset} is damaged: it does not have its sha256",
                code="damaged",
            )
    row["verified"] = bool(pieces) and decode is not None


def _sample_bytes(client: Client, folder: str, published: Published, row: Row, settings: Settings) -> None:
    """Some bytes of each file of a ramdisk; its one sha256 is for the whole file, which the mirror itself compares."""
    for name, size in published.files.items():
        for _number in range(settings.sample):
            length = min(_PIECE, size)
            answer = client.piece(f"{folder}/{name}", random.randint(0, size - length), length, size)
            row["sampled_bytes"] += len(answer.body)
            row["seconds"] += answer.seconds


def _sha256(decode: Unpack, data: bytes) -> str:
    try:
        return hashlib.sha256(decode(data)).hexdigest()
    except Exception:  # each way to unpack has errors of its own; all mean that this is no whole frame
        return ""
