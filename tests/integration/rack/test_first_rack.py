# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From two powered-off machines to idle Slurm nodes, and what must not happen then. The tests run in this order."""

from __future__ import annotations

import re

import pytest

NODES = ["gpu001", "gpu002"]
STAGES = [
    "declared", "bmc_ok", "netboot_set", "powered", "ramdisk_up", "written",
    "local_boot", "os_up", "ready", "accepted", "registered",
]  # fmt: skip


def all_off(rack):
    """Whether every machine is off, asked of libvirt and not of our own modules."""
    listed = rack.run("virsh", "list", "--all").text
    return all(re.search(rf"{name}\s+shut off", listed) for name in NODES)


def test_check_mode_on_a_rack_that_is_off_touches_nothing_and_says_what_would_happen(rack):
    result = rack.play("provision", "--check", "--diff")
    assert result.rc == 0, result.text
    for name, protocol in (("gpu001", "redfish"), ("gpu002", "ipmi")):
        told = re.search(rf"{name}: image .*?disk: serial VRACK-{name.upper()}", result.text, re.DOTALL)
        assert told, result.text
        for word in (f"boot override: pxe, once, by {protocol}", "power: ", "script: deploy", "image: debian12@"):
            assert word in told.group(0)
    assert all_off(rack)
    assert not rack.ledger()


@pytest.mark.parametrize(
    ("variables", "named"),
    [
        ({"rack_reimage": True}, ["rack_reimage"]),
        ({"rack_reimage": ["gpu099"]}, ["rack_reimage", "gpu099"]),
        ({"rack_image": "no-such-image"}, ["gpu001", "rack_image", "no-such-image"]),
        ({"rack_image": "debian12@" + "0" * 64}, ["gpu001", "rack_image"]),
        ({"rack_bmc_password": "not-the-password"}, ["gpu001", "gpu002", "rack_bmc_password"]),
        ({"rack_bmc_address": "10.20.2.250", "rack_preflight_timeout": 5}, ["gpu001", "rack_bmc_address"]),
        ({"rack_profile": "no_such_profile"}, ["gpu001", "rack_profile", "no_such_profile"]),
        ({"rack_boot_mac": "52:54:00:00:00:01"}, ["gpu001", "gpu002", "rack_boot_mac"]),
    ],
    ids=["reimage-true", "reimage-unknown", "no-image", "other-digest", "password", "no-bmc", "profile", "same-mac"],
)
def test_bad_input_is_refused_before_any_machine_is_powered(rack, variables, named):
    result = rack.play("provision", variables=variables)
    assert result.rc != 0, f"{variables} was accepted"
    for word in named:
        assert word in result.text, result.text
    assert all_off(rack)
    assert not rack.ledger()


def test_two_powered_off_machines_become_idle_slurm_nodes(rack):
    result = rack.play("provision")
    assert result.rc == 0, result.text
    assert rack.stages() == dict.fromkeys(NODES, "registered")
    for name in NODES:
        history = [event["stage"] for event in rack.ledger()[name]["history"] if event.get("stage")]
        assert history == STAGES
    seen = rack.on("slurm01", "sinfo -h -N -o '%N %T %G'")
    for name in NODES:
        assert f"{name} idle gpu:h200:8" in seen
    answered = rack.on("slurm01", "srun -N2 hostname")
    assert all(name in answered for name in NODES)


def test_the_seed_made_host_name_user_addresses_and_host_keys(rack):
    seen = rack.in_job("gpu001", "hostname; id -un rack; ip -br address; cat /etc/ssh/ssh_host_ed25519_key.pub")
    assert "rack" in seen
    for word in ("gpu001", "10.20.1.11/24", "10.20.3.11/24"):
        assert word in seen
    written = next(event for event in rack.ledger()["gpu001"]["history"] if event.get("stage") == "written")
    assert written["evidence"]["host_keys"][0].split()[1] in seen


def test_a_second_provision_changes_nothing(rack):
    boots = [rack.in_job(name, "cat /proc/sys/kernel/random/boot_id") for name in NODES]
    result = rack.play("provision")
    assert result.rc == 0, result.text
    assert set(result.changed.values()) == {0}, result.text
    assert boots == [rack.in_job(name, "cat /proc/sys/kernel/random/boot_id") for name in NODES]


def test_a_node_that_another_run_holds_is_refused_and_the_holder_named(rack):
    hold = "node=gpu001 run_id=other holder=somebody"
    assert rack.run("ansible", "boot01", "-b", "-m", "h200.rack.node_state", "-a", hold).rc == 0
    result = rack.play("provision", variables={"rack_reimage": ["gpu001"]})
    assert result.rc != 0
    assert "held by somebody (run other)" in result.text, result.text
    assert rack.run("ansible", "boot01", "-b", "-m", "h200.rack.node_state", "-a", f"{hold} release=true").rc == 0
    assert rack.stages()["gpu001"] == "registered"


def test_a_node_with_a_job_on_it_is_not_imaged(rack):
    submitted = rack.on("slurm01", "sbatch --parsable -w gpu001 -D /tmp -o /dev/null --wrap='sleep 900'")
    job = next(line.strip() for line in submitted.splitlines() if line.strip().isdigit())
    rack.on("slurm01", f"while ! squeue -h -j {job} -t RUNNING | grep -q .; do sleep 1; done")
    result = rack.play("provision", variables={"rack_reimage": ["gpu001"]})
    assert result.rc != 0
    assert f"Slurm runs the jobs {job} on it" in result.text, result.text
    assert "written" in [event.get("stage") for event in rack.ledger()["gpu001"]["history"]]
    assert job in rack.on("slurm01", f"squeue -h -j {job} -t RUNNING")
    rack.on("slurm01", f"scancel {job}; while squeue -h -j {job} | grep -q .; do sleep 1; done")


def test_only_the_named_node_is_imaged_anew(rack):
    who = "cat /proc/sys/kernel/random/boot_id /etc/machine-id"
    other = rack.in_job("gpu002", who)
    old = [event for event in rack.ledger()["gpu001"]["history"] if event.get("stage") == "written"][-1]
    result = rack.play("provision", variables={"rack_reimage": ["gpu001"]})
    assert result.rc == 0, result.text
    assert rack.stages() == dict.fromkeys(NODES, "registered")
    assert other == rack.in_job("gpu002", who)
    new = [event for event in rack.ledger()["gpu001"]["history"] if event.get("stage") == "written"][-1]
    assert old["evidence"]["host_keys"] != new["evidence"]["host_keys"]
    assert "gpu001 idle" in rack.on("slurm01", "sinfo -h -N -o '%N %T'")
