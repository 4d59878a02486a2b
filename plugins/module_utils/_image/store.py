# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The folders of a mirror: immutable ones named by digest, and ``current``, switched atomically. Private to h200.rack.

``images/NAME/DIGEST/``, ``images/NAME/current``, and the same under ``ramdisk/ARCH/``. What is being made stands beside
them under a name that starts with a dot, and is renamed when it is complete.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import tempfile
import typing as t

from ansible_collections.h200.rack.plugins.module_utils._common.atomic import (
    fsync_dir,
    locked,
    read_or_none,
    write_atomic,
)
from ansible_collections.h200.rack.plugins.module_utils._common.errors import InvalidInput, RackError

from .manifest import MANIFEST_FILE, digest_of, is_digest

CURRENT = "current"


def require_root(dest: str) -> str:
    """The mirror's root, which must be a folder already: a missing one is more often an unmounted disk."""
    if not os.path.isdir(dest):
        raise InvalidInput(f"dest: {dest} is not a directory; make it, or mount it, first")
    return dest


@contextlib.contextmanager
def publishing(family: str, timeout: float) -> t.Iterator[None]:
    """Only one publisher works in ``family`` (``images/NAME``) at a time. Left-overs of a killed one are removed."""
    os.makedirs(family, exist_ok=True)
    with locked(os.path.join(family, ".lock"), timeout):
        for entry in os.listdir(family):
            if entry.startswith(".new-"):
                shutil.rmtree(os.path.join(family, entry))
        yield


@contextlib.contextmanager
def staging(family: str) -> t.Iterator[str]:
    """A folder in ``family`` that nobody serves, removed with what is left in it."""
    folder = tempfile.mkdtemp(prefix=".new-", dir=family)
    os.chmod(folder, 0o755)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def commit(staged: str, family: str, digest: str) -> None:
    """Give the complete folder ``staged`` its final name; every file in it is on disk before."""
    for entry in os.listdir(staged):
        path = os.path.join(staged, entry)
        os.chmod(path, 0o644)
        fd = os.open(path, os.O_RDONLY)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)
    fsync_dir(staged)
    final = os.path.join(family, digest)
    try:
        os.rename(staged, final)
    except OSError as exc:
        if exc.errno not in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR):
            raise
        raise RackError(
            f"dest: {final} is there already with other content, and stays as it is: it is damaged; "
            "repair it from another mirror with mirror_pull, or move it away",
            code="conflict",
        ) from exc
    fsync_dir(family)


def current(family: str) -> str | None:
    """The digest that ``current`` names, or None."""
    data = read_or_none(os.path.join(family, CURRENT))
    text = (data or b"").decode("ascii", "replace").strip()
    return text if is_digest(text) else None


def switch(family: str, digest: str) -> None:
    write_atomic(os.path.join(family, CURRENT), f"{digest}\n".encode("ascii"))


def has(family: str, digest: str) -> bool:
    """Whether ``family`` holds ``digest``; folders get that name only when they are complete."""
    data = read_or_none(os.path.join(family, digest, MANIFEST_FILE))
    return data is not None and digest_of(data) == digest


def diff(family: str, before: str | None, after: str | None, removed: list[str]) -> dict[str, str]:
    """What changed about ``current`` and the kept versions, for diff mode."""
    gone = "".join(f"{digest}\n" for digest in removed)
    return {
        "before_header": family,
        "after_header": family,
        "before": f"current: {before or 'none'}\n{gone}",
        "after": f"current: {after or 'none'}\n",
    }


def prune(family: str, keep: int, protect: t.Iterable[str], check_mode: bool = False) -> list[str]:
    """Remove all but the ``keep`` newest digests; never the current one nor one in ``protect``. Returns the removed."""
    if keep < 1 or not os.path.isdir(family):
        return []
    spared = {current(family), *protect}
    present = [entry for entry in os.listdir(family) if is_digest(entry)]
    present.sort(key=lambda entry: os.stat(os.path.join(family, entry)).st_mtime_ns, reverse=True)
    removed = [entry for entry in present[keep:] if entry not in spared]
    if not check_mode:
        for entry in removed:
            # Renamed first, so that no half-removed folder is ever served under its digest.
            doomed = os.path.join(family, f".new-{entry}")
            os.rename(os.path.join(family, entry), doomed)
            shutil.rmtree(doomed)
    return removed
