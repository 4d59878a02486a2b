# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Let the tests import ansible_collections.h200.rack wherever the repository is checked out."""

from __future__ import annotations

import os
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
COLLECTIONS = ROOT / ".cache" / "collections"


def _arrange() -> None:
    link = COLLECTIONS / "ansible_collections" / "h200" / "rack"
    link.parent.mkdir(parents=True, exist_ok=True)
    if not link.is_symlink():
        link.symlink_to(ROOT)
    # Collections from the PyPI package `ansible` are an ordinary package there, and would hide this one.
    import ansible_collections

    ours = str(COLLECTIONS / "ansible_collections")
    if ours not in ansible_collections.__path__:
        ansible_collections.__path__ = [ours, *ansible_collections.__path__]


sys.path.append(str(COLLECTIONS))
_arrange()
os.environ.setdefault("ANSIBLE_COLLECTIONS_PATH", str(COLLECTIONS))
