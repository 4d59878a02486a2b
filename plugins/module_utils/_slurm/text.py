# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Read what ``scontrol`` prints as plain text. Private to h200.rack.

The many-line form is read, not ``--oneliner``: there a reason with ``Word=`` in it could not be told from a field.
"""

from __future__ import annotations

import re

# These fields take their whole line: their values hold blanks.
_WHOLE_LINE = ("OS", "Reason", "Comment", "Extra", "AdminComment")
_FIELD = re.compile(r"([A-Za-z][\w:/]*)=(.*)", re.DOTALL)
_REASON = re.compile(r"(?P<reason>.*?)(?: \[(?P<user>[^@\]]*)@(?P<since>[^\]]*)\])?", re.DOTALL)


def records(text: str, first: str) -> list[dict[str, str]]:
    """The records of ``scontrol show …``, each of which begins with the field ``first``."""
    found: list[dict[str, str]] = []
    for line in text.splitlines():
        stripped = line.strip()
        if line.startswith(f"{first}="):
            found.append({})
        if found and stripped:
            _add_line(found[-1], stripped)
    return found


def _add_line(record: dict[str, str], line: str) -> None:
    whole = _FIELD.fullmatch(line)
    if whole and whole[1] in _WHOLE_LINE:
        record[whole[1]] = whole[2].strip()
        return
    key = None
    for word in line.split(" "):
        field = _FIELD.fullmatch(word)
        if field:
            key = field[1]
            record[key] = field[2]
        elif key and word:
            record[key] += f" {word}"


def split_reason(value: str | None) -> tuple[str | None, str | None, str | None]:
    """``text [user@time]`` → (text, user, time)."""
    match = _REASON.fullmatch(value or "")
    if not value or not match or not match["reason"]:
        return None, None, None
    return match["reason"], match["user"], match["since"]


def config(text: str) -> dict[str, str]:
    """``scontrol show config`` as a mapping; keys as Slurm writes them."""
    values: dict[str, str] = {}
    for line in text.splitlines():
        key, sign, value = line.partition("=")
        if sign and key.strip() and " " not in key.strip():
            values[key.strip()] = value.strip()
    return values
