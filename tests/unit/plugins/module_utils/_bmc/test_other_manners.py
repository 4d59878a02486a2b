# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Manners of BMCs that no personality has: spellings of links, ETags, sessions, redirects, encodings, persistence."""

from __future__ import annotations

import dataclasses
import json
import time
from email.utils import formatdate

import pytest
from fake_bmc import PERSONALITIES, Bmc, Fault, Fleet
from fake_bmc.bmc import Response, problem
from fake_bmc.personalities import Refused, merge
from fake_bmc.server import make_certificates

ROOT = "/redfish/v1"
BASE = f"{ROOT}/Systems/1"
TARGET, ENABLED, MODE = "BootSourceOverrideTarget", "BootSourceOverrideEnabled", "BootSourceOverrideMode"
ALLOWED = f"{TARGET}@Redfish.AllowableValues"
RESETS = "ResetType@Redfish.AllowableValues"


def works(bmc, run, server):
    """Power and boot do what they shall, once, and leave no session."""
    on = run("redfish_power", server, state="on")
    assert not on.get("failed") and on["power_state"] == "On", on
    pxe = run("redfish_boot", server, target="pxe")
    assert not pxe.get("failed") and pxe["boot"]["after"]["target"] == "pxe", pxe
    info = run("redfish_info", server)
    assert not info.get("failed") and info["system"]["boot"]["target"] == "pxe", info
    assert server.log.resets(taken=True) == ["On"] and not server.sessions


def changed_get(server, path, change):
    """Let ``change`` edit the answers to GET of ``path``."""
    real = server._get

    def get(asked):
        response = real(asked)
        if asked == path:
            response.body = json.loads(json.dumps(response.body))
            change(response.body)
        return response

    server._get = get


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
def test_ids_with_slashes_hosts_fragments_and_queries_are_the_same_system(bmc, run, member):
    """And a host in a link is never asked: the BMC is."""
    server = bmc()
    changed_get(server, f"{ROOT}/Systems", lambda body: body.update(Members=[{"@odata.id": member}]))
    real = server._answer
    server._answer = lambda method, path, *rest: real(method, path.replace("/systems/", "/Systems/"), *rest)
    works(bmc, run, server)


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
def test_links_without_chassis_and_managers(bmc, run, links):
    server = bmc()
    changed_get(server, BASE, lambda body: body.update(Links=links))
    assert not run("redfish_info", server, gather=["system", "managers"]).get("failed")
    works(bmc, run, server)


# -- what is allowed --------------------------------------------------------------------------------------


@pytest.mark.parametrize("listed", [[], None, "On", {}, [None], ["On", None, 7, "ForceOff"]])
def test_reset_types_of_which_the_list_is_unusable(bmc, run, listed):
    server = bmc()
    changed_get(server, BASE, lambda body: body["Actions"]["#ComputerSystem.Reset"].update({RESETS: listed}))
    works(bmc, run, server)


@pytest.mark.parametrize("listed", [[], None, "Pxe", {}, [None, "Pxe"]])
def test_targets_of_which_the_list_is_unusable(bmc, run, listed):
    server = bmc()
    changed_get(server, BASE, lambda body: body["Boot"].update({ALLOWED: listed}))
    works(bmc, run, server)


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
def test_an_action_info_that_cannot_be_had(bmc, run, fault):
    server = bmc(action_info="live")
    server.faults.append(Fault(method="GET", path="ResetActionInfo", times=99, **fault))
    works(bmc, run, server)


def test_pxe_that_is_not_among_the_targets_is_unsupported_and_they_are_listed(bmc, run):
    result = run("redfish_boot", bmc(targets=("None", "Hdd", "UefiTarget")), target="pxe")
    assert result["error_class"] == "unsupported" and result["allowed_targets"] == ["None", "Hdd", "UefiTarget"]


