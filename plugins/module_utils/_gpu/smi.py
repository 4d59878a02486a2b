# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What ``nvidia-smi -q`` and ``nvidia-smi --query-gpu=… --format=csv`` print, as data. Private to h200.rack."""

from __future__ import annotations

import dataclasses
import re
import typing as t

Tree = dict[str, t.Any]

_GPU = re.compile(r"^GPU ([0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-9A-Fa-f])\s*$")
_LINE = re.compile(r"^( *)(\S.*?) *(?:: ?(.*))?$")
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")

# Clock reasons that hardware in good order does not show; a software power cap is normal under load.
BAD_CLOCK_REASONS = ("HW Slowdown", "HW Thermal Slowdown", "HW Power Brake Slowdown", "SW Thermal Slowdown")


@dataclasses.dataclass(frozen=True)
class Gpu:
    """One GPU as nvidia-smi describes it; None is what it did not say."""

    bus_id: str
    model: t.Optional[str] = None
    serial: t.Optional[str] = None
    uuid: t.Optional[str] = None
    memory_mib: t.Optional[int] = None
    power_limit_w: t.Optional[float] = None
    vbios: t.Optional[str] = None
    persistence: t.Optional[bool] = None
    pcie_gen: t.Optional[int] = None
    pcie_gen_max: t.Optional[int] = None
    pcie_width: t.Optional[int] = None
    ecc_enabled: t.Optional[bool] = None
    ecc_uncorrectable: t.Optional[int] = None
    sram_threshold_exceeded: t.Optional[bool] = None
    remap_pending: t.Optional[bool] = None
    remap_failed: t.Optional[bool] = None
    reset_required: t.Optional[bool] = None
    fabric_state: t.Optional[str] = None
    fabric_status: t.Optional[str] = None
    performance_state: t.Optional[str] = None
    clock_reasons: tuple[str, ...] = ()
    clock_reasons_known: bool = False


@dataclasses.dataclass(frozen=True)
class Smi:
    """A whole output."""

    gpus: tuple[Gpu, ...]
    driver: t.Optional[str] = None
    cuda: t.Optional[str] = None
    attached: t.Optional[int] = None
    simulated: bool = False


def parse_query(text: str) -> Smi:
    """``nvidia-smi -q``: never raises; what is missing or not understood is None."""
    head: Tree = {}
    trees: list[tuple[str, Tree]] = []
    lines: list[str] = []
    for line in text.splitlines():
        found = _GPU.match(line)
        if found:
            _fill(trees[-1][1] if trees else head, lines)
            trees.append((found.group(1).lower(), {}))
            lines = []
        else:
            lines.append(line)
    _fill(trees[-1][1] if trees else head, lines)
    return Smi(
        gpus=tuple(_gpu(bus_id, tree) for bus_id, tree in trees),
        driver=_text(head, "Driver Version"),
        cuda=_text(head, "CUDA Version"),
        attached=_int(head, "Attached GPUs"),
        simulated="Simulated" in head,
    )


def parse_csv(text: str) -> Smi:
    """``nvidia-smi --query-gpu=… --format=csv`` with its header, by the names of its columns."""
    rows = [[cell.strip() for cell in line.split(",")] for line in text.splitlines() if line.count(",") >= 1]
    if not rows:
        return Smi(gpus=())
    names = [re.sub(r"\s*\[.*\]$", "", name) for name in rows[0]]
    gpus = []
    driver = None
    for row in rows[1:]:
        if len(row) != len(names):
            continue
        values = dict(zip(names, row))
        driver = values.get("driver_version") or driver
        gpus.append(
            Gpu(
                bus_id=values.get("pci.bus_id", values.get("gpu_bus_id", "")).lower(),
                model=values.get("name", values.get("gpu_name")),
                serial=values.get("serial"),
                uuid=values.get("uuid"),
                memory_mib=_as_int(values.get("memory.total")),
                power_limit_w=_as_float(values.get("power.limit")),
                vbios=values.get("vbios_version"),
                persistence=_as_bool(values.get("persistence_mode")),
                pcie_gen=_as_int(values.get("pcie.link.gen.current", values.get("pcie.link.gen.gpucurrent"))),
                pcie_gen_max=_as_int(values.get("pcie.link.gen.max")),
                pcie_width=_as_int(values.get("pcie.link.width.current")),
                ecc_enabled=_as_bool(values.get("ecc.mode.current")),
                ecc_uncorrectable=_as_int(values.get("ecc.errors.uncorrected.volatile.total")),
                performance_state=values.get("pstate"),
            )
        )
    return Smi(gpus=tuple(gpus), driver=driver)


