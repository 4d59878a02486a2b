# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Unpack one zstd frame with whatever this host has for it. Private to h200.rack."""

from __future__ import annotations

import shutil
import subprocess
import typing as t

Unpack = t.Callable[[bytes], bytes]


def _command(path: str) -> Unpack:
    def unpack(data: bytes) -> bytes:
        return subprocess.run([path, "-dcq"], input=data, capture_output=True, check=True).stdout

    return unpack


def find() -> t.Optional[Unpack]:
    """The best way there is; None when this host cannot unpack zstd."""
    try:
        from compression import zstd  # Python 3.14

        return zstd.decompress
    except ImportError:
        pass
    try:
        import zstandard

        return lambda data: zstandard.ZstdDecompressor().decompressobj().decompress(data)
    except ImportError:
        pass
    path = shutil.which("zstd")
    return _command(path) if path else None