def test_a_reset_action_without_a_target_goes_where_the_schema_has_it(bmc, run):
    server = bmc()
    changed_get(server, BASE, lambda body: body["Actions"]["#ComputerSystem.Reset"].pop("target"))
    works(bmc, run, server)


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


# -- answers to writes ------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [200, 201, 202, 204])
@pytest.mark.parametrize("raw", [b"", b"OK", b"{}", b"[]", b"null"])
def test_every_2xx_with_or_without_a_body_is_acceptance(bmc, run, status, raw):
    server = bmc()
    server.faults += [
        Fault(method="POST", path="Reset$", process=True, status=status, raw=raw),
        Fault(method="PATCH", process=True, status=status, raw=raw),
    ]
    works(bmc, run, server)


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_write_is_never_sent_to_another_host(bmc, run, status):
    server, other = bmc(), bmc()
    server.faults.append(
        Fault(method="POST", path="Reset$", status=status, headers={"Location": f"{other.url}{BASE}/x"}, times=9)
    )
    result = run("redfish_power", server, state="on", wait_timeout=1, timeout=1)
    assert result["failed"] and not other.log and server.log.sessions_open() == 0


# -- redirects --------------------------------------------------------------------------------------------


def test_http_that_is_redirected_to_https_says_which_url_to_give(bmc, run):
    server = bmc()
    host = server.host.rsplit(":", 1)[0]
    server.faults.append(Fault(status=301, headers={"Location": f"https://{host}/redfish/v1/"}, times=99))
    result = run("redfish_power", server, state="on")
    assert result["error_class"] == "invalid" and f"https://{host}" in result["msg"] and result["http_status"] == 301


@pytest.mark.parametrize(
    "location", ["http://[", "http://h:port/", "javascript:alert(1)", "", "ftp://h/", "//[::1", "http://127.0.0.1:1/x"]
)
def test_a_redirect_to_nonsense_is_a_clear_result(bmc, run, location):
    server = bmc()
    server.faults.append(Fault(method="GET", path="Systems$", status=302, headers={"Location": location}, times=99))
    result = run("redfish_power", server, state="on")
    assert result["failed"] and result["error_class"] in ("bmc_bug", "invalid"), result
    assert "redirect" in result["msg"]


def test_a_redirect_that_names_the_default_port_or_another_case_is_the_same_host(bmc, run, monkeypatch):
    from ansible_collections.h200.rack.plugins.module_utils._bmc.address import parse_redfish
    from ansible_collections.h200.rack.plugins.module_utils._bmc.answer import Answer
    from ansible_collections.h200.rack.plugins.module_utils._bmc.http import Http
    from ansible_collections.h200.rack.plugins.module_utils._common.deadline import Deadline

    http = Http(parse_redfish("BMC01"), True, 5, Deadline(5))
    for location in ("https://bmc01:443/redfish/v1/Systems?a=1", "https://BMC01/redfish/v1/Systems?a=1"):
        answer = Answer("GET", "/redfish/v1/x", 302, {"Location": location}, b"")
        assert http._target(answer) == "/redfish/v1/Systems?a=1"


# -- sessions ---------------------------------------------------------------------------------------------


def login_answers(server, change):
    real = server._login

    def login(body):
        response = real(body)
        if response.status == 201:
            change(response)
        return response

    server._login = login


@pytest.mark.parametrize(
    "location",
    [
        "{path}",
        "{path}/",
        "http://10.0.0.9{path}",
        "https://bmc.example:444{path}",
        "body only",
        "id only",
        "lower case",
    ],
)
def test_the_session_is_closed_wherever_its_address_stands(bmc, run, location):
    server = bmc(session_cap=1)

    def change(response):
        path = response.headers.pop("Location")
        if location == "id only":
            response.body = {"Id": response.body["Id"]}
        elif location == "lower case":
            response.headers = {"x-auth-token": response.headers["X-Auth-Token"], "location": path}
        elif location != "body only":
            response.headers["Location"] = location.format(path=path)

    login_answers(server, change)
    works(bmc, run, server)


