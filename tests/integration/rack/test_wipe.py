# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Disks are erased where a person named the node, while no job runs on it, and nowhere else."""

from __future__ import annotations

import os
import pathlib

import pytest

pytestmark = pytest.mark.full
ROOT = pathlib.Path(__file__).resolve().parents[3]
STATE = pathlib.Path(os.environ.get("VRACK_STATE") or ROOT / ".cache" / "vrack" / "rack")


def disk(node: str) -> pathlib.Path:
    return STATE / "nodes" / node / "disk.raw"


def holds_something(node: str) -> bool:
    with disk(node).open("rb") as handle:
        return any(any(block) for block in iter(lambda: handle.read(1 << 20), b""))


@pytest.fixture(scope="module")
def cluster(rack):
    """The rack with both nodes in the cluster: whether jobs run is asked of the scheduler."""
    if set(rack.stages().values()) != {"registered"}:
        result = rack.play("provision")
        assert result.rc == 0, result.text
    return rack


@pytest.mark.parametrize("value", [None, True, "all", ["gpu099"]])
def test_nothing_is_erased_that_nobody_named(rack, value):
    result = rack.play("wipe", variables={"rack_wipe": value})
    assert result.rc != 0 and "rack_wipe must name hosts" in result.text
    assert not result.changed.get("gpu001") and not result.changed.get("gpu002")


def test_a_node_with_a_job_keeps_its_disk_and_its_job(cluster):
    rack = cluster
    rack.on("slurm01", "sbatch -w gpu002 -J keep --wrap 'sleep 600' -o /dev/null")
    result = rack.play("wipe", variables={"rack_wipe": ["gpu002"]})
    assert result.rc != 0 and "Slurm runs the jobs" in result.text
    assert "keep" in rack.on("slurm01", "squeue -h -t R -o %j")
    assert holds_something("gpu002")
    rack.on("slurm01", "scancel --jobname=keep")


def test_the_named_nodes_disk_is_blank_and_the_node_is_off(cluster):
    rack = cluster
    with disk("gpu002").open("r+b") as handle:
        handle.seek(3 << 30)
        handle.write(b"somebody's data")
    before = rack.stages().get("gpu001")
    result = rack.play("wipe", variables={"rack_wipe": ["gpu002"]})
    assert result.rc == 0, result.text
    assert not holds_something("gpu002")
    node = rack.ledger()["gpu002"]
    assert node["stage"] == "declared" and not node["lease"]
    (erased,) = node["history"][-1]["evidence"]["disks"]
    assert (erased["verdict"], erased["disk"]["serial"]) == ("erased", "VRACK-GPU002")
    assert rack.stages().get("gpu001") == before
    assert "poweroff" in rack.on("boot01", "cat /srv/h200-rack/boot/*.ipxe")
