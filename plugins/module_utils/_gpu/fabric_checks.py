# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Checks of the NVLink fabric and of how GPUs and NICs are wired. Private to h200.rack."""

from __future__ import annotations

import collections
import typing as t

from ansible_collections.h200.rack.plugins.module_utils._common.profiles import compute_nics

from . import smi
from .checks import Check, failed, not_run, passed
from .node import Node, each, unusable

# A board reports its links' speed exactly; the tolerance is for rounding in a profile.
LINK_TOLERANCE = 0.005


def check_nvlink(node: Node) -> Check:
    links, speed = node.gpu.get("nvlinks"), node.gpu.get("nvlink_gbs")
    if not links:
        return passed("nvlink", "not compared", links, "the profile expects no NVLinks")
    expected = {"links": links, "gbs": speed}
    output = node.evidence.output("nvlink")
    silent = unusable("nvlink", expected, "nvidia-smi nvlink", output)
    if silent:
        return silent
    if not node.links:
        return not_run("nvlink", expected, "NOT_REPORTED", "nvidia-smi nvlink --status listed no GPU")
    bad: dict[str, str] = {}
    for gpu, found in sorted(node.links.items()):
        up = {number: value for number, value in found.items() if value is not None}
        slow = [n for n, value in up.items() if speed is not None and abs(value / speed - 1) > LINK_TOLERANCE]
        if len(up) < links:
            down = sorted(set(range(links)) - set(up))
            bad[f"GPU{gpu}"] = f"{len(up)} links up, down: {', '.join(map(str, down))}"
        elif slow:
            bad[f"GPU{gpu}"] = "; ".join(f"link {n} at {up[n]:g} GB/s" for n in slow)
    missing = (node.gpu.get("count") or 0) - len(node.links)
    if bad or missing > 0:
        if missing > 0:
            bad["missing"] = f"{missing} GPUs are not listed"
        return failed(
            "nvlink",
            bad,
            expected,
            "NVLINK_DOWN",
            "links are inactive or slow: fabric manager running? then Xid 74 and SXids in the kernel log, then service",
        )
    return passed("nvlink", {"links": links, "gbs": speed}, expected)


def check_fabric(node: Node) -> Check:
    if not node.gpu.get("fabric_manager"):
        return passed("fabric", "not compared", None, "this model has no NVSwitch fabric")

    def value(gpu: smi.Gpu) -> t.Any:
        return None if gpu.fabric_state is None else f"{gpu.fabric_state}/{gpu.fabric_status}"

    return each(
        node,
        "fabric",
        "Completed/Success",
        value,
        lambda v: v == "Completed/Success",
        "FABRIC_NOT_READY",
        "the GPUs did not join the NVSwitch fabric: see nvidia-fabricmanager's log; never restart it, drain and reboot",
    )


def check_fabric_manager(node: Node) -> Check:
    if not node.gpu.get("fabric_manager"):
        return passed("fabric_manager", "not compared", None, "this model has no NVSwitch fabric")
    driver = node.smi.driver
    expected = {"active": True, "version": driver}
    version, active = node.evidence.output("fm_version"), node.evidence.output("fm_active")
    silent = unusable("fabric_manager", expected, "nv-fabricmanager", version) or unusable(
        "fabric_manager", expected, "systemctl", active
    )
    if silent:
        return silent
    state = active.out.strip() or "unknown"
    measured = {"active": state, "version": node.fm_version}
    if node.fm_version is None or driver is None:
        return not_run("fabric_manager", expected, "NOT_REPORTED", "its version or the driver's is not known")
    if node.fm_version != driver:
        return failed(
            "fabric_manager",
            measured,
            expected,
            "FM_VERSION",
            f"install the fabric manager of driver {driver}, hold both packages, then drain and reboot",
        )
    if state != "active":
        return failed(
            "fabric_manager",
            measured,
            expected,
            "FM_NOT_ACTIVE",
            "nvidia-fabricmanager does not run: see its log, then drain and reboot (a restart would break NVLS)",
        )
    return passed("fabric_manager", measured, expected)


def check_topology(node: Node) -> Check:
    links = node.gpu.get("nvlinks")
    count, names = compute_nics(node.profile)
    expected = {"gpu_links": f"NV{links}" if links else None, "near_nics": 1 if count else 0}
    output = node.evidence.output("topology")
    silent = unusable("topology", expected, "nvidia-smi topo", output)
    if silent:
        return silent
    topology = node.topology
    gpus = sorted(topology.gpu_gpu)
    if len(gpus) != node.gpu.get("count"):
        return failed(
            "topology",
            {"gpus": len(gpus)},
            {**expected, "gpus": node.gpu.get("count")},
            "GPU_COUNT",
            "the matrix has not all GPUs",
        )
    if links:
        wrong = sorted(
            f"GPU{a}-GPU{b}: {word}"
            for a in gpus
            for b, word in topology.gpu_gpu[a].items()
            if a < b and word != f"NV{links}"
        )
        if wrong:
            return failed("topology", wrong, expected, "NVLINK_TOPOLOGY", "not every pair of GPUs has all its NVLinks")
    # Storage NICs may sit behind the same switches: without names, one near NIC per GPU is a minimum.
    near = {gpu: topology.near(gpu, names) for gpu in gpus} if count else {}
    exact = bool(names) or len(topology.nics) == count
    far = [gpu for gpu, found in near.items() if not found or (exact and len(found) != 1)]
    shared = [nic for nic, n in collections.Counter(nic for found in near.values() for nic in found).items() if n > 1]
    measured = {"near_nics": {f"GPU{gpu}": ",".join(found) or None for gpu, found in near.items()}}
    if count and (far or (exact and count >= len(gpus) and shared)):
        return failed(
            "topology",
            measured,
            expected,
            "NIC_TOPOLOGY",
            f"no NIC of its own near {', '.join(f'GPU{gpu}' for gpu in far or gpus)}: a NIC is missing or in another "
            "slot, or the PCIe tree is hidden from the system",
        )
    sockets = (node.profile.get("cpu") or {}).get("sockets") or 0
    if sockets > 1 and len(topology.numa) == len(gpus) and len(set(topology.numa.values())) < 2:
        return failed(
            "topology",
            {"numa": topology.numa},
            {"numa_nodes": sockets},
            "NUMA_HIDDEN",
            "all GPUs on one NUMA node of several: 'numa=off' on the kernel command line, or node interleaving",
        )
    return passed("topology", {"gpu_links": expected["gpu_links"], **measured}, expected)
