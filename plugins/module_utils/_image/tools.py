# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Other programs: the one place that starts them. Private to h200.rack.

The engine runs in threads, and without an AnsibleModule whose run_command could be used.
"""

from __future__ import annotations

import os
import subprocess
import typing as t

from ansible_collections.h200.rack.plugins.module_utils._common.errors import RackError

Process = subprocess.Popen
Completed = subprocess.CompletedProcess

# Messages are compared and sizes parsed: they must not depend on where the module runs.
_ENVIRONMENT = {"LC_ALL": "C", "LANGUAGE": "C"}


def _missing(name: str) -> RackError:
    return RackError(f"{name} is not installed on this host", code="missing")


def start(command: t.Sequence[str], **options: t.Any) -> Process[str]:
    """Start ``command``; its output is read by the caller."""
    given = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, **options}
    environment = {**os.environ, **_ENVIRONMENT}
    try:
        return subprocess.Popen(command, env=environment, **given)  # pylint: disable=ansible-bad-function
    except FileNotFoundError as exc:
        raise _missing(command[0]) from exc


def start_detached(command: t.Sequence[str]) -> None:
    """Start ``command`` so that it outlives this process."""
    start(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)


def attempt(command: t.Sequence[str], timeout: float | None = None) -> Completed[str]:
    """Run ``command`` to its end; the caller judges how it ended."""
    process = start(command, errors="replace")
    try:
        output, errors = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired as exc:
        process.kill()
        process.communicate()
        raise RackError(f"{command[0]} did not end within {timeout:g} s", code="timeout") from exc
    return subprocess.CompletedProcess(list(command), process.returncode, output, errors)


def run(command: t.Sequence[str], what: str, code: str = "tool", timeout: float | None = None) -> str:
    """The output of ``command``, which must succeed; ``what`` begins the message when it does not."""
    done = attempt(command, timeout)
    if done.returncode:
        said = (done.stderr or done.stdout).strip()[-400:]
        raise RackError(f"{what}: {command[0]} failed: {said or f'exit code {done.returncode}'}", code=code)
    return done.stdout


def available(name: str) -> bool:
    """Whether the program is on PATH."""
    return any(os.access(os.path.join(folder, name), os.X_OK) for folder in os.get_exec_path())
