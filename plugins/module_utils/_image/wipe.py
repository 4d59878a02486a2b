# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Erase disks, each in the best way that it supports, and prove it. Private to h200.rack."""

from __future__ import annotations

import os
import threading
import time
import typing as t

from ansible_collections.h200.rack.plugins.module_utils._common.deadline import Deadline
from ansible_collections.h200.rack.plugins.module_utils._common.errors import DeadlineExceeded, InvalidInput, RackError

from . import disks, erasers, probe
from .request import require_ramdisk
from .target import Target, buffer

METHODS = ("crypto", "user_data", "overwrite")
_SAMPLE = 4096
_SAMPLES = 64
_STEP = 64 << 20


class Request(t.NamedTuple):
    confirm: str
    node: str
    disk: dict[str, t.Any] | None = None
    methods: tuple[str, ...] = METHODS
    timeout: float = 3600
    require_ramdisk: bool = True


class Outcome(t.NamedTuple):
    changed: bool
    failed: bool
    disks: list[dict[str, t.Any]]


def wipe(request: Request, check_mode: bool = False) -> Outcome:
    """Erase the disks that are meant; in check mode only say which and how."""
    if request.confirm != request.node:
        raise InvalidInput(f"confirm: {request.confirm!r} is not the node's name {request.node!r}; nothing was erased")
    if not request.methods:
        raise InvalidInput("methods: none is allowed, so nothing can be erased")
    if request.require_ramdisk:
        require_ramdisk(request.node)
    chosen = _choose(request)
    deadline = Deadline(request.timeout)
    results: list[dict[str, t.Any]] = [{} for _disk in chosen]

    def work(index: int) -> None:
        results[index] = _one(chosen[index], request, deadline, check_mode)

    threads = [threading.Thread(target=work, args=(index,)) for index in range(len(chosen))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    bad = any(result.get("verdict") not in ("erased", "would_erase") for result in results)
    return Outcome(True, bad, results)


def _choose(request: Request) -> list[disks.Disk]:
    """The disks the hints mean, or all that belong to the node. One that is in use stops everything."""
    hints = request.disk
    if hints and os.path.isfile(str(hints.get("path", ""))):
        return [probe.file_as_disk(str(hints["path"]))]
    found = probe.Lsblk().disks()
    if hints:
        disks.check_hints(hints)
        chosen = [disk for disk in found if not disk.unfit and disks.matches(disk, hints)]
    else:
        chosen = [disk for disk in found if not disk.unfit]
    if not chosen:
        listed = "; ".join(disk.describe() for disk in found) or "none"
        raise disks.NotOneDisk(f"disk: there is nothing to erase; present: {listed}")
    held = [f"{disk.describe()}: {disk.in_use}" for disk in chosen if disk.in_use]
    if held:
        raise RackError(f"disk: in use, nothing was erased: {'; '.join(held)}", code="disk_busy")
    return chosen


def _namespaces(path: str) -> int:
    """How many namespaces the disk's NVMe controller has here."""
    controller = os.path.basename(path).rpartition("n")[0]
    return sum(name.startswith(f"{controller}n") for name in os.listdir("/sys/block"))


def _transport(path: str) -> str:
    """nvme, sata, or an empty text for disks that only can be overwritten."""
    name = os.path.basename(path)
    if name.startswith("nvme"):
        return "nvme"
    try:
        with open(f"/sys/block/{name}/device/vendor", encoding="ascii") as handle:
            return "sata" if handle.read().strip() == "ATA" else ""
    except OSError:
        return ""


def _one(disk: disks.Disk, request: Request, deadline: Deadline, check_mode: bool) -> dict[str, t.Any]:
    """Try the methods in order; the first that works and is proven ends it."""
    started = time.monotonic()
    tried: list[str] = []
    result: dict[str, t.Any] = {"disk": disk.summary(), "method": None, "verdict": "unsupported", "tried": tried}
    try:
        ways = _ways(disk, request.methods)
        if check_mode:
            first = ways[0] if ways else (None, "")
            return {**result, "method": first[0], "how": first[1], "verdict": "would_erase" if ways else "unsupported"}
        for method, how, call in ways:
            result.update(method=method, how=how)
            try:
                _proven(disk, method, lambda call=call: call(deadline))
            except DeadlineExceeded as exc:
                tried.append(exc.msg)
                result["verdict"] = "timeout"
                break
            except RackError as exc:
                tried.append(exc.msg)
                result["verdict"] = "failed"
            else:
                result["verdict"] = "erased"
                break
    except (RackError, OSError, ValueError) as exc:
        tried.append(str(exc))
        result["verdict"] = "failed"
    result["seconds"] = round(time.monotonic() - started, 2)
    return result


def _ways(disk: disks.Disk, methods: t.Sequence[str]) -> list[tuple[str, str, t.Callable[[Deadline], None]]]:
    """What can be done to the disk, in the order of ``METHODS``, whatever the order of those allowed."""
    ways: list[tuple[str, str, t.Callable[[Deadline], None]]] = []
    if set(methods) & {"crypto", "user_data"}:
        transport = _transport(disk.path)
        offered = erasers.offered(disk.path, transport, _namespaces(disk.path) if transport == "nvme" else 1)
        for eraser in sorted(offered, key=lambda eraser: METHODS.index(eraser.method)):
            if eraser.method in methods:
                ways.append((eraser.method, eraser.how, lambda left, eraser=eraser: erasers.erase(eraser, left)))
    if "overwrite" in methods:
        ways.append(("overwrite", "zeros", lambda left: _overwrite(disk.path, left)))
    return ways


def _overwrite(path: str, deadline: Deadline) -> None:
    with Target(path, writable=True) as target:
        for offset in range(0, target.size, _STEP):
            deadline.check(f"{path}: overwriting, {offset >> 20} of {target.size >> 20} MiB done")
            target.zero(offset, min(_STEP, target.size - offset))
        target.sync()


def _proven(disk: disks.Disk, method: str, erase: t.Callable[[], None]) -> None:
    """Run ``erase``; what stood at sampled places before must be gone afterwards."""
    before = _samples(disk.path)
    erase()
    after = _samples(disk.path)
    zero = bytes(_SAMPLE)
    kept = [offset for offset, data in before.items() if data != zero and after.get(offset) == data]
    if kept:
        raise RackError(f"{disk.path}: said to be erased, but the data at byte {kept[0]} is still there", code="erase")
    if method == "overwrite" and any(data != zero for data in after.values()):
        raise RackError(f"{disk.path}: overwritten, but does not read as zeros", code="erase")
    left = probe.signatures(disk.path)
    if left:
        raise RackError(f"{disk.path}: still holds {'; '.join(left)}", code="erase")


def _samples(path: str) -> dict[int, bytes]:
    with Target(path, writable=False) as target:
        view = buffer(_SAMPLE)[:_SAMPLE]
        step = max(_SAMPLE, target.size // _SAMPLES // _SAMPLE * _SAMPLE)
        last = max(0, target.size - _SAMPLE) // _SAMPLE * _SAMPLE
        samples = {}
        for offset in sorted({*range(0, last, step), last}):
            length = min(_SAMPLE, target.size - offset)
            target.read(offset, view[:length])
            samples[offset] = bytes(view[:length]).ljust(_SAMPLE, b"\0")
        return samples
