# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""BMCs that keep talking without ever saying anything: one clear result, not later than was agreed."""

from __future__ import annotations

import contextlib
import json
import random
import socket
import threading
import time

import pytest
from ansible_collections.h200.rack.plugins.module_utils._bmc import ipmi, timed
from fake_bmc import Fault
from fake_bmc.faults import cut_short, dripping, endless_body, endless_head, garbage
from fake_bmc.ipmi import IpmiBmc
from fake_bmc.server import make_certificates

SECRET = "s3cret-Pass"
# timeout=1 and wait_timeout=1 below; one second more for closing the session, the rest for a busy machine.
LATEST = 1 + 1 + 1 + 4


@contextlib.contextmanager
def in_time():
    begin = time.monotonic()
    yield
    assert time.monotonic() - begin < LATEST


def check(result, *classes):
    assert result["failed"] and result["error_class"] in classes, result
    assert SECRET not in json.dumps(result) and "None" not in result["msg"]


PLACES = {
    "the service root": {"method": "GET", "path": "^/redfish/v1/$"},
    "the login": {"method": "POST", "path": "Sessions$"},
    "the list of systems": {"method": "GET", "path": "Systems$"},
    "the system": {"method": "GET", "path": "Systems/1$"},
    "the system after a while": {"method": "GET", "path": "Systems/1$", "after": 1},
    "everything": {},
}
WAYS = {
    "a byte now and then": dripping(0.3),
    "a byte now and then in the body": dripping(0.3, from_byte=200),
    "interim answers without end": endless_head,
}
WORKS = {
    "redfish_power": {"state": "on"},
    "redfish_boot": {"target": "pxe"},
    "redfish_info": {"gather": ["system", "nics", "managers", "firmware"]},
}


@pytest.mark.parametrize(
    ("place", "way"),
    [*((place, "a byte now and then") for place in PLACES), *(("the system", way) for way in list(WAYS)[1:])],
)
def test_an_answer_that_never_ends_is_a_timeout(bmc, run, place, way):
    server = bmc(ignores=("On",))
    server.faults.append(Fault(times=99, wire=WAYS[way], **PLACES[place]))
    with in_time():
        result = run("redfish_power", server, state="on", timeout=1, wait_timeout=1)
    check(result, "timeout", "not_applied")
    assert len(server.log.resets()) <= 1


@pytest.mark.parametrize("name", WORKS)
def test_every_module_ends_although_all_answers_drip(bmc, run, name):
    server = bmc()
    server.faults.append(Fault(times=99, after=3, wire=dripping(0.3)))
    with in_time():
        result = run(name, server, timeout=1, wait_timeout=1, **WORKS[name])
    check(result, "timeout")


@pytest.mark.parametrize("method", ["POST", "PATCH", "DELETE"])
def test_a_dripping_answer_to_a_write_is_settled_by_reading(bmc, run, method):
    """It took effect, and its answer never comes to an end."""
    server = bmc()
    path = {"POST": "Reset$", "PATCH": "", "DELETE": "Sessions"}[method]
    server.faults.append(Fault(method=method, path=path, times=2, process=True, wire=dripping(0.3)))
    work = ("redfish_boot", {"target": "pxe"}) if method == "PATCH" else ("redfish_power", {"state": "on"})
    result = run(work[0], server, timeout=1, wait_timeout=20, **work[1])
    assert not result.get("failed"), result
    assert len(server.log.resets()) <= 1 and len(server.log.of("PATCH", "")) <= 1


def test_an_answer_without_end_does_not_fill_the_memory(bmc, run, monkeypatch):
    monkeypatch.setattr(timed, "MAX_BYTES", 1024 * 1024)
    server = bmc()
    server.faults.append(Fault(method="GET", path="Systems/1$", times=99, wire=endless_body))
    with in_time():
        result = run("redfish_power", server, state="on", timeout=1, wait_timeout=1)
    check(result, "bmc_bug")
    assert "MiB" in result["msg"] and server.log.sessions_open() == 0


