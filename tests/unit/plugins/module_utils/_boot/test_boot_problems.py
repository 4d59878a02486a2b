# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Preflight knows what the nodes' iPXE could not carry out before anything is written."""

from __future__ import annotations

import pytest
from ansible_collections.h200.rack.plugins.filter.boot_problems import boot_problems


def node(name, number, **more):
    return {
        "name": name,
        "boot_mac": f"52:54:00:01:00:{number:02x}",
        "arch": "x86_64",
        "address": f"10.20.0.{number}/24",
        "gateway": "10.20.0.1",
        "hostname": name,
        "console": ["ttyS0,115200n8"],
        "kernel_args": "",
        "mirrors": ["http://10.20.0.3"],
        "boot_mirrors": ["http://10.20.0.3"],
        "boot_servers": ["boot01"],
        "own_binary": False,
        "ipxe_binary": "snponly.efi",
        "ipxe_build": "debian_2019",
        "ipxe_builds": {},
        **more,
    }


def plan(*nodes, problems=(), builds=None):
    return {
        "nodes": {entry["name"]: entry for entry in nodes},
        "selected": [entry["name"] for entry in nodes],
        "problems": list(problems),
        "ipxe_builds": builds or {},
    }


def found(made, **boot01):
    return [(p["node"], p["variable"], p["code"]) for p in boot_problems(made, {"boot01": boot01})]


def test_a_sound_plan_has_none():
    assert found(plan(node("gpu001", 11), node("gpu002", 12))) == []


@pytest.mark.parametrize(
    ("more", "variable", "code"),
    [
        ({"kernel_args": "memmap=4G$0x100000000"}, "rack_kernel_args", "memmap"),
        ({"kernel_args": "token=s3cr3t"}, "rack_kernel_args", "secret"),
        ({"kernel_args": "a=" + "x" * 2100}, "rack_kernel_args", "invalid"),
        ({"mirrors": ["https://m"], "boot_mirrors": ["https://m"]}, "rack_ipxe_build", "scheme"),
        ({"ipxe_build": "theirs"}, "rack_ipxe_build", "build"),
    ],
)
def test_a_node_that_its_binary_cannot_boot_is_named_and_no_other(more, variable, code):
    assert found(plan(node("gpu001", 11), node("gpu002", 12, **more))) == [("gpu002", variable, code)]


def test_a_build_that_can_is_believed():
    https = {"mirrors": ["https://m"], "boot_mirrors": ["https://m"]}
    builds = {"ours": {"base": "debian_2019", "schemes": ["http", "https"]}}
    made = plan(node("gpu001", 11, ipxe_build="ours", ipxe_builds=builds, **https), builds=builds)
    assert found(made) == []


def test_a_binary_that_no_boot_server_serves_is_named():
    made = plan(node("gpu001", 11, own_binary=True, ipxe_binary="ours.efi"))
    assert found(made) == [("gpu001", "rack_profile", "unserved")]
    assert found(made, netboot_binaries={"ours.efi": "/srv/site/ours.efi"}) == []


def test_what_the_inventory_says_wrong_is_not_said_twice():
    broken = node("gpu001", 11, address=None)
    assert found(plan(broken, problems=[{"node": "gpu001", "variable": "ansible_host", "msg": "x"}])) == []
