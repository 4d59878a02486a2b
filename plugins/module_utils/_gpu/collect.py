# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What one node says about itself, gathered with few process starts. Private to h200.rack."""

from __future__ import annotations

import contextlib
import dataclasses
import errno
import glob
import os
import pathlib
import stat
import typing as t

from . import ports, programs

SIMULATED_MARKER = "/etc/h200-rack/simulated"

COMMANDS: dict[str, tuple[str, ...]] = {
    "query": ("nvidia-smi", "-q"),
    "csv": ("nvidia-smi", "--query-gpu=index,name,memory.total,driver_version,power.limit,pstate", "--format=csv"),
    "nvlink": ("nvidia-smi", "nvlink", "--status"),
    "topology": ("nvidia-smi", "topo", "-m"),
    "fm_version": ("nv-fabricmanager", "--version"),
    "fm_active": ("systemctl", "is-active", "nvidia-fabricmanager.service"),
    "ibstat": ("ibstat",),
    "journal": ("journalctl", "-k", "-b", "-o", "cat", "--no-pager"),
}


@dataclasses.dataclass(frozen=True)
class Evidence:
    """Raw outputs; judging them needs no node. ``kernel_log`` None: it could not be read."""

    outputs: dict[str, programs.Output]
    ports: list[ports.Port]
    ports_source: t.Optional[str]
    kernel_log: t.Optional[str]
    kernel_log_whole: bool
    device_nodes: tuple[int, ...]
    pci_gpus: t.Optional[int]
    boot_id: str
    serial: str
    simulated: bool

    def output(self, name: str) -> programs.Output:
        return self.outputs.get(name, programs.Output(programs.MISSING))


def collect(wanted: t.Collection[str], timeout: float) -> Evidence:
    """Run what ``wanted`` (names of COMMANDS) needs; sysfs and the kernel's ring buffer cost no process."""
    sysfs = ports.read_sysfs() if "ibstat" in wanted else []
    log, whole = read_kmsg() if "journal" in wanted else (None, False)
    commands = {
        name: argv
        for name, argv in COMMANDS.items()
        if name in wanted and not (name == "ibstat" and sysfs) and not (name == "journal" and whole)
    }
    outputs = programs.run_all(commands, timeout)
    journal = outputs.get("journal")
    if journal is not None and journal.state == programs.OK:
        log, whole = journal.out, True
    found, source = (sysfs, "sysfs") if sysfs else ([], None)
    ibstat = outputs.get("ibstat")
    if not found and ibstat is not None and ibstat.state in (programs.OK, programs.FAILED):
        found, source = ports.parse_ibstat(ibstat.out), "ibstat"
    return Evidence(
        outputs=outputs,
        ports=found,
        ports_source=source if found else None,
        kernel_log=log,
        kernel_log_whole=whole,
        device_nodes=device_nodes(),
        pci_gpus=pci_gpus(),
        boot_id=boot_id(),
        serial=serial(),
        simulated=os.path.exists(SIMULATED_MARKER),
    )


def boot_id() -> str:
    return _text("/proc/sys/kernel/random/boot_id")


def serial() -> str:
    """The system's serial number; only root may read it."""
    return _text("/sys/class/dmi/id/product_serial")


def read_kmsg(path: str = "/dev/kmsg") -> tuple[t.Optional[str], bool]:
    """The kernel's ring buffer, and whether it still holds the boot's first message."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    except OSError:
        return None, False
    lines: list[str] = []
    whole = False
    try:
        while True:
            try:
                record = os.read(fd, 16384)
            except OSError as exc:
                if exc.errno == errno.EPIPE:  # overwritten while we read: the next read goes on
                    continue
                break
            if not record:
                break
            head, _separator, text = record.decode("utf-8", "replace").partition(";")
            fields = head.split(",")
            whole = whole or (len(fields) > 1 and fields[1] == "0")
            lines.append(text.split("\n", 1)[0])
    finally:
        os.close(fd)
    return ("\n".join(lines), whole) if lines else (None, False)


def device_nodes(pattern: str = "/dev/nvidia[0-9]*") -> tuple[int, ...]:
    """The numbers of the GPU device nodes."""
    numbers = []
    for path in glob.glob(pattern):
        with contextlib.suppress(OSError, ValueError):
            if stat.S_ISCHR(os.stat(path).st_mode):
                numbers.append(int(path.rsplit("nvidia", 1)[1]))
    return tuple(sorted(numbers))


def pci_gpus(root: str = "/sys/bus/pci/devices") -> t.Optional[int]:
    """NVIDIA's 3D controllers on the PCI bus, driver or not; None where the bus cannot be read."""
    try:
        names = os.listdir(root)
    except OSError:
        return None
    count = 0
    for name in names:
        if _text(f"{root}/{name}/vendor") == "0x10de" and _text(f"{root}/{name}/class").startswith("0x0302"):
            count += 1
    return count


def _text(path: str) -> str:
    try:
        return pathlib.Path(path).read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""