def test_a_power_request_answered_without_end_is_settled_by_reading(bmc, run, monkeypatch):
    monkeypatch.setattr(timed, "MAX_BYTES", 1024 * 1024)
    server = bmc()
    server.faults.append(Fault(method="POST", path="Reset$", process=True, times=9, wire=endless_body))
    assert run("redfish_power", server, state="on")["power_state"] == "On" and server.log.resets() == ["On"]


@pytest.mark.parametrize("wire", [garbage, cut_short])
@pytest.mark.parametrize("place", PLACES)
def test_what_is_no_http_is_a_clear_result(bmc, run, place, wire):
    server = bmc(ignores=("On",))
    server.faults.append(Fault(times=99, wire=wire, **PLACES[place]))
    with in_time():
        result = run("redfish_power", server, state="on", timeout=1, wait_timeout=1)
    check(result, "timeout", "not_applied", "bmc_bug")


@contextlib.contextmanager
def talker(say):
    """A TCP server that treats each connection to ``say(connection, stop)``."""
    stop = threading.Event()
    threads = []
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0.1)

        def serve():
            while not stop.is_set():
                with contextlib.suppress(TimeoutError, OSError):
                    connection, _peer = server.accept()
                    threads.append(threading.Thread(target=treat, args=(connection,), daemon=True))
                    threads[-1].start()

        def treat(connection):
            with connection, contextlib.suppress(OSError):
                say(connection, stop)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield f"127.0.0.1:{server.getsockname()[1]}"
        stop.set()
        thread.join(5)
        for item in threads:
            item.join(5)


def drip_handshake(connection, stop):
    """The beginning of a TLS record that would be long, byte by byte."""
    for byte in b"\x16\x03\x03\x40\x00\x02" + bytes(1000):
        if stop.wait(0.2):
            return
        connection.sendall(bytes([byte]))


def say_nothing(connection, stop):
    stop.wait(30)


def drip_alerts(connection, stop):
    """Whole TLS records without end: warnings that a client has to skip."""
    while not stop.wait(0.05):
        connection.sendall(b"\x15\x03\x03\x00\x02\x01\x5a")


@pytest.mark.parametrize("say", [drip_handshake, say_nothing, drip_alerts])
def test_a_tls_handshake_that_never_ends_ends(run, say):
    with talker(say) as host, in_time():
        result = run("redfish_power", host, timeout=1, wait_timeout=1, validate_certs=False, state="on")
    check(result, "timeout", "tls", "unreachable")


def test_answers_that_drip_inside_of_tls_end(bmc, run, tmp_path):
    server = bmc(tls=make_certificates(tmp_path))
    server.faults.append(Fault(method="GET", path="Systems", times=99, wire=dripping(0.3)))
    with in_time():
        result = run("redfish_power", server, state="on", ca_path=str(tmp_path / "ca.pem"), timeout=1, wait_timeout=1)
    check(result, "timeout")


@pytest.mark.parametrize("name", ["redfish_power", "ipmi_power"])
def test_a_name_server_that_never_answers_is_unreachable(run, monkeypatch, name):
    real = socket.getaddrinfo
    monkeypatch.setattr(
        socket,
        "getaddrinfo",
        lambda host, *rest, **more: time.sleep(20) if "silent" in str(host) else real(host, *rest),
    )
    with in_time():
        result = run(name, "silent.example", state="on", timeout=1, wait_timeout=1)
    check(result, "unreachable", "timeout")


# -- IPMI -------------------------------------------------------------------------------------------------

IPMI_WORKS = {"ipmi_power": {"state": "on"}, "ipmi_bootdev": {"target": "pxe"}}


@contextlib.contextmanager
def udp(answers):
    """A UDP server that sends ``answers(packet)`` back for each packet."""
    stop = threading.Event()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind(("127.0.0.1", 0))
        server.settimeout(0.1)

        def serve():
            while not stop.is_set():
                with contextlib.suppress(TimeoutError, OSError):
                    packet, peer = server.recvfrom(2048)
                    for answer in answers(packet):
                        server.sendto(answer, peer)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield f"127.0.0.1:{server.getsockname()[1]}"
        stop.set()
        thread.join(5)


