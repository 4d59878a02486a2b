# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Read what a node is, in one go: every further task on a node costs more than all of this. Private to h200.rack."""

from __future__ import annotations

import contextlib
import glob
import json
import os
import pathlib
import pwd
import re
import time
import typing as t

from . import pci

Run = t.Callable[[t.List[str]], t.Tuple[int, str, str]]  # noqa: UP006 - evaluated at run time, on Python 3.9
Facts = t.Dict[str, t.Any]  # noqa: UP006


def gather(run: Run, users: t.Sequence[str], units: t.Sequence[str], cloud_init_timeout: float) -> Facts:
    """Everything that :mod:`judge` looks at. Waits for cloud-init first, since it may still be making the rest true."""
    cloud_init = read_cloud_init(run, cloud_init_timeout)
    return {
        "cloud_init": cloud_init,
        "hostname": os.uname().nodename,
        "links": links(run),
        "gateways": gateways(run),
        "users": [name for name in users if _has_user(name)],
        "clock": clock(run),
        "time": time.time(),
        "units": read_units(run, units),
        "gpu_devices": len(_gpu_devices()),
        "open_driver": _open_driver(),
        "memlock": _memlock(),
        "nccl_conf": _read("/etc/nccl.conf"),
        "hosts": _read("/etc/hosts") or "",
        "cmdline": _read("/proc/cmdline") or "",
        "iommu_types": iommu_types(),
        "virtual": run(["systemd-detect-virt", "--quiet"])[0] == 0,
        "acs": pci.bridges_with_acs(),
        "boot_id": (_read("/proc/sys/kernel/random/boot_id") or "").strip(),
    }


def read_cloud_init(run: Run, timeout: float) -> Facts:
    """``cloud-init status --wait``; ``status`` is None where cloud-init is not installed."""
    rc, out, err = run(["timeout", f"{timeout:g}", "cloud-init", "status", "--wait", "--format", "json"])
    if rc == 127 or "failed to run command" in err:
        return {"status": None, "errors": [], "waited_out": False}
    if rc == 124:
        return {"status": "running", "errors": [], "waited_out": True}
    # While it waits it prints dots before the document.
    start = out.find("{")
    try:
        document = json.loads(out[start:]) if start >= 0 else {}
    except ValueError:
        document = {}
    status = str(document.get("status") or "unknown")
    return {"status": status, "errors": [str(item) for item in document.get("errors") or []], "waited_out": False}


def links(run: Run) -> list[Facts]:
    rc, out, _err = run(["ip", "-json", "address", "show"])
    found = json.loads(out) if rc == 0 and out.strip() else []
    return [
        {
            "name": link.get("ifname"),
            "mac": link.get("address"),
            "up": "UP" in (link.get("flags") or []),
            "mtu": link.get("mtu"),
            "addresses": [
                f"{item['local']}/{item['prefixlen']}" for item in link.get("addr_info") or [] if "local" in item
            ],
        }
        for link in found
        if link.get("link_type") != "loopback"
    ]


def gateways(run: Run) -> list[str]:
    found: list[str] = []
    for family in ("-4", "-6"):
        rc, out, _err = run(["ip", family, "-json", "route", "show", "default"])
        if rc == 0 and out.strip():
            found.extend(route["gateway"] for route in json.loads(out) if "gateway" in route)
    return found


def clock(run: Run) -> Facts:
    rc, out, _err = run(["timedatectl", "show"])
    words = dict(line.split("=", 1) for line in out.splitlines() if "=" in line) if rc == 0 else {}
    return {"synchronized": words.get("NTPSynchronized") == "yes", "service": words.get("NTP") == "yes"}


def read_units(run: Run, names: t.Sequence[str]) -> dict[str, Facts]:
    if not names:
        return {}
    wanted = "--property=Id,Names,LoadState,ActiveState,UnitFileState,ActiveEnterTimestampMonotonic"
    rc, out, _err = run(["systemctl", "show", wanted, "--", *names])
    blocks = [dict(line.split("=", 1) for line in block.splitlines() if "=" in line) for block in out.split("\n\n")]
    found = {}
    for name, words in zip(names, blocks if rc == 0 else [{}] * len(names)):
        found[name] = {
            "installed": words.get("LoadState") == "loaded",
            "active": words.get("ActiveState") == "active",
            "enabled": words.get("UnitFileState") in ("enabled", "static", "alias", "enabled-runtime"),
            "ran": words.get("ActiveEnterTimestampMonotonic", "0") not in ("", "0"),  # in this boot
        }
    return found


def iommu_types(root: str = "/sys/kernel/iommu_groups") -> list[str]:
    """How each kind of group is treated: identity (passing through), DMA, DMA-FQ; without groups there is no IOMMU."""
    return sorted({(_read(path) or "unknown").strip() for path in glob.glob(f"{root}/*/type")})


def _gpu_devices() -> list[str]:
    return [path for path in glob.glob("/dev/nvidia[0-9]*") if re.fullmatch(r"/dev/nvidia\d+", path)]


def _open_driver() -> bool | None:
    """Whether the loaded NVIDIA module is the open one; None when none is loaded."""
    said = _read("/proc/driver/nvidia/version")
    return None if said is None else "Open Kernel Module" in said


def _memlock() -> list[str]:
    """The lines about locked memory that hold for every user, as PAM applies them at login."""
    paths = ["/etc/security/limits.conf", *sorted(glob.glob("/etc/security/limits.d/*.conf"))]
    lines = [line.split("#", 1)[0].split() for path in paths for line in (_read(path) or "").splitlines()]
    return [" ".join(words) for words in lines if len(words) == 4 and words[0] == "*" and words[2] == "memlock"]


def _has_user(name: str) -> bool:
    try:
        pwd.getpwnam(name)
    except KeyError:
        return False
    return True


def _read(path: str) -> str | None:
    with contextlib.suppress(OSError):
        return pathlib.Path(path).read_text(encoding="utf-8", errors="replace")
    return None
