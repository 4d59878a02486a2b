# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
import socket
import subprocess
import sys

import pytest
from ansible_collections.h200.rack.plugins.module_utils._bmc import ipmi
from fake_bmc.aes import Aes
from fake_bmc.ipmi import IpmiBmc
from fake_bmc.machine import Machine

STATUS, CONTROL, SET_BOOT, GET_BOOT = (0, 1), (0, 2), (0, 8), (0, 9)
NONE = {"target": "none", "persistence": None, "mode": None}


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(ipmi, "RESEND_SECONDS", 0.2)


@pytest.fixture
def sim(request):
    def make(username="admin", password="s3cret-Pass", power="Off", on_seconds=0.05, **manners):
        names = [name for name in manners if name in Machine.__dataclass_fields__]
        machine = Machine(power=power, on_seconds=on_seconds, **{name: manners.pop(name) for name in names})
        server = IpmiBmc(machine, username, password, **manners)
        server.__enter__()
        request.addfinalizer(server.__exit__)
        return server

    return make


def test_the_fake_encrypts_like_the_standard():
    key = bytes.fromhex("2b7e151628aed2a6abf7158809cf4f3c")  # SP 800-38A, F.2.1
    iv = bytes(range(16))
    plain = bytes.fromhex("6bc1bee22e409f96e93d7e117393172a")
    sealed = Aes(key).encrypt_cbc(iv, plain)
    assert sealed.hex() == "7649abac8119b246cee98e9b12e9197d"
    assert Aes(key).decrypt_cbc(iv, sealed) == plain


@pytest.mark.parametrize(("suites", "used"), [((17, 3), 17), ((3,), 3), ((17,), 17)])
def test_both_cipher_suites_are_spoken(sim, run, suites, used):
    server = sim(suites=suites)
    result = run("ipmi_power", server, state="on")
    assert result.get("power_state") == "On" and result["cipher_suite"] == used, result
    assert server.controls() == ["On"] and server.opened == server.closed == 1


def test_a_bmc_that_accepts_17_and_answers_in_sha1_does_not_break_it(sim, run):
    """pyghmi: struct.error "pack expected 32 items" against its own server, VirtualBMC."""
    server = sim(answers_sha1_to_17=True)
    result = run("ipmi_power", server, state="on", timeout=10)
    assert result["power_state"] == "On" and result["cipher_suite"] == 3, result
    assert server.opened == server.closed == 1


