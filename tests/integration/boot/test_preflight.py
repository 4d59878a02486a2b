# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Preflight on a boot server with a stranger beside it. Its node has no BMC and no image, which is said as well."""

from __future__ import annotations

import json
import os
import subprocess

import pytest
import rack
from dhcp_lab import Dnsmasq
from lab import BOOT, REPO, sh

ROGUE = "port=0\nbind-dynamic\ninterface=eth0\ndhcp-range=10.31.1.200,10.31.1.210,1h\ndhcp-boot=evil.efi\n"


@pytest.fixture
def stranger(lab):
    host = f"{lab.name}x"
    sh("ip", "netns", "add", host)
    running = None
    try:
        lab.ip("link", "add", "stranger", "type", "veth", "peer", "name", "eth0", "netns", host)
        lab.ip("link", "set", "stranger", "master", "prov0", "up")
        for words in (("address", "add", "10.31.1.66/24", "dev", "eth0"), ("link", "set", "eth0", "up")):
            sh("ip", "-n", host, *words)
        running = Dnsmasq(lab, host, ROGUE)
        yield json.loads(sh("ip", "-n", host, "-json", "link", "show", "eth0"))[0]["address"]
    finally:
        if running:
            running.stop()
        # The interface in a namespace that goes, goes some time after it.
        lab.ip("link", "del", "stranger")
        sh("ip", "netns", "del", host)


def preflight(lab, **more):
    node = {
        "ansible_host": "10.31.1.11",
        "rack_boot_mac": rack.MACS["gpu001"],
        "rack_bmc_address": "127.0.0.1:9",
        "rack_bmc_username": "nobody",
        "rack_bmc_password": "nothing",
        "rack_profile": "dgx_h200",
        "rack_image": "debian12",
        "rack_root_disk": {"serial": "X"},
        "rack_kernel_args": "nvidia.modprobe=1",
    }
    everybody = {
        "rack_subnets": rack.SUBNETS,
        "rack_authorized_keys": ["ssh-ed25519 AAAA x"],
        "rack_preflight_timeout": 5,
    }
    host = json.loads((lab.dir / "inventory.json").read_text())["all"]["hosts"]["boot01"]
    server = {"hosts": {"boot01": {}}}
    inventory = {
        "all": {
            "vars": {**everybody, **more},
            "hosts": {"boot01": host},
            "children": {
                "rack_nodes": {"hosts": {"gpu001": node}},
                "rack_boot_servers": server,
                "rack_mirrors": server,
                "rack_slurm_controllers": server,
            },
        }
    }
    (lab.dir / "rack.json").write_text(json.dumps(inventory))
    environment = {
        **{name: value for name, value in os.environ.items() if name != "PYENV_VERSION"},
        "ANSIBLE_COLLECTIONS_PATH": str(REPO / ".cache/collections"),
        "ANSIBLE_CONFIG": str(REPO / "ansible.cfg"),
        "ANSIBLE_HOME": str(lab.dir / "ansible"),
    }
    return subprocess.run(
        ["ip", "netns", "exec", lab.name, REPO / ".venv/bin/ansible-playbook", "-i", lab.dir / "rack.json",
         "h200.rack.preflight"],
        capture_output=True, text=True, env=environment, check=False, cwd=REPO,
    )  # fmt: skip


def test_a_rogue_dhcp_server_is_named_with_its_mac_and_the_boot_server_that_heard_it(lab, stranger):
    done = preflight(lab)
    assert done.returncode != 0 and "Nothing was changed, and these are the problems" in done.stdout, done.stdout
    line = f"boot01: rack_dhcp_servers: the DHCP server 10.31.1.66 (MAC {stranger}) answers on prov0"
    assert line in done.stdout, done.stdout
    # What the node's iPXE would be asked to do is judged as well.
    assert "gpu001: rack_kernel_args:" in done.stdout and "nvidia.modprobe" in done.stdout


def test_a_server_that_the_site_knows_of_and_the_rack_s_own_are_no_problem(lab, stranger):
    done = preflight(lab, rack_dhcp_servers=["10.31.1.66"])
    assert "these are the problems" in done.stdout and "the DHCP server" not in done.stdout, done.stdout
    assert BOOT not in done.stdout or f"DHCP server {BOOT}" not in done.stdout
