# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A person reads these lines at three in the morning."""

from __future__ import annotations

from ansible_collections.h200.rack.plugins.module_utils._state.telling import held_by, intent, ways

EVENTS = [
    {"stage": "declared", "time": "2026-11-30T10:00:00.000Z", "evidence": {}},
    {"stage": "failed", "time": "2026-11-30T10:00:02.500Z", "failed_stage": "bmc_ok", "code": "auth",
     "evidence": {"msg": "wrong password", "task": "Redfish"}},
]  # fmt: skip


def test_a_failure_is_told_with_its_stage_code_and_evidence():
    lines = ways({"gpu001": {"history": EVENTS}, "gpu002": {"history": []}})
    assert lines[0] == "gpu001: 2.5s  declared +0.0s  failed at bmc_ok (auth)"
    assert "    msg: wrong password" in lines
    assert lines[-1] == "gpu002: nothing yet"


def test_an_expired_lease_holds_nothing():
    lease = {"run_id": "r1", "expired": False}
    states = {
        "b": {"lease": lease},
        "a": {"lease": lease},
        "c": {"lease": {**lease, "expired": True}},
        "d": {"lease": None},
    }
    assert held_by(states, "r1") == ["a", "b"]
    assert held_by(states, "r2") == []


def test_imaging_names_the_disk_by_serial_and_the_digest():
    node = {"boot_method": "uefi_pxe", "bmc_protocol": "redfish", "bmc_address": "10.20.2.11", "image_name": "debian12",
            "root_disk": {"serial": "S1"}}  # fmt: skip
    todo = {"will": "image", "reason": "never provisioned", "script": "deploy", "digest": "ab" * 32,
            "allow_overwrite": False}  # fmt: skip
    text = "\n".join(intent({"nodes": {"gpu001": node}}, {"nodes": {"gpu001": todo}}))
    for word in ("pxe, once, by redfish at 10.20.2.11", "serial S1", "debian12@" + "ab" * 32, "deploy"):
        assert word in text
