# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import concurrent.futures
import contextlib
import datetime
import json
import pathlib

import pytest
from ansible_collections.h200.rack.plugins.module_utils._common.errors import InvalidInput, RackError
from ansible_collections.h200.rack.plugins.module_utils._state import ledger
from ansible_collections.h200.rack.plugins.module_utils._state.history import resume_point
from ansible_collections.h200.rack.plugins.module_utils._state.lease import LeaseHeld
from ansible_collections.h200.rack.plugins.module_utils._state.record import Request, info, record
from ansible_collections.h200.rack.plugins.module_utils._state.stages import STAGES, StageOrder
from hypothesis import given, settings
from hypothesis import strategies as st

START = datetime.datetime(2026, 11, 30, 15, 0, tzinfo=datetime.timezone.utc)


class Rack:
    """A folder of ledgers with a clock that only the test moves."""

    def __init__(self, folder):
        self.folder = str(folder)
        self.moment = START

    def now(self):
        return self.moment

    def pass_time(self, seconds):
        self.moment += datetime.timedelta(seconds=seconds)

    def say(self, stage=None, run="run1", node="gpu001", check_mode=False, **more):
        self.pass_time(1)
        request = Request(node=node, run_id=run, holder=f"{run}@controller", stage=stage, **more)
        return record(self.folder, request, check_mode=check_mode, now=self.now)

    def go(self, until, run="run1"):
        for stage in STAGES[: STAGES.index(until) + 1]:
            self.say(stage, run)

    def lines(self, node="gpu001"):
        return ledger.read(ledger.ledger_path(self.folder, node))


@pytest.fixture
def rack(tmp_path):
    return Rack(tmp_path / "ledger")


def test_the_whole_way_is_recorded_in_order(rack):
    rack.go("registered")
    result = rack.say("registered")
    assert not result["changed"]
    assert [event["stage"] for event in result["history"]] == list(STAGES)
    assert result["previous_stage"] == "accepted"
    assert result["history"][0]["time"] == "2026-11-30T15:00:01.000Z"


def test_a_stage_left_out_is_refused_and_nothing_is_written(rack):
    rack.go("bmc_ok")
    before = rack.lines()
    with pytest.raises(StageOrder, match="netboot_set comes first") as caught:
        rack.say("powered")
    assert caught.value.details["expected"] == "netboot_set"
    assert rack.lines() == before


def test_the_first_event_is_declared(rack):
    with pytest.raises(StageOrder, match="declared comes first"):
        rack.say("bmc_ok")


def test_the_same_stage_with_other_evidence_is_recorded(rack):
    rack.say("declared", evidence={"image": "a"})
    assert not rack.say("declared", evidence={"image": "a"})["changed"]
    assert rack.say("declared", evidence={"image": "b"})["changed"]


def test_going_back_is_recorded_and_a_new_way_begins_with_declared(rack):
    rack.go("registered")
    assert rack.say("bmc_ok")["previous_stage"] == "registered"
    result = rack.say("declared")
    assert [event["stage"] for event in result["history"]] == ["declared"]
    assert len(rack.lines()) == len(STAGES) + 2


def test_stages_reached_earlier_are_recorded_by_the_same_call(rack):
    steps = [{"stage": "declared", "evidence": {"image": "a"}}, {"stage": "bmc_ok"}]
    result = rack.say("netboot_set", earlier=steps)
    assert [event["stage"] for event in result["history"]] == ["declared", "bmc_ok", "netboot_set"]
    assert [event["previous"] for event in result["history"]] == [None, "declared", "bmc_ok"]
    assert result["history"][0]["evidence"] == {"image": "a"}
    assert not rack.say("netboot_set", earlier=steps)["changed"]
    assert rack.say("netboot_set", earlier=[{"stage": "declared"}, {"stage": "bmc_ok"}])["changed"]


def test_earlier_stages_must_be_in_order_and_all_or_none_are_written(rack):
    with pytest.raises(StageOrder):
        rack.say("powered", earlier=[{"stage": "declared"}, {"stage": "bmc_ok"}])
    assert rack.lines() == []
    with pytest.raises(InvalidInput):
        rack.say(earlier=[{"stage": "declared"}])


def test_another_run_is_told_who_holds_the_node_and_until_when(rack):
    rack.go("powered")
    before = rack.lines()
    for more in ({"stage": "declared"}, {}, {"stage": "failed", "code": "x"}, {"release": True}):
        with pytest.raises(LeaseHeld, match=r"held by run1@controller \(run run1\) until 2026-11-30T16:00:04.000Z"):
            rack.say(run="run2", **more)
    assert rack.lines() == before


