# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A boot server asks its segment for DHCP servers, and real ones answer."""

from __future__ import annotations

import json
import os
import shutil
import subprocess

import pytest
from dhcp_lab import Network
from lab import REPO, sh

pytestmark = pytest.mark.skipif(
    os.geteuid() != 0 or not shutil.which("dnsmasq"), reason="needs root for namespaces, and dnsmasq"
)
ROGUE = "port=0\nbind-dynamic\ninterface=eth0\ndhcp-range=10.77.1.100,10.77.1.110,1h\ndhcp-boot=evil.efi\n"


@pytest.fixture
def net():
    with Network() as network:
        network.segment("rack1")
        network.boot = network.host("boot01")
        network.plug(network.boot, "rack1", "prov0", "10.77.1.2/24", "10.77.1.102/24")
        yield network


def stranger(net, config):
    host = net.host("stranger")
    net.plug(host, "rack1", "eth0", "10.77.1.66/24")
    mac = json.loads(sh("ip", "-n", host, "-json", "link", "show", "eth0"))[0]["address"]
    return net.dnsmasq(host, config), mac


def probe(net, *expected, networks=("10.77.1.0/24", "10.99.0.0/16"), **more):
    arguments = {"networks": list(networks), "expected": list(expected), **more}
    done = subprocess.run(
        ["ip", "netns", "exec", net.boot, REPO / ".venv/bin/ansible", "localhost", "-c", "local", "-i", "localhost,",
         "-m", "h200.rack.dhcp_probe", "-a", json.dumps(arguments)],
        capture_output=True, text=True, check=False, cwd=REPO,
        env={**os.environ, "ANSIBLE_COLLECTIONS_PATH": str(REPO / ".cache/collections"),
             "ANSIBLE_PYTHON_INTERPRETER": str(REPO / ".venv/bin/python"), "ANSIBLE_LOAD_CALLBACK_PLUGINS": "1",
             "ANSIBLE_STDOUT_CALLBACK": "ansible.posix.json"},
    )  # fmt: skip
    return json.loads(done.stdout[done.stdout.index("{") :])["plays"][0]["tasks"][0]["hosts"]["localhost"]


def test_a_server_that_nobody_knows_is_named_with_its_mac_and_keeps_no_lease(net):
    rogue, mac = stranger(net, ROGUE)
    result = probe(net)
    assert result["failed"]
    assert f"the DHCP server 10.77.1.66 (MAC {mac}) answers on prov0 and offers 10.77.1.1" in result["msg"]
    assert "evil.efi" in result["msg"] and result["interfaces"] == ["prov0"]
    assert {server["server"] for server in result["unexpected"]} == {"10.77.1.66"}
    leases = rogue.dir / "leases"
    assert not leases.exists() or leases.read_text() == ""


def test_a_proxy_that_answers_only_firmware_is_found(net):
    config = "port=0\nbind-dynamic\ninterface=eth0\ndhcp-range=10.77.1.0,proxy\npxe-service=X86-64_EFI,evil,evil.efi\n"
    stranger(net, config)
    result = probe(net)
    assert result["failed"] and "10.77.1.66" in result["msg"] and "is a proxy" in result["msg"]


def test_a_server_that_may_answer_is_none_to_complain_of(net):
    stranger(net, ROGUE)
    result = probe(net, "10.77.1.66")
    assert not result.get("failed") and not result["changed"]
    assert [server["server"] for server in result["servers"]] == ["10.77.1.66"] and result["unexpected"] == []


def test_our_own_servers_do_not_answer_the_question(net):
    other = net.host("boot02")
    net.plug(other, "rack1", "prov0", "10.77.1.3/24")
    net.server(
        other, [{"name": "gpu001", "mac": "52:54:00:77:00:01", "address": "10.77.1.11"}],
        [{"name": "rack1", "cidr": "10.77.1.0/24"}], address="10.77.1.3",
    )  # fmt: skip
    result = probe(net, seconds=2)
    assert not result.get("failed") and result["servers"] == []


def test_a_host_outside_the_networks_asks_nowhere(net):
    stranger(net, ROGUE)
    result = probe(net, networks=("10.99.0.0/16",))
    assert not result.get("failed") and result["interfaces"] == []


def test_an_interface_that_is_down_is_said(net):
    sh("ip", "-n", net.boot, "link", "set", "prov0", "down")
    result = probe(net)
    assert result["failed"] and "prov0 is down" in result["msg"]
