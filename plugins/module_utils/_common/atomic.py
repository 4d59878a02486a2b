# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Files that are either the old ones or the new ones, whatever happens in between. Private to h200.rack."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import tempfile
import typing as t

from .deadline import Deadline
from .errors import DeadlineExceeded


def fsync_dir(path: str) -> None:
    """Make a rename inside ``path`` survive a power cut."""
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def write_atomic(path: str, data: bytes, mode: int = 0o644) -> None:
    """Replace ``path`` by ``data``: written beside it, synced, renamed over it. Raises OSError."""
    folder = os.path.dirname(os.path.abspath(path))
    fd, temporary = tempfile.mkstemp(prefix=f".{os.path.basename(path)}.", dir=folder)
    try:
        with os.fdopen(fd, "wb") as handle:
            handle.write(data)
            handle.flush()
            os.fchmod(handle.fileno(), mode)
            os.fsync(handle.fileno())
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
        raise
    fsync_dir(folder)


def read_or_none(path: str) -> bytes | None:
    """The content of ``path``, or None when there is no such file."""
    try:
        with open(path, "rb") as handle:
            return handle.read()
    except FileNotFoundError:
        return None


@contextlib.contextmanager
def locked(path: str, timeout: float = 30.0) -> t.Iterator[None]:
    """Hold an exclusive lock on the file ``path`` (made when absent, never removed).

    Raises :class:`DeadlineExceeded` when another process holds it for longer than ``timeout`` seconds.
    """
    deadline = Deadline(timeout)
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        while True:
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except OSError as exc:
                if exc.errno not in (errno.EAGAIN, errno.EACCES):
                    raise
                if not deadline.pause(0.05):
                    raise DeadlineExceeded(f"{path} is locked by another process for more than {timeout:g} s") from exc
        yield
    finally:
        os.close(fd)
