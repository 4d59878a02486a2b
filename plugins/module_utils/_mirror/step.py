# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a mirror has to hold to be in step with the others. Private to h200.rack."""

from __future__ import annotations

import os
import typing as t

from .catalog import OVERLAYS, ROOTS, Catalog, Family, read
from .client import Client, MirrorProblem, Trust
from .manifest import is_digest

_NOTHING = Catalog((), ())


class Want(t.NamedTuple):
    """One thing to hold. An ``optional`` one is better gone than damaged."""

    kind: str
    name: str
    digest: str
    current: bool
    optional: bool


class Reference(t.NamedTuple):
    """What is published, and where that was read."""

    url: str
    catalog: Catalog


def find_reference(sources: t.Sequence[str], timeout: float, trust: Trust) -> Reference:
    """What the first of the sources that answers has. Raises :class:`MirrorProblem` when none does."""
    said = []
    for url in sources:
        try:
            client = Client(url, timeout, trust)
        except MirrorProblem as exc:
            if exc.code == "invalid":
                raise MirrorProblem(f"sources: {exc.msg}", code="invalid") from exc
            raise
        try:
            return Reference(url, read(client))
        except MirrorProblem as exc:
            said.append(exc.msg)
        finally:
            client.close()
    raise MirrorProblem(f"sources: none says what is published: {'; '.join(said)}", code="mirrors")


def own(root: str) -> Catalog:
    """What the store in ``root`` holds, complete or not."""
    families = []
    for kind, folder in ROOTS.items():
        for name in _entries(os.path.join(root, folder)):
            path = os.path.join(root, folder, name)
            digests = tuple(entry for entry in _entries(path) if is_digest(entry))
            if digests and not (kind == "ramdisk" and name == OVERLAYS):
                families.append(Family(kind, name, _current(path), digests))
    files = _entries(os.path.join(root, ROOTS["ramdisk"], OVERLAYS))
    return Catalog(
        tuple(families), tuple(name[:-5] for name in files if name.endswith(".cpio") and is_digest(name[:-5]))
    )


def _entries(folder: str) -> list[str]:
    try:
        return sorted(entry for entry in os.listdir(folder) if not entry.startswith("."))
    except (FileNotFoundError, NotADirectoryError):
        return []


def _current(path: str) -> str:
    try:
        with open(os.path.join(path, "current"), encoding="ascii") as handle:
            text = handle.read().strip()
    except (OSError, ValueError):
        return ""
    return text if is_digest(text) else ""


def wants(mine: Catalog, reference: Catalog | None, authority: bool) -> list[Want]:
    """What the mirror shall hold.

    A follower holds what the reference has, and calls current what that does. The authority holds what it has, and
    takes from the reference only what it has no version of. What a mirror has besides is kept while it is whole.
    """
    theirs = reference or _NOTHING
    leading, other = (mine, theirs) if authority else (theirs, mine)
    led = {(family.kind, family.name): family for family in leading.families}
    found: list[Want] = []
    for family in leading.families:
        found += [_want(family, digest, authority and digest != family.current) for digest in family.digests]
    for family in other.families:
        leader = led.get((family.kind, family.name))
        known = leader.digests if leader else ()
        if authority and leader:
            continue
        for digest in family.digests:
            if digest in known:
                continue
            if authority and digest != family.current:
                continue
            want = _want(family, digest, bool(leader) or digest != family.current)
            found.append(want._replace(current=want.current and leader is None))
    found += [Want("overlay", "overlay", digest, False, authority) for digest in leading.overlays]
    if not authority:
        extra = [digest for digest in mine.overlays if digest not in theirs.overlays]
        found += [Want("overlay", "overlay", digest, False, True) for digest in extra]
    # The current ones first: a mirror that is interrupted has then what most nodes need.
    return sorted(found, key=lambda want: (not want.current, want.optional))


def _want(family: Family, digest: str, optional: bool) -> Want:
    return Want(family.kind, family.name, digest, digest == family.current, optional)


def families(held: t.Iterable[Want]) -> list[str]:
    """What must have a current version from now on, as paths below the root."""
    return sorted({f"{ROOTS[want.kind]}/{want.name}" for want in held if want.current})
