# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reports against other tools, as tests of ours. The number is the issue; c.g is community.general."""

from __future__ import annotations

import json

import pytest
from fake_bmc import Fault

TARGET, ENABLED, MODE = "BootSourceOverrideTarget", "BootSourceOverrideEnabled", "BootSourceOverrideMode"
BASE = "/redfish/v1/Systems/1"


def message(status, message_id, **more):
    return Fault(status=status, body={"error": {"@Message.ExtendedInfo": [{"MessageId": message_id}]}}, **more)


def test_cg_3685_check_mode_and_diff_exist(bmc, run):
    result = run("redfish_power", bmc(), check_mode=True, state="on")
    assert result["changed"] and result["diff"]["after"] == {"power_state": "On"}


def test_cg_8051_it_returns_only_when_the_machine_is_on(bmc, run):
    server = bmc(on_seconds=0.3)
    assert run("redfish_power", server, state="on")["power_state"] == server.machine.state == "On"


@pytest.mark.parametrize("message_id", ["IDRAC.2.8.PSU501", "Base.1.18.ActionParameterValueConflict"])
def test_ansible_55869_dellemc_115_a_409_because_it_is_on_already_is_no_failure(bmc, run, message_id):
    """Somebody else was faster between our read and our request."""
    server = bmc()
    server.faults.append(message(409, message_id, method="POST", path="Reset$", process=True))
    result = run("redfish_power", server, state="on")
    assert not result.get("failed") and result["power_state"] == "On" and server.log.resets() == ["On"]


@pytest.mark.parametrize("info", ["live", "dead"])
def test_ansible_59804_reset_types_come_from_action_info_or_from_the_refusal(bmc, run, info):
    server = bmc(power="On", action_info=info, reset_types=("On", "ForceOff", "ForceRestart"))
    result = run("redfish_power", server, state="off", shutdown="graceful_then_force")
    assert result["power_state"] == "Off" and result["reset_types_sent"] == ["ForceOff"]


@pytest.mark.parametrize("reset_type", ["PowerCycle", "FullPowerCycle", "GracefulRestart", "ForceOn", "Nmi"])
def test_cg_901_7083_9683_every_reset_type_can_be_sent(bmc, run, reset_type):
    server = bmc(power="On", reset_types=(reset_type,), on_seconds=0.05)
    result = run("redfish_power", server, reset_type=reset_type)
    assert not result.get("failed"), result
    assert server.log.resets() == ([] if reset_type == "ForceOn" else [reset_type])


def test_dellemc_force_restart_of_a_machine_that_is_off_is_no_silent_success(bmc, run):
    server = bmc()
    result = run("redfish_power", server, reset_type="ForceRestart", wait_timeout=1, timeout=1)
    assert result["failed"] and result["error_class"] == "busy" and "The machine is off" in result["msg"]


def test_cg_8331_4800_the_ids_are_listed_without_reading_the_systems(bmc, run):
    server = bmc("four_nodes")
    assert run("redfish_info", server)["system_ids"] == ["Node1", "Node2", "Node3", "Node4"]
    assert server.log.of("GET", "Systems/") == []


def test_infra_controller_5418_6412_a_503_of_the_baseboard_blocks_nothing(bmc, run):
    server = bmc("dgx_h200")
    assert run("redfish_power", server, state="on")["system_id"] == "DGX"
    assert server.log.of("GET", "HGX") == []


@pytest.mark.parametrize(
    "personality",
    [
        "lenovo_xcc",  # c.g 11261
        "gigabyte_weak",  # c.g 6434
        "star_only",
        "dgx_h200",  # Tacklebox 22: 428
    ],
)
def test_cg_11261_6434_tacklebox_22_etags_in_the_form_the_bmc_wants(bmc, run, personality):
    result = run("redfish_boot", bmc(personality), target="pxe")
    assert not result.get("failed"), result


def test_ansible_60031_no_etag_announced_but_wanted(bmc, run):
    assert run("redfish_boot", bmc(etag="none", if_match="star", no_etag_status=412), target="pxe")["changed"]


def test_tacklebox_144_future_state_uri_is_followed_without_being_advertised(bmc, run):
    server = bmc("dgx_h200", settings_hidden=True)
    result = run("redfish_boot", server, target="pxe")
    assert result["strategy"] == "settings" and server.boot[TARGET] == "Pxe"