def noise(packet):
    chance = random.Random(len(packet))
    return [chance.randbytes(size) for size in (0, 3, 4, 5, 20, 60, 200)]


def headed_noise(packet):
    """Right up to the header, so that it is taken for IPMI."""
    chance = random.Random(len(packet))
    kinds = [b"\x00", b"\x02", b"\x06\x00", b"\x06\x11", b"\x06\x12", b"\x06\x15", b"\x06\xc0"]
    return [b"\x06\x00\xff\x07" + kind + chance.randbytes(size) for kind in kinds for size in (0, 5, 12, 40)]


ANSWERS = {
    "never": lambda packet: [],
    "noise": noise,
    "noise with a header": headed_noise,
    "its own packet back": lambda packet: [packet],
}


@pytest.mark.parametrize(
    ("name", "answers"), [*(("ipmi_power", answers) for answers in ANSWERS), ("ipmi_bootdev", "noise with a header")]
)
def test_ipmi_from_something_that_is_no_bmc(run, answers, name):
    with udp(ANSWERS[answers]) as host, in_time():
        result = run(name, host, timeout=1, wait_timeout=1, **IPMI_WORKS[name])
    check(result, "timeout", "unreachable")


@pytest.fixture
def quick(monkeypatch):
    monkeypatch.setattr(ipmi, "RESEND_SECONDS", 0.2)


class Spoiling(IpmiBmc):
    """A BMC that spoils what it sends once a session is open."""

    def __init__(self, spoil, **more):
        super().__init__(**more)
        self.spoil = spoil

    def _packet(self, packet):
        answers = super()._packet(packet)
        sealed = [answer[:2] == b"\x06\xc0" for answer in answers]
        return [part for answer, of in zip(answers, sealed) for part in (self.spoil(answer) if of else [answer])]


def silence(answer):
    return []


def wrong_session(answer):
    return [answer[:2] + b"\x99\x99\x99\x99" + answer[6:]]


def wrong_code(answer):
    return [answer[:-1] + bytes([answer[-1] ^ 1])]


def cut(answer):
    return [answer[:12], answer[: len(answer) // 2]]


@pytest.mark.parametrize(
    ("name", "spoil"),
    [*(("ipmi_power", spoil) for spoil in (silence, wrong_session, wrong_code, cut)), ("ipmi_bootdev", wrong_session)],
)
def test_ipmi_sessions_that_go_bad_after_the_login(run, quick, name, spoil):
    with Spoiling(spoil, username="admin") as server, in_time():
        result = run(name, server, timeout=1, wait_timeout=1, **IPMI_WORKS[name])
    check(result, "timeout", "unreachable", "bmc_bug")
    assert len(server.controls()) <= 1


@pytest.mark.parametrize("name", IPMI_WORKS)
def test_stray_packets_do_not_disturb_an_ipmi_session(run, quick, name):
    stray = [b"", b"\x06", b"\x06\xc0", b"\x00", b"\x06\xc0" + bytes(60), bytes(10)]
    with Spoiling(lambda answer: [*stray, answer], username="admin") as server:
        result = run(name, server, **IPMI_WORKS[name])
    assert not result.get("failed"), result
    assert server.opened == server.closed


def test_ipmi_under_a_flood_of_packets(run):
    """Packets faster than they can be looked at, from the BMC's own address."""
    stop = threading.Event()
    peers = []
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as target:
        target.bind(("127.0.0.1", 0))
        target.settimeout(0.2)

        def flood():
            while not stop.is_set():
                with contextlib.suppress(TimeoutError, OSError):
                    if not peers:
                        peers.append(target.recvfrom(2048)[1])
                    target.sendto(b"\x06\x00\xff\x07\x06\xc0" + bytes(40), peers[0])

        thread = threading.Thread(target=flood, daemon=True)
        thread.start()
        with in_time():
            address = f"127.0.0.1:{target.getsockname()[1]}"
            result = run("ipmi_power", address, state="on", timeout=1, wait_timeout=1)
        stop.set()
        thread.join(5)
    check(result, "timeout", "unreachable")
