# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How a change reaches a running controller: one table. Private to h200.rack."""

from __future__ import annotations

import typing as t

from .._common.errors import RackError
from .versions import Version

NONE, RECONFIGURE, RESTART, START = "none", "reconfigure", "restart", "start"
# What may be asked for beside RECONFIGURE and RESTART.
AUTO, DYNAMIC = "auto", "dynamic"

# What changed → what it needs (before 24.11, from 24.11 on).
# Node set: reconfigure kills slurmctld up to 23.11. Gres and topology: the plugins read them at start up to there.
# Settings: many (SelectType, ports) are only read at start; from 24.11 reconfigure starts a new process.
_NEEDS = {
    "node_set": (RESTART, RECONFIGURE),
    "gres": (RESTART, RECONFIGURE),
    "topology": (RESTART, RECONFIGURE),
    "settings": (RESTART, RESTART),
    "node_values": (RECONFIGURE, RECONFIGURE),
    "partitions": (RECONFIGURE, RECONFIGURE),
    "cgroup": (RECONFIGURE, RECONFIGURE),
}
_ORDER = (NONE, RECONFIGURE, RESTART)


def choose(changes: t.Iterable[str], version: Version, running: bool, wanted: str = "auto") -> str:
    """The one action that makes ``changes`` true on a controller of ``version``.

    ``wanted`` may ask for more than the table does (restart), never for less.
    """
    changes = list(changes)
    if not running:
        return START
    if not changes:
        return NONE
    column = 1 if version.reconfigure_takes_nodes else 0
    needed = max((_NEEDS[change][column] for change in changes), key=_ORDER.index)
    if wanted == "auto" or wanted == needed:
        return needed
    if _ORDER.index(wanted) < _ORDER.index(needed):
        raise RackError(
            f"slurm_strategy: {wanted} is refused: a change of {', '.join(changes)} needs a {needed} on Slurm {version}"
            + (", where a reconfigure with other node names kills slurmctld" if "node_set" in changes else ""),
            code="strategy_refused",
            needed=needed,
        )
    return wanted
