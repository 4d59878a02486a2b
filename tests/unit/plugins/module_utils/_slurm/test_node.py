# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Draining, releasing and waiting, against a scontrol that keeps a state as slurmctld does."""

from __future__ import annotations

import pytest
from ansible_collections.h200.rack.plugins.module_utils._common.errors import DeadlineExceeded, InvalidInput, RackError
from ansible_collections.h200.rack.plugins.module_utils._slurm import node, run_node
from ansible_collections.h200.rack.plugins.module_utils._slurm.scontrol import ControllerAway, Scontrol

TEMPLATE = """NodeName=gpu001 Arch=x86_64 CoresPerSocket=2
   Gres={gres}
   NodeAddr=10.20.9.11 NodeHostName=gpu001 Version=22.05.8
   State={state} ThreadsPerCore=1
   Partitions=gpu
   BootTime=2026-11-30T15:12:53 SlurmdStartTime={start}
   Reason={reason}
"""


class Controller:
    """The commands that reach it, and the node that it has."""

    def __init__(self, state="IDLE", reason="", gres="gpu:h200:8", start="2026-11-30T15:32:35", jobs="", log=""):
        self.state, self.reason, self.gres, self.start, self.jobs, self.log = state, reason, gres, start, jobs, log
        self.there, self.away = True, False
        self.updates = []

    def __call__(self, argv):
        if argv[1:] == ["-V"]:
            return (127, "", "no such file") if argv[0] == "slurmctld" else (0, "slurm-wlm 22.05.8", "")
        if self.away:
            return 1, "", "slurm_load_node error: Unable to contact slurm controller (connect failure)"
        if argv[0] == "squeue":
            return 0, self.jobs, ""
        if argv[0] == "journalctl":
            return 0, self.log, ""
        if argv[1:3] == ["show", "config"]:
            return 0, "SlurmctldLogFile        = (null)\n", ""
        if argv[1:3] == ["show", "node"]:
            if not self.there:
                return 1, "Node gpu001 not found\n", ""
            return 0, TEMPLATE.format(**vars(self)), ""
        assert argv[1] == "update"
        self._update(dict(word.split("=", 1) for word in argv[2:]))
        return 0, "", ""

    def _update(self, words):
        self.updates.append(words)
        if words["state"] == "DRAIN":
            if "DRAIN" not in self.state:
                self.state += "+DRAIN"
            self.reason = f"{words['reason']} [root@2026-11-30T16:00:00]"
        else:
            self.state, self.reason = "IDLE", ""


def _run(controller, **given):
    params = {
        "name": "gpu001", "state": "present", "reason": "provisioning", "run_id": "run2", "gres": None, "wait": 0.01,
        "wait_for_jobs": False, "foreign_drain": "fail", "required": [], "records": [], "allow_simulated": False,
        "restarted_from": None, "was_invalid": False, "boot_id": "b1", "dynamic": False,
    }  # fmt: skip
    check_mode = given.pop("check_mode", False)
    return run_node.run({**params, **given}, controller, check_mode)


OURS, THEIRS = "h200.rack:run2:provisioning [root@x]", "bad DIMM, ask Ann [ann@x]"


def test_a_drain_by_an_operator_is_not_resumed():
    controller = Controller("IDLE+DRAIN", THEIRS)
    with pytest.raises(RackError) as caught:
        _run(controller, state="resumed")
    assert caught.value.code == "foreign_drain"
    assert caught.value.details["held_by"]["user"] == "ann"
    assert controller.updates == []


def test_a_drain_by_an_operator_is_only_reported_where_that_is_asked():
    result = _run(Controller("IDLE+DRAIN", THEIRS), state="resumed", foreign_drain="keep")
    assert (result["changed"], result["held_by"]["reason"]) == (False, "bad DIMM, ask Ann")


def test_a_drain_of_ours_does_not_overwrite_an_operators_reason():
    controller = Controller("IDLE+DRAIN", THEIRS)
    result = _run(controller, state="drained")
    assert (result["changed"], controller.updates) == (False, [])


def test_a_drain_of_another_run_is_not_ended_by_this_one():
    controller = Controller("IDLE+DRAIN", "h200.rack:run1:provisioning [root@x]")
    with pytest.raises(RackError, match="for run run1"):
        _run(controller, state="resumed")