def test_virtualbmc_pyghmis_own_server_can_be_driven(run):
    """The server of VirtualBMC: SHA-1 only, whatever cipher suite it accepts; its own client cannot log in."""
    with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as sock:
        sock.bind(("::", 0))
        port = sock.getsockname()[1]
    server = subprocess.Popen([sys.executable, "-c", PYGHMI_SERVER, str(port)], stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout.readline() == "ready\n"
        host = f"127.0.0.1:{port}"
        on = run("ipmi_power", host, state="on", timeout=10)
        assert on.get("power_state") == "On" and on["cipher_suite"] == 3, on
        assert not run("ipmi_power", host, state="on", timeout=10)["changed"]
        wrong = run("ipmi_power", host, state="on", timeout=5, bmc_password="not-it")
        assert wrong["error_class"] in ("auth", "timeout", "unreachable"), wrong
    finally:
        server.kill()
        server.communicate()


PYGHMI_SERVER = """
import sys
from pyghmi.ipmi.bmc import Bmc

class Machine(Bmc):
    power = "off"
    def get_power_state(self):
        return self.power
    def power_on(self):
        self.power = "on"
    def power_off(self):
        self.power = "off"

bmc = Machine({"admin": "s3cret-Pass"}, port=int(sys.argv[1]))
print("ready", flush=True)
bmc.listen()
"""


def test_xcat_7555_a_missing_tag_in_rakp2_does_not_hang(sim, run):
    assert run("ipmi_power", sim(zero_rakp2_tag=True), state="on")["power_state"] == "On"


@pytest.mark.parametrize(
    ("power", "state", "shutdown", "sent"),
    [
        ("Off", "on", "force", ["On"]),
        ("On", "on", "force", []),
        ("On", "off", "force", ["ForceOff"]),
        ("Off", "off", "graceful", []),
        ("On", "off", "graceful", ["GracefulShutdown"]),
        ("On", "restarted", "force", ["ForceRestart"]),
        ("On", "restarted", "graceful", ["GracefulShutdown", "On"]),
        ("On", "cycled", "force", ["ForceOff", "On"]),
        ("Off", "cycled", "force", ["On"]),
        ("Off", "restarted", "force", ["On"]),
    ],
)
def test_the_same_contract_as_over_redfish(sim, run, power, state, shutdown, sent):
    server = sim(power=power)
    result = run("ipmi_power", server, state=state, shutdown=shutdown)
    assert result["reset_types_sent"] == sent == server.controls()
    assert result["power_state"] == ("Off" if state == "off" else "On")
    assert server.opened == server.closed


def test_check_mode_only_reads(sim, run):
    server = sim(power="On")
    result = run("ipmi_power", server, check_mode=True, state="cycled")
    assert result["reset_types_sent"] == ["ForceOff", "On"] and server.controls() == []


@pytest.mark.parametrize("state", ["on", "off", "cycled"])
def test_a_lost_answer_to_a_power_request_is_settled_by_reading(sim, run, state):
    server = sim(power="Off" if state == "on" else "On", lose={CONTROL: 1})
    result = run("ipmi_power", server, state=state, timeout=1)
    assert not result.get("failed"), result
    assert len(server.controls()) == len(set(server.controls()))


def test_a_restart_without_answer_is_not_claimed_and_not_repeated(sim, run):
    server = sim(power="On", restart_shows=False, lose={CONTROL: 9})
    result = run("ipmi_power", server, state="restarted", timeout=1)
    assert result["error_class"] == "timeout" and not result["retryable"] and server.controls() == ["ForceRestart"]


def test_lost_answers_to_reads_are_asked_for_again(sim, run):
    assert run("ipmi_power", sim(lose={STATUS: 3}), state="on")["power_state"] == "On"


def test_a_busy_bmc_is_asked_again(sim, run):
    server = sim(codes={CONTROL: [0xC0, 0xC0]})
    assert run("ipmi_power", server, state="on")["power_state"] == "On"


def test_a_privilege_that_is_too_low_is_auth(sim, run):
    result = run("ipmi_power", sim(codes={CONTROL: [0xD4]}), state="on")
    assert result["error_class"] == "auth" and result["completion_code"] == 0xD4 and not result["changed"]


def test_a_short_answer_is_a_bug_of_the_bmc(sim, run):
    assert run("ipmi_power", sim(short=(STATUS,)), state="on")["error_class"] == "bmc_bug"


def test_bootdev_is_uefi_unless_told_otherwise_and_idempotent(sim, run):
    server = sim()
    first = run("ipmi_bootdev", server, target="pxe")
    assert first["changed"] and first["boot"]["before"] == NONE
    assert first["boot"]["after"] == {"target": "pxe", "persistence": "once", "mode": "uefi"}
    assert server.boot[:2] == bytes([0xA0, 0x04])
    assert not run("ipmi_bootdev", server, target="pxe")["changed"]


def test_ipmitool_163_uefi_and_persistence_together(sim, run):
    server = sim()
    run("ipmi_bootdev", server, target="disk", persistence="continuous")
    assert server.boot[:2] == bytes([0xE0, 0x08])


@pytest.mark.parametrize(
    "stored", [bytes(5), bytes([0, 4, 0, 0, 0]), bytes([0x60, 8, 0, 0, 0]), bytes([0xA0, 0, 0, 0, 0])]
)
def test_ipmitool_304_a_cleared_or_stale_override_is_none(sim, run, stored):
    server = sim()
    server.boot = stored
    result = run("ipmi_bootdev", server, target="none")
    assert not result["changed"] and result["boot"]["after"] == NONE


def test_clearing_writes_zeroes(sim, run):
    server = sim()
    run("ipmi_bootdev", server, target="pxe")
    assert run("ipmi_bootdev", server, target="none")["changed"] and server.boot == bytes(5)


@pytest.mark.parametrize("code", [0x80, 0xC1, 0xC9, 0xFF])
def test_go_ipmi_74_an_error_on_the_timer_parameter_is_a_warning(sim, run, code):
    result = run("ipmi_bootdev", sim(param3_code=code), target="pxe")
    assert result["changed"] and "60 s" in result["warnings"][0]


@pytest.mark.parametrize(
    "rule",
    [
        lambda data: bytes([data[0] & ~0x20]) + data[1:],  # loses UEFI
        lambda data: bytes([data[0] & ~0x80]) + data[1:],  # loses the valid bit
        lambda data: bytes(5),  # ignores it
    ],
)
def test_flags_that_do_not_stick_are_not_applied(sim, run, monkeypatch, rule):
    result = run("ipmi_bootdev", sim(boot_rule=rule), target="pxe")
    assert result["failed"] and result["error_class"] == "not_applied"


def test_wrong_password(sim, run):
    server = sim()
    result = run("ipmi_power", server, state="on", bmc_password="wrong-Secret")
    assert result["error_class"] == "auth" and "bmc_password" in result["msg"]
    assert "wrong-Secret" not in json.dumps(result)


def test_unknown_user(sim, run):
    assert run("ipmi_power", sim(), state="on", bmc_username="nobody")["error_class"] == "auth"


def test_an_unreachable_bmc_is_never_none(run):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.bind(("127.0.0.1", 0))
        result = run("ipmi_power", f"127.0.0.1:{sock.getsockname()[1]}", state="on", timeout=6)
    assert result["error_class"] in ("unreachable", "timeout") and "None" not in result["msg"], result


def test_unknown_host(run):
    assert run("ipmi_power", "no-such-host.invalid", state="on")["error_class"] == "unreachable"


def test_a_full_session_table_is_tried_again(sim, run):
    assert run("ipmi_power", sim(full=2), state="on").get("power_state") == "On"


def test_a_full_session_table_is_a_class_of_its_own(sim, run):
    assert run("ipmi_power", sim(full=99), state="on")["error_class"] == "session_limit"


def test_c_g_390_a_bmc_with_ipmi_1_5_only_is_told_apart(sim, run):
    result = run("ipmi_power", sim(ipmi15_only=True), state="on")
    assert result["error_class"] == "unsupported" and "IPMI 2.0" in result["msg"]


@pytest.mark.parametrize("kg", ["0x", "0x123", "x" * 21, "0x" + "00" * 21, "0xzz"])
def test_a_kg_of_the_wrong_length(sim, run, kg):
    server = sim()
    result = run("ipmi_power", server, state="on", kg=kg)
    assert result["error_class"] == "invalid" and "kg" in result["msg"] and not server.log
    assert kg not in result["msg"]


@pytest.mark.parametrize(("kg", "key"), [("0x0102", b"\x01\x02"), ("a key", b"a key")])
def test_a_kg_is_used(sim, run, kg, key):
    server = sim(kg=key)
    assert run("ipmi_power", server, state="on", kg=kg)["power_state"] == "On"
    assert run("ipmi_power", sim(kg=b"other"), state="on", kg=kg)["error_class"] == "auth"


@pytest.mark.parametrize(("name", "value"), [("bmc_password", "x" * 21), ("bmc_username", "x" * 17)])
def test_credentials_that_ipmi_cannot_carry(sim, run, name, value):
    result = run("ipmi_power", sim(), state="on", **{name: value})
    assert result["error_class"] == "invalid" and name in result["msg"]
