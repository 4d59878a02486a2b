# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest
from fake_bmc import PERSONALITIES, Fault

ONE_HOST = [name for name in PERSONALITIES if name not in ("four_nodes",)]


@pytest.mark.parametrize("personality", ONE_HOST)
def test_every_personality_is_turned_on_with_one_request(bmc, run, personality):
    server = bmc(personality, on_seconds=0.1)
    result = run("redfish_power", server, state="on")
    assert not result.get("failed"), result
    assert (result["power_state"], result["previous_power_state"], result["changed"]) == ("On", "Off", True)
    assert server.log.resets() == ["On"]
    assert server.log.sessions_open() == 0


@pytest.mark.parametrize("personality", ONE_HOST)
@pytest.mark.parametrize("state", ["off", "restarted", "cycled"])
@pytest.mark.parametrize("shutdown", ["force", "graceful", "graceful_then_force"])
def test_every_personality_is_taken_down_and_up(bmc, run, personality, state, shutdown):
    server = bmc(personality, power="On", on_seconds=0.05, off_seconds=0.05)
    result = run("redfish_power", server, state=state, shutdown=shutdown)
    assert not result.get("failed"), result
    assert result["power_state"] == ("Off" if state == "off" else "On")
    taken = server.log.resets(taken=True)
    assert len(taken) == len(set(taken)), taken
    assert server.log.sessions_open() == 0


def test_on_while_on_sends_nothing(bmc, run):
    server = bmc(power="On")
    result = run("redfish_power", server, state="on")
    assert not result["changed"]
    assert server.log.resets() == []


def test_restart_of_a_machine_that_is_off_turns_it_on_and_says_so(bmc, run):
    server = bmc()
    result = run("redfish_power", server, state="restarted")
    assert server.log.resets() == ["On"]
    assert "turned on instead" in result["warnings"][0]


def test_check_mode_reads_and_tells_what_it_would_send(bmc, run):
    server = bmc(power="On")
    result = run("redfish_power", server, check_mode=True, state="cycled")
    assert result["changed"] and result["reset_types_sent"] == ["ForceOff", "On"]
    assert result["diff"] == {"before": {"power_state": "On"}, "after": {"power_state": "On"}}
    assert server.log.resets() == [] and server.machine.done == []


@pytest.mark.parametrize(
    ("before", "state", "sent"),
    [
        ("PoweringOn", "on", []),
        ("PoweringOff", "off", []),
        ("Paused", "on", ["On"]),
        ("Paused", "off", ["ForceOff"]),
        ("Hibernating", "on", ["On"]),
        ("Hibernating", "off", ["ForceOff"]),
    ],
)
def test_unusual_states_do_not_confuse_it(bmc, run, before, state, sent):
    server = bmc(power=before)
    if not sent:  # the transition ends by itself
        server.machine._go(__import__("time").monotonic(), [("On" if state == "on" else "Off", 0.1)])
    result = run("redfish_power", server, state=state)
    assert not result.get("failed"), result
    assert server.log.resets() == sent
    assert result["power_state"] == ("On" if state == "on" else "Off")


def test_power_on_during_powering_off_waits_for_the_end_first(bmc, run):
    server = bmc(power="On", off_seconds=0.2, intermediate=True)
    server.machine.reset("ForceOff")
    result = run("redfish_power", server, state="on")
    assert result["power_state"] == "On" and server.log.resets() == ["On"]


def test_graceful_shutdown_that_never_ends_is_forced_once(bmc, run):
    server = bmc(power="On", graceful_works=False)
    result = run("redfish_power", server, state="off", shutdown="graceful_then_force", graceful_timeout=1)
    assert result["reset_types_sent"] == ["GracefulShutdown", "ForceOff"]
    assert server.log.resets() == ["GracefulShutdown", "ForceOff"]


