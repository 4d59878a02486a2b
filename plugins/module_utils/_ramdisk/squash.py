# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Writes a squashfs of archive entries, the same bytes for the same input. Private to h200.rack."""

from __future__ import annotations

import io
import os
import stat
import subprocess
import tarfile
import typing as t

from ansible_collections.h200.rack.plugins.module_utils._common.errors import RackError

from .cpio import Entry

_KINDS = {
    stat.S_IFDIR: tarfile.DIRTYPE,
    stat.S_IFLNK: tarfile.SYMTYPE,
    stat.S_IFREG: tarfile.REGTYPE,
    stat.S_IFCHR: tarfile.CHRTYPE,
    stat.S_IFBLK: tarfile.BLKTYPE,
    stat.S_IFIFO: tarfile.FIFOTYPE,
}


def below(folder: str, entries: t.Iterable[Entry]) -> list[Entry]:
    """The entries with their paths made relative to ``folder``."""
    cut = len(folder) + 1
    return [
        Entry(entry.path[cut:], entry.mode, entry.data, entry.source, entry.uid, entry.gid, entry.rdev)
        for entry in entries
    ]


def _member(entry: Entry, mtime: int) -> tarfile.TarInfo:
    member = tarfile.TarInfo(entry.path)
    member.type = _KINDS[stat.S_IFMT(entry.mode)]
    member.mode = stat.S_IMODE(entry.mode)
    member.uid, member.gid = entry.uid, entry.gid
    member.devmajor, member.devminor = entry.rdev
    member.mtime = mtime
    if member.issym():
        member.linkname = os.fsdecode(entry.data)
    elif member.isreg():
        member.size = len(entry.data) if entry.source is None else os.stat(entry.source).st_size
    return member


def write(path: str, entries: t.Iterable[Entry], level: int, mtime: int = 0) -> None:
    """Pack the entries, in their order, with zstd."""
    command = ["mksquashfs", "-", path, "-tar", "-noappend", "-quiet", "-no-progress", "-no-xattrs", "-comp", "zstd"]
    command += ["-Xcompression-level", str(level), "-mkfs-time", str(mtime), "-all-time", str(mtime)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    with subprocess.Popen(command, **pipes) as process:  # pylint: disable=ansible-bad-function  # its input is a stream
        pipe = t.cast(t.BinaryIO, process.stdin)
        try:
            with tarfile.open(fileobj=pipe, mode="w|", format=tarfile.GNU_FORMAT) as tar:
                for entry in entries:
                    _add(tar, entry, mtime)
            pipe.close()
        except BrokenPipeError:
            pass  # what went wrong is in the output
        output = t.cast(t.BinaryIO, process.stdout).read().decode("utf-8", "replace")
        if process.wait() != 0:
            raise RackError(f"mksquashfs could not pack the ramdisk: {output.strip()[-1000:]}", code="build")


def _add(tar: tarfile.TarFile, entry: Entry, mtime: int) -> None:
    member = _member(entry, mtime)
    if not member.isreg():
        tar.addfile(member)
    elif entry.source is None:
        tar.addfile(member, io.BytesIO(entry.data))
    else:
        with open(entry.source, "rb") as handle:
            tar.addfile(member, handle)
