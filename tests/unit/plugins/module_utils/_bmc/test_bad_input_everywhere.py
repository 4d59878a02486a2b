# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One table: what can be wrong, over all five modules. Each is one result with its class, in time, without a secret."""

from __future__ import annotations

import base64
import datetime
import json
import socket
import subprocess
import time

import pytest
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator
from ansible_collections.h200.rack.plugins.module_utils._bmc import specs
from fake_bmc import Fault
from fake_bmc.ipmi import IpmiBmc
from fake_bmc.server import make_certificates

SECRET = "s3cret-Pass"
WRONG = "wr0ng-Secret"
KG = "kg-Secret-kg"
REDFISH = {
    "redfish_power": {"state": "on"},
    "redfish_boot": {"target": "pxe"},
    "redfish_info": {},
}
IPMI = {"ipmi_power": {"state": "on"}, "ipmi_bootdev": {"target": "pxe"}}
ALL = {**REDFISH, **IPMI}
SECONDS = {"timeout": 2, "wait_timeout": 2}
LATEST = 2 + 2 + 2 + 4  # both, once more to close the session, and what a busy machine takes


@pytest.fixture
def tell(run):
    """Run a module and check what every result of bad input has in common."""

    def go(name, server, error_class, *words, **options):
        begin = time.monotonic()
        given = {key: value for key, value in {**ALL[name], **SECONDS, **options}.items() if value is not None}
        result = run(name, server, **given)
        assert time.monotonic() - begin < LATEST
        assert result["failed"] and not result["changed"], result
        classes = (error_class,) if isinstance(error_class, str) else error_class
        assert result["error_class"] in classes, result
        assert isinstance(result["retryable"], bool) and "http_status" in result and "message_ids" in result
        for word in words:
            assert word in result["msg"], result["msg"]
        text = json.dumps(result, ensure_ascii=False)
        login = f"admin:{options.get('bmc_password', SECRET)}".encode()
        for secret in (SECRET, WRONG, KG, base64.b64encode(login).decode()):
            assert secret not in text, text
        assert result["msg"].count("None") == 0 and "Traceback" not in text
        return result

    return go


@pytest.fixture
def ipmi_bmc(request):
    server = IpmiBmc(username="admin", password=SECRET)
    server.__enter__()
    request.addfinalizer(server.__exit__)
    return server


def a_server(name, bmc, ipmi_bmc):
    return bmc() if name in REDFISH else ipmi_bmc


def closed_port(kind):
    with socket.socket(socket.AF_INET, kind) as sock:
        sock.bind(("127.0.0.1", 0))
        return sock.getsockname()[1]


@pytest.mark.parametrize("name", ALL)
def test_unknown_host(tell, name):
    tell(name, "no-such-host.invalid", "unreachable", "does not resolve")


@pytest.mark.parametrize("name", ALL)
def test_closed_port(tell, name):
    kind = socket.SOCK_STREAM if name in REDFISH else socket.SOCK_DGRAM
    tell(name, f"127.0.0.1:{closed_port(kind)}", ("unreachable", "timeout"), "127.0.0.1")


@pytest.mark.parametrize("name", REDFISH)
def test_plain_http_where_https_was_meant(bmc, tell, name):
    tell(name, bmc().host, "tls", "plain HTTP")


@pytest.mark.parametrize("name", REDFISH)
def test_https_where_http_was_meant(bmc, tell, tmp_path, name):
    server = bmc(tls=make_certificates(tmp_path))
    tell(name, f"http://{server.host}", ("timeout", "bmc_bug"), "https")


@pytest.mark.parametrize("name", REDFISH)
def test_foreign_certificate(bmc, tell, tmp_path, name):
    tell(name, bmc(tls=make_certificates(tmp_path)), "tls", "ca_path")


@pytest.mark.parametrize("name", REDFISH)
def test_expired_certificate(bmc, tell, tmp_path, name):
    make_certificates(tmp_path)
    begin = datetime.datetime.now(datetime.timezone.utc) - datetime.timedelta(days=20)
    times = [f"{begin + datetime.timedelta(days=days):%Y%m%d%H%M%SZ}" for days in (0, 10)]
    conf = tmp_path / "ca.cnf"
    conf.write_text(
        "[ca]\ndefault_ca=d\n[d]\ndatabase=index\nserial=serial\nnew_certs_dir=.\ndefault_md=sha256\npolicy=p\n"
        "copy_extensions=copyall\n[p]\ncommonName=supplied\n"
    )
    (tmp_path / "index").write_text("")
    (tmp_path / "serial").write_text("77\n")
    command = ["openssl", "ca", "-batch", "-config", "ca.cnf", "-cert", "ca.pem", "-keyfile", "ca.key", "-notext"]
    command += ["-extfile", "extensions.cnf", "-in", "bmc.csr", "-out", "bmc.pem"]
    subprocess.run(
        [*command, "-startdate", times[0], "-enddate", times[1]], cwd=tmp_path, check=True, capture_output=True
    )
    tell(name, bmc(tls=tmp_path), "tls", "expired", ca_path=str(tmp_path / "ca.pem"))


@pytest.mark.parametrize("name", REDFISH)
def test_a_certificate_for_another_name(bmc, tell, tmp_path, name):
    make_certificates(tmp_path)
    server = bmc(tls=tmp_path)
    port = server.host.rsplit(":", 1)[1]
    local = socket.gethostbyname_ex("localhost")[2]
    assert local == ["127.0.0.1"]
    # The certificate is for localhost and 127.0.0.1; the same server by its other name is another one.
    tell(name, f"127.0.0.1.:{port}", ("tls", "unreachable"), ca_path=str(tmp_path / "ca.pem"))


