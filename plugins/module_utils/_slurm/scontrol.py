# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Speak with the controller through ``scontrol`` and ``squeue``. Private to h200.rack."""

from __future__ import annotations

import typing as t

from .._common.deadline import Deadline
from .._common.errors import RackError
from . import records, text, versions

Run = t.Callable[[t.List[str]], t.Tuple[int, str, str]]  # noqa: UP006 - evaluated at run time, on Python 3.9

_AWAY = (
    "Unable to contact slurm controller",
    "Connection refused",
    "Connection timed out",
    "Socket timed out",
    "Zero Bytes were transmitted",
    "slurm_load_ctl_conf error",
    "Insane message length",
    "not responding",
)
_UNKNOWN_NODE = ("not found", "Invalid node name specified")


class ControllerAway(RackError):
    """slurmctld does not answer."""

    code = "controller_unreachable"


class Scontrol:
    """``run`` takes an argument list and returns (rc, stdout, stderr)."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self._version: versions.Version | None = None

    def version(self) -> versions.Version:
        if self._version is None:
            self._version = versions.supported(self._read_version())
        return self._version

    def _read_version(self) -> versions.Version:
        said = ""
        # Slurm's clients need a configuration even to tell their version; the daemon does not.
        for program in ("slurmctld", "scontrol"):
            rc, out, err = self.run([program, "-V"])
            if rc == 0:
                return versions.parse(out)
            said = (err or out).strip()
        raise RackError(
            f"neither slurmctld -V nor scontrol -V works here ({said}); is Slurm installed?", code="no_slurm"
        )

    def call(self, *words: str) -> str:
        """stdout of ``scontrol words``. Raises :class:`ControllerAway` or :class:`RackError`."""
        rc, out, err = self.run(["scontrol", *words])
        said = f"{out}\n{err}"
        # Up to 22.05 some commands print the failure and still exit 0.
        if rc != 0 or "slurm_load_" in err:
            if any(mark in said for mark in _AWAY):
                raise ControllerAway(
                    f"slurmctld does not answer ({err.strip() or out.strip()}); look at `systemctl status slurmctld` "
                    "and its log on the controller",
                )
            raise RackError(f"scontrol {' '.join(words)}: {(err or out).strip()}", code="scontrol_failed")
        return out

    def nodes(self, name: str | None = None) -> list[records.Node]:
        """All nodes, or the one of this name (an empty list when the controller has none such)."""
        words = ["show", "node", *([name] if name else [])]
        try:
            if self.version().has_json:
                found = records.from_json(self.call("--json", *words))
            else:
                found = records.from_text(self.call(*words))
        except ControllerAway:
            raise
        except RackError as exc:
            if name and any(mark in exc.msg for mark in _UNKNOWN_NODE):
                return []
            raise
        return [node for node in found if name is None or node.name == name]

    def node(self, name: str) -> records.Node | None:
        found = self.nodes(name)
        return found[0] if found else None

    def jobs(self, name: str) -> list[str]:
        """Ids of the jobs that hold ``name``, completing ones included."""
        argv = ["squeue", "--noheader", "--nodelist", name, "--states", "all", "--format", "%A %T"]
        rc, out, err = self.run(argv)
        if rc != 0:
            if any(mark in err for mark in _AWAY):
                raise ControllerAway(f"slurmctld does not answer ({err.strip()})")
            if any(mark in err for mark in _UNKNOWN_NODE):
                return []
            raise RackError(f"squeue --nodelist {name}: {err.strip()}", code="scontrol_failed")
        pairs = (line.split() for line in out.splitlines() if line.strip())
        return sorted({pair[0] for pair in pairs if pair[-1] in _HOLDING}, key=int)

    def config(self) -> dict[str, str]:
        return text.config(self.call("show", "config"))

    def partitions(self) -> dict[str, dict[str, str]]:
        found = text.records(self.call("show", "partition"), "PartitionName")
        return {record["PartitionName"]: record for record in found}

    def update_node(self, name: str, state: str, reason: str | None = None) -> None:
        words = ["update", f"nodename={name}", f"state={state}"]
        if reason is not None:
            words.append(f"reason={reason}")
        self.call(*words)

    def delete_node(self, name: str) -> None:
        self.call("delete", f"nodename={name}")

    def reconfigure(self) -> None:
        self.call("reconfigure")

    def wait_alive(self, deadline: Deadline) -> None:
        """Return when the controller answers. Raises :class:`ControllerAway` at the deadline."""
        while True:
            try:
                self.call("show", "config")
                return
            except ControllerAway:
                if not deadline.pause(0.3):
                    raise


# What squeue says of a job that still has its nodes.
_HOLDING = ("RUNNING", "SUSPENDED", "COMPLETING", "CONFIGURING", "STAGE_OUT", "SIGNALING", "STOPPED", "RESIZING")
