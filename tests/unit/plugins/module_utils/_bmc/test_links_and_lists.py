# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Links, lists and states as BMCs spell them."""

from __future__ import annotations

import pytest
from fake_bmc import Fault
from fake_bmc.alter import changed_get

ROOT = "/redfish/v1"
BASE = f"{ROOT}/Systems/1"
TARGET, ENABLED = "BootSourceOverrideTarget", "BootSourceOverrideEnabled"
ALLOWED = f"{TARGET}@Redfish.AllowableValues"
RESETS = "ResetType@Redfish.AllowableValues"


# -- links ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "member",
    [
        f"{BASE}/",
        f"{BASE}#/Boot",
        f"http://10.0.0.9{BASE}",
        f"https://bmc.example:8443{BASE}/",
        f"//other.example{BASE}",
        f" {BASE} ",
        f"{BASE}?$select=Id",
        BASE.replace("Systems", "systems"),
    ],
)
def test_ids_with_slashes_hosts_fragments_and_queries_are_the_same_system(bmc, works, member):
    """And a host in a link is never asked: the BMC is."""
    server = bmc()
    changed_get(server, f"{ROOT}/Systems", lambda body: body.update(Members=[{"@odata.id": member}]))
    real = server._answer
    server._answer = lambda method, path, *rest: real(method, path.replace("/systems/", "/Systems/"), *rest)
    works(server)


def test_the_systems_come_in_pages(bmc, run):
    server = bmc("four_nodes")
    first = {
        "Members": [{"@odata.id": f"{ROOT}/Systems/Node1"}],
        "Members@odata.nextLink": f"{ROOT}/Systems?$skip=1",
    }
    rest = {
        "Members": [{"@odata.id": f"{ROOT}/Systems/Node{n}"} for n in (2, 3)],
        "Members@odata.nextLink": f"http://x{ROOT}/Systems?$skip=3",
    }
    last = {"Members": [{"@odata.id": f"{ROOT}/Systems/Node4"}], "Members@odata.nextLink": f"{ROOT}/Systems?$skip=1"}
    server.tree = {f"{ROOT}/Systems": first, f"{ROOT}/Systems?$skip=1": rest, f"{ROOT}/Systems?$skip=3": last}
    result = run("redfish_power", server, state="on")
    assert result["error_class"] == "invalid" and result["system_ids"] == ["Node1", "Node2", "Node3", "Node4"]
    assert len(server.log.of("GET", "Systems$")) == 3, "a link back to a page that was read is not followed"


def test_nics_and_firmware_come_in_pages(bmc, run):
    server = bmc()
    nics = f"{BASE}/EthernetInterfaces"
    server.tree = {
        nics: {"Members": [{"@odata.id": f"{nics}/1"}], "Members@odata.nextLink": f"{nics}?page=2"},
        f"{nics}?page=2": {"Members": [{"@odata.id": f"{nics}/2"}, {"@odata.id": f"{nics}/1"}]},
        f"{nics}/2": {"Id": "2", "MACAddress": "02:00:00:00:00:02"},
    }
    assert [nic["id"] for nic in run("redfish_info", server)["nics"]] == ["1", "2"]


@pytest.mark.parametrize("links", [{}, {"Oem": {}}, [], None, "x", {"ManagedBy": {"@odata.id": f"{ROOT}/Managers/1"}}])
def test_links_without_chassis_and_managers(bmc, works, run, links):
    server = bmc()
    changed_get(server, BASE, lambda body: body.update(Links=links))
    assert not run("redfish_info", server, gather=["system", "managers"]).get("failed")
    works(server)


# -- what is allowed --------------------------------------------------------------------------------------


@pytest.mark.parametrize("listed", [[], None, "On", {}, [None], ["On", None, 7, "ForceOff"]])
def test_reset_types_of_which_the_list_is_unusable(bmc, works, listed):
    server = bmc()
    changed_get(server, BASE, lambda body: body["Actions"]["#ComputerSystem.Reset"].update({RESETS: listed}))
    works(server)


@pytest.mark.parametrize("listed", [[], None, "Pxe", {}, [None, "Pxe"]])
def test_targets_of_which_the_list_is_unusable(bmc, works, listed):
    server = bmc()
    changed_get(server, BASE, lambda body: body["Boot"].update({ALLOWED: listed}))
    works(server)


@pytest.mark.parametrize(
    "fault",
    [
        {"status": 404},
        {"status": 500},
        {"status": 200, "raw": b"<html>Login</html>"},
        {"status": 200, "raw": b""},
        {"drop": True},
        {"status": 401},
        {
            "status": 200,
            "body": {"Parameters": [{"Name": "ResetType"}, None, {"Name": "ResetType", "AllowableValues": 1}]},
        },
    ],
)
def test_an_action_info_that_cannot_be_had(bmc, works, fault):
    server = bmc(action_info="live")
    server.faults.append(Fault(method="GET", path="ResetActionInfo", times=99, **fault))
    works(server)


def test_pxe_that_is_not_among_the_targets_is_unsupported_and_they_are_listed(bmc, run):
    result = run("redfish_boot", bmc(targets=("None", "Hdd", "UefiTarget")), target="pxe")
    assert result["error_class"] == "unsupported" and result["allowed_targets"] == ["None", "Hdd", "UefiTarget"]


def test_a_reset_action_without_a_target_goes_where_the_schema_has_it(bmc, works):
    server = bmc()
    changed_get(server, BASE, lambda body: body["Actions"]["#ComputerSystem.Reset"].pop("target"))
    works(server)


def test_a_reset_action_of_another_host_is_asked_of_this_bmc(bmc, run):
    server, other = bmc(), bmc()
    target = f"{other.url}{BASE}/Actions/ComputerSystem.Reset"
    changed_get(server, BASE, lambda body: body["Actions"]["#ComputerSystem.Reset"].update(target=target))
    assert run("redfish_power", server, state="on")["power_state"] == "On"
    assert not other.log and server.log.resets() == ["On"]


# -- the power state --------------------------------------------------------------------------------------


@pytest.mark.parametrize("state", [None, "", 0, [], "absent"])
def test_a_power_state_that_is_never_given_is_no_proof(bmc, run, state):
    server = bmc()
    change = (
        (lambda body: body.pop("PowerState")) if state == "absent" else (lambda body: body.update(PowerState=state))
    )
    changed_get(server, BASE, change)
    result = run("redfish_power", server, state="on", wait_timeout=1, timeout=1)
    assert result["failed"] and result["error_class"] in ("timeout", "not_applied") and "unknown" in result["msg"]
    assert server.log.resets() == ["On"] and result["changed"]


@pytest.mark.parametrize("word", ["ON", "on", "On "])
def test_a_power_state_in_another_case_is_that_state(bmc, run, word):
    server = bmc(power="On")
    changed_get(server, BASE, lambda body: body.update(PowerState=word))
    assert not run("redfish_power", server, state="on")["changed"] and server.log.resets() == []


def test_a_power_state_that_is_missing_for_a_while_during_post(bmc, run):
    server = bmc(on_seconds=0.2)
    reads = []
    changed_get(
        server,
        BASE,
        lambda body: reads.append(1) or (body.update(PowerState=None) if len(reads) in (2, 3, 4) else None),
    )
    assert run("redfish_power", server, state="on")["power_state"] == "On" and server.log.resets() == ["On"]
