# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The directory of boot scripts on a boot server. Private to h200.rack."""

from __future__ import annotations

import contextlib
import json
import os
import re
import stat
import tempfile
import typing as t

from ansible_collections.h200.rack.plugins.module_utils._common.atomic import (
    fsync_dir,
    locked,
    read_or_none,
    write_atomic,
)
from ansible_collections.h200.rack.plugins.module_utils._common.errors import InvalidInput

LOCK = ".h200-rack.lock"
# The names of the files that this module wrote: only they may be pruned.
REGISTER = ".h200-rack-scripts.json"

_NAME = re.compile(r"^[A-Za-z0-9][A-Za-z0-9._-]*$")


class Outcome(t.NamedTuple):
    """What a call did, or in check mode would have done."""

    scripts: list[dict[str, t.Any]]
    removed: list[str]
    diff: list[dict[str, str]]
    changed: bool


def update(
    dest: str,
    scripts: t.Sequence[t.Mapping[str, t.Any]],
    prune: bool = False,
    dry_run: bool = False,
    mode: int = 0o644,
    lock_timeout: float = 30.0,
) -> Outcome:
    """Bring the scripts into ``dest``, all under one lock, each either old or new at any moment."""
    _check_names(scripts)
    if not os.path.isdir(dest):
        if dry_run:  # the role that makes the directory has only been checked as well
            return _apply(dest, scripts, prune, True, mode)
        raise InvalidInput(f"dest {dest} is not a directory on this host; the role h200.rack.netboot makes it")
    if dry_run:
        return _apply(dest, scripts, prune, True, mode)
    with locked(os.path.join(dest, LOCK), lock_timeout):
        return _apply(dest, scripts, prune, False, mode)


def _check_names(scripts: t.Sequence[t.Mapping[str, t.Any]]) -> None:
    seen: set[str] = set()
    for script in scripts:
        name = script["name"]
        if not _NAME.match(name):
            raise InvalidInput(f"script {name!r}: a script's name is a plain file name")
        if name in seen:
            raise InvalidInput(f"script {name} is given twice")
        seen.add(name)


def _apply(dest: str, scripts: t.Sequence[t.Mapping[str, t.Any]], prune: bool, dry_run: bool, mode: int) -> Outcome:
    registered = _read_register(dest)
    results: list[dict[str, t.Any]] = []
    pending: list[tuple[str, bytes]] = []
    diff: list[dict[str, str]] = []
    for script in scripts:
        path = os.path.join(dest, script["name"])
        new, old = script["content"].encode(), read_or_none(path)
        changed = old is None or (not script.get("keep") and (old != new or _mode(path) != mode))
        results.append(
            {"path": path, "node": script.get("node") or "", "action": script.get("action") or "", "changed": changed}
        )
        if changed:
            pending.append((path, new))
            diff.append(_difference(path, old, new))
    removed = sorted(registered - {script["name"] for script in scripts}) if prune else []
    removed = [os.path.join(dest, name) for name in removed]
    for path in removed:
        diff.append(_difference(path, read_or_none(path), None))
    if not dry_run:
        _write_all(dest, pending, mode)
        for path in removed:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path)
        names = (registered | {script["name"] for script in scripts}) - {os.path.basename(path) for path in removed}
        if names != registered:
            write_atomic(os.path.join(dest, REGISTER), (json.dumps(sorted(names), indent=1) + "\n").encode(), 0o600)
    return Outcome(results, removed, diff, bool(pending or removed))


def _write_all(dest: str, files: t.Sequence[tuple[str, bytes]], mode: int) -> None:
    """Write beside, sync once for all, rename: a thousand files cost one wait for the disk and not a thousand."""
    if len(files) <= 4:
        for path, data in files:
            write_atomic(path, data, mode)
        return
    with tempfile.TemporaryDirectory(prefix=".h200-rack-", dir=dest) as staging:
        for path, data in files:
            staged = os.path.join(staging, os.path.basename(path))
            with open(staged, "wb") as handle:
                handle.write(data)
                os.fchmod(handle.fileno(), mode)
        os.sync()
        for path, _data in files:
            os.replace(os.path.join(staging, os.path.basename(path)), path)
    fsync_dir(dest)


def _read_register(dest: str) -> set[str]:
    raw = read_or_none(os.path.join(dest, REGISTER))
    if raw is None:
        return set()
    try:
        names = json.loads(raw)
    except ValueError:
        names = None
    if not isinstance(names, list) or not all(isinstance(name, str) and _NAME.match(name) for name in names):
        raise InvalidInput(f"{os.path.join(dest, REGISTER)} is damaged; remove it, then nothing is pruned by this call")
    return set(names)


def _mode(path: str) -> int:
    return stat.S_IMODE(os.stat(path).st_mode)


def _difference(path: str, old: bytes | None, new: bytes | None) -> dict[str, str]:
    return {
        "before_header": path,
        "after_header": path,
        "before": "" if old is None else old.decode(errors="replace"),
        "after": "" if new is None else new.decode(errors="replace"),
    }
