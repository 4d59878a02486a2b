# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import dataclasses

import pytest
from fake_bmc import PERSONALITIES, Fault

URI = "http://10.20.1.2/ipxe/snponly.efi"
TAKES_OVERRIDES = [name for name in PERSONALITIES if name not in ("four_nodes", "ignores_override")]
PXE = {"BootSourceOverrideTarget": "Pxe", "BootSourceOverrideEnabled": "Once"}


def patches(server):
    return [(entry.path, entry.body["Boot"]) for entry in server.log.of("PATCH", "") if "Boot" in entry.body]


@pytest.mark.parametrize("personality", TAKES_OVERRIDES)
def test_every_personality_boots_from_the_network_once(bmc, run, personality):
    server = bmc(personality)
    result = run("redfish_boot", server, target="pxe")
    assert not result.get("failed"), result
    assert {k: result["boot"]["after"][k] for k in ("target", "persistence")} == {
        "target": "pxe",
        "persistence": "once",
    }
    assert server.boot["BootSourceOverrideTarget"] == "Pxe" and server.boot["BootSourceOverrideEnabled"] == "Once"
    assert server.boot.get("BootSourceOverrideMode", "UEFI") == "UEFI"
    assert server.log.sessions_open() == 0

    again = run("redfish_boot", server, target="pxe")
    assert not again["changed"] and again["strategy"] == "none"

    cleared = run("redfish_boot", server, target="none")
    assert not cleared.get("failed"), cleared
    assert cleared["boot"]["after"]["target"] == "none" and cleared["changed"]
    assert server.boot["BootSourceOverrideEnabled"] == "Disabled" or server.boot["BootSourceOverrideTarget"] == "None"


@pytest.mark.parametrize("target", ["disk", "cd", "bios"])
@pytest.mark.parametrize("personality", TAKES_OVERRIDES)
def test_every_personality_takes_other_targets_for_good(bmc, run, personality, target):
    server = bmc(personality)
    result = run("redfish_boot", server, target=target, persistence="continuous")
    assert not result.get("failed"), result
    assert result["boot"]["after"]["target"] == target and server.boot["BootSourceOverrideEnabled"] == "Continuous"


def test_the_first_request_is_the_smallest(bmc, run):
    server = bmc()
    run("redfish_boot", server, target="pxe")
    assert patches(server) == [("/redfish/v1/Systems/1", PXE)]


def test_check_mode_says_what_it_would_send(bmc, run):
    server = bmc()
    result = run("redfish_boot", server, check_mode=True, target="pxe", mode="uefi")
    assert result["changed"] and result["would_send"] == {"Boot": PXE}
    assert result["diff"]["after"]["target"] == "pxe" and patches(server) == []


def test_a_target_that_cannot_be_removed_is_unsupported(bmc, run):
    """sushy-emulator over libvirt: always continuous, and HTTP 500 to the target None."""
    server = bmc(targets=("Pxe", "Cd", "Hdd"))
    server.boot.update(BootSourceOverrideEnabled="Continuous", BootSourceOverrideTarget="Pxe")
    server.faults.append(Fault(method="PATCH", status=500, times=9))
    result = run("redfish_boot", server, target="none")
    assert result["error_class"] == "unsupported" and "target=disk" in result["msg"] and not result["retryable"]


def test_a_mode_the_bmc_does_not_know_is_left_alone_unless_asked_for(bmc, run):
    server = bmc("openbmc_gb300")
    assert run("redfish_boot", server, target="pxe")["changed"]
    result = run("redfish_boot", server, target="disk", mode="uefi")
    assert result["failed"] and result["error_class"] == "unsupported"


def test_a_200_that_did_not_stick_is_not_applied(bmc, run):
    result = run("redfish_boot", bmc("ignores_override"), target="pxe")
    assert result["failed"] and result["error_class"] == "not_applied" and not result["changed"]
    assert result["boot"]["after"]["target"] == "none" and "BootSourceOverrideTarget is 'None'" in result["msg"]


def test_the_baseboard_of_a_dgx_is_never_touched_while_the_host_is_off(bmc, run):
    server = bmc("dgx_h200")
    for options in ({"target": "pxe"}, {"target": "http", "http_boot_uri": URI}, {"target": "none"}):
        assert not run("redfish_boot", server, **options).get("failed")
    assert not run("redfish_power", server, state="on").get("failed")
    assert not run("redfish_info", server).get("failed")
    assert [entry.path for entry in server.log if "HGX" in entry.path] == []