@pytest.mark.parametrize("body", [None, {}, [], "x", {"@odata.id": None}])
def test_a_session_without_any_address_is_said(bmc, run, body):
    server = bmc()

    def change(response):
        response.headers.pop("Location")
        response.body = body

    login_answers(server, change)
    result = run("redfish_power", server, state="on")
    assert result["power_state"] == "On" and "could not be closed" in " ".join(result["warnings"])


@pytest.mark.parametrize("body", ["collection", "task"])
def test_a_location_that_is_no_session_is_not_deleted(bmc, run, body):
    server = bmc()
    where = {"collection": f"{ROOT}/SessionService/Sessions", "task": f"{ROOT}/TaskService/Tasks/1"}[body]

    def change(response):
        response.headers["Location"], response.body = where, {}

    login_answers(server, change)
    run("redfish_power", server, state="on")
    assert server.log.of("DELETE", "") == []


@pytest.mark.parametrize("status", [401, 403])
@pytest.mark.parametrize("method", ["GET", "POST", "PATCH"])
def test_a_token_that_expires_in_the_middle_is_renewed_whatever_was_asked(bmc, run, method, status):
    server = bmc()
    real = server._answer
    seen = []

    def answer(asked, path, headers, body):
        if asked == method and path.startswith(BASE) and not seen:
            seen.append(path)
            server.expire_sessions()
            return problem(status, "Base.1.18.NoValidSession", "The session has expired.")
        return real(asked, path, headers, body)

    server._answer = answer
    works(bmc, run, server)
    assert seen and len(server.log.of("POST", "Sessions$")) == 4


def test_a_token_that_is_never_taken_is_auth_and_ends(bmc, run):
    server = bmc()
    server.faults.append(Fault(method="GET", path="Systems", status=401, times=99))
    result = run("redfish_power", server, state="on")
    assert result["error_class"] == "auth" and len(server.log.of("POST", "Sessions$")) == 2


# -- ETags ------------------------------------------------------------------------------------------------


def test_an_etag_that_changes_on_every_read(bmc, run):
    server = bmc(etag="strong", if_match="exact", no_etag_status=412)
    real = server._get

    def get(path):
        if path == BASE:
            server._version += 1
        return real(path)

    server._get = get
    works(bmc, run, server)


@pytest.mark.parametrize("etag", ["none", "weak", "strong", "body"])
@pytest.mark.parametrize("wanted", ["ignored", "exact", "stripped", "body", "star"])
@pytest.mark.parametrize("status", [412, 428])
def test_every_etag_shown_and_every_form_wanted(bmc, run, etag, wanted, status):
    server = bmc(etag=etag, if_match=wanted, no_etag_status=status)
    result = run("redfish_boot", server, target="pxe")
    if etag == "none" and wanted in ("exact", "stripped", "body"):
        assert result["error_class"] == "precondition" and result["retryable"], "nothing could be known"
    else:
        assert not result.get("failed"), result


def test_an_etag_of_another_type_in_the_body(bmc, run):
    server = bmc()
    changed_get(server, BASE, lambda body: body.update({"@odata.etag": {"x": 1}}))
    works(bmc, run, server)


# -- encodings --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "latin-1"])
def test_json_with_a_mark_or_in_latin_1(bmc, run, encoding):
    server = bmc()
    real = server._get

    def get(path):
        response = real(path)
        if isinstance(response.body, dict):
            body = {**response.body, "AssetTag": "Käfig"}
            response.raw = json.dumps(body, ensure_ascii=False).encode(encoding)
        return response

    server._get = get
    works(bmc, run, server)
    assert run("redfish_info", server)["system"]["asset_tag"] == "Käfig"


