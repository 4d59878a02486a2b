# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A virtual rack of four nodes, three of which are bad: a slow NIC path, seven GPUs, a probe that hangs.

The faults are the machines' own (``vrack_faults``), so the whole way from powered off to Slurm meets them as it would
meet bad hardware. Then the good node's scheduler starts tests that hang and crash.
"""

from __future__ import annotations

import json
import os
import pathlib
import subprocess

import pytest

TOP = pathlib.Path(__file__).resolve().parents[3]
RACK = TOP / "tests" / "virtual_rack"
FAULTS = {"gpu002": ["nic_slow"], "gpu003": ["gpu_missing=7"], "gpu004": ["probe_hang"]}
# Only the tier standard loads the NICs; a node whose probe hangs is not worth more than a look.
TIERS = {"gpu001": "standard", "gpu002": "standard", "gpu003": "quick", "gpu004": "quick"}
PATIENCE = 1500

pytestmark = [
    pytest.mark.full,
    pytest.mark.skipif(os.geteuid() != 0, reason="makes namespaces, bridges and virtual machines"),
]


class Rack:
    def __init__(self, home: pathlib.Path) -> None:
        self.state = home / "rack"
        self.env = {**os.environ, "VRACK_STATE": str(self.state), "ANSIBLE_CONFIG": str(TOP / "ansible.cfg"),
                    # Four emulated machines on two cores: a login may take long.
                    "ANSIBLE_NOCOLOR": "1", "ANSIBLE_TIMEOUT": "90"}  # fmt: skip

    def own(self, play: str) -> None:
        variables = {"vrack_nodes": len(TIERS), "vrack_faults": FAULTS}
        argv = [TOP / ".venv/bin/ansible-playbook", "-i", RACK / "hosts.yml", "-e", json.dumps(variables),
                RACK / f"{play}.yml"]  # fmt: skip
        done = subprocess.run(argv, env=self.env, capture_output=True, text=True, timeout=PATIENCE, check=False)
        assert done.returncode == 0, done.stdout[-6000:] + done.stderr

    def run(self, *argv: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([RACK / "run", *argv], env=self.env, cwd=TOP, capture_output=True, text=True,
                              timeout=PATIENCE, check=False)  # fmt: skip

    def on(self, host: str, command: str) -> str:
        return self.run("ansible", host, "-b", "-m", "ansible.builtin.raw", "-a", command).stdout

    def ledger(self) -> dict:
        text = self.run("ansible", "boot01", "-b", "-o", "-m", "h200.rack.node_state_info").stdout
        return json.JSONDecoder().raw_decode(text[text.index("{") :])[0]["nodes"]

    def as_node(self, *argv: str) -> str:
        """What a module says on gpu001."""
        believed = {"ansible_ssh_common_args": "-o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null"}
        return self.run("ansible", "gpu001", "-b", "-u", "rack", "-e", json.dumps(believed), "-o", *argv).stdout

    def fault(self, *faults: str) -> None:
        self.as_node("-m", "ansible.builtin.raw", "-a", f"simgpu-fault {' '.join(faults)}")

    def probe(self, fault: str, **options) -> dict:
        """nccl_probe on gpu001 by srun, with a fault that is set for it and gone afterwards."""
        given = {"launcher": "srun", "hosts": ["gpu001"], "profile": {"name": "h200_sxm"}, **options}
        self.fault(fault)
        text = self.as_node("-m", "h200.rack.nccl_probe", "-a", json.dumps(given))
        left = self.as_node("-m", "ansible.builtin.raw", "-a", "pgrep -fa _perf || true; simgpu-fault")
        assert "{" in text, text
        result = json.JSONDecoder().raw_decode(text[text.index("{") :])[0]
        return {**result, "left": [line for line in left.splitlines() if "_perf" in line and "pgrep" not in line]}


@pytest.fixture(name="rack", scope="module")
def _rack(tmp_path_factory):
    rack = Rack(tmp_path_factory.mktemp("faults"))
    try:
        rack.own("up")
        folder = rack.state / "inventory" / "host_vars"
        folder.mkdir(exist_ok=True)
        for node, tier in TIERS.items():
            (folder / f"{node}.yml").write_text(json.dumps({"acceptance_tier": tier}))
        published = rack.run("ansible-playbook", "h200.rack.images")
        assert published.returncode == 0, published.stdout[-6000:]
        rack.provisioned = rack.run("ansible-playbook", "h200.rack.provision")
        yield rack
    finally:
        if not os.environ.get("H200_RACK_KEEP"):
            rack.own("down")


def test_the_good_node_is_in_service_and_the_bad_ones_are_refused_with_their_codes(rack):
    ledger = rack.ledger()
    last = {name: node["history"][-1] for name, node in ledger.items()}
    assert last["gpu001"]["stage"] == "registered", rack.provisioned.stdout[-8000:]
    found = {name: (event.get("failed_stage"), event.get("code")) for name, event in last.items() if name != "gpu001"}
    assert found == {
        "gpu002": ("accepted", "NIC_PATH_SLOW"),
        "gpu003": ("ready", "GPU_COUNT"),
        "gpu004": ("accepted", "PROBE_HUNG"),
    }, rack.provisioned.stdout[-8000:]
    assert rack.provisioned.returncode != 0


def test_slurm_gives_work_to_the_good_node_only(rack):
    lines = rack.on("slurm01", "sinfo -h -N -o '%N %T'").split("\n")
    states = dict(line.split() for line in lines if line.startswith("gpu"))
    assert states["gpu001"] == "idle"
    assert not [name for name, state in states.items() if name != "gpu001" and state in ("idle", "mixed", "allocated")]


def test_a_test_that_hangs_on_the_node_ends_in_time_with_everything_it_started(rack):
    result = rack.probe("nccl_hang", timeout=40)
    assert result["reasons"][0]["code"] == "TIMEOUT" and result["exit_code"] is None
    assert "Collective test starting" in result["stdout_tail"] and result["left"] == []
    assert "nccl_probe" not in rack.on("slurm01", "squeue -h -t R -o %j")


def test_a_test_that_crashes_on_the_node_keeps_its_exit_code_and_its_words(rack):
    result = rack.probe("nccl_crash", timeout=120)
    assert result["reasons"][0]["code"] == "NCCL_ERROR" and result["exit_code"] not in (0, None)
    assert "unhandled system error" in result["stdout_tail"] + result["stderr_tail"] and result["left"] == []


def accept(rack, tier):
    return rack.run("ansible-playbook", "h200.rack.acceptance", "-e", f"acceptance_tier={tier}", "-e",
                    "rack_limit=gpu001")  # fmt: skip


def test_a_node_in_service_is_drained_measured_and_released(rack):
    done = accept(rack, "standard")
    assert done.returncode == 0, done.stdout[-6000:]
    assert "Nothing else runs on a node that is loaded" in done.stdout
    assert "idle" in rack.on("slurm01", "sinfo -h -n gpu001 -o %T")


def test_a_node_in_service_that_is_not_good_any_more_is_drained_with_its_code(rack):
    rack.fault("ecc=2")
    done = accept(rack, "quick")
    assert done.returncode != 0 and "gpu001: ECC_ERRORS" in done.stdout, done.stdout[-6000:]
    assert ":ECC_ERRORS" in rack.on("slurm01", "sinfo -h -R -n gpu001 -o %E")
