# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Wrong input and wrong surroundings: one clear result each, with its error_class, and no secret in it."""

from __future__ import annotations

import json
import socket

import pytest
from fake_bmc import Fault
from fake_bmc.server import make_certificates

SECRET = "s3cret-Pass"


def closed_port():
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return sock.getsockname()[1]


def check(result, error_class, *words):
    assert result["failed"] and result["error_class"] == error_class, result
    for key in ("retryable", "http_status", "message_ids", "msg"):
        assert key in result
    for word in words:
        assert word in result["msg"], result["msg"]
    assert SECRET not in json.dumps(result)
    assert "None:" not in result["msg"]


def test_unknown_host(run):
    check(run("redfish_power", "no-such-host.invalid", state="on"), "unreachable", "does not resolve")


def test_closed_port(run):
    check(run("redfish_power", f"127.0.0.1:{closed_port()}", state="on"), "unreachable", "refused")


def test_plain_http_where_https_was_meant(bmc, run):
    check(run("redfish_power", bmc().host, state="on"), "tls", "plain HTTP")


def test_https_where_http_was_given(bmc, run, tmp_path):
    server = bmc(tls=make_certificates(tmp_path))
    result = run("redfish_power", f"http://{server.host}", state="on")
    assert result["failed"] and result["error_class"] in ("timeout", "bmc_bug", "unreachable"), result


def test_foreign_certificate(bmc, run, tmp_path):
    server = bmc(tls=make_certificates(tmp_path))
    check(run("redfish_power", server, state="on"), "tls", "ca_path")


def test_right_ca(bmc, run, tmp_path):
    server = bmc(tls=make_certificates(tmp_path))
    assert run("redfish_power", server, state="on", ca_path=str(tmp_path / "ca.pem"))["power_state"] == "On"


def test_unchecked_certificate(bmc, run, tmp_path):
    server = bmc(tls=make_certificates(tmp_path))
    assert run("redfish_power", server, state="on", validate_certs=False)["power_state"] == "On"


def test_certificate_for_another_name(bmc, run, tmp_path):
    server = bmc(tls=make_certificates(tmp_path))
    other = f"127.0.0.2:{server.host.rsplit(':', 1)[1]}"
    server_any = run("redfish_power", other, state="on", ca_path=str(tmp_path / "ca.pem"))
    assert server_any["error_class"] in ("tls", "unreachable")


def test_missing_ca_file(bmc, run, tmp_path):
    check(run("redfish_power", bmc(), state="on", ca_path=str(tmp_path / "absent.pem")), "invalid", "ca_path")


def test_wrong_password(bmc, run):
    server = bmc()
    result = run("redfish_power", server, state="on", bmc_password="wrong-Secret")
    check(result, "auth", "bmc_password")
    assert "wrong-Secret" not in json.dumps(result)
    assert len(server.log.of("POST", "Sessions")) == 1, "one try only: accounts are locked after a few"


def test_wrong_password_with_basic_authentication(bmc, run):
    check(run("redfish_power", bmc("no_sessions"), state="on", bmc_password="x-wrong"), "auth")


@pytest.mark.parametrize("name", ["bmc_password", "bmc_username"])
def test_empty_credentials(bmc, run, name):
    server = bmc()
    check(run("redfish_power", server, state="on", **{name: ""}), "invalid", name)
    assert not server.log


@pytest.mark.parametrize("raw", [b"<html>Login</html>", b"[]", b'"x"', b"null", b"\x00\xff", b""])
def test_a_host_that_is_no_bmc(bmc, run, raw):
    server = bmc()
    server.faults.append(Fault(raw=raw, times=99, status=200))
    check(run("redfish_power", server, state="on"), "bmc_bug", "Redfish")


@pytest.mark.parametrize("status", [404, 400, 500, 503])
def test_a_web_server_without_redfish(bmc, run, status):
    server = bmc()
    server.faults.append(Fault(raw=b"<html>", times=99, status=status))
    result = run("redfish_power", server, state="on")
    assert result["failed"] and result["http_status"] == status


def test_a_system_id_that_does_not_exist_lists_those_that_do(bmc, run):
    result = run("redfish_power", bmc("dgx_h200"), state="on", system_id="System.Embedded.1")
    check(result, "invalid", "DGX, HGX_Baseboard_0")
    assert result["system_ids"] == ["DGX", "HGX_Baseboard_0"]


