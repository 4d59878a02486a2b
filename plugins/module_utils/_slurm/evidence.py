# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Why slurmctld found a node invalid. Private to h200.rack.

slurmctld writes that into the node's reason only when the node has none; behind our gate it always has one, and the
cause is left to the log.
"""

from __future__ import annotations

import contextlib
import os
import pathlib
import re

from .._common.errors import RackError
from .scontrol import Scontrol

_TAIL = 1 << 20


def rejection_reason(scontrol: Scontrol, name: str) -> str | None:
    """The last cause that slurmctld logged for ``name``; None when its log is not readable from here."""
    pattern = re.compile(rf"Setting node {re.escape(name)} state to INVAL with reason:(.*)")
    found = pattern.findall(_log(scontrol))
    return found[-1].strip() if found else None


def _log(scontrol: Scontrol) -> str:
    path = None
    with contextlib.suppress(RackError):
        path = scontrol.config().get("SlurmctldLogFile")
    if path and path != "(null)":
        return _tail(path)
    rc, out, _err = scontrol.run(
        ["journalctl", "--unit", "slurmctld", "--lines", "5000", "--no-pager", "--output", "cat"]
    )
    return out if rc == 0 else ""


def _tail(path: str) -> str:
    try:
        with pathlib.Path(path).open("rb") as handle:
            handle.seek(max(0, os.stat(path).st_size - _TAIL))
            return handle.read().decode(errors="replace")
    except OSError:
        return ""
