# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Answers, redirects, encodings and connections as BMCs treat them."""

from __future__ import annotations

import dataclasses
import json
import time
from email.utils import formatdate

import pytest
from fake_bmc import PERSONALITIES, Bmc, Fault, Fleet
from fake_bmc.alter import changed_get
from fake_bmc.bmc import Response
from fake_bmc.server import make_certificates

ROOT = "/redfish/v1"
BASE = f"{ROOT}/Systems/1"


# -- answers to writes ------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [200, 201, 202, 204])
@pytest.mark.parametrize("raw", [b"", b"OK", b"{}", b"[]", b"null"])
def test_every_2xx_with_or_without_a_body_is_acceptance(bmc, works, status, raw):
    server = bmc()
    server.faults += [
        Fault(method="POST", path="Reset$", process=True, status=status, raw=raw),
        Fault(method="PATCH", process=True, status=status, raw=raw),
    ]
    works(server)


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


def test_a_redirect_that_names_the_default_port_or_another_case_is_the_same_host():
    from ansible_collections.h200.rack.plugins.module_utils._bmc.address import parse_redfish
    from ansible_collections.h200.rack.plugins.module_utils._bmc.answer import Answer
    from ansible_collections.h200.rack.plugins.module_utils._bmc.http import Http
    from ansible_collections.h200.rack.plugins.module_utils._common.deadline import Deadline

    http = Http(parse_redfish("BMC01"), True, 5, Deadline(5))
    for location in ("https://bmc01:443/redfish/v1/Systems?a=1", "https://BMC01/redfish/v1/Systems?a=1"):
        answer = Answer("GET", "/redfish/v1/x", 302, {"Location": location}, b"")
        assert http._target(answer) == "/redfish/v1/Systems?a=1"


# -- encodings --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "latin-1"])
def test_json_with_a_mark_or_in_latin_1(bmc, works, run, encoding):
    server = bmc()
    real = server._get

    def get(path):
        response = real(path)
        if isinstance(response.body, dict):
            body = {**response.body, "AssetTag": "Käfig"}
            response.raw = json.dumps(body, ensure_ascii=False).encode(encoding)
        return response

    server._get = get
    works(server)
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


def test_a_huge_resource_is_read(bmc, works):
    server = bmc()
    changed_get(server, BASE, lambda body: body.update(Description="x" * 4_000_000))
    works(server)


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


# -- connections ------------------------------------------------------------------------------------------


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


def test_keep_alive_connections_that_the_bmc_closes_after_each_answer(bmc, works):
    server = bmc()
    real = server.handle

    def handle(*args):
        response = real(*args)
        return dataclasses.replace(response, wire=response.wire or (lambda head, body: iter([(head + body, 0)])))

    server.handle = handle  # answers with "keep-alive" and closes
    works(server)


def test_answers_without_a_content_length_end_with_the_connection(bmc, works):
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
    works(server)
