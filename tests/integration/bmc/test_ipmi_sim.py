# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The IPMI modules against OpenIPMI's ipmi_sim, in the controller's process and over ssh."""

from __future__ import annotations

import pytest


@pytest.fixture(params=["in the controller's process", "delegated over ssh"])
def where(request):
    return request.getfixturevalue("jump_host") if "ssh" in request.param else None


def power(access, **options):
    return {"h200.rack.ipmi_power": {**access, "bmc_username": "admin", **options}}


def boot(access, **options):
    return {"h200.rack.ipmi_bootdev": {**access, "bmc_username": "admin", **options}}


def test_power_is_proven_and_sent_once(simulator, play, where):
    access, calls = simulator
    on, again, cycled, off = play(
        [
            power(access, state="on"),
            power(access, state="on"),
            power(access, state="cycled"),
            power(access, state="off", shutdown="graceful"),
        ],
        where,
    )
    assert (on["power_state"], on["previous_power_state"], on["changed"]) == ("On", "Off", True), on
    assert not again["changed"] and cycled["reset_types_sent"] == ["ForceOff", "On"]
    assert off["power_state"] == "Off"
    sent = [line.split(" ", 2)[2] for line in calls.read_text().splitlines() if " set " in line]
    assert sent == ["power 1", "power 0", "power 1", "shutdown 1"]


def test_the_boot_device_arrives(simulator, play, where):
    access, calls = simulator
    pxe, again, none = play(
        [boot(access, target="pxe"), boot(access, target="pxe"), boot(access, target="none")], where
    )
    assert pxe["changed"] and pxe["boot"]["after"]["target"] == "pxe", pxe
    assert "not proven" in " ".join(pxe["warnings"])
    assert not again["changed"] and none["boot"]["after"]["target"] == "none"
    sent = [line.split(" ", 2)[2] for line in calls.read_text().splitlines() if "set boot" in line]
    assert sent == ["boot pxe", "boot none"]


def test_failures_are_classified(simulator, play, where):
    access, calls = simulator
    wrong, silent = play(
        [power({**access, "bmc_password": "not-it"}, state="on"), power({**access, "port": 9}, state="on", timeout=10)],
        where,
    )
    assert wrong["error_class"] == "auth" and silent["error_class"] in ("unreachable", "timeout")
    assert "set power" not in calls.read_text()
