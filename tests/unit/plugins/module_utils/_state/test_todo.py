# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest
from ansible_collections.h200.rack.plugins.module_utils._state.stages import STAGES
from ansible_collections.h200.rack.plugins.module_utils._state.timeline import timeline
from ansible_collections.h200.rack.plugins.module_utils._state.todo import dead_runs, decide

OLD, NEW = "a" * 64, "b" * 64
KEYS = ["ssh-ed25519 AAAA"]


def plan(reimage=(), overwrite=(), selected=("gpu001",), nodes=("gpu001",)):
    return {
        "nodes": {name: {"name": name, "image_name": "debian12", "image_digest": ""} for name in nodes},
        "selected": list(selected),
        "reimage": list(reimage),
        "overwrite": list(overwrite),
    }


def state(reached=None, failed_at=None, lease=None, declared=None):
    history = []
    for number, stage in enumerate(STAGES[: STAGES.index(reached) + 1] if reached else ()):
        evidence = {"declared": declared or {}, "written": {"image": "debian12", "digest": OLD, "host_keys": KEYS}}
        history.append({"event": "stage", "stage": stage, "time": at(number), "evidence": evidence.get(stage, {})})
    if failed_at:
        history.append(
            {
                "event": "stage",
                "stage": "failed",
                "failed_stage": failed_at,
                "code": "timeout",
                "time": at(len(history)),
            }
        )
    return {"history": history, "lease": lease, "error": None}


def at(second):
    return f"2026-11-30T15:00:{second:02d}.500Z"


def lease(run="other", expired=False):
    return {"run_id": run, "holder": "bob", "until": at(59), "expired": expired}


def one(node_state, digest=NEW, run_id="", **more):
    decision = decide(plan(**more), {"gpu001": node_state}, {"debian12": digest}, run_id)
    return decision["nodes"]["gpu001"]


def test_a_new_node_is_imaged_and_a_foreign_disk_is_safe():
    todo = one({})
    assert (todo["will"], todo["script"], todo["digest"]) == ("image", "deploy", NEW)
    assert (todo["allow_overwrite"], todo["drain"]) == (False, False)


def test_a_node_without_any_state_is_treated_as_new():
    decision = decide(plan(), {}, {"debian12": NEW})
    assert decision["nodes"]["gpu001"]["will"] == "image"


@pytest.mark.parametrize("reached", STAGES[: STAGES.index("written")])
@pytest.mark.parametrize("failed", [False, True])
def test_before_the_image_is_verified_everything_starts_again(reached, failed):
    todo = one(state(reached, failed_at="written" if failed else None))
    assert (todo["will"], todo["from_stage"], todo["script"]) == ("image", "declared", "deploy")


@pytest.mark.parametrize("reached", STAGES[STAGES.index("written") : -1])
@pytest.mark.parametrize("failed", [False, True])
def test_once_the_image_is_verified_no_disk_is_written_again(reached, failed):
    following = STAGES[STAGES.index(reached) + 1]
    todo = one(state(reached, failed_at=following if failed else None))
    assert (todo["will"], todo["script"], todo["digest"]) == ("finish", "local", OLD)
    assert todo["host_keys"] == KEYS
    assert todo["from_stage"] == ("local_boot" if failed and following == "os_up" else following)


def test_a_registered_node_is_only_looked_at_even_when_a_newer_image_is_out():
    todo = one(state("registered"))
    assert (todo["will"], todo["script"], todo["digest"]) == ("verify", "local", OLD)
    assert "rack_reimage" in todo["reason"]
    assert "rack_reimage" not in one(state("registered"), digest=OLD)["reason"]


def test_a_registered_node_that_failed_later_is_finished_again():
    assert one(state("registered", failed_at="registered"))["will"] == "finish"


def test_a_named_node_is_imaged_and_drained_first():
    todo = one(state("registered"), reimage=["gpu001"])
    assert (todo["will"], todo["drain"], todo["allow_overwrite"], todo["digest"]) == ("image", True, True, NEW)
    assert not one(state("os_up"), reimage=["gpu001"])["drain"]


def test_an_interrupted_reimage_goes_on_without_being_named_again():
    todo = one(state("ramdisk_up", declared={"allow_overwrite": True}))
    assert (todo["will"], todo["allow_overwrite"]) == ("image", True)


def test_consent_for_one_way_does_not_last_for_the_next():
    assert not one(state("registered", declared={"allow_overwrite": True}))["allow_overwrite"]


def test_consent_to_overwrite_is_taken_for_the_named_node():
    assert one({}, overwrite=["gpu001"])["allow_overwrite"]


def test_a_pinned_digest_wins_over_the_current_one():
    pinned = plan()
    pinned["nodes"]["gpu001"]["image_digest"] = "c" * 64
    assert decide(pinned, {}, {"debian12": NEW})["nodes"]["gpu001"]["digest"] == "c" * 64


def test_a_node_of_another_run_is_refused_with_its_holder():
    decision = decide(plan(), {"gpu001": state("powered", lease=lease())}, {}, "mine")
    assert decision["nodes"]["gpu001"]["will"] == "nothing"
    assert "bob (run other)" in decision["problems"][0]["msg"]
    assert decision["actions"]["gpu001"] == "deploy"


@pytest.mark.parametrize("held", [lease(run="mine"), lease(expired=True), None])
def test_an_own_expired_or_absent_lease_is_no_hindrance(held):
    assert decide(plan(), {"gpu001": state("powered", lease=held)}, {}, "mine")["problems"] == []


def test_the_nodes_of_dead_runs_are_taken_over():
    states = {
        "gpu001": state("powered", lease={**lease(), "process": "gone"}),
        "a": state("powered", lease={**lease("alive"), "process": "running"}),
        "b": state("powered", lease=lease("named")),
    }
    dead = dead_runs(states, ["named"], lambda process: process == "gone")
    assert dead == {"other", "named"}
    everyone = plan(nodes=("gpu001", "a", "b"), selected=("gpu001", "a", "b"))
    decision = decide(everyone, states, {}, "mine", dead)
    assert [problem["node"] for problem in decision["problems"]] == ["a"]
    assert {name: todo["take_over"] for name, todo in decision["nodes"].items()} == {
        "gpu001": "other",
        "a": "",
        "b": "named",
    }


def test_a_damaged_ledger_is_a_problem_of_its_node_only():
    both = plan(nodes=("gpu001", "gpu002"), selected=("gpu001", "gpu002"))
    decision = decide(both, {"gpu001": {**state(), "error": "line 2 is not an event"}}, {})
    assert [problem["node"] for problem in decision["problems"]] == ["gpu001"]
    assert decision["nodes"]["gpu002"]["will"] == "image"


def test_nodes_outside_this_run_keep_what_they_need():
    others = plan(nodes=("gpu001", "a", "b", "c", "d"))
    states = {
        "a": state("powered", lease=lease()),
        "b": state("powered", lease=lease(expired=True)),
        "c": state("registered"),
    }
    decision = decide(others, states, {})
    assert {name: decision["actions"][name] for name in "abcd"} == {
        "a": "deploy",
        "b": "local",
        "c": "local",
        "d": "local",
    }
    assert list(decision["nodes"]) == ["gpu001"]


def test_the_timeline_counts_from_stage_to_stage():
    rows = timeline(state("powered", failed_at="ramdisk_up")["history"])
    assert [(row["stage"], row["seconds"], row["total"]) for row in rows][-2:] == [
        ("powered", 1.0, 3.0),
        ("failed", 1.0, 4.0),
    ]
    assert rows[-1]["failed_stage"] == "ramdisk_up"
    assert timeline([]) == []
