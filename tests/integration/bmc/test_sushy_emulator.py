# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The Redfish modules against the real sushy-emulator, in the controller's process and over ssh."""

from __future__ import annotations

import pytest


@pytest.fixture(params=["in the controller's process", "delegated over ssh"])
def where(request):
    return request.getfixturevalue("jump_host") if "ssh" in request.param else None


def power(access, **options):
    return {"h200.rack.redfish_power": {**access, "bmc_username": "admin", **options}}


def boot(access, **options):
    return {"h200.rack.redfish_boot": {**access, "bmc_username": "admin", **options}}


def test_power_is_proven(emulator, play, where):
    on, again, restarted, off = play(
        [
            power(emulator, state="on"),
            power(emulator, state="on"),
            power(emulator, state="restarted"),
            power(emulator, state="off", shutdown="graceful_then_force"),
        ],
        where,
    )
    assert (on["power_state"], on["previous_power_state"], on["reset_types_sent"]) == ("On", "Off", ["On"]), on
    assert on["auth"] == "basic" and not again["changed"]
    assert restarted["reset_types_sent"] == ["ForceRestart"] and restarted["power_state"] == "On"
    assert off["power_state"] == "Off" and off["reset_types_sent"] == ["GracefulShutdown"]


def test_boot_override_is_read_back(emulator, play, where):
    pxe, again, disk, http, bios = play(
        [
            boot(emulator, target="pxe"),
            boot(emulator, target="pxe"),
            boot(emulator, target="disk", persistence="continuous", mode="uefi"),
            boot(emulator, target="http"),
            boot(emulator, target="bios"),
        ],
        where,
    )
    assert pxe["changed"] and pxe["boot"]["after"]["target"] == "pxe"
    assert "no one-time override" in pxe["warnings"][0]
    assert not again["changed"] and not disk.get("failed") and disk["boot"]["after"]["target"] == "disk"
    assert "as Pxe" in " ".join(http["warnings"])
    assert bios["failed"] and bios["error_class"] == "unsupported" and "Hdd" in bios["allowed_targets"]


def test_check_mode_changes_nothing(emulator, play, where):
    would, boot_would = play([power(emulator, state="on"), boot(emulator, target="pxe")], where, check=True)
    assert would["changed"] and would["reset_types_sent"] == ["On"]
    assert boot_would["would_send"]["Boot"]["BootSourceOverrideTarget"] == "Pxe"
    (info,) = play([{"h200.rack.redfish_info": {**emulator, "bmc_username": "admin", "query": "nics[].mac"}}], where)
    assert info["system"]["power_state"] == "Off" and info["system"]["boot"]["target"] == "disk"
    assert info["result"] == ["00:5c:52:31:3a:9c"]


def test_the_account_comes_from_the_controllers_environment(emulator, play, where):
    access = {"bmc_host": emulator["bmc_host"]}
    environment = {
        "H200_RACK_BMC_USERNAME": "admin",
        "H200_RACK_BMC_PASSWORD": emulator["bmc_password"],
        "H200_RACK_BMC_CA_PATH": emulator["ca_path"],
    }
    (result,) = play([{"h200.rack.redfish_power": {**access, "state": "on"}}], where, environment=environment)
    assert result["power_state"] == "On", result


def test_failures_are_classified(emulator, play, where):
    wrong, foreign, absent = play(
        [
            power({**emulator, "bmc_password": "not-it"}, state="on"),
            power({**emulator, "ca_path": None, "validate_certs": True}, state="on"),
            power(emulator, state="on", system_id="absent"),
        ],
        where,
    )
    assert [wrong["error_class"], foreign["error_class"], absent["error_class"]] == ["auth", "tls", "invalid"]
    assert wrong["http_status"] == 401 and absent["system_ids"]
