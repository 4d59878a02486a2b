# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The box that the virtual rack lives in: one process, and namespaces that live and die with it.

start    make the box, unless it is there
stop     end its first process, with which every process, mount, network and guest inside ends
exec     run a command inside
status   tell as JSON what is there, in the box and of it on the host

The first process of the box is PID 1 of its own PID namespace, so the kernel ends whatever runs inside with it,
at whatever moment it is told to. Nothing has to be found and killed one by one, and nothing can be overlooked.
"""

from __future__ import annotations

import ctypes
import fcntl
import hashlib
import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import time
from typing import NoReturn

HERE = pathlib.Path(__file__).resolve().parent
# What belongs to this rack: gone after `make rack-down`. A test may have a second rack elsewhere.
STATE = pathlib.Path(os.environ.get("VRACK_STATE") or HERE.parent.parent / ".cache" / "vrack" / "rack").resolve()
RECORD = STATE / "box.json"
LOCK = STATE.with_name(STATE.name + ".lock")
LOG = STATE / "log" / "box.log"

# From <linux/sched.h>: os.unshare needs Python 3.12, and Debian 12 has 3.11.
CLONE_NEWNS, CLONE_NEWCGROUP, CLONE_NEWUTS, CLONE_NEWIPC, CLONE_NEWPID, CLONE_NEWNET = (
    0x00020000, 0x02000000, 0x04000000, 0x08000000, 0x20000000, 0x40000000)  # fmt: skip
NAMESPACES = CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWPID | CLONE_NEWNET
MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_BIND, MS_REC, MS_PRIVATE = 2, 4, 8, 4096, 16384, 1 << 18

# The daemons of the rack keep their things here, in the box only; the host's own are never seen or touched.
OWN_DIRECTORIES = (
    "/etc/libvirt",
    "/var/lib/libvirt",
    "/var/log/libvirt",
    "/var/cache/libvirt",
    "/var/lib/systemd/nspawn",
)

libc = ctypes.CDLL(None, use_errno=True)


class RackError(Exception):
    """What a person should read instead of a traceback."""


def mount(source: str, target: str, kind: str | None = None, flags: int = 0, data: str = "") -> None:
    encoded = [value.encode() if value else None for value in (source, target, kind)]
    if libc.mount(*encoded, ctypes.c_ulong(flags), data.encode()) != 0:
        raise OSError(ctypes.get_errno(), f"mount {source} on {target}: {os.strerror(ctypes.get_errno())}")


def unified_cgroup() -> pathlib.Path:
    """Where cgroup version 2 is: a host that still uses version 1 has it beside that."""
    for line in pathlib.Path("/proc/self/mounts").read_text().splitlines():
        target, kind = line.split()[1:3]
        if kind == "cgroup2":
            return pathlib.Path(target)
    raise RackError("no cgroup2 is mounted, and systemd in the containers needs it")


def cgroup() -> pathlib.Path:
    # Its name tells whose it is.
    return unified_cgroup() / f"h200-vrack-{hashlib.sha256(str(STATE).encode()).hexdigest()[:12]}"


def start_time(pid: int) -> str | None:
    """When a process started, in ticks: with its number it names one process only."""
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    except (FileNotFoundError, ProcessLookupError):
        return None


def box_pid() -> int | None:
    """The first process of the box, if it is the recorded one that runs."""
    try:
        record = json.loads(RECORD.read_text())
    except (FileNotFoundError, json.JSONDecodeError):
        return None
    boot = pathlib.Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    same = record["boot_id"] == boot and start_time(record["pid"]) == record["start_time"]
    return record["pid"] if same else None


def make_place() -> None:
    """Inside: lay the box's own file systems over what the host has."""
    mount("none", "/", flags=MS_REC | MS_PRIVATE)
    mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC)
    mount("sysfs", "/sys", "sysfs", MS_NOSUID | MS_NODEV | MS_NOEXEC)
    mount("cgroup2", "/sys/fs/cgroup", "cgroup2", MS_NOSUID | MS_NODEV | MS_NOEXEC)
    mount("tmpfs", "/run", "tmpfs", MS_NOSUID | MS_NODEV, "mode=755,size=512m")
    for name in ("lock", "netns", "vrack"):
        pathlib.Path("/run", name).mkdir()
    for path in OWN_DIRECTORIES:
        own = STATE / "box" / path.lstrip("/").replace("/", "-")
        own.mkdir(parents=True, exist_ok=True)
        pathlib.Path(path).mkdir(parents=True, exist_ok=True)
        mount(str(own), path, flags=MS_BIND)
    hosts = STATE / "hosts"
    if not hosts.exists():
        hosts.write_text("127.0.0.1 localhost vrack\n")
    mount(str(hosts), "/etc/hosts", flags=MS_BIND)
    socket.sethostname("vrack")


def be_first_process(ready: int) -> NoReturn:
    """Wait for ever, and bury the dead, as the first process of a PID namespace has to."""
    try:
        make_place()
    except OSError as error:
        os.write(ready, f"failed: {error}".encode())
        os._exit(1)
    ended = False

    def end(*_: object) -> None:
        nonlocal ended
        ended = True

    signal.signal(signal.SIGTERM, end)
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})
    os.write(ready, b"ready")
    os.close(ready)
    while not ended:
        signal.sigtimedwait({signal.SIGCHLD}, 1)
        while True:
            try:
                if os.waitpid(-1, os.WNOHANG)[0] == 0:
                    break
            except ChildProcessError:
                break
    os._exit(0)


