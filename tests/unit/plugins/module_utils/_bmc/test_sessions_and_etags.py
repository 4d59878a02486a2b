# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Sessions and ETags as BMCs hand them out."""

from __future__ import annotations

import pytest
from fake_bmc import Fault
from fake_bmc.alter import changed_get, login_answers
from fake_bmc.bmc import problem

ROOT = "/redfish/v1"
BASE = f"{ROOT}/Systems/1"


# -- sessions ---------------------------------------------------------------------------------------------


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
def test_the_session_is_closed_wherever_its_address_stands(bmc, works, location):
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
    works(server)


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
def test_a_token_that_expires_in_the_middle_is_renewed_whatever_was_asked(bmc, works, method, status):
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
    works(server)
    assert seen and len(server.log.of("POST", "Sessions$")) == 4


def test_a_token_that_is_never_taken_is_auth_and_ends(bmc, run):
    server = bmc()
    server.faults.append(Fault(method="GET", path="Systems", status=401, times=99))
    result = run("redfish_power", server, state="on")
    assert result["error_class"] == "auth" and len(server.log.of("POST", "Sessions$")) == 2


# -- ETags ------------------------------------------------------------------------------------------------


def test_an_etag_that_changes_on_every_read(bmc, works):
    server = bmc(etag="strong", if_match="exact", no_etag_status=412)
    real = server._get

    def get(path):
        if path == BASE:
            server._version += 1
        return real(path)

    server._get = get
    works(server)


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


def test_an_etag_of_another_type_in_the_body(bmc, works):
    server = bmc()
    changed_get(server, BASE, lambda body: body.update({"@odata.etag": {"x": 1}}))
    works(server)
