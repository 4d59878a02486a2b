# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Start programs together, with one time limit for all, and end whatever is left of them. Private to h200.rack."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import signal
import subprocess
import typing as t

from ansible_collections.h200.rack.plugins.module_utils._common.deadline import Deadline

OK, MISSING, HUNG, FAILED = "ok", "missing", "hung", "failed"
# After SIGKILL a process is gone at once unless it sits in the kernel, where nothing ends it: then it is left alone.
KILL_GRACE = 2.0


@dataclasses.dataclass(frozen=True)
class Output:
    """What became of one program: ``state`` is ok, missing (not installed), hung (ended by us) or failed."""

    state: str
    rc: t.Optional[int] = None
    out: str = ""
    err: str = ""


def environment(extra: t.Optional[t.Mapping[str, str]] = None) -> dict[str, str]:
    """The environment with English messages and the system directories on PATH."""
    path = os.environ.get("PATH", "")
    system = ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"]
    parts = [part for part in path.split(os.pathsep) if part]
    full = os.pathsep.join([*parts, *(part for part in system if part not in parts)])
    return {**os.environ, "LC_ALL": "C", "LANG": "C", "PATH": full, **(extra or {})}


def kill_group(process: subprocess.Popen[t.Any], number: int) -> None:
    """Send ``number`` to the process and all that it started."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)


def run_all(commands: t.Mapping[str, t.Sequence[str]], timeout: float) -> dict[str, Output]:
    """Run ``commands`` side by side; each in a process group of its own, all within ``timeout`` seconds."""
    deadline = Deadline(timeout)
    env = environment()
    started: dict[str, t.Union[subprocess.Popen[str], Output]] = {}
    for name, argv in commands.items():
        try:
            started[name] = subprocess.Popen(
                list(argv),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                errors="replace",
                env=env,
                start_new_session=True,
            )
        except FileNotFoundError:
            started[name] = Output(MISSING)
        except OSError as exc:
            started[name] = Output(FAILED, err=str(exc))
    return {name: item if isinstance(item, Output) else _finish(item, deadline) for name, item in started.items()}


def _finish(process: subprocess.Popen[str], deadline: Deadline) -> Output:
    try:
        out, err = process.communicate(timeout=deadline.remaining)
    except subprocess.TimeoutExpired:
        kill_group(process, signal.SIGKILL)
        try:
            out, err = process.communicate(timeout=KILL_GRACE)
        except subprocess.TimeoutExpired:
            out, err = "", ""
            for stream in (process.stdout, process.stderr):
                if stream is not None:
                    stream.close()
        return Output(HUNG, process.returncode, out, err)
    kill_group(process, signal.SIGKILL)
    return Output(OK if process.returncode == 0 else FAILED, process.returncode, out, err)
