# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Checks of the compute fabric's ports, and of firmware. Private to h200.rack."""

from __future__ import annotations

import typing as t

from ansible_collections.h200.rack.plugins.module_utils._common.profiles import compute_nics

from . import ports
from .checks import Check, failed, not_run, passed
from .node import Node, compact, unusable

# Worst first: where several ports are bad, this one names the failure.
_CODES = ("PORT_MISSING", "PORT_DOWN", "PORT_LAYER", "PORT_RATE")


def check_ports(node: Node) -> Check:
    """By name where the profile names the compute NICs; else by number, as a node has other ports too."""
    count, names = compute_nics(node.profile)
    rate, layer = node.nics.get("rate_gbps"), node.nics.get("link_layer")
    expected = {"ports": names or count, "rate_gbps": rate, "link_layer": layer, "state": "Active"}
    if not count:
        return passed("ports", "not compared", expected, "the profile expects no compute NICs")
    evidence = node.evidence
    if evidence.ports_source is None:
        silent = unusable("ports", expected, "ibstat", evidence.output("ibstat"))
        return silent or failed(
            "ports", [], expected, "PORT_MISSING", "no InfiniBand or RoCE device: is the NICs' driver loaded?"
        )
    found = {port.name: port for port in evidence.ports}
    problems = {name: _problem(found.get(name), rate, layer) for name in (names or found)}
    good = [name for name, problem in problems.items() if problem is None]
    if len(good) >= count:
        return passed("ports", good, expected)
    bad = {name: problem for name, problem in problems.items() if problem and _concerns(name, names, found, good)}
    codes = {code for code, _text in bad.values()}
    return failed(
        "ports",
        {"good": good, "bad": {name: text for name, (_code, text) in bad.items()}},
        expected,
        next((code for code in _CODES if code in codes), "PORT_MISSING"),
        "check cable, transceiver and switch port; a port at a lower rate has lost lanes or trained down",
    )


def _concerns(name: str, names: t.Sequence[str], found: t.Mapping[str, ports.Port], good: t.Sequence[str]) -> bool:
    """Without names, a port of another card than the good ones (storage, management) is not to blame."""
    kinds = {found[other].kind for other in good}
    return bool(names) or not kinds or found[name].kind in kinds


def _problem(port: t.Optional[ports.Port], rate: t.Any, layer: t.Any) -> t.Optional[tuple[str, str]]:
    if port is None:
        return "PORT_MISSING", "missing"
    if not port.up:
        return "PORT_DOWN", f"{port.state}, {port.physical}"
    if layer is not None and port.link_layer not in (None, layer):
        return "PORT_LAYER", f"{port.link_layer}"
    if rate is not None and (port.rate_gbps is None or port.rate_gbps < rate):
        return "PORT_RATE", "rate unknown" if port.rate_gbps is None else f"{port.rate_gbps:g} Gb/s"
    return None


def check_port_counters(node: Node) -> Check:
    """Growth since the counters that were passed in; absolute values say nothing."""
    expected = dict.fromkeys(ports.COUNTERS, 0)
    now = {port.name: port.counters for port in node.evidence.ports if port.counters is not None}
    if not node.baseline:
        return passed("port_counters", "not compared", expected, "pass port_counters of an earlier probe to compare")
    if not now:
        return not_run("port_counters", expected, "NOT_REPORTED", "the ports' counters cannot be read")
    names = compute_nics(node.profile)[1] or sorted(set(now) & set(node.baseline))
    grown = {}
    for name in names:
        before, after = node.baseline.get(name) or {}, now.get(name)
        if after is None:
            grown[name] = {"port": "gone"}
            continue
        delta = {key: after[key] - int(before.get(key, after[key])) for key in after}
        if any(delta.values()):
            grown[name] = {key: value for key, value in delta.items() if value}
    if grown:
        return failed("port_counters", grown, expected, "PORT_ERRORS", "errors rose during the test: a bad link")
    return passed("port_counters", 0, expected)


def check_firmware(node: Node) -> Check:
    """Equal to the pinned versions where the profile pins them, and of one kind within the node anyway."""
    pins = {
        "driver": node.gpu.get("driver_version"),
        "vbios": node.gpu.get("vbios_version"),
        "nic": node.nics.get("firmware"),
    }
    silent = unusable("firmware", pins, "nvidia-smi", node.query)
    if silent:
        return silent
    names = compute_nics(node.profile)[1]
    rate = node.nics.get("rate_gbps")
    nics = {
        port.firmware
        for port in node.evidence.ports
        if port.firmware and (port.name in names if names else port.up and port.rate_gbps == rate)
    }
    measured = {
        "driver": [node.smi.driver] if node.smi.driver else [],
        "vbios": sorted({gpu.vbios for gpu in node.smi.gpus if gpu.vbios}),
        "nic": sorted(nics),
    }
    wrong = {key: measured[key] for key, pin in pins.items() if pin is not None and measured[key] != [pin]}
    mixed = {key: values for key, values in measured.items() if len(values) > 1}
    if wrong:
        return failed("firmware", measured, pins, "FIRMWARE_VERSION", f"not the pinned version: {', '.join(wrong)}")
    if mixed:
        return failed("firmware", measured, pins, "FIRMWARE_MIXED", f"several versions in one node: {', '.join(mixed)}")
    if not measured["vbios"] or not measured["driver"]:
        return not_run("firmware", pins, "NOT_REPORTED", "nvidia-smi named no versions")
    return passed("firmware", {key: compact(values) if values else None for key, values in measured.items()}, pins)