def test_graceful_shutdown_that_never_ends_fails_without_force(bmc, run):
    server = bmc(power="On", graceful_works=False)
    result = run("redfish_power", server, state="off", shutdown="graceful", graceful_timeout=1)
    assert result["failed"] and result["error_class"] == "timeout" and result["changed"]
    assert server.log.resets() == ["GracefulShutdown"]


def test_a_reset_that_is_accepted_and_ignored_fails(bmc, run):
    server = bmc(ignores=("On",))
    result = run("redfish_power", server, state="on", wait_timeout=1, timeout=1)
    assert result["failed"] and result["error_class"] == "not_applied"
    assert result["reset_types_sent"] == ["On"]
    assert server.log.resets() == ["On"]


def test_without_wait_it_returns_after_the_request(bmc, run):
    server = bmc(on_seconds=30)
    result = run("redfish_power", server, state="on", wait=False)
    assert not result.get("failed") and result["power_state"] == "Off" and result["changed"]


def test_a_reset_type_that_is_not_allowed_lists_the_allowed_ones(bmc, run):
    server = bmc(reset_types=("On", "ForceOff"), power="On")
    result = run("redfish_power", server, reset_type="Nmi")
    assert result["error_class"] == "unsupported"
    assert result["allowed_reset_types"] == ["ForceOff", "On"] and "ForceOff, On" in result["msg"]
    assert server.log.resets() == []


# The fault table: whatever happens, at most one request that may have taken effect, and no session left.
FAULTS = {
    "slow answer, done": Fault(method="POST", path="Reset$", process=True, delay=3),
    "slow answer, not done": Fault(method="POST", path="Reset$", drop=True, delay=0.3),
    "connection dropped, done": Fault(method="POST", path="Reset$", process=True, drop=True),
    "504 although done": Fault(method="POST", path="Reset$", process=True, status=504),
    "502 although done": Fault(method="POST", path="Reset$", process=True, status=502, raw=b"<html>Bad Gateway</html>"),
    "500 although done": Fault(method="POST", path="Reset$", process=True, status=500, body={"error": {}}),
    "503 without a reason, done": Fault(method="POST", path="Reset$", process=True, status=503, raw=b"busy"),
    "503 before processing": Fault(
        method="POST",
        path="Reset$",
        status=503,
        times=2,
        body={"error": {"code": "Base.1.18.ServiceTemporarilyUnavailable"}},
    ),
    "409 twice": Fault(method="POST", path="Reset$", status=409, times=2),
    "POST lock": Fault(
        method="POST",
        path="Reset$",
        status=400,
        times=2,
        body={"error": {"@Message.ExtendedInfo": [{"MessageId": "iLO.2.14.UnableToModifyDuringSystemPOST"}]}},
    ),
    "garbage with 200": Fault(method="POST", path="Reset$", process=True, raw=b"\x00\xff{{"),
    "202 with a task": Fault(
        method="POST", path="Reset$", process=True, status=202, headers={"Location": "/redfish/v1/TaskService/Tasks/9"}
    ),
    "307 to itself": Fault(method="POST", path="Reset$", status=307, headers={"Location": "/redfish/v1/Elsewhere"}),
    "303 instead of an answer": Fault(method="POST", path="Reset$", status=303, headers={"Location": "/redfish/v1"}),
    "reads fail for a while": Fault(method="GET", path="Systems/", status=503, times=3, after=1),
    "reads break for a while": Fault(method="GET", path="Systems/", drop=True, times=3, after=1),
    "garbage when reading": Fault(method="GET", path="Systems/", raw=b"<html>", times=2, after=1),
    "session cannot be closed": Fault(method="DELETE", path="Sessions", status=500),
}
MAY_FAIL = {"slow answer, not done", "307 to itself", "303 instead of an answer"}


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("state", ["on", "off", "restarted", "cycled"])
def test_no_fault_makes_it_send_twice_or_leave_a_session(bmc, run, fault, state):
    import dataclasses

    server = bmc(power="Off" if state == "on" else "On", on_seconds=0.05, off_seconds=0.05)
    server.faults.append(dataclasses.replace(FAULTS[fault]))
    result = run("redfish_power", server, state=state, timeout=1, wait_timeout=2 if fault in MAY_FAIL else 20)
    taken = server.log.resets(taken=True)
    assert len(taken) == len(set(taken)), taken
    assert server.log.sessions_open() == 0
    if fault not in MAY_FAIL:
        assert not result.get("failed"), result
        assert result["power_state"] == ("Off" if state == "off" else "On")
    elif result.get("failed"):
        assert result["error_class"] in ("timeout", "not_applied", "unsupported", "bmc_bug"), result


