# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Start a program of the virtual rack once, inside its box, where the box's first process ends it."""

from __future__ import annotations

import pathlib
import subprocess
import time
from collections.abc import Callable


def pid_file(name: str) -> str:
    return f"/run/vrack/{name}.pid"


def start(name: str, argv: list[str], log: str, executable: str = "", environment: dict[str, str] | None = None,
          cgroup: str = "") -> bool:  # fmt: skip
    """True when it was started, False when it ran already. ``executable``: what argv becomes, where it is a script."""
    enter = ["/bin/sh", "-c", f'echo $$ >{cgroup}/cgroup.procs && exec "$@"', "sh"] if cgroup else []
    assignments = [f"{key}={value}" for key, value in (environment or {}).items()]
    command = [*enter, *(["/usr/bin/env", *assignments] if assignments else []), *argv]
    done = subprocess.run(
        ["start-stop-daemon", "--start", "--background", "--make-pidfile", "--pidfile", pid_file(name),
         "--exec", executable or argv[0], "--output", log, "--startas", command[0], "--", *command[1:]],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode not in (0, 1):  # 1: it runs already
        raise SystemExit(f"{name} does not start: {done.stderr.strip()}")
    return done.returncode == 0


def wait(what: str, ready: Callable[[], bool], seconds: float, log: str) -> None:
    deadline = time.monotonic() + seconds
    while not ready():
        if time.monotonic() > deadline:
            tail = pathlib.Path(log).read_text(errors="replace")[-1000:] if pathlib.Path(log).exists() else ""
            raise SystemExit(f"{what} is not ready within {seconds:.0f} s; {log} ends with:\n{tail}")
        time.sleep(0.1)
