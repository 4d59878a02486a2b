# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What goes wrong on one node stays on that node, and the next run goes on from there."""

from __future__ import annotations

import contextlib
import pathlib
import subprocess
import threading
import time
import typing as t

import pytest
import yaml

pytestmark = pytest.mark.full
ROOT = pathlib.Path(__file__).resolve().parents[3]
HOST_VARS = ROOT / ".cache" / "vrack" / "inventory" / "host_vars"


@contextlib.contextmanager
def inventory_says(node: str, **variables: t.Any) -> t.Iterator[None]:
    """For a while, a node's inventory says something else."""
    HOST_VARS.mkdir(exist_ok=True)
    path = HOST_VARS / f"{node}.yml"
    path.write_text(yaml.safe_dump(variables))
    try:
        yield
    finally:
        path.unlink()


def kill_the_bmc(rack, node: str, stage: str, over: threading.Event) -> None:
    """End the emulator that is the node's BMC as soon as the ledger has the node at a stage."""
    while not over.is_set():
        if rack.ledger().get(node, {}).get("stage") == stage:
            assert rack.run("pkill", "-f", f"sushy-emulator --config .*/{node}.conf").rc == 0
            return
        time.sleep(0.3)


def last_event(rack, node: str) -> dict[str, t.Any]:
    return rack.ledger()[node]["history"][-1]


def test_a_bmc_that_dies_on_the_way_fails_its_node_and_the_other_reaches_idle(rack):
    over = threading.Event()
    # The system's disk is written, and then nobody is there to restart the machine.
    killer = threading.Thread(target=kill_the_bmc, args=(rack, "gpu001", "ramdisk_up", over))
    killer.start()
    try:
        result = rack.play("provision")
    finally:
        over.set()
        killer.join()
    assert result.rc != 0
    assert result.failed == {"gpu001"}, result.text
    event = last_event(rack, "gpu001")
    assert (event["stage"], event["failed_stage"], event["code"]) == ("failed", "local_boot", "unreachable")
    assert rack.stages()["gpu002"] == "registered"
    assert "gpu002 idle" in rack.on("slurm01", "sinfo -h -N -o '%N %T'")
    assert "failed at local_boot (unreachable)" in result.text
    subprocess.run(["make", "rack-up"], cwd=ROOT, check=True)


def test_a_node_that_never_boots_is_given_up_at_its_deadline(rack):
    with inventory_says("gpu001", rack_deadlines={"ramdisk_up": 3}):
        result = rack.play("provision", variables={"rack_reimage": ["gpu001"], "rack_limit": "gpu001"})
    assert result.failed == {"gpu001"}, result.text
    event = last_event(rack, "gpu001")
    assert (event["stage"], event["failed_stage"], event["code"]) == ("failed", "ramdisk_up", "timeout")


def test_a_disk_that_is_not_there_fails_with_a_list_of_those_that_are(rack):
    with inventory_says("gpu001", rack_root_disk={"serial": "NO-SUCH-DISK"}):
        result = rack.play("provision", variables={"rack_reimage": ["gpu001"], "rack_limit": "gpu001"})
    assert result.failed == {"gpu001"}, result.text
    event = last_event(rack, "gpu001")
    assert (event["stage"], event["failed_stage"], event["code"]) == ("failed", "written", "disk_hint")
    assert "NO-SUCH-DISK" in event["evidence"]["msg"] and "VRACK-GPU001" in event["evidence"]["msg"]


def test_the_next_run_goes_on_where_the_last_one_failed_by_kexec(rack):
    before = rack.in_job("gpu002", "cat /proc/sys/kernel/random/boot_id")
    result = rack.play("provision", variables={"rack_finish": "kexec"})
    assert result.rc == 0, result.text
    ledger = rack.ledger()
    assert {name: node["stage"] for name, node in ledger.items()} == {"gpu001": "registered", "gpu002": "registered"}
    left = next(event for event in reversed(ledger["gpu001"]["history"]) if event.get("stage") == "local_boot")
    assert left["evidence"]["finish"]["method"] == "kexec_loaded"
    assert before == rack.in_job("gpu002", "cat /proc/sys/kernel/random/boot_id")