@pytest.mark.parametrize("name", ALL)
def test_wrong_password(bmc, ipmi_bmc, tell, name):
    server = a_server(name, bmc, ipmi_bmc)
    tell(name, server, "auth", "bmc_password", bmc_password=WRONG)
    if name in REDFISH:
        assert len(server.log.of("POST", "Sessions")) == 1, "accounts are locked after a few tries"


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("option", ["bmc_password", "bmc_username"])
def test_empty_credentials(bmc, ipmi_bmc, tell, name, option):
    server = a_server(name, bmc, ipmi_bmc)
    tell(name, server, "invalid", option, "empty", **{option: ""})
    assert not server.log


@pytest.mark.parametrize("name", REDFISH)
@pytest.mark.parametrize("where", [{}, {"path": "Systems"}])
def test_a_bmc_that_answers_html(bmc, tell, name, where):
    server = bmc()
    server.faults.append(Fault(method="GET", raw=b"<html><title>Login</title></html>", status=200, times=99, **where))
    tell(name, server, "bmc_bug", "Redfish")
    assert server.log.sessions_open() == 0


@pytest.mark.parametrize("name", REDFISH)
def test_a_system_id_that_does_not_exist_lists_those_that_do(bmc, tell, name):
    result = tell(name, bmc("dgx_h200"), "invalid", "DGX, HGX_Baseboard_0", system_id="System.Embedded.1")
    assert result["system_ids"] == ["DGX", "HGX_Baseboard_0"]


@pytest.mark.parametrize("options", [{"reset_type": "Nmi", "state": None}, {"state": "off", "shutdown": "graceful"}])
def test_a_reset_type_that_is_not_allowed_lists_the_allowed_ones(bmc, tell, options):
    server = bmc(reset_types=("On", "ForceOff"), power="On")
    result = tell("redfish_power", server, "unsupported", "ForceOff, On", **options)
    assert result["allowed_reset_types"] == ["ForceOff", "On"] and server.log.resets() == []


@pytest.mark.parametrize("name", ["redfish_power", "ipmi_power"])
@pytest.mark.parametrize(
    "given", [{"reset_type": "Explode"}, {"state": "broken"}, {}, {"state": "on", "reset_type": "On"}]
)
def test_words_that_no_bmc_knows_are_refused_before_anything_is_sent(name, given):
    spec = {"redfish_power": specs.REDFISH_POWER, "ipmi_power": specs.IPMI_POWER}[name]
    access = {"bmc_host": "x", "bmc_username": "admin", "bmc_password": SECRET}
    errors = ArgumentSpecValidator(**spec).validate({**access, **given}).error_messages
    assert errors and SECRET not in " ".join(errors)


@pytest.mark.parametrize("uri", ["ftp://x/y", "x", "", "http://", "http://h/a?b=c", "http://h/a&b", "http://h/a b"])
def test_a_uri_that_is_none_or_that_bmcs_refuse(bmc, tell, uri):
    server = bmc("dgx_h200")
    tell("redfish_boot", server, "invalid", "http_boot_uri", target="http", http_boot_uri=uri)
    assert not server.log


def test_a_password_in_a_uri_is_not_repeated(bmc, tell):
    uri = f"http://user:{WRONG}@h/a"
    tell("redfish_boot", bmc("dgx_h200"), "invalid", "http_boot_uri", target="http", http_boot_uri=uri)


@pytest.mark.parametrize("name", IPMI)
@pytest.mark.parametrize("kg", ["0x", "0x123", f"{KG}-that-is-too-long", "0x" + "ab" * 21, "0xzz"])
def test_a_kg_of_the_wrong_length(ipmi_bmc, tell, name, kg):
    result = tell(name, ipmi_bmc, "invalid", "kg", kg=kg)
    assert not ipmi_bmc.log and (len(kg) < 3 or kg not in json.dumps(result))


@pytest.mark.parametrize("name", IPMI)
def test_a_kg_that_is_another(ipmi_bmc, tell, name):
    ipmi_bmc.manners.kg = b"the right one"
    tell(name, ipmi_bmc, "auth", "kg", kg=KG)


@pytest.mark.parametrize("name", IPMI)
@pytest.mark.parametrize(("option", "value"), [("bmc_password", WRONG * 2), ("bmc_username", "x" * 17)])
def test_credentials_that_ipmi_cannot_carry(ipmi_bmc, tell, name, option, value):
    tell(name, ipmi_bmc, "invalid", option, **{option: value})


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("host", ["", "a b", "h:0", "h:x", "ftp://h", f"https://u:{WRONG}@h", "[zz]", "h:"])
def test_an_address_that_is_none(tell, name, host):
    tell(name, host, "invalid", "bmc_host")


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("option", ["timeout", "wait_timeout"])
def test_times_that_are_none(tell, name, option):
    tell(name, "bmc01", "invalid", option, **{option: -1})


@pytest.mark.parametrize("name", REDFISH)
def test_a_ca_file_that_is_missing_or_none(bmc, tell, tmp_path, name):
    (tmp_path / "none.pem").write_text("no certificate")
    server = bmc(tls=make_certificates(tmp_path))
    tell(name, server, "invalid", "ca_path", ca_path=str(tmp_path / "absent.pem"))
    tell(name, server, "invalid", "ca_path", ca_path=str(tmp_path / "none.pem"))