@pytest.mark.parametrize("hidden", [False, True])
def test_cg_11297_boot_that_is_read_only_on_the_system(bmc, run, hidden):
    server = bmc("dell_idrac10", settings_hidden=hidden)
    assert run("redfish_boot", server, target="pxe")["strategy"] == "settings"


def test_cg_3509_enabled_must_not_be_sent_when_it_is_set(bmc, run):
    def picky(current, patch):
        from fake_bmc.personalities import Refused, merge

        if current.get(ENABLED) == patch.get(ENABLED):
            raise Refused(400, "Base.1.18.PropertyValueNotInList")
        return merge(current, patch)

    server = bmc(boot_rule=picky)
    server.boot.update({ENABLED: "Once", TARGET: "Hdd"})
    assert run("redfish_boot", server, target="pxe")["boot"]["after"]["target"] == "pxe"
    assert len(server.log.of("PATCH", "")) == 1


def test_cg_3690_enabled_must_be_sent_even_when_it_is_set(bmc, run):
    def demanding(current, patch):
        from fake_bmc.personalities import Refused, merge

        if ENABLED not in patch:
            raise Refused(400, "Base.1.18.PropertyMissing")
        return merge(current, patch)

    server = bmc(boot_rule=demanding)
    server.boot.update({ENABLED: "Once", TARGET: "Hdd"})
    assert run("redfish_boot", server, target="pxe")["boot"]["after"]["target"] == "pxe"


def test_cg_5091_a_400_although_it_was_applied(bmc, run):
    server = bmc()
    server.faults.append(message(400, "IDRAC.2.8.SYS403", method="PATCH", process=True))
    result = run("redfish_boot", server, target="pxe")
    assert not result.get("failed") and "although it took effect" in result["warnings"][0]


def test_bmclib_459_a_silent_revert_is_seen_and_put_right(bmc, run):
    server = bmc("supermicro_8gpu")
    result = run("redfish_boot", server, target="pxe")
    assert not result.get("failed"), result
    assert server.boot[MODE] == "UEFI" and server.boot[ENABLED] == "Once"
    assert len(server.log.of("PATCH", "")) > 1


def test_bmclib_459_a_revert_that_nothing_cures_is_not_applied(bmc, run):
    def stubborn(current, patch):
        return {**current, **patch, MODE: "Legacy", ENABLED: "Disabled"}

    result = run("redfish_boot", bmc("supermicro_8gpu", boot_rule=stubborn), target="pxe", mode="uefi")
    assert result["error_class"] == "not_applied" and result["changed"]


def test_tacklebox_143_a_500_while_the_host_is_off_is_tried_in_other_words(bmc, run):
    server = bmc()
    server.faults.append(Fault(method="PATCH", status=500, times=1))
    assert run("redfish_boot", server, target="pxe", mode="uefi")["changed"]


def test_cg_2053_5886_sessions_are_closed_on_success_and_on_error(bmc, run):
    server = bmc(session_cap=1)
    for options in ({"state": "on"}, {"reset_type": "Suspend"}, {"state": "off", "system_id": "x"}, {"state": "off"}):
        run("redfish_power", server, **options)
        assert server.log.sessions_open() == 0
    assert len(server.log.of("POST", "Sessions$")) == 4 and server.machine.state == "Off"


def test_library_172_a_session_without_location_is_found_by_its_id(bmc, run):
    server = bmc()
    real = server._login

    def without(body):
        response = real(body)
        response.headers.pop("Location", None)
        return response

    server._login = without
    run("redfish_power", server, state="on")
    assert server.log.sessions_open() == 0


def test_check_redfish_89_a_full_session_table_falls_back_to_basic_and_says_so(bmc, run):
    result = run("redfish_power", bmc(session_cap=0), state="on")
    assert result["auth"] == "basic" and "no free session" in result["warnings"][0]


def test_check_redfish_89_rac0218_is_a_session_limit(bmc, run):
    server = bmc()
    server.faults.append(message(503, "IDRAC.2.8.RAC0218", method="POST", path="Sessions$"))
    assert run("redfish_power", server, state="on")["auth"] == "basic"


def test_xcat_4264_a_503_on_reading_is_retried_and_a_503_on_reset_is_not_replayed(bmc, run):
    server = bmc(on_seconds=0.05)
    server.faults += [
        Fault(method="GET", path=BASE, status=503, times=2),
        Fault(method="POST", path="Reset$", status=503, process=True),
    ]
    assert run("redfish_power", server, state="on")["power_state"] == "On"
    assert server.log.resets() == ["On"]


