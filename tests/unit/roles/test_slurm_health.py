# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The health check that slurmd runs beside jobs: what it finds, and whose drain it leaves alone."""

from __future__ import annotations

import importlib.util
import pathlib
import subprocess
import sys

import pytest

PROGRAM = pathlib.Path(__file__).resolve().parents[3] / "roles/slurm/files/health.py"
_spec = importlib.util.spec_from_file_location("slurm_health", PROGRAM)
health = importlib.util.module_from_spec(_spec)
sys.modules["slurm_health"] = health
_spec.loader.exec_module(health)

EXPECTED = {
    "node": "gpu001",
    "gpus": 8,
    "units": ["nvidia-fabricmanager.service"],
    "nics": ["mlx5_0", "mlx5_1"],
    "rate_gbps": 400,
    "paths": ["/"],
    "free_percent": 2,
}
GOOD_ROWS = "".join(f"{index}, 0, 0, 0\n" for index in range(8))


class Host(health.Host):
    def __init__(self, root, **said):
        super().__init__(str(root))
        self.said = {"nvidia-smi": (0, GOOD_ROWS), "systemctl": (0, "active"), **said}
        self.log, self.free, self.asked = "", (0.5, False), []

    def run(self, *argv, seconds=0):
        self.asked.append(argv)
        return self.said.get(argv[0], (0, ""))

    def kernel_log(self):
        return self.log

    def usage(self, name):
        return self.free


@pytest.fixture
def host(tmp_path):
    for number in range(8):
        (tmp_path / "dev").mkdir(exist_ok=True)
        (tmp_path / f"dev/nvidia{number}").touch()
    (tmp_path / "dev/nvidiactl").touch()
    for name in ("mlx5_0", "mlx5_1"):
        port = tmp_path / "sys/class/infiniband" / name / "ports/1"
        port.mkdir(parents=True)
        (port / "state").write_text("4: ACTIVE\n")
        (port / "rate").write_text("400 Gb/sec (4X NDR)\n")
    return Host(tmp_path)


def codes(host, **changed):
    return [finding.code for finding in health.look(host, {**EXPECTED, **changed})]


def test_a_healthy_node_is_left_alone(host):
    assert codes(host) == []


def test_seven_device_files_are_not_eight(host):
    host.path("/dev/nvidia7").unlink()
    assert codes(host) == ["GPU_DEVICES"]


def test_nvidiactl_is_not_counted_as_a_gpu(host):
    host.path("/dev/nvidia3").unlink()
    assert "GPU_DEVICES" in codes(host)


@pytest.mark.parametrize(
    ("said", "code"),
    [
        ((0, GOOD_ROWS.replace("7, 0, 0, 0\n", "")), "GPU_COUNT"),
        ((0, GOOD_ROWS.replace("3, 0", "3, 2")), "ECC_UNCORRECTED"),
        ((0, GOOD_ROWS.replace("3, 0, 0, 0", "3, 0, 1, 0")), "ROW_REMAP_FAILED"),
        ((0, GOOD_ROWS.replace("3, 0, 0, 0", "3, 0, 0, Yes")), "ROW_REMAP_PENDING"),
        ((124, ""), "GPU_HANG"),
        ((15, "Unable to determine the device handle for GPU0000:18:00.0"), "NVIDIA_SMI"),
        ((127, "no such file"), "NVIDIA_SMI"),
    ],
)
def test_what_nvidia_smi_tells_is_a_finding(host, said, code):
    host.said["nvidia-smi"] = said
    assert codes(host) == [code]


def test_what_the_gpu_does_not_count_is_no_finding(host):
    host.said["nvidia-smi"] = (0, GOOD_ROWS.replace(", 0, 0, 0", ", [N/A], [N/A], [N/A]"))
    assert codes(host) == []


def test_an_xid_of_the_hardware_is_a_finding_and_one_of_a_program_is_not(host):
    host.log = (
        "6,1,2,-;NVRM: Xid (PCI:0000:18:00): 31, pid=7, name=python, MMU Fault\n"
        "6,1,2,-;NVRM: Xid (PCI:0000:2a:00): 79, GPU has fallen off the bus.\n"
        "6,1,2,-;NVRM: Xid (PCI:0000:2a:00): 79, GPU has fallen off the bus.\n"
        "6,1,2,-;nvidia-nvswitch0: SXid (PCI:0000:c1:00.0): 24007, Non-fatal, Link 5\n"
        "6,1,2,-;nvidia-nvswitch0: SXid (PCI:0000:c1:00.0): 20034, Fatal, Link 5 LTSSM Fault Up\n"
    )
    assert codes(host) == ["XID_79", "SXID_20034"]


@pytest.mark.parametrize(("name", "text"), [("state", "1: DOWN\n"), ("rate", "200 Gb/sec (4X HDR)\n")])
def test_a_port_that_is_down_or_slow_is_a_finding(host, name, text):
    (host.path("/sys/class/infiniband/mlx5_1/ports/1") / name).write_text(text)
    assert codes(host) == ["NIC_PORT"]
    assert codes(host, nics=1) == []
    assert codes(host, nics=2) == ["NIC_PORT"]


def test_a_nic_that_is_gone_is_a_finding(host):
    assert codes(host, nics=["mlx5_0", "mlx5_9"]) == ["NIC_PORT"]


def test_a_dead_fabric_manager_is_a_finding(host):
    host.said["systemctl"] = (3, "failed\n")
    assert codes(host) == ["FABRIC_MANAGER"]


@pytest.mark.parametrize(("usage", "code"), [((0.5, True), "DISK_READ_ONLY"), ((0.01, False), "DISK_FULL")])
def test_a_disk_that_takes_nothing_is_a_finding(host, usage, code):
    host.free = usage
    assert codes(host) == [code]


def test_the_drain_names_every_kind_once_and_not_as_ours():
    found = [health.Finding("XID_79", "a"), health.Finding("XID_79", "b"), health.Finding("GPU_COUNT", "c")]
    assert health.reason(found) == "health:XID_79,GPU_COUNT"


@pytest.mark.parametrize("state", ["IDLE+DRAIN", "MIXED*+DRAIN"])
def test_a_node_that_is_drained_keeps_its_reason(host, state):
    host.said["scontrol"] = (0, f"NodeName=gpu001 Arch=x86_64\n   State={state} ThreadsPerCore=1\n   Reason=gate\n")
    health.drain(host, "gpu001", "health:GPU_COUNT")
    assert [argv[1] for argv in host.asked] == ["show"]


def test_a_node_with_a_finding_is_drained(host):
    host.said["scontrol"] = (0, "NodeName=gpu001 Arch=x86_64\n   State=MIXED ThreadsPerCore=1\n")
    assert health.drain(host, "gpu001", "health:GPU_COUNT") == "gpu001 is drained"
    assert host.asked[-1] == ("scontrol", "update", "nodename=gpu001", "state=drain", "reason=health:GPU_COUNT")


def test_its_steps_end_before_slurmd_ends_it():
    # nvidia-smi, one service, two scontrols.
    assert health.TOOL_SECONDS + 3 * health.SCONTROL_SECONDS < 60


def test_a_tool_that_hangs_is_ended(tmp_path):
    assert health.Host(str(tmp_path)).run("sleep", "60", seconds=0.1) == (124, "")


def test_the_program_runs_by_itself_and_says_what_it_lacks():
    done = subprocess.run([sys.executable, str(PROGRAM)], capture_output=True, text=True, check=False)
    assert (done.returncode, "health.json" in done.stderr) == (2, True)