def make_box(ready: int) -> NoReturn:
    """A process away from the caller's terminal that makes the namespaces and the first process in them."""
    os.setsid()
    log = os.open(LOG, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    null = os.open("/dev/null", os.O_RDONLY)
    os.dup2(null, 0)
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.closerange(3, ready)
    os.closerange(ready + 1, 256)
    os.chdir("/")
    (cgroup() / "cgroup.procs").write_text(str(os.getpid()))
    if libc.unshare(NAMESPACES) != 0:
        os.write(ready, f"failed: cannot make namespaces: {os.strerror(ctypes.get_errno())}".encode())
        os._exit(1)
    wait, go = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(go)
        if os.read(wait, 1) != b"g":  # the start was interrupted before this process was recorded
            os._exit(1)
        be_first_process(ready)
    record = {
        "pid": pid,
        "start_time": start_time(pid),
        "boot_id": pathlib.Path("/proc/sys/kernel/random/boot_id").read_text().strip(),
    }
    new = RECORD.with_suffix(".new")
    new.write_text(json.dumps(record) + "\n")
    new.replace(RECORD)
    os.write(go, b"g")
    os._exit(0)


def inventory() -> pathlib.Path:
    return STATE / "inventory" if "VRACK_STATE" in os.environ else STATE.with_name("inventory")


def start() -> None:
    pid = box_pid()
    if pid is not None:
        print("already up")
        return
    STATE.mkdir(exist_ok=True)
    for name in ("log", "containers", "nodes", "bmcs"):
        (STATE / name).mkdir(exist_ok=True)
    inventory().mkdir(mode=0o700, exist_ok=True)
    remove_cgroup()
    cgroup().mkdir(exist_ok=True)
    told, ready = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(told)
        make_box(ready)
    os.close(ready)
    os.waitpid(child, 0)
    answer = os.read(told, 1000).decode()
    if answer != "ready":
        raise RackError(f"the rack's box did not start: {answer or 'it ended at once'} (see {LOG})")
    print("started")


def stop() -> None:
    pid = box_pid()
    if pid is not None:
        descriptor = os.pidfd_open(pid)
        if box_pid() == pid:  # still the same process, now that the descriptor holds it
            signal.pidfd_send_signal(descriptor, signal.SIGKILL)
            deadline = time.monotonic() + 60
            # The kernel ends it only after everything inside has ended.
            while start_time(pid) is not None:
                if time.monotonic() > deadline:
                    raise RackError(f"process {pid}, the rack's first, does not end within 60 s")
                time.sleep(0.05)
    remove_cgroup()
    RECORD.unlink(missing_ok=True)
    print("stopped" if pid else "was not up")


def remove_cgroup() -> None:
    top = cgroup()
    if top.exists():
        (top / "cgroup.kill").write_text("1")  # what entered the box from outside is counted here too
    deadline = time.monotonic() + 10
    while top.exists():
        for path in sorted((p for p in [top, *top.rglob("*")] if p.is_dir()), key=lambda p: -len(p.parts)):
            try:
                path.rmdir()
            except OSError as error:
                if time.monotonic() > deadline:
                    raise RackError(f"cannot remove {path}: {error.strerror}") from error
                time.sleep(0.05)
                break


def run_inside(argv: list[str]) -> NoReturn:
    pid = box_pid()
    if pid is None:
        raise RackError("the virtual rack is not up: make rack-up")
    # What is started from here and stays belongs to the rack: count it there.
    (cgroup() / "cgroup.procs").write_text(str(os.getpid()))
    here = os.getcwd()
    os.execvp("nsenter", ["nsenter", f"--target={pid}", "--mount", "--net", "--uts", "--ipc", "--pid", "--cgroup",
                          f"--wdns={here}", "--", *argv])  # fmt: skip


def found() -> dict[str, object]:
    pid = box_pid()
    mounts = [line.split()[1] for line in pathlib.Path("/proc/self/mounts").read_text().splitlines()]
    return {
        "up": pid is not None,
        "box_pid": pid,
        "state": str(STATE) if STATE.exists() else None,
        "cgroup": str(cgroup()) if cgroup().exists() else None,
        "processes": processes_of(pid),
        # There should never be any: the box mounts in a namespace of its own.
        "host_mounts": [target for target in mounts if target.startswith(f"{STATE}/")],
        "inside": inside(pid),
    }


def inside(pid: int | None) -> dict[str, object]:
    if pid is None:
        return {}
    script = HERE / "scripts" / "status.py"
    argv = [sys.executable, __file__, "exec", "/usr/bin/python3", script]
    done = subprocess.run(argv, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def status() -> None:
    print(json.dumps(found(), indent=2))


def processes_of(pid: int | None) -> list[dict[str, object]]:
    """Every process of the box: those in its PID namespace and below, and those counted in its cgroup."""
    if pid is None and not cgroup().exists():
        return []
    counted = {int(line) for path in cgroup().rglob("cgroup.procs") for line in path.read_text().split()}
    running = []
    for path in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            command = (path / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
            in_box = pid is not None and os.readlink(path / "ns/mnt") == os.readlink(f"/proc/{pid}/ns/mnt")
        except (FileNotFoundError, ProcessLookupError, PermissionError):
            continue
        if in_box or int(path.name) in counted:
            running.append({"pid": int(path.name), "command": command[:120]})
    return sorted(running, key=lambda process: process["pid"])


def main(argv: list[str]) -> int:
    if len(argv) < 2 or argv[1] not in ("start", "stop", "status", "exec"):
        print("usage: rack start | stop | status | exec COMMAND…", file=sys.stderr)
        return 2
    try:
        if os.geteuid() != 0:
            raise RackError("the virtual rack needs root: it makes namespaces, bridges and virtual machines")
        STATE.parent.mkdir(parents=True, exist_ok=True)
        if argv[1] == "exec":
            run_inside(argv[2:])
        if argv[1] == "status":
            status()
            return 0
        with LOCK.open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            {"start": start, "stop": stop}[argv[1]]()
    except RackError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