def test_lp_2162995_409_on_power_on_right_after_off(bmc, run):
    server = bmc("dell_idrac10", power="On", conflict_seconds=0.4)
    assert run("redfish_power", server, state="cycled")["power_state"] == "On"


def test_lp_2136275_the_post_lock_on_the_boot_device_is_sat_out(bmc, run):
    server = bmc("hpe_ilo6", power="Off", post_seconds=0.5)
    run("redfish_power", server, state="on")
    result = run("redfish_boot", server, target="pxe")
    assert not result.get("failed"), result
    assert len(server.log.of("PATCH", "")) > 1


def test_lp_2136275_a_post_that_never_ends_is_busy(bmc, run):
    server = bmc("hpe_ilo6", power="Off", post_seconds=60)
    run("redfish_power", server, state="on")
    result = run("redfish_boot", server, target="pxe", wait_timeout=1, timeout=1)
    assert result["error_class"] == "busy" and result["retryable"]


def test_kinetic_60_supermicro_x10_words_without_a_mode(bmc, run):
    server = bmc(targets=("None", "Pxe", "Hdd", "CD/DVD", "UefiUsbKey"), mode=None)
    assert run("redfish_boot", server, target="cd")["changed"] and server.boot[TARGET] == "CD/DVD"
    assert run("redfish_boot", server, target="usb")["changed"] and server.boot[TARGET] == "UefiUsbKey"


def test_dellemc_1027_what_waits_for_a_restart_is_said(bmc, run):
    result = run("redfish_boot", bmc("dell_idrac9"), target="http", http_boot_uri="http://10.0.0.1/x.efi")
    assert result["pending_reboot"] is True


def test_a_job_at_settings_that_show_nothing_is_pending_and_said(bmc, run):
    server = bmc("dell_idrac10")
    path = f"/redfish/v1/Systems/{server.personality.host}/Settings"
    server.tree = {path: {"@odata.id": path}}
    job = {"Location": "/redfish/v1/Managers/iDRAC.Embedded.1/Jobs/JID_1"}
    server.faults.append(Fault(method="PATCH", path="Settings$", status=202, headers=job, times=9))
    result = run("redfish_boot", server, target="pxe")
    assert not result.get("failed"), result
    assert result["pending_reboot"] and result["changed"] and "scheduled" in result["warnings"][0]


def test_a_link_into_another_system_is_not_followed(bmc, run):
    server = bmc("host_and_dpu")
    other = "/redfish/v1/Systems/Bluefield/Settings"
    system = {
        **server._system(),
        "Boot": server._shown(),
        "@Redfish.Settings": {"SettingsObject": {"@odata.id": other}},
    }
    server.tree = {"/redfish/v1/Systems/System.Embedded.1": system}
    result = run("redfish_boot", server, target="pxe")
    assert result["failed"] and "another system" in result["msg"]
    assert server.log.of("GET", "Bluefield") == []


@pytest.mark.parametrize(
    "body",
    [
        {"PowerState": None},
        {"PowerState": 7, "Actions": []},
        {"Actions": {"#ComputerSystem.Reset": None}},
        {"Boot": None, "PowerState": "Off", "Actions": {"#ComputerSystem.Reset": {"target": None}}},
        {"Actions": {"#ComputerSystem.Reset": {"ResetType@Redfish.AllowableValues": "On"}}},
        {"@Redfish.Settings": [], "Boot": {TARGET: None, ENABLED: None}, "Bios": "x"},
    ],
)
@pytest.mark.parametrize("name", ["redfish_power", "redfish_boot", "redfish_info"])
def test_malformed_trees_are_a_result_and_no_traceback(bmc, run, name, body):
    server = bmc()
    server.tree = {BASE: body}
    options = {"redfish_power": {"state": "on"}, "redfish_boot": {"target": "pxe"}, "redfish_info": {}}[name]
    result = run(name, server, wait_timeout=1, timeout=1, **options)
    assert "broke the client" not in result.get("msg", ""), result
    assert not result.get("failed") or result["error_class"] in ("unsupported", "not_applied", "timeout", "bmc_bug")
    json.dumps(result)


def test_session_that_ends_in_the_middle_is_renewed_once(bmc, run):
    server = bmc(on_seconds=0.1)
    server.faults.append(message(401, "Base.1.18.NoValidSession", method="GET", path=BASE, after=2))
    assert run("redfish_power", server, state="on")["power_state"] == "On"
    assert server.log.resets() == ["On"]
