# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A change of the controller's nodes, against a slurmctld that reads files, dies of some and keeps what it knows."""

from __future__ import annotations

import json
import pathlib
import re

import pytest
from ansible_collections.h200.rack.plugins.module_utils._common.errors import InvalidInput, RackError
from ansible_collections.h200.rack.plugins.module_utils._slurm import (
    conf,
    controller,
    declared,
    plan,
    run_config,
    trial,
)
from ansible_collections.h200.rack.plugins.module_utils._slurm.scontrol import Scontrol
from ansible_collections.h200.rack.plugins.module_utils._slurm.service import Service

PROFILE = {"gpu": {"count": 8, "gres_type": "h200"}, "memory_mib": 1000,
           "cpu": {"sockets": 1, "cores_per_socket": 2, "threads_per_core": 1}}  # fmt: skip
MANAGED = "SelectType=select/cons_tres\nInclude h200-rack-nodes.conf\n"
ROOM = f"MaxNodeCount=64\n{MANAGED}"


class Slurmctld:
    """The commands that reach it, and what it read when it last started or was reconfigured."""

    def __init__(self, folder, version="22.05.8", deadly=()):
        self.folder, self.version, self.deadly = folder, version, deadly
        self.running, self.read, self.states, self.jobs = False, None, {}, ""
        self.acts = []

    def __call__(self, argv):
        if argv[1:] == ["-V"]:
            return 0, f"slurm-wlm {self.version}", ""
        if argv[0] == "systemctl":
            return self._systemctl(argv)
        if argv[0] == "journalctl":
            return 0, "fatal: no such plugin\nslurmctld.service: Main process exited\n" + "Stopped\n" * 7, ""
        if not self.running:
            return 1, "", "Unable to contact slurm controller (connect failure)"
        if argv[0] == "squeue":
            return 0, self.jobs, ""
        return self._scontrol([word for word in argv[1:] if word != "--json"])

    def _systemctl(self, argv):
        if argv[1] == "is-active":
            return (0 if self.running else 3), "", ""
        self.acts.append(argv[1])
        self.running = argv[1] == "restart"
        if self.running:
            self._read()
        return 0, "", ""

    def _read(self):
        self.read = conf.read(str(self.folder / "slurm.conf"))
        if any(word in pathlib.Path(self.folder / "slurm.conf").read_text() for word in self.deadly):
            self.running = False
        for path, kind, words in self.read.lines:
            if kind == "nodename":
                drained = words.get("state") == "DRAIN"
                self.states.setdefault(words["nodename"], "UNKNOWN+DRAIN" if drained else "UNKNOWN")
                assert path.endswith(plan.NODES)

    def _scontrol(self, words):
        names = self.read.names("nodename") | {
            name for name in self.states if self.states[name].endswith("DYNAMIC_NORM")
        }
        if words[:2] == ["show", "config"]:
            return 0, "".join(f"{key} = {value}\n" for key, value in self._config().items()), ""
        if words[:2] == ["show", "node"]:
            return 0, "".join(self._node(name) for name in sorted(names)), ""
        if words[:2] == ["show", "partition"]:
            return 0, f"PartitionName=gpu\n   Nodes={','.join(sorted(names))}\n", ""
        self.acts.append(words[0])
        if words[0] == "reconfigure":
            self._read()
        if words[0] == "delete":
            del self.states[words[1].partition("=")[2]]
        return 0, "", ""

    def _config(self):
        settings = self.read.settings
        return {
            "MaxNodeCount": settings.get("maxnodecount", "1"),
            "SelectType": settings.get("selecttype", "select/linear"),
            "TopologyPlugin": settings.get("topologyplugin", "topology/none"),
            "SlurmctldParameters": settings.get("slurmctldparameters", "(null)"),
        }

    def _node(self, name):
        start = "2026-11-30T15:32:35" if self.states[name].startswith("IDLE") else "None"
        lines = ("Gres=gpu:h200:8", f"State={self.states[name]}", f"SlurmdStartTime={start}", "Reason=x")
        return f"NodeName={name} Arch=x\n" + "".join(f"   {line}\n" for line in lines)


@pytest.fixture(autouse=True)
def no_trial(monkeypatch):
    monkeypatch.setattr(trial, "run", lambda *_args: [])
    monkeypatch.setattr(controller, "_resolves", lambda _name: True)


