# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From two powered-off machines to idle Slurm nodes, and what must not happen then. The tests run in this order."""

from __future__ import annotations

import json

NODES = ["gpu001", "gpu002"]


def power(rack, state):
    """Whether every domain is in this state, asked of libvirt and not of our own modules."""
    listed = rack.run("virsh", "list", "--all").text
    return all(any(name in line and state in line for line in listed.splitlines()) for name in NODES)


def test_check_mode_on_a_rack_that_is_off_touches_nothing_and_says_what_would_happen(rack):
    result = rack.play("provision", "--check", "--diff")
    assert result.rc == 0, result.text
    for word in ("gpu001", "gpu002", "pxe", "deploy", "debian12", "VRACK-GPU001"):
        assert word in result.text
    assert power(rack, "shut off")
    assert not rack.stages()


def test_bad_input_is_refused_before_any_machine_is_powered(rack):
    cases = [
        ({"rack_reimage": True}, "rack_reimage"),
        ({"rack_reimage": ["gpu099"]}, "gpu099"),
        ({"rack_image": "no-such-image"}, "no-such-image"),
        ({"rack_bmc_password": "wrong"}, "rack_bmc_password"),
        ({"rack_profile": "no_such_profile"}, "no_such_profile"),
        ({"rack_boot_mac": "52:54:00:00:00:01"}, "rack_boot_mac"),
    ]
    for variables, named in cases:
        result = rack.play("provision", variables=variables)
        assert result.rc != 0, f"{variables} was accepted"
        assert named in result.text, result.text
        assert power(rack, "shut off"), variables


def test_two_powered_off_machines_become_idle_slurm_nodes(rack):
    result = rack.play("provision")
    assert result.rc == 0, result.text
    assert rack.stages() == dict.fromkeys(NODES, "registered")
    seen = rack.on("slurm01", "sinfo -h -N -o '%N %T %G'")
    for name in NODES:
        assert f"{name} idle gpu:h200:8" in seen
    answered = rack.on("slurm01", "srun -N2 hostname")
    assert all(name in answered for name in NODES)


def test_a_second_provision_changes_nothing(rack):
    boots = [rack.on(name, "cat /proc/sys/kernel/random/boot_id") for name in NODES]
    result = rack.play("provision")
    assert result.rc == 0, result.text
    assert set(result.changed.values()) == {0}, result.text
    assert boots == [rack.on(name, "cat /proc/sys/kernel/random/boot_id") for name in NODES]


def test_a_node_with_a_job_on_it_is_not_imaged(rack):
    job = rack.on("slurm01", "sbatch --parsable -w gpu001 --chdir=/tmp --output=/dev/null --wrap=sleep\\ 600")
    number = next(line for line in job.splitlines() if line.strip().isdigit()).strip()
    result = rack.play("provision", variables={"rack_reimage": ["gpu001"]})
    assert result.rc != 0
    assert f"job {number}" in result.text or number in result.text
    assert rack.stages()["gpu001"] != "written"
    rack.on("slurm01", f"scancel {number}")


def test_only_the_named_node_is_imaged_anew(rack):
    other = rack.on("gpu002", "cat /proc/sys/kernel/random/boot_id /etc/machine-id")
    old = rack.on("gpu001", "cat /etc/machine-id")
    result = rack.play("provision", variables={"rack_reimage": ["gpu001"]})
    assert result.rc == 0, result.text
    assert rack.stages() == dict.fromkeys(NODES, "registered")
    assert other == rack.on("gpu002", "cat /proc/sys/kernel/random/boot_id /etc/machine-id")
    assert old != rack.on("gpu001", "cat /etc/machine-id")


def test_the_ledger_tells_every_stage_of_the_way(rack):
    told = rack.run(
        "ansible",
        "boot01",
        "-b",
        "-o",
        "-m",
        "h200.rack.node_state_info",
        env={"ANSIBLE_CALLBACK_RESULT_FORMAT": "json"},
    ).text
    history = json.loads(told[told.index("{") :])["nodes"]["gpu002"]["history"]
    stages = [event["stage"] for event in history if event.get("stage")]
    assert stages == [
        "declared", "bmc_ok", "netboot_set", "powered", "ramdisk_up", "written",
        "local_boot", "os_up", "ready", "accepted", "registered",
    ]  # fmt: skip
