# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a mirror's store is whole, and so whether the mirror is in rotation. Private to h200.rack.

It stands alone: the role h200.rack.mirror also puts this file on the mirror, where a timer runs it. What it finds is
what nginx answers at ``/health``: ``.health.json`` with status 200 in rotation, ``.out-of-rotation.json`` with 503 out
of it. A mirror comes into rotation when mirror_pull has written ``.in-step.json``, which names what must be there.

``--deep`` reads every byte. What it found damaged stays damaged for the quick looks, until the file is another one.
"""

from __future__ import annotations

import contextlib
import datetime
import fcntl
import hashlib
import json
import os
import re
import sys
import tempfile
import typing as t

IN_STEP = ".in-step.json"
GOOD, BAD = ".health.json", ".out-of-rotation.json"
LOCK, DAMAGED = ".health.lock", ".damaged.json"
MANIFEST, WIRE, CURRENT, OVERLAYS = "manifest.json", "image.raw.zst", "current", "overlay"
_DIGEST = re.compile(r"[0-9a-f]{64}\Z")

#: By path below the root: size and time of a damaged file, which tell when it is another one.
Damaged = dict[str, list[int]]


class Found(t.NamedTuple):
    """What is wrong, what is damaged, and the current digest by family."""

    problems: list[str]
    damaged: Damaged
    current: dict[str, str]


def _sha256(path: str) -> str:
    digest = hashlib.sha256()
    with open(path, "rb") as handle:
        for block in iter(lambda: handle.read(1 << 20), b""):
            digest.update(block)
    return digest.hexdigest()


def _entries(folder: str) -> list[str]:
    try:
        return sorted(entry for entry in os.listdir(folder) if not entry.startswith("."))
    except FileNotFoundError:
        return []


def _expected(manifest: bytes) -> dict[str, tuple[int, str]]:
    """Size and sha256 of each file that a manifest names."""
    value = json.loads(manifest)
    if "wire_sha256" in value:
        return {WIRE: (int(value["wire_size"]), str(value["wire_sha256"]))}
    return {str(name): (int(file["size"]), str(file["sha256"])) for name, file in value["files"].items()}


class _Look:
    def __init__(self, root: str, deep: bool, known: Damaged) -> None:
        self._root = root
        self._deep = deep
        self._known = known
        self.problems: list[str] = []
        self.damaged: Damaged = {}
        self.present: set[str] = set()
        self.current: dict[str, str] = {}

    def family(self, family: str) -> None:
        folder = os.path.join(self._root, family)
        for digest in filter(_DIGEST.match, _entries(folder)):
            self.present.add(f"{family}/{digest}")
            try:
                self._digest(f"{family}/{digest}", digest)
            except (OSError, ValueError, KeyError, TypeError, AttributeError) as exc:
                self.problems.append(f"{family}/{digest}: {exc}")
        try:
            with open(os.path.join(folder, CURRENT), encoding="ascii") as handle:
                self.current[family] = handle.read().strip()
        except FileNotFoundError:
            return
        if f"{family}/{self.current[family]}" not in self.present:
            self.problems.append(f"{family}/{CURRENT} names {self.current[family][:12]}, which is not there")

    def _digest(self, path: str, digest: str) -> None:
        with open(os.path.join(self._root, path, MANIFEST), "rb") as handle:
            data = handle.read()
        if hashlib.sha256(data).hexdigest() != digest:
            self.problems.append(f"{path}/{MANIFEST} does not have the digest of its folder")
            return
        for name, (size, sha256) in _expected(data).items():
            self._file(f"{path}/{name}", size, sha256)

    def overlays(self) -> None:
        for name in _entries(os.path.join(self._root, "ramdisk", OVERLAYS)):
            digest, suffix = os.path.splitext(name)
            if suffix == ".cpio" and _DIGEST.match(digest):
                path = f"ramdisk/{OVERLAYS}/{name}"
                self._file(path, None, digest)

    def _file(self, path: str, size: int | None, sha256: str) -> None:
        full = os.path.join(self._root, path)
        try:
            state = os.stat(full)
        except FileNotFoundError:
            self.problems.append(f"{path} is missing")
            return
        stamp = [state.st_size, state.st_mtime_ns, state.st_ino]
        if size is not None and state.st_size != size:
            self.problems.append(f"{path} has {state.st_size} bytes instead of {size}")
        elif self._is_damaged(path, full, stamp, sha256, self._deep or size is None):
            self.damaged[path] = stamp
            self.problems.append(f"{path} is damaged: it does not have its sha256")

    def _is_damaged(self, path: str, full: str, stamp: list[int], sha256: str, whole: bool) -> bool:
        return _sha256(full) != sha256 if whole else self._known.get(path) == stamp


def look(root: str, deep: bool = False, known: Damaged | None = None) -> Found:
    """Compare the store with its manifests and with what it is to hold. Raises OSError when it cannot be read."""
    if not os.path.isdir(root):
        return Found([f"{root} is not a directory"], {}, {})
    seen = _Look(root, deep, known or {})
    for kind in ("images", "ramdisk"):
        for name in _entries(os.path.join(root, kind)):
            if not (kind == "ramdisk" and name == OVERLAYS):
                seen.family(f"{kind}/{name}")
    seen.overlays()
    in_step = _read(os.path.join(root, IN_STEP))
    if in_step is None:
        seen.problems.append("not filled yet: h200.rack.mirror_pull has not brought it in step")
    else:
        seen.problems += [f"{path} has no version" for path in sorted(set(in_step["holds"]) - set(seen.current))]
    return Found(seen.problems, seen.damaged, seen.current)


def record(root: str, holds: t.Iterable[str]) -> None:
    """Write down which images and ramdisks the store must hold from now on, as paths below the root."""
    _write(os.path.join(root, IN_STEP), {"holds": sorted(holds)})


def refresh(root: str, deep: bool = False) -> list[str]:
    """Look at the store and say the result at ``/health``; returns what is wrong."""
    if not os.path.isdir(root):
        return [f"{root} is not a directory"]
    with open(os.path.join(root, LOCK), "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        before = _read(os.path.join(root, DAMAGED)) or {}
        try:
            found = look(root, deep, before)
        except OSError as exc:
            found = Found([f"the store cannot be read: {exc}"], before, {})
        if found.damaged != before:
            # Without room for it the verdict below cannot change to a better one either.
            with contextlib.suppress(OSError):
                _write(os.path.join(root, DAMAGED), found.damaged)
        _tell(root, found, deep)
    return found.problems


def _tell(root: str, found: Found, deep: bool) -> None:
    paths = {True: os.path.join(root, GOOD), False: os.path.join(root, BAD)}
    ready = not found.problems
    before = _read(paths[True]) or _read(paths[False]) or {}
    now = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    told = {
        "ready": ready,
        "checked": now,
        "read_whole": now if deep else before.get("read_whole", ""),
        "current": found.current,
        "problems": found.problems[:20],
    }
    try:
        _write(paths[ready], told)
    except OSError:
        # A full disk serves what it holds; what is wrong must be said even without room for the reasons.
        if not ready:
            _remove(paths[True])
        return
    _remove(paths[not ready])


def _remove(path: str) -> None:
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)


def _read(path: str) -> t.Any:
    try:
        with open(path, encoding="utf-8") as handle:
            return json.load(handle)
    except (FileNotFoundError, ValueError):
        return None


def _write(path: str, value: t.Any) -> None:
    """Either the old content or the new one, also when the disk is full."""
    fd, temporary = tempfile.mkstemp(prefix=".health-", dir=os.path.dirname(path))
    try:
        with os.fdopen(fd, "w", encoding="utf-8") as handle:
            json.dump(value, handle, sort_keys=True)
            handle.write("\n")
            os.fchmod(handle.fileno(), 0o644)
            handle.flush()
            os.fsync(handle.fileno())
        os.replace(temporary, path)
    except BaseException:
        _remove(temporary)
        raise


def main(arguments: t.Sequence[str]) -> int:
    deep = "--deep" in arguments
    roots = [argument for argument in arguments if not argument.startswith("--")]
    problems = [problem for root in roots for problem in refresh(root, deep)]
    sys.stderr.writelines(f"{problem}\n" for problem in problems)
    return 1 if problems or not roots else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
