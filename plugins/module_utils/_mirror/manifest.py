# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a check needs of a published manifest. Private to h200.rack."""

from __future__ import annotations

import hashlib
import json
import re
import typing as t

from .client import MirrorProblem

MANIFEST = "manifest.json"
SIGNATURE = "manifest.json.sig"
WIRE = "image.raw.zst"
MAX_MANIFEST = 256 * 1024 * 1024

_DIGEST = re.compile(r"[0-9a-f]{64}\Z")


class Piece(t.NamedTuple):
    """A chunk of an image: where its compressed frame lies, and the sha256 of what is in it."""

    offset: int
    length: int
    sha256: str


class Published(t.NamedTuple):
    """Sizes of the files under a digest, and the chunks of an image."""

    files: dict[str, int]
    pieces: tuple[Piece, ...]
    arch: str = ""
    boot: str = ""
    version: str = ""


def is_digest(text: str) -> bool:
    return _DIGEST.match(text) is not None


def read(kind: str, data: bytes, digest: str, where: str) -> Published:
    """The manifest in ``data``, which must be the one that ``digest`` names. Raises :class:`MirrorProblem`."""
    found = hashlib.sha256(data).hexdigest()
    if found != digest:
        raise MirrorProblem(f"{where}: its sha256 is {found}, not the digest of its folder", code="digest")
    try:
        value = json.loads(data)
        if kind == "ramdisk":
            sizes = {name: int(entry["size"]) for name, entry in value["files"].items()}
            return Published(sizes, (), arch=str(value["arch"]), version=str(value["version"]))
        pieces = tuple(
            Piece(chunk["wire_offset"], chunk["wire_length"], chunk["sha256"])
            for chunk in value["chunks"]
            if not chunk["zero"]
        )
        facts = {key: str(value[key]) for key in ("arch", "boot", "version")}
        return Published({WIRE: int(value["wire_size"])}, pieces, **facts)
    except (ValueError, KeyError, TypeError, AttributeError) as exc:
        raise MirrorProblem(f"{where} is not a manifest of this collection: {exc!r}", code="manifest") from exc
