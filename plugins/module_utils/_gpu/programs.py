# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Start programs together, with one time limit for all, and end whatever is left of them. Private to h200.rack."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import pathlib
import signal
import subprocess
import tempfile
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
    """Run ``commands`` side by side; each in a process group of its own, all within ``timeout`` seconds.

    They write to files: one that hangs must not keep another waiting for a full pipe to be read.
    """
    deadline = Deadline(timeout)
    env = environment()
    with tempfile.TemporaryDirectory(prefix="h200-rack-") as folder:
        started = {name: _start(argv, env, pathlib.Path(folder, name)) for name, argv in commands.items()}
        return {name: item if isinstance(item, Output) else item.finish(deadline) for name, item in started.items()}


@dataclasses.dataclass
class _Running:
    process: subprocess.Popen[bytes]
    base: pathlib.Path

    def finish(self, deadline: Deadline) -> Output:
        hung = False
        try:
            self.process.wait(deadline.remaining)
        except subprocess.TimeoutExpired:
            hung = True
        # Also what it left behind when it ended by itself.
        kill_group(self.process, signal.SIGKILL)
        if hung:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(KILL_GRACE)
        code = self.process.returncode
        state = HUNG if hung else OK if code == 0 else FAILED
        out, err = (self.base.with_suffix(part).read_text("utf-8", "replace") for part in (".out", ".err"))
        return Output(state, code, out, err)


def _start(argv: t.Sequence[str], env: t.Mapping[str, str], base: pathlib.Path) -> t.Union[_Running, Output]:
    with base.with_suffix(".out").open("wb") as out, base.with_suffix(".err").open("wb") as err:
        try:
            process = subprocess.Popen(  # pylint: disable=ansible-bad-function  # several side by side
                list(argv), stdin=subprocess.DEVNULL, stdout=out, stderr=err, env=dict(env), start_new_session=True
            )
        except FileNotFoundError:
            return Output(MISSING)
        except OSError as exc:
            return Output(FAILED, err=str(exc))
    return _Running(process, base)