def test_resuming_a_node_that_is_in_service_sends_nothing():
    # scontrol itself fails on that.
    controller = Controller("IDLE")
    assert _run(controller, state="resumed")["changed"] is False
    assert controller.updates == []


def test_draining_twice_for_the_same_reason_changes_nothing():
    controller = Controller("IDLE")
    assert _run(controller, state="drained")["changed"] is True
    assert _run(controller, state="drained")["changed"] is False
    assert len(controller.updates) == 1


def test_a_node_released_becomes_idle():
    controller = Controller("IDLE+DRAIN", OURS)
    result = _run(controller, state="resumed", wait=5)
    assert (result["changed"], result["previous_state"], result["state"]) == (True, "IDLE+DRAIN", "IDLE")


def test_check_mode_drains_nothing_and_says_that_it_would():
    controller = Controller("IDLE")
    result = _run(controller, state="drained", check_mode=True)
    assert (result["changed"], result["drained"], controller.updates) == (True, True, [])
    assert "h200.rack:run2:provisioning" in result["diff"]["after"]


def test_jobs_of_the_node_are_told_and_pending_ones_are_not():
    controller = Controller("MIXED", jobs="7 RUNNING\n9 PENDING\n8 COMPLETING\n7 RUNNING\n5 COMPLETED\n")
    assert _run(controller, state="drained")["jobs"] == ["7", "8"]


def test_waiting_for_jobs_ends_at_the_deadline_with_the_node_drained():
    controller = Controller("MIXED", jobs="7 RUNNING\n")
    with pytest.raises(DeadlineExceeded, match="still runs 1 job"):
        _run(controller, state="drained", wait_for_jobs=True)
    assert "DRAIN" in controller.state


def test_a_node_that_makes_itself_known_is_waited_for():
    controller = Controller("IDLE+DRAIN+DYNAMIC_NORM", "")
    controller.there = False
    asked = []

    def command(argv):
        asked.append(argv)
        controller.there = len(asked) > 3
        return controller(argv)

    # Its own slurmd drained it, which leaves no reason: that gate is ours.
    done = _run(command, dynamic=True, wait=10)
    assert (done["changed"], done["reason"]) == (True, "h200.rack:run2:provisioning")


def test_a_node_that_never_makes_itself_known_is_a_timeout():
    controller = Controller()
    controller.there = False
    with pytest.raises(DeadlineExceeded, match="state absent"):
        _run(controller, dynamic=True)


def test_an_operators_drain_of_a_dynamic_node_is_theirs():
    controller = Controller("IDLE+DRAIN+DYNAMIC_NORM", THEIRS)
    assert _run(controller, dynamic=True)["held_by"]["user"] == "ann"
    assert controller.updates == []


def test_an_earlier_slurmd_is_not_taken_for_the_new_one():
    controller = Controller("IDLE+DRAIN", OURS, start="2026-11-30T15:32:35")
    with pytest.raises(DeadlineExceeded):
        _run(controller, restarted_from="2026-11-30T15:32:35")


def test_a_node_that_was_never_heard_of_is_waited_for_and_then_refused():
    with pytest.raises(DeadlineExceeded, match="munge"):
        _run(Controller("UNKNOWN+DRAIN", OURS, start="None"))


def test_a_node_with_fewer_gpus_keeps_its_drain_with_the_code():
    said = "slurmctld: error: Setting node gpu001 state to INVAL with reason:gres/gpu count reported lower (7 < 8)\n"
    controller = Controller("IDLE+DRAIN+INVALID_REG", OURS, log=said)
    with pytest.raises(RackError) as caught:
        _run(controller, gres="gpu:h200:8")
    assert caught.value.code == "GPU_COUNT"
    assert controller.reason.startswith("h200.rack:run2:GPU_COUNT")


def test_a_node_that_was_refused_from_the_start_is_not_waited_for():
    controller = Controller("UNKNOWN+DRAIN+INVALID_REG", OURS, start="None", log="")
    with pytest.raises(RackError) as caught:
        _run(controller, wait=60)
    assert caught.value.code == "INVALID_REG"


def test_a_repaired_node_is_not_refused_for_what_its_earlier_slurmd_lacked():
    said = "error: Setting node gpu001 state to INVAL with reason:Low RealMemory (reported:1 < 100.00% of configured:2)"
    controller = Controller("IDLE+DRAIN+INVALID_REG", OURS, start="earlier", log=said)
    asked = []

    def command(argv):
        asked.append(argv)
        if len(asked) > 3:
            controller.state, controller.start = "IDLE+DRAIN", "later"
        return controller(argv)

    done = _run(command, restarted_from="earlier", was_invalid=True, wait=10)
    assert done["invalid"] is False
    with pytest.raises(RackError, match="Low RealMemory"):
        _run(Controller("IDLE+DRAIN+INVALID_REG", OURS, log=said), was_invalid=True)


