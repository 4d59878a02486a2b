# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a mirror has published, read from its own listings. Private to h200.rack.

nginx makes a listing from the directory at the moment of the question, so it cannot be out of date, and leaves out
names that begin with a dot, which is where everything unfinished stands.
"""

from __future__ import annotations

import json
import typing as t

from .client import Client, MirrorProblem
from .manifest import is_digest

_MAX_LISTING = 4 * 1024 * 1024
ROOTS = {"image": "images", "ramdisk": "ramdisk"}
OVERLAYS = "overlay"


class Family(t.NamedTuple):
    """One image, or the ramdisks of one architecture: the digest called current, and all there are."""

    kind: str
    name: str
    current: str
    digests: tuple[str, ...]


class Catalog(t.NamedTuple):
    families: tuple[Family, ...]
    overlays: tuple[str, ...]


def read_current(client: Client, folder: str) -> str:
    """The digest in ``folder/current``. Raises :class:`MirrorProblem`."""
    path = f"{folder}/current"
    text = client.get(path, 4096).decode("ascii", "replace").strip()
    if not is_digest(text):
        raise MirrorProblem(f"{client.url}/{path} does not hold a digest", code="current")
    return text


def read(client: Client) -> Catalog:
    """Everything that ``client`` lists. Raises :class:`MirrorProblem`."""
    families = []
    for kind, root in ROOTS.items():
        for name in _names(client, root, "directory"):
            if kind == "ramdisk" and name == OVERLAYS:
                continue
            digests = tuple(entry for entry in _names(client, f"{root}/{name}", "directory") if is_digest(entry))
            if digests:
                families.append(Family(kind, name, _maybe_current(client, f"{root}/{name}"), digests))
    overlays: list[str] = []
    if OVERLAYS in _names(client, ROOTS["ramdisk"], "directory"):
        files = _names(client, f"{ROOTS['ramdisk']}/{OVERLAYS}", "file")
        overlays = [name[: -len(".cpio")] for name in files if name.endswith(".cpio") and is_digest(name[:-5])]
    return Catalog(tuple(families), tuple(overlays))


def _maybe_current(client: Client, folder: str) -> str:
    try:
        return read_current(client, folder)
    except MirrorProblem as exc:
        if exc.code == "missing":
            return ""
        raise


def _names(client: Client, folder: str, kind: str) -> list[str]:
    path = f"{folder}/"
    data = client.get(path, _MAX_LISTING)
    try:
        entries = json.loads(data)
        return sorted(str(entry["name"]) for entry in entries if entry["type"] == kind)
    except (ValueError, KeyError, TypeError) as exc:
        raise MirrorProblem(f"{client.url}/{path} is no listing of this collection's mirrors", code="catalog") from exc
