# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What goes wrong on one node stays on that node, and the next run goes on from there."""

from __future__ import annotations

import pathlib

import pytest

pytestmark = pytest.mark.full
HOST_VARS = pathlib.Path(__file__).resolve().parents[3] / ".cache" / "vrack" / "inventory" / "host_vars"


@pytest.fixture
def a_disk_that_is_not_there():
    """gpu001's inventory names a disk that it does not have."""
    HOST_VARS.mkdir(exist_ok=True)
    path = HOST_VARS / "gpu001.yml"
    path.write_text("rack_root_disk: {serial: NO-SUCH-DISK}\n")
    yield
    path.unlink()


def test_a_node_that_fails_on_the_way_does_not_stop_the_other(rack, a_disk_that_is_not_there):
    result = rack.play("provision", variables={"rack_reimage": ["gpu001", "gpu002"]})
    assert result.rc != 0
    assert result.failed == {"gpu001"}, result.text
    ledger = rack.ledger()
    assert ledger["gpu002"]["stage"] == "registered"
    last = ledger["gpu001"]["history"][-1]
    assert (last["stage"], last["failed_stage"], last["code"]) == ("failed", "written", "disk_hint")
    assert "NO-SUCH-DISK" in last["evidence"]["msg"] and "VRACK-GPU001" in last["evidence"]["msg"]
    assert "gpu002 idle" in rack.on("slurm01", "sinfo -h -N -o '%N %T'")


def test_the_next_run_goes_on_where_the_last_one_failed(rack):
    before = rack.in_job("gpu002", "cat /proc/sys/kernel/random/boot_id")
    result = rack.play("provision")
    assert result.rc == 0, result.text
    assert rack.stages() == {"gpu001": "registered", "gpu002": "registered"}
    assert before == rack.in_job("gpu002", "cat /proc/sys/kernel/random/boot_id")
