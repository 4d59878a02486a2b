# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Recorded trees, replayed. H200_RACK_CAPTURES names a folder with more of them: files, or folders of one BMC each."""

from __future__ import annotations

import copy
import os
import pathlib

import pytest
from ansible_collections.h200.rack.plugins.module_utils._bmc.errors import RETRYABLE
from fake_bmc import CapturedBmc, Fleet
from fake_bmc.captured import CAPTURES, load
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

URI = "http://10.20.1.2/ipxe/snponly.efi"
OWN = sorted(path.stem for path in CAPTURES.glob("*.json"))
MORE = sorted(map(str, pathlib.Path(os.environ.get("H200_RACK_CAPTURES", "/nonexistent")).glob("*")))
EVERYTHING = ["system", "nics", "managers", "firmware"]
NO_HTTP = ("lenovo_sr680a", "openbmc_gb300")


@pytest.fixture
def capture(request):
    def make(name, **machine):
        server = CapturedBmc.of(name)
        for field, value in machine.items():
            setattr(server.machine, field, value)
        fleet = Fleet([server])
        fleet.__enter__()
        request.addfinalizer(fleet.__exit__)
        return server

    return make


def strangers(server, system_id=None):
    """Requests that went to another system of this BMC."""
    below = f"{server.host_path.rsplit('/', 1)[0]}/".lower()
    own = f"{below}{system_id}".lower() if system_id else server.host_path.lower()
    return [
        entry.path
        for entry in server.log
        if entry.path.lower().startswith(below) and not f"{entry.path.lower()}/".startswith(f"{own}/")
    ]


@pytest.mark.parametrize("name", OWN + MORE)
def test_power_works_on_every_capture(capture, run, name):
    server = capture(name, power="Off", on_seconds=0.05, off_seconds=0.05)
    for state, shutdown, after in [
        ("on", "force", "On"),
        ("restarted", "force", "On"),
        ("cycled", "graceful_then_force", "On"),
        ("off", "graceful_then_force", "Off"),
    ]:
        result = run("redfish_power", server, state=state, shutdown=shutdown)
        assert not result.get("failed"), result
        assert result["power_state"] == after and result["auth"] == "session"
    assert server.log.resets() == server.log.resets(taken=True)
    assert strangers(server) == [] and server.log.sessions_open() == 0


@pytest.mark.parametrize("power", ["Off", "On"])
@pytest.mark.parametrize("name", OWN + MORE)
def test_the_boot_override_works_on_every_capture(capture, run, name, power):
    server = capture(name, power=power)
    planned = run("redfish_boot", server, check_mode=True, target="pxe")
    assert planned["changed"] and server.log.of("PATCH", "") == []
    pxe = run("redfish_boot", server, target="pxe")
    assert not pxe.get("failed"), pxe
    assert (pxe["boot"]["after"]["target"], pxe["boot"]["after"]["persistence"]) == ("pxe", "once")
    assert server.boot["BootSourceOverrideTarget"] == "Pxe"
    assert not run("redfish_boot", server, target="pxe")["changed"]
    http = run("redfish_boot", server, target="http", http_boot_uri=URI)
    if name in NO_HTTP:
        assert http["error_class"] == "unsupported" and "Pxe" in http["allowed_targets"]
    else:
        assert not http.get("failed") and http["boot"]["after"]["target"] == "http", http
    none = run("redfish_boot", server, target="none")
    assert not none.get("failed") and none["boot"]["after"]["target"] == "none", none
    assert strangers(server) == [] and server.log.sessions_open() == 0


@pytest.mark.parametrize("name", OWN + MORE)
def test_every_capture_is_read_in_full(capture, run, name):
    server = capture(name, power="Off")
    result = run("redfish_info", server, gather=EVERYTHING)
    assert not result.get("failed"), result
    assert result["system_id"] == server.host_path.rsplit("/", 1)[1]
    assert result["system"]["power_state"] == "Off" and result["system"]["allowed_reset_types"]
    if name in OWN:
        macs = [nic["mac"] for nic in result["nics"]]
        assert (name == "openbmc_gb300") == (macs == []) and all(mac.startswith("02:00:00") for mac in macs)
        assert result["managers"] and result["managers"][0]["firmware_version"] and result["firmware"]
        unread = [text for text in result.get("warnings", []) if "HGX" not in text]
        assert unread == [], "all that was asked for is in the recording"
    assert strangers(server) == []


def test_a_mode_of_null_is_named_to_a_dgx_that_wants_all_three(capture, run):
    server = capture("dgx_h200")
    assert run("redfish_boot", server, target="pxe")["strategy"] == "settings"
    assert server.boot["BootSourceOverrideMode"] == "UEFI"


def test_an_override_kept_in_the_future_state_is_no_change_again_before_and_after_the_restart(capture, run):
    server = capture("dgx_h200", power="On")
    assert run("redfish_boot", server, target="pxe", persistence="continuous")["changed"]
    assert not run("redfish_boot", server, target="pxe", persistence="continuous")["changed"]
    run("redfish_power", server, state="restarted")
    assert not run("redfish_boot", server, target="pxe", persistence="continuous")["changed"]