@pytest.fixture
def lab(tmp_path):
    class Lab:
        slurmctld = Slurmctld(tmp_path)

        def apply(self, *names, how="auto", slurm_conf=MANAGED, topology="none", check_mode=False, **more):
            items = [{"name": name, "profile": more.get("profile", PROFILE), "scalable_unit": "su1"} for name in names]
            wanted = plan.Wanted(
                nodes=declared.read_nodes(items, 0),
                absent=tuple(more.get("absent", ())),
                partitions=more.get("partitions", [{"name": "gpu"}]),
                slurm_conf=slurm_conf,
                cgroup_conf=None,
                detect="files",
                device="/dev/nvidia%",
                topology=topology,
                folder=str(tmp_path),
            )
            acting = controller.Controller(
                Scontrol(self.slurmctld), Service(self.slurmctld, "slurmctld"), 0.5, str(tmp_path / "lock")
            )
            self.slurmctld.acts.clear()
            return acting.apply(wanted, "run1", how, check_mode)

        def files(self):
            return {path.name: path.read_text() for path in tmp_path.iterdir() if path.name != "lock"}

    return Lab()


def test_new_nodes_are_one_restart_whatever_their_number(lab):
    lab.apply("gpu001")
    result = lab.apply(*(f"gpu{number:03d}" for number in range(1, 33)))
    assert (result.action, lab.slurmctld.acts.count("restart"), "reconfigure" in lab.slurmctld.acts) == (
        "restart",
        1,
        False,
    )
    assert len(result.drained) == 31


def test_a_second_call_touches_nothing(lab):
    lab.apply("gpu001")
    assert not lab.apply("gpu001").changed
    assert lab.slurmctld.acts == []


def test_a_controller_that_dies_of_the_new_files_gets_the_old_ones_back(lab):
    lab.apply("gpu001")
    before = lab.files()
    lab.slurmctld.deadly = ("Poison",)
    with pytest.raises(RackError, match="old files are back and it runs with them") as caught:
        lab.apply("gpu001", "gpu002", slurm_conf=f"Poison=1\n{MANAGED}")
    assert caught.value.code == "controller_died"
    # What systemd says after a death does not tell why.
    assert "no such plugin" in caught.value.msg
    assert "Stopped" not in caught.value.msg
    assert caught.value.details["rolled_back"]
    assert lab.files() == before
    assert lab.slurmctld.running
    assert lab.slurmctld.acts == ["restart", "restart"]


def test_a_controller_that_starts_without_a_node_gets_its_old_files_back(lab):
    # slurmctld does so with a name that it cannot resolve, and only logs it.
    lab.slurmctld._node = lambda name: ""
    with pytest.raises(RackError, match="started without it"):
        lab.apply("gpu001")
    assert plan.NODES not in lab.files()


def test_a_reconfigure_with_other_names_is_refused_and_nothing_is_written(lab):
    lab.apply("gpu001")
    before = lab.files()
    with pytest.raises(RackError, match="kills slurmctld"):
        lab.apply("gpu001", "gpu002", how="reconfigure")
    assert lab.files() == before
    assert lab.slurmctld.acts == []


def test_check_mode_says_what_it_would_do_and_does_nothing(lab):
    lab.apply("gpu001")
    before = lab.files()
    result = lab.apply("gpu001", "gpu002", check_mode=True)
    assert (result.changed, result.action, result.drained) == (True, "restart", ["gpu002"])
    assert lab.files() == before
    assert lab.slurmctld.acts == []


def test_a_node_with_jobs_is_not_removed(lab):
    lab.apply("gpu001", "gpu002")
    lab.slurmctld.jobs = "7 RUNNING\n"
    with pytest.raises(InvalidInput, match="gpu002: still runs jobs"):
        lab.apply("gpu001", absent=["gpu002"])
    assert lab.slurmctld.acts == []


def test_a_partition_that_the_site_has_not_is_named(lab, tmp_path):
    (tmp_path / "slurm.conf").write_text("GresTypes=gpu\nInclude h200-rack-nodes.conf\nPartitionName=a Nodes=ALL\n")
    (tmp_path / "gres.conf").write_text("Include h200-rack-gres.conf\n")
    with pytest.raises(InvalidInput, match="no partition missing"):
        lab.apply("gpu001", slurm_conf=None, partitions=[{"name": "missing", "existing": True}])
    assert plan.NODES not in lab.files()


def test_where_there_is_room_a_new_node_costs_the_controller_nothing(lab):
    lab.apply("gpu001", slurm_conf=ROOM)
    result = lab.apply("gpu001", "gpu002", slurm_conf=ROOM)
    assert (result.changed, result.action, lab.slurmctld.acts) == (True, "none", [])
    assert result.joining == {
        "gpu002": "Sockets=1 CoresPerSocket=2 ThreadsPerCore=1 RealMemory=1000 Gres=gpu:h200:8 "
        "Feature=h200_rack State=DRAIN"
    }
    assert "gpu002" not in lab.files()[plan.NODES]
    again = lab.apply("gpu001", "gpu002", slurm_conf=ROOM)
    assert (again.changed, list(again.joining)) == (False, ["gpu002"])


