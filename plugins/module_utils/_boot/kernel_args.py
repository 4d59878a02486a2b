# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Kernel arguments on their way through iPXE's parser. Private to h200.rack."""

from __future__ import annotations

import re

from ansible_collections.h200.rack.plugins.module_utils._common.errors import InvalidInput

# COMMAND_LINE_SIZE of x86 and arm64, less the final NUL.
MAX_COMMAND_LINE = 2047

# iPXE splits a line at white space before it expands settings, so what a setting holds is never split again.
SPACE = "${rack-space:string}"
NOTHING = "${rack-nothing}"

_TERMINATORS = ("||", "&&", ";")


def check(args: str, owner: str) -> None:
    """Refuse what can reach no kernel through iPXE."""
    bad = sorted({char for char in args if not " " <= char <= "~"})
    if bad:
        raise InvalidInput(f"{owner}: kernel_args hold {bad[0]!r}; only printable ASCII reaches a kernel")
    if re.search(r"\$\{[^}]*\}", args):
        raise InvalidInput(f"{owner}: kernel_args hold ${{...}}, which iPXE replaces; it knows no escape")


def escape(args: str) -> str:
    """Write ``args`` so that iPXE hands them to the kernel as they are.

    iPXE knows no quotes: it cuts a line at white space, ends a command at a lone ``||``, ``&&`` or ``;``, drops
    what follows a word that begins with ``#``, and joins the rest by single spaces. A word that would be taken
    for one of these is hidden behind an empty setting, and every space beyond the first comes from a setting.
    """
    words: list[str] = []
    extra = 0
    for word in args.strip(" ").split(" "):
        if not word:
            extra += 1
            continue
        hidden = NOTHING if not extra and (word in _TERMINATORS or word.startswith("#")) else ""
        words.append(SPACE * extra + hidden + word)
        extra = 0
    return " ".join(words)


def needs_space(escaped: str) -> bool:
    """Whether the setting that holds a space has to be made."""
    return SPACE in escaped