def _fill(tree: Tree, lines: t.Iterable[str]) -> None:
    """Put indented ``key : value`` lines into nested mappings; a line without a value opens a section."""
    stack: list[tuple[int, Tree]] = [(-1, tree)]
    last: t.Optional[tuple[int, Tree, str]] = None
    for line in lines:
        found = _LINE.match(line.expandtabs(4))
        if not found or not line.strip():
            continue
        indent, key, value = len(found.group(1)), found.group(2), found.group(3)
        if last and indent > last[0] and not isinstance(last[1][last[2]], dict):
            # "HW Slowdown : Active" both has a value and lines below it: those stand beside it.
            indent = last[0]
        while stack[-1][0] >= indent:
            stack.pop()
        parent = stack[-1][1]
        if value is None:
            parent[key] = {}
            stack.append((indent, parent[key]))
        else:
            parent[key] = value.strip()
        last = (indent, parent, key)


def _at(tree: Tree, *path: str) -> t.Any:
    value: t.Any = tree
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def _text(tree: Tree, *path: str) -> t.Optional[str]:
    value = _at(tree, *path)
    return value if isinstance(value, str) and value not in ("", "N/A", "[N/A]") else None


def _as_float(value: t.Optional[str]) -> t.Optional[float]:
    found = _NUMBER.search(value) if value else None
    return float(found.group()) if found else None


def _as_int(value: t.Optional[str]) -> t.Optional[int]:
    number = _as_float(value)
    return None if number is None else int(number)


def _as_bool(value: t.Optional[str]) -> t.Optional[bool]:
    return {"enabled": True, "yes": True, "disabled": False, "no": False}.get((value or "").lower())


def _int(tree: Tree, *path: str) -> t.Optional[int]:
    return _as_int(_text(tree, *path))


def _bool(tree: Tree, *path: str) -> t.Optional[bool]:
    return _as_bool(_text(tree, *path))


def _uncorrectable(tree: Tree) -> t.Optional[int]:
    """Uncorrectable errors since the last reset, in SRAM and DRAM, whatever this driver calls the parts."""
    volatile = _at(tree, "ECC Errors", "Volatile")
    if not isinstance(volatile, dict):
        return None
    counts = [_as_int(value) for key, value in volatile.items() if "Uncorrectable" in key and isinstance(value, str)]
    known = [count for count in counts if count is not None]
    return sum(known) if known else None


def _clock_reasons(tree: Tree) -> tuple[tuple[str, ...], bool]:
    section = _at(tree, "Clocks Event Reasons") or _at(tree, "Clocks Throttle Reasons")
    if not isinstance(section, dict):
        return (), False
    known = any(name in section for name in BAD_CLOCK_REASONS)
    return tuple(name for name in BAD_CLOCK_REASONS if section.get(name) == "Active"), known


def _gpu(bus_id: str, tree: Tree) -> Gpu:
    link = ("PCI", "GPU Link Info")
    reasons, known = _clock_reasons(tree)
    # Drivers before 530 say "Power Readings / Power Limit".
    power = _text(tree, "GPU Power Readings", "Current Power Limit") or _text(tree, "Power Readings", "Power Limit")
    resets = [_bool(tree, "GPU Reset Status", key) for key in ("Reset Required", "Drain and Reset Recommended")]
    return Gpu(
        bus_id=bus_id,
        model=_text(tree, "Product Name"),
        serial=_text(tree, "Serial Number"),
        uuid=_text(tree, "GPU UUID"),
        memory_mib=_int(tree, "FB Memory Usage", "Total"),
        power_limit_w=_as_float(power),
        vbios=_text(tree, "VBIOS Version"),
        persistence=_bool(tree, "Persistence Mode"),
        pcie_gen=_int(tree, *link, "PCIe Generation", "Current"),
        pcie_gen_max=_int(tree, *link, "PCIe Generation", "Max"),
        pcie_width=_int(tree, *link, "Link Width", "Current"),
        ecc_enabled=_bool(tree, "ECC Mode", "Current"),
        ecc_uncorrectable=_uncorrectable(tree),
        sram_threshold_exceeded=_bool(tree, "ECC Errors", "Aggregate", "SRAM Threshold Exceeded"),
        remap_pending=_bool(tree, "Remapped Rows", "Pending"),
        remap_failed=_bool(tree, "Remapped Rows", "Remapping Failure Occurred"),
        reset_required=None if resets == [None, None] else any(resets),
        fabric_state=_text(tree, "Fabric", "State"),
        fabric_status=_text(tree, "Fabric", "Status"),
        performance_state=_text(tree, "Performance State"),
        clock_reasons=reasons,
        clock_reasons_known=known,
    )