@pytest.mark.parametrize(
    "raw",
    [b'{"a":' * 100000, b"[" * 100000, b'{"PowerState": NaN}', b'{"PowerState": 1e999}', b'{"Boot": {"\xed": 1}}'],
)
def test_json_that_breaks_parsers(bmc, run, raw):
    server = bmc()
    server.faults.append(Fault(method="GET", path="Systems/1$", status=200, raw=raw, times=99))
    result = run("redfish_power", server, state="on", wait_timeout=1, timeout=1)
    assert result["failed"] and "broke the client" not in result["msg"], result
    json.dumps(result, allow_nan=False)


def test_a_huge_resource_is_read(bmc, run):
    server = bmc()
    changed_get(server, BASE, lambda body: body.update(Description="x" * 4_000_000))
    works(bmc, run, server)


@pytest.mark.parametrize("password", ["пароль", "密码-密码", "pass:wo rd", 'q"uo\\te', "ünïcode"])
def test_passwords_in_every_script_also_without_sessions(bmc, run, password):
    for personality in ("plain", "no_sessions"):
        server = bmc(personality)
        server.password = password
        result = run("redfish_power", server, state="on", bmc_password=password)
        assert result.get("power_state") == "On", result


# -- addresses --------------------------------------------------------------------------------------------


def test_ipv6_with_tls_and_a_port(run, tmp_path):
    certs = make_certificates(tmp_path)
    with Fleet([Bmc(PERSONALITIES["plain"])], tls=certs, host="::1") as fleet:
        assert fleet.bmcs[0].host.startswith("[::1]:")
        result = run("redfish_power", fleet.bmcs[0].host, state="on", ca_path=str(tmp_path / "ca.pem"))
        assert result["power_state"] == "On", result


# -- busy -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("retry_after", ["1", "0", "soon", "-1", "99999999999999999999", "date"])
def test_a_503_with_retry_after_is_waited_for(bmc, run, retry_after):
    value = formatdate(time.time() + 1, usegmt=True) if retry_after == "date" else retry_after
    server = bmc()
    server.faults.append(Fault(method="GET", path="Systems", status=503, headers={"Retry-After": value}))
    begin = time.monotonic()
    result = run("redfish_power", server, state="on", wait_timeout=40)
    if len(retry_after) < 10:
        assert result["power_state"] == "On", result
    assert time.monotonic() - begin < 45


# -- the override -----------------------------------------------------------------------------------------


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


def test_a_bmc_that_restarts_in_the_middle(bmc, run):
    """Connections break, then 503, then every session is gone."""
    server = bmc(on_seconds=0.3)
    real = server._reset

    def reset(path, body):
        server.expire_sessions()
        server.faults += [
            Fault(method="GET", path=BASE, drop=True, times=5),
            Fault(method="GET", path=BASE, status=503, raw=b"<html>starting</html>", times=5),
        ]
        return real(path, body)

    server._reset = reset
    result = run("redfish_power", server, state="on")
    assert result["power_state"] == "On" and server.log.resets() == ["On"], result


def test_keep_alive_connections_that_the_bmc_closes_after_each_answer(bmc, run):
    server = bmc()
    real = server.handle

    def handle(*args):
        response = real(*args)
        return dataclasses.replace(response, wire=response.wire or (lambda head, body: iter([(head + body, 0)])))

    server.handle = handle  # answers with "keep-alive" and closes
    works(bmc, run, server)


def test_answers_without_a_content_length_end_with_the_connection(bmc, run):
    server = bmc()
    real = server.handle

    def bare(head, body):
        lines = [
            line for line in head.split(b"\r\n") if not line.lower().startswith((b"content-length", b"connection"))
        ]
        yield b"\r\n".join(lines).rstrip(b"\r\n") + b"\r\n\r\n" + body, 0

    def handle(*args):
        response = real(*args)
        return dataclasses.replace(response, wire=bare) if response.status not in (201, 204) else response

    server.handle = handle
    assert isinstance(real("GET", f"{ROOT}/", {}, b""), Response)
    works(bmc, run, server)
