# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Let a throwaway slurmctld read a configuration before the real one does. Private to h200.rack.

It runs on copies of the files, with an empty state, a port of its own, without the site's accounting and power
saving, and with every node and controller name pointed at a closed port of this host: it can reach nothing.
"""

from __future__ import annotations

import os
import pathlib
import pwd
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import typing as t

from .._common.deadline import Deadline
from .._common.errors import RackError
from . import conf, hostlist

ALIVE = "Running as primary controller"
# Nothing listens there: no other address and port is left in the copies.
_NOWHERE, _CLOSED_PORT = "127.0.0.2", 9
_DROPPED = """
    StateSaveLocation SlurmctldLogFile SlurmctldPidFile SlurmctldDebug DebugFlags SlurmctldParameters
    SlurmctldHost SlurmctldAddr SlurmctldPort ControlMachine ControlAddr BackupController BackupAddr SlurmdPort
    SlurmctldPrimaryOnProg SlurmctldPrimaryOffProg
    SuspendProgram ResumeProgram ResumeFailProgram SuspendTime RebootProgram
    AccountingStorageType AccountingStorageHost AccountingStorageBackupHost AccountingStorageEnforce
    AccountingStorageTRES JobCompType PriorityType
"""
_DROPPED_LINE = re.compile(rf"\s*({'|'.join(_DROPPED.split())})\s*=", re.IGNORECASE)
_ADDRESS = re.compile(r"\b(NodeAddr|Port)\s*=\s*\S+", re.IGNORECASE)
_SCRIPT = """
set -e
mount --bind "$1" "$2"
mount --bind "$3" /etc/hosts
exec slurmctld -D
"""


class Refused(RackError):
    """The throwaway controller did not start with these files."""

    code = "config_refused"


def run(folder: str, files: t.Mapping[str, bytes], timeout: float) -> list[str]:
    """Start a throwaway slurmctld on ``folder`` with ``files`` (name → content) laid over it.

    Returns what it logged as an error. Raises :class:`Refused` when it does not come up.
    """
    work = tempfile.mkdtemp(prefix="h200-rack-slurm-")
    try:
        os.chmod(work, 0o755)
        copy = os.path.join(work, "etc")
        shutil.copytree(folder, copy, symlinks=True)
        for name, content in files.items():
            pathlib.Path(copy, name).write_bytes(content)
        read = conf.read(os.path.join(copy, "slurm.conf"), _from_copy(folder, copy))
        _make_harmless(work, copy, read)
        return _errors(_start(work, copy, folder, timeout))
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _from_copy(folder: str, copy: str) -> t.Callable[[str], str]:
    def opener(path: str) -> str:
        inside = path.replace(folder, copy, 1) if path.startswith(f"{folder}/") else path
        try:
            return pathlib.Path(inside).read_text(encoding="utf-8", errors="replace")
        except FileNotFoundError:
            return ""

    return opener


def _make_harmless(work: str, copy: str, read: conf.Conf) -> None:
    state = os.path.join(work, "state")
    os.mkdir(state, 0o700)
    user = read.settings.get("slurmuser", "root")
    owner = pwd.getpwnam(user) if not user.isdigit() else pwd.getpwuid(int(user))
    os.chown(state, owner.pw_uid, owner.pw_gid)
    for path in pathlib.Path(copy).glob("*.conf"):
        _rewrite(path)
    host = socket.gethostname().partition(".")[0]
    with pathlib.Path(copy, "slurm.conf").open("a", encoding="utf-8") as handle:
        handle.write(
            f"\nSlurmctldHost={host}(127.0.0.1)\nSlurmctldPort={_free_port()}\nSlurmdPort={_CLOSED_PORT}\n"
            f"StateSaveLocation={state}\nSlurmctldPidFile={state}/slurmctld.pid\nSlurmctldDebug=info\n"
        )
    lines = ["127.0.0.1 localhost", *(f"{_NOWHERE} {name}" for name in sorted(_all_names(read)))]
    pathlib.Path(work, "hosts").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def _rewrite(path: pathlib.Path) -> None:
    lines = path.read_text(encoding="utf-8", errors="surrogateescape").splitlines(keepends=True)
    kept = "".join(harmless(line) for line in lines if not _DROPPED_LINE.match(line))
    path.write_text(kept, encoding="utf-8", errors="surrogateescape")


def harmless(line: str) -> str:
    """A node line whose address leads nowhere; other lines as they are."""
    if not re.match(r"\s*NodeName\s*=", line, re.IGNORECASE):
        return line
    nowhere = {"nodeaddr": f"NodeAddr={_NOWHERE}", "port": f"Port={_CLOSED_PORT}"}
    return _ADDRESS.sub(lambda match: nowhere[match[1].lower()], line)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _all_names(read: conf.Conf) -> set[str]:
    names = read.names("nodename")
    for _path, kind, words in read.lines:
        if kind == "nodename":
            names.update(hostlist.expand(words.get("nodehostname", "")))
    return {name for name in names if not re.fullmatch(r"[\d.]+|.*:.*", name)}


def _start(work: str, copy: str, folder: str, timeout: float) -> str:
    log = os.path.join(work, "log")
    hosts = os.path.join(work, "hosts")
    with pathlib.Path(log).open("wb") as handle:
        argv = ["unshare", "--mount", "sh", "-c", _SCRIPT, "trial", copy, folder, hosts]
        with subprocess.Popen(  # pylint: disable=ansible-bad-function  # watched while it runs
            argv, stdin=subprocess.DEVNULL, stdout=handle, stderr=handle, start_new_session=True
        ) as process:
            try:
                return _watch(process, log, timeout)
            finally:
                if process.poll() is None:
                    os.killpg(process.pid, signal.SIGKILL)


def _watch(process: subprocess.Popen[bytes], log: str, timeout: float) -> str:
    deadline = Deadline(timeout)
    while True:
        ended = process.poll() is not None
        said = _tail(log)
        if ALIVE in said:
            return said
        if ended:
            raise Refused(f"a trial slurmctld refused the new configuration: {_why(said)}", log=said.splitlines()[-20:])
        if not deadline.pause(0.1):
            raise Refused(
                f"a trial slurmctld was not up within {timeout:g} s: {_why(said)}", log=said.splitlines()[-20:]
            )


def _tail(path: str) -> str:
    return pathlib.Path(path).read_text(encoding="utf-8", errors="replace")


def _why(said: str) -> str:
    lines = [line for line in said.splitlines() if "error: Could not open" not in line and "NOTE: Trying" not in line]
    telling = [line for line in lines if "fatal:" in line or "error:" in line] or lines
    return " | ".join(telling[-4:]) or "it said nothing"


# An empty state and no network are what a trial has; these say nothing about the configuration.
_EXPECTED = ("Could not open", "NOTE: Trying", "state file", "pmix", "PMIx", "MPI:", "mpi/", "MailProg")


def _errors(said: str) -> list[str]:
    lines = [line.split("error: ", 1)[1] for line in said.splitlines() if "error: " in line]
    return [line for line in lines if not any(word in line for word in _EXPECTED)]
