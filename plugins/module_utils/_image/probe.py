# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ask this machine about its disks. Private to h200.rack."""

from __future__ import annotations

import json
import os
import typing as t

from ansible_collections.h200.rack.plugins.module_utils._common.errors import InvalidInput, RackError

from . import tools
from .disks import Disk, from_lsblk
from .target import Target, buffer

_COLUMNS = (
    "NAME,KNAME,PATH,TYPE,SIZE,RO,RM,MODEL,SERIAL,WWN,VENDOR,ROTA,HCTL,TRAN,LOG-SEC,FSTYPE,PTTYPE,LABEL,MOUNTPOINTS"
)
_EDGE = 1 << 20


class Lsblk:
    """lsblk, started at once and read when it is needed."""

    def __init__(self) -> None:
        self._process = tools.start(["lsblk", "-J", "-b", "-o", _COLUMNS])

    def disks(self) -> list[Disk]:
        output, errors = self._process.communicate()
        # 64: some devices could not be read (a medium was taken out meanwhile); the others are listed.
        if self._process.returncode not in (0, 64):
            raise RackError(f"lsblk failed: {errors.strip()[-300:]}", code="tool")
        return from_lsblk(json.loads(output), sysfs_serials(), by_path_links())


def sysfs_serials() -> dict[str, str]:
    """Serial numbers that lsblk of older releases does not find: those of virtio disks."""
    found = {}
    for name in os.listdir("/sys/block"):
        for place in ("serial", "device/serial"):
            try:
                with open(f"/sys/block/{name}/{place}", encoding="ascii", errors="replace") as handle:
                    text = handle.read().strip("\0 \n")
            except OSError:
                continue
            if text:
                found[name] = text
                break
    return found


def by_path_links(folder: str = "/dev/disk/by-path") -> dict[str, list[str]]:
    links: dict[str, list[str]] = {}
    try:
        entries = os.listdir(folder)
    except OSError:
        return links
    for entry in entries:
        links.setdefault(os.path.basename(os.path.realpath(os.path.join(folder, entry))), []).append(entry)
    return links


def file_as_disk(path: str) -> Disk:
    """A regular file that plays a disk's part."""
    if not os.path.isfile(path):
        raise InvalidInput(f"disk: {path} is neither a disk nor a file")
    size = os.stat(path).st_size
    return Disk(path, size, 512, "", "", "regular file", "", "", False, (), "", "", tuple(signatures(path)))


def signatures(path: str) -> list[str]:
    """What wipefs finds on ``path``; nothing when both ends of it are blank."""
    if is_blank(path):
        return []
    output = tools.run(["wipefs", "--no-act", "--json", path], path)
    found: list[dict[str, t.Any]] = json.loads(output or "{}").get("signatures", [])
    return list(dict.fromkeys(f"{path}: {row.get('type')}" for row in found))


def is_blank(path: str) -> bool:
    """Whether the first and the last MiB hold only zeros; file systems and tables all have their mark there."""
    with Target(path, writable=False) as target:
        view = buffer(min(_EDGE, target.size))[: min(_EDGE, target.size)]
        zeros = bytes(len(view))
        for offset in (0, (target.size - len(view)) // target.sector_size * target.sector_size):
            part = view[: min(len(view), target.size - offset)]
            target.read(offset, part)
            if part != zeros[: len(part)]:
                return False
    return True