def test_nodes_of_the_first_start_stand_in_the_files(lab):
    assert lab.apply("gpu001", slurm_conf=ROOM).joining == {}
    assert "NodeSet=h200_rack Nodes=gpu001 Feature=h200_rack" in lab.files()[plan.NODES]
    # A line with names would not hold for who comes later.
    assert "\nName=gpu Type=h200" in lab.files()[plan.GRES]


def test_a_restart_that_is_due_anyway_takes_the_new_nodes_along(lab):
    lab.apply("gpu001", slurm_conf=MANAGED)
    result = lab.apply("gpu001", "gpu002", slurm_conf=ROOM)
    assert (result.action, result.joining) == ("restart", {})
    assert "gpu002" in lab.files()[plan.NODES]


def test_from_24_11_a_reconfigure_is_the_way(lab):
    lab.slurmctld.version = "24.11.5"
    lab.slurmctld.states = {}
    result_of = lab.slurmctld._scontrol
    lab.slurmctld._scontrol = lambda words: _as_json(result_of(words), words)
    lab.apply("gpu001", slurm_conf=ROOM)
    assert lab.apply("gpu001", "gpu002", slurm_conf=ROOM).action == "reconfigure"


def _as_json(answer, words):
    if words[:2] != ["show", "node"]:
        return answer
    names = re.findall(r"NodeName=(\S+)", answer[1])
    nodes = [{"name": name, "state": ["UNKNOWN", "DRAIN"], "gres": "gpu:h200:8"} for name in names]
    return 0, json.dumps({"nodes": nodes}), ""


@pytest.mark.parametrize(
    ("given", "word"),
    [
        ({"slurm_conf": MANAGED}, "slurm_max_nodes must be at least 2"),
        ({"slurm_conf": f"TopologyPlugin=topology/tree\n{ROOM}", "topology": "tree"}, "slurm_topology must be none"),
        ({"slurm_conf": ROOM, "partitions": [{"name": "gpu", "nodes": ["gpu002"]}]}, "must not name gpu002"),
        ({"slurm_conf": ROOM, "profile": {**PROFILE, "gpu": {"count": 4, "gres_type": "l40s"}}}, "the same GPUs"),
    ],
)
def test_what_keeps_nodes_from_joining_by_themselves_is_named(lab, given, word):
    lab.apply("gpu001", slurm_conf=given["slurm_conf"])
    before = lab.files()
    with pytest.raises(RackError, match="dynamic is refused") as caught:
        lab.apply("gpu002", how="dynamic", **given)
    assert word in caught.value.msg
    assert lab.files() == before


def test_a_node_that_joined_by_itself_is_forgotten_without_a_restart(lab):
    lab.apply("gpu001", slurm_conf=ROOM)
    lab.apply("gpu001", "gpu002", slurm_conf=ROOM)
    lab.slurmctld.states["gpu002"] = "IDLE+DYNAMIC_NORM"
    result = lab.apply("gpu001", absent=["gpu002"], slurm_conf=ROOM)
    assert (result.changed, result.removed, lab.slurmctld.acts) == (True, ["gpu002"], ["delete"])
    assert not lab.apply("gpu001", absent=["gpu002"], slurm_conf=ROOM).changed


def test_other_hardware_of_a_node_that_joined_by_itself_is_refused(lab):
    lab.apply("gpu001", slurm_conf=ROOM)
    lab.apply("gpu002", slurm_conf=ROOM)
    with pytest.raises(InvalidInput, match="gpu002: rack_profile: has joined as a dynamic node"):
        lab.apply("gpu002", slurm_conf=ROOM, profile={**PROFILE, "memory_mib": 900})


def test_nodes_that_joined_by_themselves_do_not_lose_their_room(lab):
    lab.apply("gpu001", slurm_conf=ROOM)
    lab.apply("gpu002", slurm_conf=ROOM)
    with pytest.raises(RackError, match="slurm_max_nodes"):
        lab.apply("gpu001", slurm_conf=MANAGED)


def test_a_diff_shows_no_password():
    text = "JobCompPass=hunter2\n AccountingStoragePass = hunter2 # x\nSlurmUser=slurm\n"
    assert run_config.shown(text) == "JobCompPass=********\n AccountingStoragePass = ******** # x\nSlurmUser=slurm\n"