@pytest.mark.parametrize(
    ("personality", "strategy"),
    [
        ("dgx_h200", "http_boot_uri"),
        ("supermicro_8gpu", "http_boot_uri"),
        ("dell_idrac9", "dell_bios"),
        ("dell_idrac10", "dell_bios"),
        ("hpe_ilo6", "hpe_bios"),
        ("plain", "dhcp"),
    ],
)
def test_the_uri_of_an_http_boot_goes_where_the_vendor_keeps_it(bmc, run, personality, strategy):
    server = bmc(personality)
    result = run("redfish_boot", server, target="http", http_boot_uri=URI)
    assert not result.get("failed"), result
    assert result["strategy"] == strategy and server.boot["BootSourceOverrideTarget"] == "UefiHttp"
    kept = {**server.boot, **server.bios_pending}
    assert (URI in kept.values()) == (strategy != "dhcp")
    assert result["pending_reboot"] == strategy.endswith("_bios")
    if strategy != "dhcp":
        assert result["boot"]["after"]["http_boot_uri"] == URI
    if strategy == "dell_bios":
        assert list(server.bios_pending) == ["HttpDev1EnDis", "HttpDev1Uri"]


def test_an_old_uri_is_emptied_when_dhcp_shall_say(bmc, run):
    server = bmc("dgx_h200")
    run("redfish_boot", server, target="http", http_boot_uri=URI)
    result = run("redfish_boot", server, target="http")
    assert server.boot["HttpBootUri"] == "" and result["boot"]["after"]["http_boot_uri"] is None


def test_a_target_that_is_not_allowed_lists_the_allowed_ones(bmc, run):
    result = run("redfish_boot", bmc("openbmc_gb300"), target="http")
    assert result["error_class"] == "unsupported" and "Pxe" in result["allowed_targets"]


BOOT_FAULTS = {
    "no answer, done": Fault(method="PATCH", process=True, drop=True),
    "no answer, not done": Fault(method="PATCH", drop=True),
    "500 while the host is off": Fault(method="PATCH", status=500),
    "400 although applied": Fault(method="PATCH", process=True, status=400),
    "503 for a while": Fault(
        method="PATCH", status=503, times=2, body={"error": {"code": "Base.1.18.ServiceTemporarilyUnavailable"}}
    ),
    "POST lock": Fault(
        method="PATCH",
        status=400,
        times=3,
        body={"error": {"@Message.ExtendedInfo": [{"MessageId": "iLO.2.14.UnableToModifyDuringSystemPOST"}]}},
    ),
    "409 for a while": Fault(method="PATCH", status=409, times=2),
    "412 because somebody else was faster": Fault(method="PATCH", status=412),
    "garbage as the answer": Fault(method="PATCH", process=True, raw=b"<html>"),
    "202 with a task": Fault(method="PATCH", process=True, status=202),
    "reads break": Fault(method="GET", path="Systems/1$", drop=True, times=2, after=2),
    "session ends in between": Fault(method="PATCH", status=401),
}


@pytest.mark.parametrize("fault", BOOT_FAULTS)
def test_faults_do_not_keep_the_override_from_being_set(bmc, run, fault):
    server = bmc()
    server.faults.append(dataclasses.replace(BOOT_FAULTS[fault]))
    result = run("redfish_boot", server, target="pxe", mode="uefi")
    assert not result.get("failed"), result
    assert server.boot["BootSourceOverrideTarget"] == "Pxe" and result["changed"]


def test_a_half_applied_change_is_reported_as_a_change(bmc, run):
    def half(current, patch):
        return {**current, "BootSourceOverrideTarget": patch.get("BootSourceOverrideTarget", "None")}

    result = run("redfish_boot", bmc(boot_rule=half), target="pxe")
    assert result["failed"] and result["error_class"] == "not_applied"
    assert "BootSourceOverrideEnabled" in result["msg"]


def test_once_that_becomes_continuous_is_not_taken_for_once(bmc, run):
    def forever(current, patch):
        return {**current, **patch, "BootSourceOverrideEnabled": "Continuous"}

    result = run("redfish_boot", bmc(boot_rule=forever), target="pxe")
    assert result["failed"] and result["error_class"] == "not_applied" and result["changed"]
