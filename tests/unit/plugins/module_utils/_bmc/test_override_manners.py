# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Overrides as BMCs take them."""

from __future__ import annotations

from fake_bmc import Fault
from fake_bmc.alter import changed_get
from fake_bmc.personalities import Refused, merge

ROOT = "/redfish/v1"
BASE = f"{ROOT}/Systems/1"
TARGET, ENABLED = "BootSourceOverrideTarget", "BootSourceOverrideEnabled"


def test_settings_with_an_apply_time_are_taken_for_what_they_are(bmc, run):
    """A job for the next restart: pending, said so, and no change the second time."""
    server = bmc("dell_idrac10")
    path = f"{ROOT}/Systems/{server.personality.host}"
    shown = {**server.boot}
    changed_get(server, path, lambda body: body.update(Boot={**body["Boot"], **shown}))
    first = run("redfish_boot", server, target="pxe")
    assert first["changed"] and first["strategy"] == "settings" and first["boot"]["after"]["target"] == "pxe"
    assert not run("redfish_boot", server, target="pxe")["changed"]


def test_once_that_is_refused_while_continuous_is_taken_is_not_replaced_by_it(bmc, run):
    """Continuous would install the machine again and again."""

    def no_once(current, patch):
        if patch.get(ENABLED) == "Once":
            raise Refused(400, "Base.1.18.PropertyValueNotInList")
        return merge(current, patch)

    server = bmc(boot_rule=no_once)
    result = run("redfish_boot", server, target="pxe")
    assert result["error_class"] == "unsupported" and not result["changed"]
    assert server.boot[ENABLED] == "Disabled"
    assert run("redfish_boot", server, target="pxe", persistence="continuous")["changed"]


def test_an_override_that_the_start_consumes_is_set_again_next_time(bmc, run):
    server = bmc()
    real = server._reset

    def consuming(path, body):
        server.boot.update({ENABLED: "Disabled", TARGET: "None"})
        return real(path, body)

    server._reset = consuming
    assert run("redfish_boot", server, target="pxe")["changed"]
    assert run("redfish_power", server, state="on")["power_state"] == "On"
    again = run("redfish_boot", server, target="pxe")
    assert again["changed"] and again["boot"]["before"]["target"] == "none"


def test_properties_that_only_the_target_shows_are_enough(bmc, run):
    """A Boot object without Enabled: whether it is once or for good cannot be proven, and is not claimed."""
    server = bmc()
    changed_get(server, BASE, lambda body: body["Boot"].pop(ENABLED))
    result = run("redfish_boot", server, target="pxe")
    assert result["failed"] and result["error_class"] == "not_applied" and ENABLED in result["msg"]


def test_an_error_in_a_200_counts_as_what_reading_shows(bmc, run):
    body = {"error": {"code": "Base.1.18.GeneralError", "message": "It did not work."}}
    server = bmc()
    server.faults.append(Fault(method="PATCH", status=200, body=body))
    result = run("redfish_boot", server, target="pxe", mode="uefi")
    assert not result.get("failed") and server.boot[TARGET] == "Pxe"