def test_an_expired_lease_is_taken_over_with_an_event(rack):
    rack.go("powered")
    rack.pass_time(3700)
    result = rack.say(run="run2")
    assert result["changed"]
    assert result["stage"] == "powered"
    assert rack.lines()[-1]["from"]["run_id"] == "run1"
    with pytest.raises(LeaseHeld):
        rack.say("ramdisk_up", run="run1")


def test_the_lease_of_a_run_known_to_be_dead_is_taken_over_and_of_no_other(rack):
    rack.say("declared", process="p1")
    with pytest.raises(LeaseHeld):
        rack.say(run="run2", take_over="run0")
    result = rack.say(run="run2", take_over="run1")
    assert (result["stage"], result["lease"]["run_id"]) == ("declared", "run2")
    assert rack.lines()[-1]["event"] == "takeover"
    assert rack.lines()[0]["process"] == "p1"


def test_every_event_renews_the_lease(rack):
    rack.say("declared")
    for stage in ("bmc_ok", "netboot_set", "powered"):
        rack.pass_time(3000)
        rack.say(stage)
    with pytest.raises(LeaseHeld):
        rack.say("declared", run="run2")


def test_taking_a_node_again_writes_only_when_the_lease_wears_thin(rack):
    assert rack.say()["changed"]
    assert not rack.say()["changed"]
    rack.pass_time(1900)
    assert rack.say()["changed"]


def test_release_lets_the_next_run_in_at_once(rack):
    rack.go("registered")
    assert rack.say(release=True)["lease"] is None
    assert not rack.say(release=True)["changed"]
    result = rack.say(run="run2")
    assert (result["stage"], result["lease"]["run_id"]) == ("registered", "run2")


def test_a_stage_said_together_with_release_leaves_no_lease(rack):
    result = rack.say("declared", release=True)
    assert (result["stage"], result["lease"]) == ("declared", None)


def test_failure_names_the_stage_worked_on_and_keeps_the_stage_reached(rack):
    rack.go("powered")
    result = rack.say("failed", code="timeout", evidence={"msg": "no ssh"})
    assert (result["stage"], result["previous_stage"]) == ("failed", "powered")
    assert not rack.say("failed", code="timeout", evidence={"msg": "no ssh"})["changed"]
    point = resume_point(result["history"])
    assert (point["reached"], point["next"]) == ("powered", "ramdisk_up")
    assert point["failed"]["stage"] == "ramdisk_up"
    with pytest.raises(StageOrder):
        rack.say("written")
    assert rack.say("ramdisk_up")["changed"]


def test_a_node_may_fail_before_it_was_declared(rack):
    assert rack.say("failed", code="unreachable")["history"][0]["failed_stage"] == "declared"
    assert rack.say("declared")["changed"]


def test_going_back_forgets_the_evidence_of_later_stages(rack):
    rack.go("ramdisk_up")
    rack.say("written", evidence={"digest": "d1"})
    assert resume_point(rack.say()["history"])["evidence"]["written"] == {"digest": "d1"}
    rack.say("bmc_ok")
    assert "written" not in resume_point(rack.say()["history"])["evidence"]


@pytest.mark.parametrize(
    "more",
    [
        {"stage": "failed"},
        {"stage": "declared", "code": "x"},
        {"stage": "declared", "failed_stage": "powered"},
        {"stage": "lost"},
        {"lease": 0},
        {"run": ""},
        {"node": "../passwd"},
        {"node": ""},
        {"node": ".hidden"},
    ],
)
def test_what_cannot_be_meant_is_refused(rack, more):
    with pytest.raises(InvalidInput):
        rack.say(**more)
    assert not (rack.folder and info(rack.folder, []))


def test_check_mode_says_the_same_and_leaves_no_trace(rack, tmp_path):
    assert rack.say("declared", check_mode=True)["stage"] == "declared"
    assert not (tmp_path / "ledger").exists()
    rack.say("declared")
    with pytest.raises(LeaseHeld):
        rack.say("declared", run="run2", check_mode=True)


def test_secrets_are_withheld_and_long_output_is_cut(rack):
    key = "-----BEGIN OPENSSH PRIVATE KEY-----\nabc"
    rack.say("declared", evidence={"bmc_password": "hunter2", "deep": [{"Token": "t0k"}], "k": key, "out": "x" * 9000})
    text = json.dumps(rack.lines())
    assert "hunter2" not in text and "t0k" not in text and "abc" not in text
    assert "(7000 more characters)" in text
    assert not rack.say(
        "declared", evidence={"bmc_password": "hunter2", "deep": [{"Token": "t0k"}], "k": key, "out": "x" * 9000}
    )["changed"]


