# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Slurm's HealthCheckProgram: a passive look at the node, beside jobs, in seconds.

It reads device files, one nvidia-smi query, the kernel's log, NIC ports, services and file systems, and drains the
node with `health:CODE` when something is wrong. It starts no load, changes nothing else and resumes nothing: what it
found is a person's to look at. A node that is drained already keeps the reason that it has.

What to expect is in the file named below, written from the inventory. Without an argument it acts; `--dry-run` only
prints. slurmd ends a health check after 60 s; every step here has its own, shorter end.
"""

from __future__ import annotations

import json
import os
import pathlib
import re
import subprocess
import sys
import syslog
import typing as t

EXPECTED = "/etc/h200-rack-health.json"
PREFIX = "health"
TOOL_SECONDS, SCONTROL_SECONDS = 20, 8
# Xids after which the GPU needs a reset, the node a reboot, or somebody must look. A program's own faults
# (13, 31, 43, 45, 68, 69) and errors that the GPU handled (63, 92, 94) are not among them.
XIDS = frozenset(
    (32, 44, 46, 48, 61, 62, 64, 74, 79, 95, 109, 110, 119, 120, 136, 140, 143, 145, 149, 150)
)  # fmt: skip
_XID = re.compile(r"NVRM: Xid \((?:PCI:)?([0-9A-Fa-f:.]+)[^)]*\): (\d+)")
_SXID = re.compile(r"SXid \((?:PCI:)?([0-9A-Fa-f:.]+)\): (\d+), Fatal")
_QUERY = "index,ecc.errors.uncorrected.volatile.total,remapped_rows.failure,remapped_rows.pending"


class Finding(t.NamedTuple):
    code: str
    text: str


class Host:
    """What is read of the machine; tests give another root and other programs."""

    def __init__(self, root: str = "/") -> None:
        self.root = pathlib.Path(root)

    def path(self, name: str) -> pathlib.Path:
        return self.root / name.lstrip("/")

    def run(self, *argv: str, seconds: float = TOOL_SECONDS) -> tuple[int, str]:
        """(exit code, output); 124 when it had to be killed, 127 when it is not there."""
        try:
            process = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        except OSError as exc:
            return 127, str(exc)
        try:
            said = process.communicate(timeout=seconds)[0]
        except subprocess.TimeoutExpired:
            # Not waited for: a program that hangs in the driver does not end before the driver lets it.
            process.kill()
            return 124, ""
        return process.returncode, said

    def kernel_log(self) -> str:
        """The kernel's buffer, without waiting for what comes next."""
        try:
            handle = os.open(self.path("/dev/kmsg"), os.O_RDONLY | os.O_NONBLOCK)
        except OSError:
            return ""
        parts = []
        try:
            while True:
                try:
                    part = os.read(handle, 8192)
                except BrokenPipeError:  # overwritten while it was read
                    continue
                if not part:
                    break
                parts.append(part)
        except OSError:  # EAGAIN: all was read
            pass
        finally:
            os.close(handle)
        return b"".join(parts).decode(errors="replace")

    def usage(self, name: str) -> tuple[float, bool]:
        """Free share of the file system of ``name``, and whether it is read-only."""
        found = os.statvfs(self.path(name))
        free = min(found.f_bavail / max(found.f_blocks, 1), found.f_favail / found.f_files if found.f_files else 1.0)
        return free, bool(found.f_flag & os.ST_RDONLY)


def gpus(host: Host, expected: t.Mapping[str, t.Any]) -> t.Iterator[Finding]:
    count = expected.get("gpus") or 0
    if not count:
        return
    there = [path for path in host.path("/dev").glob("nvidia*") if re.fullmatch(r"nvidia\d+", path.name)]
    if len(there) < count:
        yield Finding("GPU_DEVICES", f"{len(there)} of {count} device files")
    rc, said = host.run("nvidia-smi", f"--query-gpu={_QUERY}", "--format=csv,noheader,nounits")
    if rc == 127 and not expected.get("nvidia_smi", True):
        return
    if rc == 124:
        yield Finding("GPU_HANG", f"nvidia-smi did not answer within {TOOL_SECONDS} s")
    elif rc != 0:
        yield Finding("NVIDIA_SMI", f"nvidia-smi: {' '.join(said.split())[:80] or f'exit {rc}'}")
    else:
        yield from _rows(said, count)


def _rows(said: str, count: int) -> t.Iterator[Finding]:
    rows = [[word.strip() for word in line.split(",")] for line in said.splitlines()]
    rows = [row for row in rows if len(row) == 4 and row[0].isdigit()]
    if len(rows) < count:
        yield Finding("GPU_COUNT", f"nvidia-smi knows {len(rows)} of {count}")
    for index, ecc, failure, pending in rows:
        if ecc.isdigit() and int(ecc) > 0:
            yield Finding("ECC_UNCORRECTED", f"GPU {index}: {ecc} uncorrected errors since it was reset")
        if failure in ("1", "Yes"):
            yield Finding("ROW_REMAP_FAILED", f"GPU {index} has no spare rows left")
        if pending in ("1", "Yes"):
            yield Finding("ROW_REMAP_PENDING", f"GPU {index} needs a reset for a remapped row")


