# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Fake BMCs for the tests, and a way to run a module's work against them without waiting for real firmware."""

from __future__ import annotations

import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[4]))

from ansible.module_utils.common.arg_spec import ArgumentSpecValidator
from ansible_collections.h200.rack.plugins.module_utils._bmc import (
    boot_override,
    chassis,
    http,
    ipmi_bootdev,
    ipmi_power,
    patch,
    power_run,
    redfish_boot,
    redfish_info,
    redfish_power,
    reset,
    specs,
)
from ansible_collections.h200.rack.plugins.module_utils._bmc import entry as bmc_entry
from fake_bmc import PERSONALITIES, Bmc, Fleet, Machine

WORKS = {
    "redfish_power": (specs.REDFISH_POWER, redfish_power.power),
    "redfish_boot": (specs.REDFISH_BOOT, redfish_boot.boot),
    "redfish_info": (specs.REDFISH_INFO, redfish_info.info),
    "ipmi_power": (specs.IPMI_POWER, ipmi_power.power),
    "ipmi_bootdev": (specs.IPMI_BOOTDEV, ipmi_bootdev.bootdev),
}


@pytest.fixture(autouse=True)
def fast(monkeypatch):
    """The same decisions, with milliseconds where firmware takes seconds."""
    monkeypatch.setattr(power_run, "POLL_SECONDS", 0.02)
    monkeypatch.setattr(power_run, "SETTLE_SECONDS", 0.1)
    monkeypatch.setattr(power_run, "UNKNOWN_RESTART_SECONDS", 0.3)
    monkeypatch.setattr(reset, "REFUSED_PAUSE", 0.05)
    monkeypatch.setattr(reset, "REFUSED_PAUSE_MAX", 0.2)
    monkeypatch.setattr(reset, "CONFLICT_SECONDS", 5.0)
    monkeypatch.setattr(http, "READ_PAUSES", (0.02, 0.02, 0.02))
    monkeypatch.setattr(http, "RETRY_AFTER_MAX", 1.0)
    monkeypatch.setattr(patch, "BUSY_PAUSE", 0.05)
    monkeypatch.setattr(patch, "BUSY_PAUSE_MAX", 0.2)
    monkeypatch.setattr(boot_override, "READ_BACK_PAUSES", (0.0, 0.02))
    monkeypatch.setattr(chassis, "BUSY_PAUSE", 0.05)
    monkeypatch.setattr(ipmi_bootdev, "BUSY_PAUSE", 0.05)
    monkeypatch.setattr(ipmi_bootdev, "READ_BACK_SECONDS", 1.0)


@pytest.fixture
def bmc(request):
    """Make and serve a fake BMC: bmc("dgx_h200", power="On", …) with the fields of Machine and Personality."""

    def make(personality="plain", tree=None, tls=None, **fields):
        kind = PERSONALITIES[personality]
        manners = {name: fields.pop(name) for name in list(fields) if hasattr(kind, name)}
        server = Bmc(kind, Machine(**fields), tree=tree)
        for name, value in manners.items():
            setattr(server.personality, name, value)
        fleet = Fleet([server], tls=tls)
        fleet.__enter__()
        request.addfinalizer(fleet.__exit__)
        return server

    return make


@pytest.fixture
def run():
    """Run a module's work: run("redfish_power", bmc, state="on")."""

    def go(name, server, /, check_mode=False, **options):
        spec, work = WORKS[name]
        given = {"bmc_username": "admin", "bmc_password": "s3cret-Pass", "timeout": 5, **options}
        given.setdefault("bmc_host", getattr(server, "url", server))
        given.setdefault("wait_timeout", 10)
        checked = ArgumentSpecValidator(**spec).validate(given)
        assert not checked.error_messages, checked.error_messages
        return bmc_entry.run(work, checked.validated_parameters, check_mode)

    return go


@pytest.fixture
def works(run):
    """works(server): power and boot do what they shall, once, and leave no session."""

    def check(server):
        on = run("redfish_power", server, state="on")
        assert not on.get("failed") and on["power_state"] == "On", on
        pxe = run("redfish_boot", server, target="pxe")
        assert not pxe.get("failed") and pxe["boot"]["after"]["target"] == "pxe", pxe
        info = run("redfish_info", server)
        assert not info.get("failed") and info["system"]["boot"]["target"] == "pxe", info
        assert server.log.resets(taken=True) == ["On"] and not server.sessions

    return check
