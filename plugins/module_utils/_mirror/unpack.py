# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Unpack one zstd frame with whatever this host has for it. Private to h200.rack."""

from __future__ import annotations

import typing as t

Unpack = t.Callable[[bytes], bytes]
#: The method of this name of a module.
RunCommand = t.Callable[..., tuple[int, bytes, bytes]]


def _command(path: str, run_command: RunCommand) -> Unpack:
    def unpack(data: bytes) -> bytes:
        _rc, out, _err = run_command([path, "-dcq"], data=data, binary_data=True, encoding=None, check_rc=False)
        return out

    return unpack


def find(run_command: t.Optional[RunCommand] = None, zstd: t.Optional[str] = None) -> t.Optional[Unpack]:
    """The best way there is; None when this host cannot unpack. ``zstd`` is the command's path, where it has one."""
    try:
        from compression import zstd as standard  # Python 3.14

        return standard.decompress
    except ImportError:
        pass
    try:
        import zstandard

        return lambda data: zstandard.ZstdDecompressor().decompressobj().decompress(data)
    except ImportError:
        return _command(zstd, run_command) if zstd and run_command else None
