# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which process of which machine a run is, so that a later run on it can tell that the run is dead.

Private to h200.rack. Only Linux tells this reliably. Elsewhere, and across machines, containers and reboots, nothing is
concluded, and a dead run's leases end when they expire or when a person names the run.
"""

from __future__ import annotations

import os
import pathlib
import re
import typing as t

_FORM = re.compile(r"([0-9a-f-]{36}):(\d+):(\d+):(\d+)\Z")


def _read(path: str) -> str:
    return pathlib.Path(path).read_text(encoding="utf-8", errors="replace")


def _stat(pid: int, proc: str) -> tuple[int, str]:
    """Parent and start time. Raises OSError when there is no such process."""
    # The name in brackets may hold blanks and brackets itself.
    words = _read(f"{proc}/{pid}/stat").rpartition(")")[2].split()
    return int(words[1]), words[19]


def _main_process(proc: str) -> int:
    """The process that all workers of this run are forked from: the last one upwards with the same command line."""
    pid = os.getpid()
    command = _read(f"{proc}/{pid}/cmdline")
    while True:
        parent = _stat(pid, proc)[0]
        if parent < 1 or _read(f"{proc}/{parent}/cmdline") != command:
            return pid
        pid = parent


def _place(proc: str) -> str:
    """Kernel and process namespace: where a process number means something."""
    boot = _read(f"{proc}/sys/kernel/random/boot_id").strip()
    namespace = re.sub(r"\D", "", os.readlink(f"{proc}/self/ns/pid"))
    return f"{boot}:{namespace}"


def this_process(proc: str = "/proc") -> str:
    """The identity of the run that this code is part of; empty where the system does not tell."""
    try:
        pid = _main_process(proc)
        identity = f"{_place(proc)}:{pid}:{_stat(pid, proc)[1]}"
    except (OSError, ValueError, IndexError):
        return ""
    return identity if _FORM.match(identity) else ""


def is_dead(process: t.Optional[str], proc: str = "/proc") -> bool:
    """Whether the run of this identity certainly runs no more."""
    found = _FORM.match(process or "")
    if not found:
        return False
    try:
        if _place(proc) != f"{found[1]}:{found[2]}":
            return False
    except OSError:
        return False
    try:
        return _stat(int(found[3]), proc)[1] != found[4]
    except FileNotFoundError:
        return True
    except (OSError, ValueError, IndexError):
        return False
