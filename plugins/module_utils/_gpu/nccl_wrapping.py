# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Logs as editors, shells and container engines store them, back to what the test printed. Private to h200.rack."""

from __future__ import annotations

import codecs
import json
import typing as t

# UTF-16 is what PowerShell's redirection writes.
_MARKS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))


def decoded(data: bytes) -> str:
    """The text of a file, by its byte order mark or else as UTF-8; never raises."""
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            return data[len(mark) :].decode(encoding, "replace")
    return data.decode("utf-8", "replace")


def unwrapped(text: str) -> str:
    """Without a byte order mark, and without the JSON that Docker's log driver puts around each line."""
    text = text.lstrip("\ufeff")
    if not text.lstrip().startswith('{"log":'):
        return text
    pieces: list[str] = []
    for line in text.splitlines():
        piece = _piece(line)
        if piece is None:
            return text
        pieces.append(piece)
    return "".join(pieces)


def _piece(line: str) -> t.Optional[str]:
    if not line.strip():
        return ""
    try:
        entry = json.loads(line)
    except (ValueError, RecursionError):
        # The last line of a log that was cut.
        return "\n"
    piece = entry.get("log") if isinstance(entry, dict) else None
    return piece if isinstance(piece, str) else None