def test_several_hosts_are_never_guessed_at(bmc, run):
    server = bmc("four_nodes")
    for name, options in (("redfish_power", {"state": "on"}), ("redfish_boot", {"target": "pxe"})):
        check(run(name, server, **options), "invalid", "Node1, Node2, Node3, Node4")
    assert [entry.path for entry in server.log if "/Systems/" in entry.path] == []
    info = run("redfish_info", server)
    assert info["system"] is None and len(info["system_ids"]) == 4


def test_the_system_may_be_given_as_id_or_uri(bmc, run):
    for wanted in ("Node1", "/redfish/v1/Systems/Node1", "/redfish/v1/Systems/Node1/"):
        assert run("redfish_power", bmc("four_nodes"), state="on", system_id=wanted)["system_id"] == "Node1"


@pytest.mark.parametrize(
    "uri",
    [
        "ftp://x/y",
        "x",
        "http://",
        "http://h/a?b=c",
        "http://h/a&b",
        "http://h/a b",
        "http://u:p@h/a",
        "http://h/\u00e4",
    ],
)
def test_uris_that_bmcs_refuse(bmc, run, uri):
    server = bmc("dgx_h200")
    check(run("redfish_boot", server, target="http", http_boot_uri=uri), "invalid", "http_boot_uri")
    assert not server.log


def test_a_uri_for_another_target(bmc, run):
    check(run("redfish_boot", bmc(), target="pxe", http_boot_uri="http://h/a"), "invalid", "target=http")


@pytest.mark.parametrize(
    "host", ["", "a b", "h:0", "h:99999", "h:x", "ftp://h", "https://h/x/y", "[zz]", "1:2:3", "https://u:pw@h", "h:"]
)
def test_addresses_that_are_none(run, host):
    result = run("redfish_power", host, state="on")
    check(result, "invalid", "bmc_host")
    assert "pw" not in json.dumps(result)


@pytest.mark.parametrize("secret", ["p/ss w&rd", 'quo"te', "ünïcode"])
def test_secrets_are_scrubbed_in_every_spelling(bmc, run, secret):
    server = bmc()
    server.password = secret
    from urllib.parse import quote

    body = {"error": {"message": f"{secret} {quote(secret)} {json.dumps(secret)}"}}
    server.faults.append(Fault(method="GET", path="Systems$", status=400, body=body, times=9))
    result = run("redfish_power", server, state="on", bmc_password=secret)
    assert result["failed"]
    text = json.dumps(result, ensure_ascii=False)
    assert secret not in text and quote(secret) not in text


def test_a_password_of_one_letter_does_not_spoil_the_class_of_a_failure(bmc, run):
    assert run("redfish_power", bmc(), state="on", bmc_password="t")["error_class"] == "auth"


def test_a_redirect_elsewhere_gets_no_credentials(bmc, run):
    server, other = bmc(), bmc()
    fault = Fault(method="GET", path="Systems$", status=302, headers={"Location": f"{other.url}/redfish/v1/Systems"})
    server.faults.append(fault)
    result = run("redfish_power", server, state="on")
    assert result["failed"] and not other.log


def test_a_redirect_within_the_bmc_is_followed(bmc, run):
    server = bmc()
    server.faults.append(
        Fault(method="GET", path="^/redfish/v1/$", status=301, headers={"Location": "/redfish/v1"}, times=1)
    )
    assert run("redfish_power", server, state="on")["power_state"] == "On"


def test_a_service_root_behind_a_password(bmc, run):
    """Against the specification, but seen."""
    server = bmc()
    server.faults.append(Fault(method="GET", path="^/redfish/v1/$", status=401))
    result = run("redfish_power", server, state="on")
    assert result["power_state"] == "On" and result["auth"] == "basic"


@pytest.mark.parametrize("name", ["timeout", "graceful_timeout"])
def test_times_that_leave_no_time(bmc, run, name):
    check(run("redfish_power", bmc(), state="off", **{name: 0}), "invalid", name)


def test_a_query_that_is_none_is_told_before_the_bmc_is_asked(bmc, run):
    server = bmc()
    check(run("redfish_info", server, query="nics["), "invalid", "JMESPath")
    assert not server.log


def test_it_ends_when_a_bmc_never_answers(run):
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        sock.listen(5)
        result = run(
            "redfish_power", f"http://127.0.0.1:{sock.getsockname()[1]}", state="on", timeout=1, wait_timeout=1
        )
    check(result, "timeout")