def test_power_on_within_the_conflict_window_is_tried_again(bmc, run):
    server = bmc("dell_idrac10", power="On", conflict_seconds=1.0)
    result = run("redfish_power", server, state="cycled")
    assert result["reset_types_sent"] == ["ForceOff", "On"] and result["power_state"] == "On"
    assert len(server.log.resets()) > 2 and server.log.resets(taken=True) == ["ForceOff", "On"]


def test_a_restart_without_answer_and_without_a_sign_is_not_claimed(bmc, run):
    server = bmc(power="On", last_reset_time=False, restart_shows=False)
    server.faults.append(Fault(method="POST", path="Reset$", drop=True))
    result = run("redfish_power", server, state="restarted")
    assert result["failed"] and result["error_class"] == "timeout" and not result["retryable"]
    assert server.log.resets() == ["ForceRestart"]


def test_a_restart_that_nothing_shows_is_said(bmc, run):
    server = bmc(power="On", last_reset_time=False, restart_shows=False)
    result = run("redfish_power", server, state="restarted")
    assert result["restart_seen"] is False and "accepted" in result["warnings"][0]
    assert run("redfish_power", bmc(power="On"), state="restarted")["restart_seen"] is True


def test_a_start_that_never_ends_is_no_success(bmc, run):
    result = run("redfish_power", bmc(power="PoweringOn"), state="on", wait_timeout=1, timeout=1)
    assert result["failed"] and result["error_class"] == "timeout"


def test_a_start_that_never_ends_can_be_broken_off(bmc, run):
    server = bmc(power="PoweringOn")
    assert run("redfish_power", server, state="off")["power_state"] == "Off" and server.log.resets() == ["ForceOff"]


def test_the_power_button_is_not_pressed_without_knowing_the_state(bmc, run):
    server = bmc(power="Mystery", reset_types=("PushPowerButton", "ForceOff"))
    assert run("redfish_power", server, state="on")["error_class"] == "unsupported"
    assert run("redfish_power", bmc(reset_types=("PushPowerButton",)), state="on")["power_state"] == "On"


def test_a_restart_without_answer_is_proven_by_the_reset_time(bmc, run):
    server = bmc(power="On", restart_shows=False)
    server.faults.append(Fault(method="POST", path="Reset$", drop=True, process=True))
    result = run("redfish_power", server, state="restarted")
    assert not result.get("failed"), result
    assert server.log.resets() == ["ForceRestart"]


def test_what_was_sent_before_the_time_was_over_is_reported(bmc, run):
    """ForceOff took effect and used up the time: that is a change, and On was not sent."""
    server = bmc(power="On", off_seconds=60)
    result = run("redfish_power", server, state="cycled", timeout=1, wait_timeout=1)
    assert result["failed"] and result["changed"] and result["reset_types_sent"] == ["ForceOff"]


def test_a_request_that_could_not_be_sent_is_not_reported_as_sent(bmc, run):
    """Reading what is allowed used up the time."""
    server = bmc(action_info="live")
    server.faults.append(Fault(method="GET", path="ResetActionInfo", delay=3, times=9))
    result = run("redfish_power", server, state="on", timeout=1, wait_timeout=0)
    assert result["error_class"] == "timeout" and not result["changed"] and server.log.resets() == []
    assert result["reset_types_sent"] == []
