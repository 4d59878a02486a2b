# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The disk, or the regular file, that an image is written to. Private to h200.rack.

Reads and writes go past the page cache where the file system can: what is read back comes from the disk, and nothing
is left to be written when the module says it is done.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import mmap
import os
import stat
import struct
import typing as t

from ansible_collections.h200.rack.plugins.module_utils._common.errors import RackError

_BLKRRPART = 0x125F
_BLKSSZGET = 0x1268
_BLKDISCARD = 0x1277
_BLKZEROOUT = 0x127F
_FALLOC_KEEP_SIZE_PUNCH_HOLE = 0x03
_UNSUPPORTED = (errno.EOPNOTSUPP, errno.EINVAL, errno.ENOTTY, errno.ENOSYS)


class DiskError(RackError):
    """The disk failed a read or a write."""

    code = "disk_io"


def buffer(size: int) -> memoryview:
    """Memory that direct I/O accepts: whole pages."""
    return memoryview(mmap.mmap(-1, -(-size // mmap.PAGESIZE) * mmap.PAGESIZE))


class Target:
    """An open disk. Methods may be called from several threads."""

    def __init__(self, path: str, writable: bool) -> None:
        self.path = path
        mode = (os.O_RDWR if writable else os.O_RDONLY) | os.O_CLOEXEC
        self.is_block = stat.S_ISBLK(os.stat(path).st_mode)
        if self.is_block and writable:
            # Exclusive: the kernel refuses while anything is mounted from it or built on it.
            mode |= os.O_EXCL
        try:
            self._plain = os.open(path, mode)
        except OSError as exc:
            raise DiskError(f"{path} cannot be opened: {exc.strerror}", code="disk_busy") from exc
        try:
            self._direct = os.open(path, (mode & ~os.O_EXCL) | os.O_DIRECT)
        except OSError:
            self._direct = self._plain
        self.size = os.lseek(self._plain, 0, os.SEEK_END)
        self.sector_size = self._logical_sector() if self.is_block else 512
        self._libc_fallocate: t.Any = None

    def close(self) -> None:
        if self._direct != self._plain:
            os.close(self._direct)
        os.close(self._plain)

    def __enter__(self) -> Target:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def _logical_sector(self) -> int:
        return struct.unpack("i", fcntl.ioctl(self._plain, _BLKSSZGET, bytes(4)))[0]

    def read(self, offset: int, view: memoryview) -> None:
        """Fill ``view`` from the disk."""
        self._all(os.preadv, offset, view, "read")

    def write(self, offset: int, view: memoryview) -> None:
        self._all(os.pwritev, offset, view, "write")

    def _all(
        self, call: t.Callable[[int, list[memoryview], int], int], offset: int, view: memoryview, word: str
    ) -> None:
        fd, done = self._direct, 0
        while done < len(view):
            try:
                count = call(fd, [view[done:]], offset + done)
            except OSError as exc:
                if exc.errno == errno.EINVAL and fd != self._plain:
                    # An odd length or address: past the page cache is not possible, through it is.
                    fd = self._plain
                    continue
                raise DiskError(f"{self.path}: {word} at byte {offset + done} failed: {exc.strerror}") from exc
            if not count:
                raise DiskError(f"{self.path}: {word} at byte {offset + done} failed: end of the disk")
            done += count

    def zero(self, offset: int, length: int) -> None:
        """Make the range read as zeros, without transferring them where the disk can do that itself."""
        try:
            if self.is_block:
                fcntl.ioctl(self._plain, _BLKZEROOUT, struct.pack("QQ", offset, length))
            else:
                self._punch(offset, length)
            return
        except OSError as exc:
            if exc.errno not in _UNSUPPORTED:
                raise DiskError(f"{self.path}: zeroing at byte {offset} failed: {exc.strerror}") from exc
        blank = buffer(min(length, 1 << 20))
        for start in range(0, length, len(blank)):
            self.write(offset + start, blank[: min(len(blank), length - start)])

    def _punch(self, offset: int, length: int) -> None:
        import ctypes

        libc = ctypes.CDLL(None, use_errno=True)
        number = ctypes.c_longlong
        if libc.fallocate64(self._plain, _FALLOC_KEEP_SIZE_PUNCH_HOLE, number(offset), number(length)):
            code = ctypes.get_errno()
            raise OSError(code, os.strerror(code))

    def discard(self) -> bool:
        """Tell the disk that nothing on it is needed, where it can be told. Nothing relies on what it then reads as."""
        if not self.is_block:
            return False
        try:
            fcntl.ioctl(self._plain, _BLKDISCARD, struct.pack("QQ", 0, self.size))
        except OSError:
            return False
        return True

    def sync(self) -> None:
        try:
            os.fsync(self._plain)
        except OSError as exc:
            raise DiskError(f"{self.path}: the disk could not write everything: {exc.strerror}") from exc
        with contextlib.suppress(OSError):
            os.posix_fadvise(self._plain, 0, 0, os.POSIX_FADV_DONTNEED)

    def reread_partitions(self) -> bool:
        """Make the kernel see the partitions as they now are; False when something on the disk is in use."""
        if not self.is_block:
            return True
        try:
            fcntl.ioctl(self._plain, _BLKRRPART)
        except OSError:
            return False
        return True