def test_evidence_without_a_bound_is_refused(rack):
    with pytest.raises(InvalidInput, match="at most 16384"):
        rack.say("declared", evidence={str(number): "x" * 1000 for number in range(20)})


def test_a_clock_set_back_does_not_turn_the_dates_around(rack):
    rack.say("declared")
    rack.pass_time(-500)
    rack.say("bmc_ok", release=True)
    rack.pass_time(-500)
    rack.say("netboot_set", run="run2")
    times = [event["time"] for event in rack.lines()]
    assert times == sorted(times)


def test_damage_in_the_middle_is_named_and_stays_with_its_node(rack):
    rack.go("powered")
    rack.say("declared", node="gpu002")
    path = pathlib.Path(ledger.ledger_path(rack.folder, "gpu001"))
    lines = path.read_bytes().split(b"\n")
    lines[1] = b"\0" * 30
    path.write_bytes(b"\n".join(lines))
    with pytest.raises(ledger.DamagedLedger, match="line 2"):
        rack.say("ramdisk_up")
    told = info(rack.folder, [], now=rack.now)
    assert "line 2" in told["gpu001"]["error"]
    assert told["gpu002"]["stage"] == "declared"


def test_a_node_without_a_ledger_is_told_too(rack):
    assert info(rack.folder, ["gpu009"], now=rack.now)["gpu009"]["stage"] is None


def test_a_folder_that_cannot_be_made_is_one_clear_error(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(RackError, match="gpu001: the ledger"):
        Rack(tmp_path / "file" / "ledger").say("declared")


@settings(max_examples=60, deadline=None)
@given(cut=st.integers(min_value=0, max_value=10_000), steps=st.integers(min_value=1, max_value=5))
def test_a_torn_write_loses_only_the_event_that_was_never_confirmed(tmp_path_factory, cut, steps):
    rack = Rack(tmp_path_factory.mktemp("torn"))
    for stage in STAGES[:steps]:
        rack.say(stage)
    confirmed = rack.lines()
    path = pathlib.Path(ledger.ledger_path(rack.folder, "gpu001"))
    data = path.read_bytes()
    rack.say(STAGES[steps])
    torn = path.read_bytes()
    path.write_bytes(torn[: len(data) + min(cut, len(torn) - len(data) - 1)])
    assert rack.lines() == confirmed
    assert rack.say(STAGES[steps])["changed"]
    assert [event["stage"] for event in rack.lines()] == list(STAGES[: steps + 1])


def test_of_many_runs_at_once_exactly_one_gets_the_node(tmp_path):
    def attempt(number):
        try:
            record(str(tmp_path), Request(node="gpu001", run_id=f"run{number}", holder="x", stage="declared"))
        except LeaseHeld as exc:
            return exc.details["lease"]["run_id"]
        return f"run{number}"

    with concurrent.futures.ThreadPoolExecutor(12) as pool:
        told = set(pool.map(attempt, range(12)))
    assert len(told) == 1
    assert len(ledger.read(ledger.ledger_path(str(tmp_path), "gpu001"))) == 1


requests = st.lists(
    st.tuples(
        st.sampled_from(["run1", "run2"]),
        st.sampled_from([None, *STAGES, "failed"]),
        st.booleans(),
        st.sampled_from([1, 50, 4000]),
    ),
    max_size=25,
)


@settings(max_examples=60, deadline=None)
@given(requests)
def test_no_interleaving_of_two_runs_breaks_the_order_or_the_lease(tmp_path_factory, wanted):
    rack = Rack(tmp_path_factory.mktemp("runs"))
    for run, stage, release, wait in wanted:
        rack.pass_time(wait)
        with contextlib.suppress(LeaseHeld, StageOrder):
            rack.say(stage, run, code="x" if stage == "failed" else None, release=release)
    reached, holder, until = -1, None, ""
    for event in rack.lines():
        assert holder in (None, event["run_id"]) or (event["event"] == "takeover" and event["time"] >= until)
        holder, until = (None, "") if event["event"] == "release" else (event["run_id"], event["until"])
        if event["event"] == "stage" and event["stage"] != "failed":
            assert STAGES.index(event["stage"]) <= reached + 1
            reached = STAGES.index(event["stage"])