def test_a_persistence_that_the_bmc_does_not_list_is_refused_with_those_it_lists(capture, run):
    server = capture("lenovo_sr680a")
    real = server._patch

    def once_only(path, headers, body):
        from fake_bmc.bmc import problem

        if body["Boot"].get("BootSourceOverrideEnabled") == "Continuous":
            return problem(400, "Base.1.18.PropertyValueNotInList")
        return real(path, headers, body)

    server._patch = once_only
    result = run("redfish_boot", server, target="pxe", persistence="continuous")
    assert result["error_class"] == "unsupported" and "Once, Disabled" in result["msg"], result


def test_links_in_another_case_do_not_lead_into_another_system(capture, run):
    server = capture("hpe_dl380a")
    server.recorded["/redfish/v1/Systems"]["Members"].append({"@odata.id": "/redfish/v1/Systems/2"})
    server.recorded["/redfish/v1/Systems/1"]["EthernetInterfaces"] = {"@odata.id": "/redfish/v1/systems/2/nics"}
    result = run("redfish_info", server, system_id="1")
    assert "another system" in " ".join(result["warnings"]) and strangers(server) == []


@pytest.mark.parametrize("form", ["index.json", "short", "flat", "plain file"])
def test_a_recording_may_come_in_every_usual_form(tmp_path, form):
    import json

    tree, _manners = load(CAPTURES / "lenovo_sr680a.json")
    if form == "plain file":
        (tmp_path / "tree.json").write_text(json.dumps(tree))
        assert load(tmp_path / "tree.json")[0] == tree
        return
    for path, body in tree.items():
        inside = path.strip("/") if form != "short" else path.removeprefix("/redfish/v1").strip("/")
        file = tmp_path / inside / "index.json" if form != "flat" else tmp_path / f"{path.replace('/', '_')}.json"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(body))
    assert load(tmp_path)[0].keys() == tree.keys()


# -- trees with a part broken -----------------------------------------------------------------------------

JUNK = st.sampled_from(
    [None, 0, -1, 1.5, True, "", "x" * 5000, "On", "\ud800", "http://[", [], {}, [None], [[]], {"@odata.id": None}]
    + [{"@odata.id": 7}, {"@odata.id": "relative"}, {"@odata.id": "//evil.example/x"}, [{"@odata.id": "/redfish/v1"}]]
    + [{"a": {"b": []}}, "W/", '"', {"target": []}, {"AllowableValues": {}}]
)
PARTS = ("Systems", "Settings", "SD", "Pending", "ResetActionInfo", "Bios", "bios", "EthernetInterfaces", "v1")


def places(node, path=()):
    """Where something can be broken: the keys of every object and the indices of every list."""
    items = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for key, value in items:
        yield (*path, key)
        yield from places(value, (*path, key))


def spoil(tree, place, how, junk):
    node = tree
    for key in place[:-1]:
        node = node[key]
    if how == "missing":
        del node[place[-1]]
    elif how == "extra" and isinstance(node, dict):
        node[f"{place[-1]}X"] = junk
    else:
        node[place[-1]] = None if how == "null" else junk


def relevant(tree, host):
    return {path: body for path, body in tree.items() if path.startswith(host) or path.rsplit("/", 1)[-1] in PARTS}


WORKS = st.sampled_from(
    [
        ("redfish_power", {"state": "on"}),
        ("redfish_power", {"state": "cycled", "shutdown": "graceful_then_force", "graceful_timeout": 1}),
        ("redfish_power", {"state": "restarted"}),
        ("redfish_boot", {"target": "pxe"}),
        ("redfish_boot", {"target": "http", "http_boot_uri": URI}),
        ("redfish_boot", {"target": "none", "mode": "uefi"}),
        ("redfish_info", {"gather": EVERYTHING, "query": "system.boot.target"}),
    ]
)


@settings(
    max_examples=int(os.environ.get("H200_RACK_FUZZ", "60")),
    deadline=None,
    derandomize="H200_RACK_FUZZ" not in os.environ,
    suppress_health_check=list(HealthCheck),
)
@given(data=st.data())
def test_a_tree_with_parts_missing_null_of_another_type_or_added_is_never_a_traceback(run, data):
    import json

    tree, manners = load(CAPTURES / f"{data.draw(st.sampled_from(OWN))}.json")
    server = CapturedBmc(tree, manners)
    server.machine.power = data.draw(st.sampled_from(["On", "Off"]))
    broken = copy.deepcopy(relevant(tree, server.host_path))
    for _number in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.sampled_from(sorted(places(broken), key=str)))
        how = data.draw(st.sampled_from(["missing", "null", "other", "other", "extra"]))
        if len(place) > 1 or how == "other":  # a whole resource is rather replaced than taken away
            spoil(broken, place, how, copy.deepcopy(data.draw(JUNK)))
    name, options = data.draw(WORKS)
    with Fleet([server]):
        server.recorded = {**tree, **broken}
        result = run(name, server, timeout=1, wait_timeout=1, **options)
    json.dumps(result).encode()
    assert "broke the client" not in result.get("msg", ""), result
    assert not result.get("failed") or result["error_class"] in RETRYABLE
    taken = server.log.resets(taken=True)
    assert len(taken) == len(set(taken)), taken
    # Where the spoiled list leaves one system only, that one is meant.
    assert strangers(server, result.get("system_id")) == [] and server.log.sessions_open() == 0
