# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run one command with a time limit that ends everything it started. Private to h200.rack."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import time
import typing as t

from . import programs

# What a group gets between SIGTERM and SIGKILL: srun needs it to end the tasks on other nodes.
TERM_GRACE = 10.0
# The end of a job that printed megabytes is what tells why.
_LARGEST = 8 << 20


@dataclasses.dataclass(frozen=True)
class Ended:
    """``rc`` None: it had to be ended."""

    rc: t.Optional[int]
    out: str
    err: str
    json: str
    seconds: float
    timed_out: bool
    missing: str = ""


def find_missing(argv: t.Sequence[str], env: t.Mapping[str, str]) -> str:
    """The launcher, or without one the program, where it is not installed here."""
    path = shutil.which(argv[0], path=programs.environment(env)["PATH"])
    return "" if path else argv[0]


def run(argv: t.Sequence[str], env: t.Mapping[str, str], timeout: float, grace: float = TERM_GRACE) -> Ended:
    """Output goes to files, so a child that outlives its parent and holds the pipe cannot hold us."""
    with tempfile.TemporaryDirectory(prefix="h200-rack-") as folder:
        command = [part.replace("{dir}", folder) for part in argv]
        started = time.monotonic()
        base = pathlib.Path(folder)
        with (base / "out").open("wb") as out, (base / "err").open("wb") as err:
            try:
                process = subprocess.Popen(  # pylint: disable=ansible-bad-function  # no AnsibleModule here
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=out,
                    stderr=err,
                    env=programs.environment(env),
                    cwd="/",
                    start_new_session=True,
                )
            except OSError as exc:
                return Ended(None, "", str(exc), "", 0.0, False, missing=command[0])
        timed_out = False
        try:
            process.wait(timeout)
        except subprocess.TimeoutExpired:
            timed_out = True
            _end(process, grace)
        else:
            # Its children may still run: nothing of it is to stay.
            programs.kill_group(process, signal.SIGKILL)
        return Ended(
            None if timed_out else process.returncode,
            _read(f"{folder}/out"),
            _read(f"{folder}/err"),
            _read(f"{folder}/result.json"),
            time.monotonic() - started,
            timed_out,
        )


def _end(process: subprocess.Popen[t.Any], grace: float) -> None:
    """SIGTERM to the whole group, then SIGKILL to what is left of it, also when its leader has gone."""
    programs.kill_group(process, signal.SIGTERM)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(grace)
    programs.kill_group(process, signal.SIGKILL)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(programs.KILL_GRACE)


def _read(path: str) -> str:
    try:
        data = pathlib.Path(path).read_bytes()
    except OSError:
        return ""
    return data[-_LARGEST:].decode("utf-8", "replace")


def cancel(job_name: str) -> None:
    """Whatever srun left in the queue under our name. Inside an allocation the steps die with srun."""
    if os.environ.get("SLURM_JOB_ID"):
        return
    programs.run_all({"scancel": ("scancel", f"--name={job_name}", "--quiet")}, timeout=15)
