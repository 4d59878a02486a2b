# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Checks of the GPUs themselves. Private to h200.rack."""

from __future__ import annotations

import typing as t

from . import smi, xid
from .checks import Check, failed, not_run, passed
from .node import Node, compact, each, unusable

# nvidia-smi's total may lack what the driver keeps for itself.
MEMORY_TOLERANCE = 0.01


def check_gpus(node: Node) -> Check:
    count, model, memory = (node.gpu.get(key) for key in ("count", "model", "memory_mib"))
    expected = {"count": count, "model": model, "memory_mib": memory}
    silent = unusable("gpus", expected, "nvidia-smi", node.query)
    if silent:
        return silent
    gpus = node.smi.gpus
    measured = {
        "count": len(gpus),
        "model": compact([gpu.model for gpu in gpus]) if gpus else None,
        "memory_mib": compact([gpu.memory_mib for gpu in gpus]) if gpus else None,
        "device_nodes": len(node.evidence.device_nodes),
        "pci": node.evidence.pci_gpus,
    }
    if len(gpus) != count:
        return failed("gpus", measured, expected, "GPU_COUNT", _missing_hint(node, measured))
    if node.smi.attached is not None and node.smi.attached != len(gpus):
        return failed(
            "gpus",
            {**measured, "attached": node.smi.attached},
            expected,
            "GPU_COUNT",
            "nvidia-smi counts other GPUs than it describes: its output was cut, or a GPU went away meanwhile",
        )
    if node.csv.gpus and len(node.csv.gpus) != len(gpus):
        return failed(
            "gpus",
            {**measured, "second_query": len(node.csv.gpus)},
            expected,
            "GPU_COUNT",
            "two queries one after the other saw other numbers of GPUs: one comes and goes",
        )
    wrong = [gpu.bus_id for gpu in gpus if model is not None and gpu.model not in (None, model)]
    if wrong:
        return failed("gpus", measured, expected, "GPU_MODEL", f"another model at {', '.join(wrong)}: wrong profile?")
    if memory is not None:
        small = [
            g.bus_id for g in gpus if g.memory_mib is not None and abs(g.memory_mib / memory - 1) > MEMORY_TOLERANCE
        ]
        if small:
            return failed("gpus", measured, expected, "GPU_MEMORY", f"other memory size at {', '.join(small)}")
    if any(gpu.model is None or (memory is not None and gpu.memory_mib is None) for gpu in gpus):
        return not_run("gpus", expected, "NOT_REPORTED", "nvidia-smi's output is cut short")
    if len(node.evidence.device_nodes) != count:
        return failed(
            "gpus",
            measured,
            expected,
            "DEVICE_NODES",
            f"/dev/nvidia* are {len(node.evidence.device_nodes)}: nvidia-modprobe or nvidia-persistenced did not run",
        )
    return passed("gpus", measured, expected)


def _missing_hint(node: Node, measured: t.Mapping[str, t.Any]) -> str:
    on_bus = measured["pci"]
    if on_bus is not None and on_bus > measured["count"]:
        return f"the PCI bus has {on_bus}: the driver refused some, see the kernel log"
    return "a GPU is not on the PCI bus: Xid 79 in the kernel log? Reseat or power-cycle, then ask for service"


def check_power_limit(node: Node) -> Check:
    watts = node.gpu.get("power_limit_w")
    return each(
        node,
        "power_limit",
        watts,
        lambda gpu: gpu.power_limit_w,
        lambda value: watts is None or abs(value - watts) < 1,
        "POWER_LIMIT",
        "someone lowered it with nvidia-smi -pl, or the module is another one",
    )


def check_persistence(node: Node) -> Check:
    return each(
        node,
        "persistence",
        True,
        lambda gpu: gpu.persistence,
        bool,
        "PERSISTENCE_OFF",
        "a configuration error, not bad hardware: enable nvidia-persistenced",
    )


