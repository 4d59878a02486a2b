# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every mirror against every published digest. Private to h200.rack."""

from __future__ import annotations

import concurrent.futures
import hashlib
import random
import typing as t

from . import manifest
from .client import Client, MirrorProblem
from .manifest import MANIFEST, MAX_MANIFEST, WIRE, Published
from .unpack import Unpack

Row = dict[str, t.Any]


class Wanted(t.NamedTuple):
    """Something published: an image or a ramdisk, by its name (or architecture), maybe pinned to a digest."""

    kind: str
    name: str
    digest: str = ""

    @property
    def folder(self) -> str:
        return f"images/{self.name}" if self.kind == "image" else f"ramdisk/{self.name}"


class Settings(t.NamedTuple):
    sample: int = 2
    timeout: float = 10.0
    ca_path: t.Optional[str] = None
    parallel: int = 16
    unpack: t.Optional[Unpack] = None


def parse_image(text: str) -> Wanted:
    """``name`` or ``name@digest``. Raises :class:`MirrorProblem`."""
    name, _at, digest = text.partition("@")
    digest = digest[len("sha256:") :] if digest.startswith("sha256:") else digest
    if not name or "/" in name or name.startswith(".") or (digest and not manifest.is_digest(digest)):
        raise MirrorProblem(f"{text!r} is not an image: a name, or name@digest", code="invalid")
    return Wanted("image", name, digest)


def _row(url: str, wanted: Wanted) -> Row:
    return {
        "mirror": url,
        "kind": wanted.kind,
        "name": wanted.name,
        "digest": wanted.digest,
        "current": "",
        "arch": "",
        "boot": "",
        "version": "",
        "size": 0,
        "sampled_bytes": 0,
        "verified": False,
        "seconds": 0.0,
        "throughput": 0,
        "code": "ok",
        "msg": "",
    }


def _current(client: Client, wanted: Wanted) -> str:
    path = f"{wanted.folder}/current"
    text = client.get(path, 4096).decode("ascii", "replace").strip()
    if not manifest.is_digest(text):
        raise MirrorProblem(f"{client.url}/{path} does not hold a digest", code="current")
    return text


def _check_sizes(client: Client, folder: str, published: Published) -> int:
    for name, size in published.files.items():
        found = client.size(f"{folder}/{name}")
        if found != size:
            raise MirrorProblem(
                f"{client.url}/{folder}/{name} has {found} bytes, its manifest says {size}", code="size"
            )
    return sum(published.files.values())


def _sample(client: Client, folder: str, published: Published, row: Row, settings: Settings) -> None:
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
    row["throughput"] = int(row["sampled_bytes"] / row["seconds"]) if row["seconds"] else 0


def _sha256(decode: Unpack, data: bytes) -> str:
    try:
        return hashlib.sha256(decode(data)).hexdigest()
    except Exception:  # each way to unpack has errors of its own; all mean that this is no whole frame
        return ""


def check_one(client: Client, wanted: Wanted, settings: Settings) -> Row:
    """The row of one mirror and one thing published. Never raises: what is wrong is in ``code`` and ``msg``."""
    row = _row(client.url, wanted)
    try:
        # Nodes that name a digest do not need the pointer.
        row["current"] = "" if wanted.digest else _current(client, wanted)
        row["digest"] = wanted.digest or row["current"]
        folder = f"{wanted.folder}/{row['digest']}"
        data = client.get(f"{folder}/{MANIFEST}", MAX_MANIFEST)
        published = manifest.read(wanted.kind, data, row["digest"], f"{client.url}/{folder}/{MANIFEST}")
        row.update(arch=published.arch, boot=published.boot, version=published.version)
        row["size"] = _check_sizes(client, folder, published)
        if wanted.kind == "image":
            _sample(client, folder, published, row, settings)
    except MirrorProblem as exc:
        row["code"], row["msg"] = exc.code, exc.msg
    row["seconds"] = round(row["seconds"], 4)
    return row


def _check_mirror(url: str, wanted: t.Sequence[Wanted], settings: Settings) -> list[Row]:
    try:
        client = Client(url, settings.timeout, settings.ca_path)
    except (MirrorProblem, OSError, ValueError) as exc:
        return [{**_row(url, item), "code": "invalid", "msg": str(exc)} for item in wanted]
    rows: list[Row] = []
    try:
        for item in wanted:
            if rows and rows[-1]["code"] in ("unreachable", "tls"):
                # It was asked once; time-outs do not add up.
                rows.append({**_row(url, item), "code": rows[-1]["code"], "msg": rows[-1]["msg"]})
            else:
                rows.append(check_one(client, item, settings))
    finally:
        client.close()
    return rows


def _settled(rows: t.Sequence[Row], kind: str) -> tuple[dict[str, str], list[Row]]:
    """The digest that each name stands for on all mirrors, and the rows that contradict the first."""
    digests: dict[str, str] = {}
    apart = []
    for row in rows:
        if row["kind"] != kind or not row["current"]:
            continue
        first = digests.setdefault(row["name"], row["current"])
        if row["current"] != first:
            apart.append({**row, "code": "out_of_step", "other": first})
    return digests, apart


def check(mirrors: t.Sequence[str], wanted: t.Sequence[Wanted], settings: Settings) -> dict[str, t.Any]:
    """All mirrors at once: ``rows``, the ``digests`` and ``ramdisks`` that names stand for, and ``problems``."""
    if not mirrors:
        return {"rows": [], "digests": {}, "ramdisks": {}, "problems": []}
    with concurrent.futures.ThreadPoolExecutor(min(settings.parallel, len(mirrors))) as pool:
        rows = [row for part in pool.map(lambda url: _check_mirror(url, wanted, settings), mirrors) for row in part]
    digests, images_apart = _settled(rows, "image")
    ramdisks, ramdisks_apart = _settled(rows, "ramdisk")
    problems = [_problem(row, row["msg"]) for row in rows if row["code"] != "ok"]
    for row in [*images_apart, *ramdisks_apart]:
        msg = f"{row['mirror']} says {row['name']} is {row['current'][:12]}, {mirrors[0]} says {row['other'][:12]}"
        problems.append(_problem(row, f"{msg}: publish it on all mirrors"))
    return {"rows": rows, "digests": digests, "ramdisks": ramdisks, "problems": problems}


def _problem(row: Row, msg: str) -> dict[str, str]:
    return {
        "mirror": row["mirror"],
        "kind": row["kind"],
        "name": row["name"],
        "digest": row["digest"],
        "code": row["code"],
        "msg": msg,
    }
