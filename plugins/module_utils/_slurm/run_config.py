# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""slurm_config: from the module's options to its result. Private to h200.rack."""

from __future__ import annotations

import os
import re
import typing as t

from .._common.errors import InvalidInput
from . import declared, plan
from .controller import Controller, Result
from .scontrol import Run, Scontrol
from .service import Service


def run(params: t.Mapping[str, t.Any], command: Run, check_mode: bool) -> tuple[dict[str, t.Any], list[str]]:
    """Returns the result and warnings. Raises :class:`RackError`."""
    if not 0 <= params["memory_margin"] < 0.5:
        raise InvalidInput("slurm_memory_margin: must be a share of the memory, at least 0 and below 0.5")
    if params["cgroup_conf"] is not None and params["slurm_conf"] is None:
        raise InvalidInput("cgroup_conf: is only written together with slurm_conf; else the site's own stays")
    nodes = declared.read_nodes(params["nodes"], params["memory_margin"])
    both = sorted({node.name for node in nodes} & set(params["absent_nodes"]))
    if both:
        raise InvalidInput(f"absent_nodes: {', '.join(both)} cannot be declared and removed in one call")
    wanted = plan.Wanted(
        nodes=nodes,
        absent=tuple(params["absent_nodes"]),
        partitions=params["partitions"],
        slurm_conf=params["slurm_conf"],
        cgroup_conf=params["cgroup_conf"],
        detect=params["gres_detect"],
        device=params["gres_file"],
        topology=params["topology"],
        folder=params["config_dir"],
    )
    controller = Controller(Scontrol(command), Service(command, params["service"]), params["timeout"])
    result = controller.apply(wanted, params["run_id"], params["strategy"], check_mode)
    return _as_dict(result, wanted.folder), [f"the trial slurmctld said: {line}" for line in result.warnings]


def shown(text: str) -> str:
    """``text`` without the passwords that a site's slurm.conf may hold (JobCompPass, AccountingStoragePass)."""
    return re.sub(r"(?im)^(\s*\w*Pass(?:word)?\s*=\s*)\S+", r"\1********", text)


def _as_dict(result: Result, folder: str) -> dict[str, t.Any]:
    return {
        "changed": result.changed,
        "action": result.action,
        "pushed": result.pushed,
        "changes": result.changes,
        "drained": result.drained,
        "removed": result.removed,
        "joining": result.joining,
        "version": result.version,
        "files": sorted(os.path.join(folder, name) for name in result.files),
        "diff": [
            {
                "before_header": os.path.join(folder, name),
                "after_header": os.path.join(folder, name),
                "before": shown((before or b"").decode(errors="replace")),
                "after": shown(after.decode(errors="replace")),
            }
            for name, (before, after) in sorted(result.files.items())
        ],
    }