def check_ecc(node: Node) -> Check:
    def value(gpu: smi.Gpu) -> t.Any:
        if gpu.ecc_enabled is False:
            return "disabled"
        if gpu.ecc_uncorrectable is None:
            return None
        return "threshold exceeded" if gpu.sram_threshold_exceeded else gpu.ecc_uncorrectable

    return each(
        node,
        "ecc",
        0,
        value,
        lambda v: v == 0,
        "ECC_ERRORS",
        "uncorrectable memory errors since the last reset: reset the GPU and test again; if they return, replace it",
    )


def check_remapped_rows(node: Node) -> Check:
    def value(gpu: smi.Gpu) -> t.Any:
        if gpu.remap_failed is None or gpu.remap_pending is None:
            return None
        return "failed" if gpu.remap_failed else "pending" if gpu.remap_pending else "none"

    check = each(
        node,
        "remapped_rows",
        "none",
        value,
        lambda v: v == "none",
        "ROW_REMAP_PENDING",
        "a row waits to be remapped: reset the GPU",
    )
    if check.verdict == "fail" and isinstance(check.measured, dict) and "failed" in check.measured.values():
        return failed(
            "remapped_rows", check.measured, "none", "ROW_REMAP_FAILED", "no spare rows left: replace the GPU"
        )
    return check


def check_reset_required(node: Node) -> Check:
    return each(
        node,
        "reset_required",
        False,
        lambda gpu: gpu.reset_required,
        lambda value: not value,
        "RESET_REQUIRED",
        "the driver asks for a reset of the GPU",
    )


def check_clocks(node: Node) -> Check:
    return each(
        node,
        "clocks",
        [],
        lambda gpu: list(gpu.clock_reasons) if gpu.clock_reasons_known else None,
        lambda value: not value,
        "THROTTLED",
        "hardware holds the clocks down: power brake is a power supply's, thermal is cooling's",
    )


def check_pcie(node: Node) -> Check:
    """The width always; the generation only under load, as an idle link steps down."""
    width, gen = node.gpu.get("pcie_width"), node.gpu.get("pcie_gen")
    expected = {"width": width, "gen": gen if node.under_load else f"{gen} under load"}
    idle = [g.bus_id for g in node.smi.gpus if g.performance_state not in (None, "P0", "P1", "P2")]
    if node.under_load and idle:
        return not_run("pcie", expected, "NO_LOAD", f"under_load is set, but {', '.join(idle)} were idle")

    def value(gpu: smi.Gpu) -> t.Any:
        if gpu.pcie_width is None or (node.under_load and gpu.pcie_gen is None):
            return None
        return {"width": gpu.pcie_width, "gen": gpu.pcie_gen}

    def good(v: dict[str, t.Any]) -> bool:
        return (width is None or v["width"] >= width) and (not node.under_load or gen is None or v["gen"] >= gen)

    return each(
        node,
        "pcie",
        expected,
        value,
        good,
        "PCIE_LINK",
        "the link trained too narrow or too slow: reseat module or riser; the kernel log says 'limited by' which port",
    )


def check_xids(node: Node) -> Check:
    log = node.evidence.kernel_log
    if log is None:
        return not_run("xids", [], "NOT_READABLE", "neither /dev/kmsg nor the journal of this boot can be read")
    found = xid.parse(log)
    words = [
        f"{'SXid' if one.switch else 'Xid'} {one.number} at {one.bus_id} x{one.count}: {one.meaning} -> {one.action}"
        for one in found
    ]
    blocking = [one for one in found if one.blocks]
    if blocking:
        actions = sorted({one.action for one in blocking})
        return failed("xids", words, [], "XID", f"since boot: {', '.join(actions)} needed before this node is good")
    if not node.evidence.kernel_log_whole:
        return not_run("xids", [], "LOG_CUT", "the kernel's buffer no longer reaches back to the boot; enable journald")
    return passed("xids", words, [], "programs' faults and handled errors only" if words else "")
