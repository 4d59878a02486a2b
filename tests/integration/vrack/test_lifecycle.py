# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A virtual rack of its own, brought up, repaired and brought down: needs root and what tools/bootstrap installs."""

from __future__ import annotations

import json
import os
import pathlib
import re
import signal
import subprocess
import time

import pytest

REPO = pathlib.Path(__file__).resolve().parents[3]
RACK = REPO / "tests" / "virtual_rack"
PATIENCE = 600

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="makes namespaces, bridges and virtual machines")


class Rack:
    """One node, and a state apart from that of the rack that may be in use beside it."""

    def __init__(self, home: pathlib.Path) -> None:
        self.state = home / "rack"
        self.environment = {**os.environ, "VRACK_STATE": str(self.state), "ANSIBLE_CONFIG": str(REPO / "ansible.cfg")}

    def argv(self, play: str) -> list[str]:
        return [str(REPO / ".venv/bin/ansible-playbook"), "-i", str(RACK / "hosts.yml"), "-e", "vrack_nodes=1",
                str(RACK / f"{play}.yml")]  # fmt: skip

    def play(self, play: str) -> str:
        done = subprocess.run(self.argv(play), env=self.environment, capture_output=True, text=True,
                              timeout=PATIENCE, check=False)  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def interrupted_play(self, play: str, seen: str) -> None:
        """Start a play and kill it as soon as it says something."""
        process = subprocess.Popen(self.argv(play), env=self.environment, stdout=subprocess.PIPE, text=True,
                                   start_new_session=True)  # fmt: skip
        for line in process.stdout:
            if seen in line:
                break
        os.killpg(process.pid, signal.SIGKILL)
        process.wait(timeout=PATIENCE)

    def run(self, *argv: str) -> str:
        return subprocess.run([str(RACK / "run"), *argv], env=self.environment, capture_output=True, text=True,
                              timeout=PATIENCE, check=True).stdout  # fmt: skip

    def status(self) -> dict:
        return json.loads(subprocess.run([str(RACK / "rack"), "status"], env=self.environment, capture_output=True,
                                         text=True, check=True).stdout)  # fmt: skip


def changed(recap: str) -> int:
    return sum(int(word.partition("=")[2]) for word in recap.split() if word.startswith("changed="))


def on_host(rack: Rack) -> set[str]:
    """What of a rack can be seen on the machine, where nothing of it should be. Others may be at work there."""
    mounts = [line.split()[1] for line in pathlib.Path("/proc/self/mounts").read_text().splitlines()]
    links = json.loads(subprocess.run(["ip", "-j", "link"], capture_output=True, text=True, check=True).stdout)
    ours = re.compile(r"prov0|bmc0|prod0|gpu\d+\.\d|(boot|mirror|slurm)01\.\d|vnet\d+")
    return {
        *(f"mount {mount}" for mount in mounts if mount.startswith(f"{rack.state}/") or "libvirt" in mount),
        *(f"link {link['ifname']}" for link in links if ours.fullmatch(link["ifname"])),
        *(f"file {path}" for path in pathlib.Path("/run").glob("libvirt/*")),
        *(f"file {path}" for path in pathlib.Path("/etc/libvirt/qemu").glob("gpu*")),
    }


@pytest.fixture(name="rack", scope="module")
def _rack(tmp_path_factory: pytest.TempPathFactory) -> Rack:
    rack = Rack(tmp_path_factory.mktemp("vrack"))
    yield rack
    rack.play("down")


def test_interrupted_start_is_repaired_and_a_second_start_changes_nothing(rack: Rack) -> None:
    rack.interrupted_play("up", "The containers run")
    rack.play("up")
    again = rack.play("up")
    assert changed(again) == 0, again


def test_servers_answer_ansible_and_bmcs_answer_their_protocol(rack: Rack) -> None:
    rack.play("up")
    assert rack.run("ansible", "rack_servers", "-m", "ansible.builtin.ping").count("SUCCESS") == 4
    found = rack.run(
        "curl", "--silent", "--show-error", "--cacert", f"{rack.state}/ca.pem", "https://10.20.2.11/redfish/v1/"
    )
    assert json.loads(found)["Name"]
    assert rack.status()["inside"]["nodes"] == {"gpu001": "off"}


def test_connections_of_another_rack_with_the_same_addresses_are_not_taken(rack: Rack) -> None:
    rack.run("ansible", "boot01", "-m", "ansible.builtin.raw", "-a", "true")
    assert rack.run("sh", "-c", "ls /run/ansible-cp | wc -l").strip() != "0"
    assert not pathlib.Path("/run/ansible-cp").exists()


def test_ended_container_and_ended_bmc_come_back(rack: Rack) -> None:
    rack.play("up")
    rack.run("sh", "-c", "kill -KILL $(cat /run/vrack/gpu001-bmc.pid)")
    rack.run("sh", "-c", "kill -TERM $(cat /run/vrack/mirror02.pid)")
    deadline = time.monotonic() + 60
    while "runs" in (rack.status()["inside"]["daemons"][name] for name in ("gpu001-bmc", "mirror02")):
        assert time.monotonic() < deadline, rack.status()
        time.sleep(0.2)
    rack.play("up")
    assert set(rack.status()["inside"]["daemons"].values()) == {"runs"}


def test_nothing_is_left_after_down_even_with_a_guest_running(rack: Rack) -> None:
    before = on_host(rack)
    rack.play("up")
    rack.run("virsh", "--connect", "qemu:///system", "start", "gpu001")
    processes = {process["pid"] for process in rack.status()["processes"]}
    assert on_host(rack) == before, "a running rack is not to be seen on the machine"
    rack.play("down")
    status = rack.status()
    assert not status["up"]
    assert status["processes"] == []
    assert status["cgroup"] is None
    assert status["state"] is None
    assert on_host(rack) == before
    assert not [pid for pid in processes if pathlib.Path(f"/proc/{pid}").exists()]