def xids(host: Host, expected: t.Mapping[str, t.Any]) -> t.Iterator[Finding]:
    if not expected.get("gpus"):
        return
    log = host.kernel_log()
    for bus, number in sorted(set(_XID.findall(log))):
        if int(number) in XIDS:
            yield Finding(f"XID_{number}", f"GPU at {bus}")
    for bus, number in sorted(set(_SXID.findall(log))):
        yield Finding(f"SXID_{number}", f"NVSwitch at {bus}")


def units(host: Host, expected: t.Mapping[str, t.Any]) -> t.Iterator[Finding]:
    for unit in expected.get("units") or ():
        rc, said = host.run("systemctl", "is-active", unit, seconds=SCONTROL_SECONDS)
        if rc != 0:
            code = "FABRIC_MANAGER" if "fabricmanager" in unit else "UNIT"
            yield Finding(code, f"{unit} is {said.strip() or 'not running'}")


def nics(host: Host, expected: t.Mapping[str, t.Any]) -> t.Iterator[Finding]:
    wanted, rate = expected.get("nics") or 0, expected.get("rate_gbps") or 0
    folder = host.path("/sys/class/infiniband")
    if isinstance(wanted, list):
        for name in wanted:
            trouble = _port(folder / name, rate)
            if trouble:
                yield Finding("NIC_PORT", f"{name}: {trouble}")
    elif wanted:
        good = [path for path in folder.glob("*") if _port(path, rate) is None]
        if len(good) < wanted:
            yield Finding("NIC_PORT", f"{len(good)} of {wanted} ports are up with {rate} Gb/s")


def _port(device: pathlib.Path, rate: float) -> str | None:
    try:
        state = (device / "ports/1/state").read_text()
        speed = float((device / "ports/1/rate").read_text().split()[0])
    except (OSError, ValueError, IndexError):
        return "is not there"
    if "ACTIVE" not in state:
        return f"is {state.split(':')[-1].strip()}"
    return f"runs at {speed:g} of {rate:g} Gb/s" if speed < rate else None


def disks(host: Host, expected: t.Mapping[str, t.Any]) -> t.Iterator[Finding]:
    for path in expected.get("paths") or ():
        try:
            free, read_only = host.usage(path)
        except OSError as exc:
            yield Finding("DISK", f"{path}: {exc.strerror}")
            continue
        if read_only:
            yield Finding("DISK_READ_ONLY", f"{path} is mounted read-only")
        elif free < (expected.get("free_percent") or 0) / 100:
            yield Finding("DISK_FULL", f"{path} has {free:.1%} left")


CHECKS = (gpus, xids, units, nics, disks)


def look(host: Host, expected: t.Mapping[str, t.Any]) -> list[Finding]:
    return [finding for check in CHECKS for finding in check(host, expected)]


def reason(findings: t.Sequence[Finding]) -> str:
    """One word per kind, so that it can be searched for; the texts are in the system's log."""
    return f"{PREFIX}:{','.join(dict.fromkeys(finding.code for finding in findings))}"


def drain(host: Host, node: str, why: str) -> str:
    """Drain ``node`` unless it is drained: a reason that is there is somebody's."""
    rc, said = host.run("scontrol", "show", "node", node, seconds=SCONTROL_SECONDS)
    if rc != 0:
        return f"scontrol does not show {node}: {' '.join(said.split())[:120]}"
    state = re.search(r"^\s*State=(\S+)", said, re.MULTILINE)
    if state and "DRAIN" in state[1]:
        return f"{node} is {state[1]} already; its reason stays"
    rc, said = host.run(
        "scontrol", "update", f"nodename={node}", "state=drain", f"reason={why}", seconds=SCONTROL_SECONDS
    )
    return f"{node} is drained" if rc == 0 else f"draining {node} failed: {' '.join(said.split())[:120]}"


def main(argv: t.Sequence[str]) -> int:
    host = Host()
    syslog.openlog("h200-rack-health")
    # slurmd starts it with next to no environment.
    os.environ["PATH"] = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    try:
        expected = json.loads(pathlib.Path(EXPECTED).read_text(encoding="utf-8"))
    except (OSError, ValueError) as exc:
        sys.stderr.write(f"{EXPECTED}: {exc}\n")
        return 2
    findings = look(host, expected)
    lines = [f"{finding.code}: {finding.text}" for finding in findings]
    act = bool(findings) and "--dry-run" not in argv
    if act:
        node = os.environ.get("SLURMD_NODENAME") or expected.get("node") or os.uname().nodename.partition(".")[0]
        lines.append(drain(host, node, reason(findings)))
    for line in lines:
        sys.stdout.write(f"{line}\n")
        if act:
            # slurmd keeps what a health check prints to itself.
            syslog.syslog(syslog.LOG_WARNING, line)
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
