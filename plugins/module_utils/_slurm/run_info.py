# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""slurm_info: from the module's options to its result. Private to h200.rack."""

from __future__ import annotations

import os
import pathlib
import typing as t

from .._common.deadline import Deadline
from . import conf, node
from .scontrol import Run, Scontrol

# What slurmd reads beside slurm.conf; slurmdbd.conf (a password) is not among them.
_BESIDE = (
    "gres.conf",
    "topology.conf",
    "topology.yaml",
    "cgroup.conf",
    "plugstack.conf",
    "job_container.conf",
    "mpi.conf",
)


def run(params: t.Mapping[str, t.Any], command: Run) -> dict[str, t.Any]:
    """Raises :class:`RackError`."""
    scontrol = Scontrol(command)
    version = scontrol.version()
    scontrol.wait_alive(Deadline(params["wait"]))
    known = {item.name: item for item in scontrol.nodes()}
    names = params["nodes"] if params["nodes"] is not None else sorted(known)
    result: dict[str, t.Any] = {
        "version": str(version),
        "nodes": {name: _node(scontrol, known.get(name), params["jobs"]) for name in names},
        "partitions": scontrol.partitions(),
        "config": scontrol.config(),
    }
    if params["files"]:
        result["files"] = files(params["config_dir"])
    return result


def _node(scontrol: Scontrol, item: node.Node | None, jobs: bool) -> dict[str, t.Any]:
    return node.as_dict(item, scontrol.jobs(item.name) if jobs and item is not None else ())


def files(folder: str) -> dict[str, str]:
    """Name → content of what a node without the configless mode needs."""
    found: dict[str, str] = {}
    for name in ("slurm.conf", *_BESIDE):
        path = os.path.join(folder, name)
        if not os.path.isfile(path):
            continue
        for part in (path, *sorted(conf.read(path).includes)):
            inside = os.path.relpath(part, folder)
            if not inside.startswith("..") and os.path.isfile(part):
                found[inside] = pathlib.Path(part).read_text(encoding="utf-8", errors="replace")
    return found