def test_an_invalid_node_is_not_resumed():
    controller = Controller("IDLE+DRAIN+INVALID_REG", OURS)
    with pytest.raises(RackError) as caught:
        _run(controller, state="resumed")
    assert caught.value.code == "INVALID_REG"
    assert all(update["state"] == "DRAIN" for update in controller.updates)


def test_a_drain_of_ours_from_an_earlier_run_becomes_this_runs():
    controller = Controller("IDLE+DRAIN", "h200.rack:run1:LOW_MEMORY [root@x]")
    assert _run(controller)["reason"] == "h200.rack:run2:provisioning"


def test_gres_with_its_sockets_is_the_gres_that_was_declared():
    assert _run(Controller("IDLE", gres="gpu:h200:8(S:0-1)"), gres="gpu:h200:8")["changed"] is False


def test_a_controller_that_is_away_is_told_as_such():
    controller = Controller()
    controller.away = True
    with pytest.raises(ControllerAway):
        _run(controller)


def test_an_unknown_node_names_the_role_that_adds_it():
    controller = Controller()
    controller.there = False
    with pytest.raises(RackError, match="tasks_from controller"):
        _run(controller)


def test_removing_an_unknown_node_is_no_change():
    controller = Controller()
    controller.there = False
    assert _run(controller, state="absent")["changed"] is False


def test_a_node_of_the_files_is_not_deleted_by_the_module():
    with pytest.raises(RackError, match="tasks_from remove"):
        _run(Controller(), state="absent")


@pytest.mark.parametrize("run_id", ["a:b", "", "with blank"])
def test_a_run_id_that_would_not_be_found_again_in_a_reason_is_refused(run_id):
    with pytest.raises(InvalidInput, match="run_id"):
        _run(Controller(), state="drained", run_id=run_id)


RECORD = {
    "node": "gpu001",
    "run_id": "run2",
    "tier": "quick",
    "verdict": "pass",
    "simulated": False,
    "reasons": [],
    "boot_id": "b1",
    "dynamic": False,
}


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"run_id": "run1"}, "NOT_ACCEPTED"),
        ({"node": "gpu002"}, "NOT_ACCEPTED"),
        ({"tier": "burn_in"}, "NOT_ACCEPTED"),
        ({"boot_id": "b0"}, "NOT_ACCEPTED"),
        ({"simulated": True}, "SIMULATED"),
        ({"verdict": "fail", "reasons": ["NVLS_ABSENT"]}, "NVLS_ABSENT"),
        ({"verdict": "fail", "reasons": [{"code": "NIC_PATH_SLOW", "hint": "x"}]}, "NIC_PATH_SLOW"),
        ({"verdict": "not_run"}, "ACCEPTANCE_NOT_RUN"),
    ],
)
def test_what_was_not_accepted_in_this_run_stays_drained_with_the_code(change, code):
    controller = Controller("IDLE+DRAIN", OURS)
    with pytest.raises(RackError) as caught:
        _run(controller, state="resumed", required=["quick"], records=[{**RECORD, **change}])
    assert caught.value.code == code
    assert controller.reason.startswith(f"h200.rack:run2:{code}")


def test_an_accepted_node_is_released():
    controller = Controller("IDLE+DRAIN", OURS)
    assert _run(controller, state="resumed", required=["quick"], records=[RECORD], wait=5)["state"] == "IDLE"


def test_a_simulated_record_admits_only_where_that_is_allowed():
    controller = Controller("IDLE+DRAIN", OURS)
    simulated = [{**RECORD, "simulated": True}]
    done = _run(controller, state="resumed", required=["quick"], records=simulated, allow_simulated=True, wait=5)
    assert done["state"] == "IDLE"


def test_the_scontrol_of_a_client_tells_the_version_where_no_daemon_is():
    assert str(Scontrol(Controller()).version()) == "22.05.8"


def test_a_nodes_dict_says_absent_when_there_is_none():
    assert node.as_dict(None) == {"present": False, "state": "absent", "jobs": []}
