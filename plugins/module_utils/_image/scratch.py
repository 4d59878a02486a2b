# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where a node of a ramdisk keeps the pieces of an image while it is written: memory, or a disk that it may use.

Private to h200.rack.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
import typing as t

from ansible_collections.h200.rack.plugins.module_utils._common.errors import RackError

from . import disks, tools
from .target import Target

# What the rest of the system, the writer and aria2c need beside the pieces.
RESERVE = 1 << 30
_SLACK = 16 << 20
_EDGE = 1 << 20
_PREFIX = "h200-rack-pieces-"


def available_memory(path: str = "/proc/meminfo") -> int:
    """Bytes that programs can still have without anything being swapped out."""
    with open(path, encoding="ascii") as handle:
        for line in handle:
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    return 0


def fits_memory(size: int, available: int) -> bool:
    return size + RESERVE <= available


def choose_disk(
    found: t.Sequence[disks.Disk], hints: t.Mapping[str, t.Any], root: str, size: int, allow_overwrite: bool
) -> disks.Disk:
    """The disk that may be used. Raises unless it is exactly one, another than ``root``, big enough, and empty."""
    try:
        disk = disks.select(found, hints)
    except disks.NotOneDisk as exc:
        raise RackError(f"scratch: {exc.msg}", code="scratch") from exc
    if disk.path == root:
        problem = "is the root disk"
    elif disk.in_use:
        problem = f"is in use: {disk.in_use}"
    elif disk.content and not allow_overwrite:
        problem = f"holds {'; '.join(disk.content)}"
    elif disk.size < size + size // 16 + _SLACK:
        problem = f"is too small for {size} bytes"
    else:
        return disk
    raise RackError(f"scratch: {disk.describe()} {problem}", code="scratch")


@contextlib.contextmanager
def in_memory(size: int) -> t.Iterator[str]:
    """A folder for ``size`` bytes in memory; a file system of its own, because /run may be too small."""
    with _mounted(["-t", "tmpfs", "-o", f"size={size + _SLACK},mode=0700", "pieces"]) as folder:
        yield folder


@contextlib.contextmanager
def on_disk(disk: disks.Disk) -> t.Iterator[str]:
    """A folder on ``disk``, which is empty again afterwards."""
    tools.run(["mkfs.ext4", "-q", "-F", "-O", "^has_journal", "-m", "0", disk.path], f"scratch: {disk.path}")
    try:
        with _mounted(["-t", "ext4", "-o", "noatime", disk.path]) as folder:
            yield folder
    finally:
        with Target(disk.path, writable=True) as target:
            target.zero(0, min(_EDGE, target.size))
            target.sync()


def sweep(mounts: str = "/proc/self/mounts") -> None:
    """Free what a writer that was killed has left mounted: it would be missing from memory until the next boot."""
    with open(mounts, encoding="utf-8", errors="replace") as handle:
        folders = [line.split()[1] for line in handle if os.path.basename(line.split()[1]).startswith(_PREFIX)]
    for folder in folders:
        owner = os.path.basename(folder)[len(_PREFIX) :].partition("-")[0]
        if not os.path.exists(f"/proc/{owner}") and tools.attempt(["umount", folder]).returncode == 0:
            os.rmdir(folder)


@contextlib.contextmanager
def _mounted(arguments: list[str]) -> t.Iterator[str]:
    sweep()
    folder = tempfile.mkdtemp(prefix=f"{_PREFIX}{os.getpid()}-", dir="/run" if os.access("/run", os.W_OK) else None)
    try:
        tools.run(["mount", *arguments, folder], "scratch", code="scratch")
        try:
            yield folder
        finally:
            tools.run(["umount", folder], "scratch", code="scratch")
    finally:
        os.rmdir(folder)
