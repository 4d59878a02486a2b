# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a check needs of a published manifest. Private to h200.rack."""

from __future__ import annotations

import hashlib
import typing as t

from ansible_collections.h200.rack.plugins.module_utils._common import manifest as strict
from ansible_collections.h200.rack.plugins.module_utils._common.errors import InvalidInput

from .client import MirrorProblem

MANIFEST, SIGNATURE, WIRE = strict.MANIFEST_FILE, strict.SIGNATURE_FILE, strict.WIRE_FILE
MAX_MANIFEST = strict.MAX_MANIFEST
is_digest = strict.is_digest


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


def read(kind: str, data: bytes, digest: str, where: str) -> Published:
    """The manifest in ``data``, which must be the one that ``digest`` names. Raises :class:`MirrorProblem`."""
    found = hashlib.sha256(data).hexdigest()
    if found != digest:
        raise MirrorProblem(f"{where}: its sha256 is {found}, not the digest of its folder", code="digest")
    try:
        return _ramdisk(data, where) if kind == "ramdisk" else _image(data, where)
    except InvalidInput as exc:
        raise MirrorProblem(f"{where} is not a manifest of this collection: {exc.msg}", code="manifest") from exc


def _ramdisk(data: bytes, where: str) -> Published:
    value = strict.parse_ramdisk(data, where)
    sizes = {name: entry["size"] for name, entry in value["files"].items()}
    return Published(sizes, (), arch=value["arch"], version=value["version"])


def _image(data: bytes, where: str) -> Published:
    image = strict.parse(data, where)
    pieces = tuple(
        Piece(chunk.wire_offset, chunk.wire_length, chunk.sha256) for chunk in image.chunks if not chunk.zero
    )
    return Published({WIRE: image.wire_size}, pieces, image.arch, image.boot, image.version)
