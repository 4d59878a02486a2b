# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is made of the plan."""

from __future__ import annotations

import importlib.util
import json
import pathlib

import pytest
from ansible_collections.h200.rack.plugins.module_utils._plan.dhcp import dhcp_hosts
from ansible_collections.h200.rack.plugins.module_utils._plan.findings import as_text, bmc_problem, mirror_problems
from ansible_collections.h200.rack.plugins.module_utils._plan.known_hosts import known_hosts
from ansible_collections.h200.rack.plugins.module_utils._plan.plan import make_plan
from ansible_collections.h200.rack.plugins.module_utils._plan.scripts import ipxe_node
from ansible_collections.h200.rack.plugins.module_utils._plan.seed import seed
from ansible_collections.h200.rack.plugins.module_utils._plan.slurm import slurm_nodes

_spec = importlib.util.spec_from_file_location("racks", pathlib.Path(__file__).with_name("racks.py"))
racks = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(racks)


@pytest.fixture
def plan():
    rack = racks.Rack()
    rack["gpu001"]["rack_bmc_mac"] = "52:54:00:02:00:01"
    return make_plan(rack.hostvars, rack.groups)


def test_local_needs_no_ramdisk(plan):
    item = ipxe_node(plan["nodes"]["gpu001"], "local")
    assert (item["action"], item["mac"], item["address"]) == ("local", "52:54:00:01:00:01", "10.20.0.11/20")
    assert "ramdisk" not in item


def test_deploy_names_the_ramdisk_by_digest(plan):
    item = ipxe_node(plan["nodes"]["gpu001"], "deploy", {"x86_64": "abc"}, "ramdisk/overlay/def.cpio")
    assert (item["ramdisk"], item["overlay"]) == ("ramdisk/x86_64/abc", "ramdisk/overlay/def.cpio")


def test_deploy_without_a_published_ramdisk_is_refused(plan):
    with pytest.raises(ValueError, match="gpu001: no ramdisk for x86_64"):
        ipxe_node(plan["nodes"]["gpu001"], "deploy", {"aarch64": "abc"})


def test_the_seed_holds_no_secret_and_the_way_in(plan):
    made = seed(plan["nodes"]["gpu001"])
    assert (made["hostname"], made["fqdn"]) == ("gpu001", "gpu001.rack.test")
    assert made["users"][0]["ssh_authorized_keys"] == [racks.KEY]
    assert made["network_config"]["version"] == 2
    assert "hunter2" not in json.dumps(made)


def test_root_gets_in_where_the_site_wants_root():
    rack = racks.Rack()
    rack["gpu001"]["rack_os_user"] = "root"
    made = seed(make_plan(rack.hostvars, rack.groups)["nodes"]["gpu001"])
    assert made["users"] == [{"name": "root", "ssh_authorized_keys": [racks.KEY]}]
    assert made["user_data"] == {"disable_root": False}


def test_known_hosts_lines_are_for_all_addresses():
    assert known_hosts(["ssh-ed25519 AAAA root@x"], ["10.0.0.1", "gpu001"]) == "10.0.0.1,gpu001 ssh-ed25519 AAAA\n"
    assert known_hosts(["ssh-ed25519 AAAA"], ["10.0.0.1"], 2222) == "[10.0.0.1]:2222 ssh-ed25519 AAAA\n"


@pytest.mark.parametrize(
    ("keys", "addresses"),
    [(["garbage"], ["a"]), (["-----BEGIN OPENSSH PRIVATE KEY-----"], ["a"]), (["t k"], []), (["t k"], ["a b"])],
)
def test_known_hosts_takes_nothing_else(keys, addresses):
    with pytest.raises(ValueError):
        known_hosts(keys, addresses)


def test_dhcp_answers_the_nodes_of_its_boot_server(plan):
    assert [host["name"] for host in dhcp_hosts(plan, "boot01")] == ["gpu001", "gpu002"]
    assert dhcp_hosts(plan, "boot02") == []
    assert dhcp_hosts(plan, "boot01", bmc=True)[1] == {
        "name": "gpu001-bmc",
        "mac": "52:54:00:02:00:01",
        "address": "10.30.0.11",
    }


def test_dhcp_is_told_a_binary_only_where_a_profile_asks_for_another():
    rack = racks.Rack()
    rack["gpu001"]["rack_profiles"] = {"ours": {"base": "h200_sxm", "boot": {"ipxe_binary": "ours.efi"}}}
    rack["gpu001"]["rack_profile"] = "ours"
    hosts = dhcp_hosts(make_plan(rack.hostvars, rack.groups), "boot01")
    assert [host.get("ipxe_binary") for host in hosts] == ["ipxe/ours.efi", None]


def test_a_bmc_outside_the_bmc_networks_is_not_given_an_address():
    rack = racks.Rack()
    rack["gpu001"]["rack_bmc_mac"] = "52:54:00:02:00:01"
    rack["gpu001"]["rack_bmc_address"] = "gpu001-bmc.rack.test"
    assert len(dhcp_hosts(make_plan(rack.hostvars, rack.groups), "boot01", bmc=True)) == 2


def test_an_arm_node_boots_the_binary_that_its_boot_server_has():
    rack = racks.Rack()
    rack["gpu001"]["rack_arch"] = "aarch64"
    plan = make_plan(rack.hostvars, rack.groups)
    assert plan["nodes"]["gpu001"]["http_boot_uri"] == "http://10.20.0.2/ipxe/ipxe-arm64.efi"
    assert "ipxe_binary" not in dhcp_hosts(plan, "boot01")[0]


def test_slurm_is_told_what_the_profile_says(plan):
    node = slurm_nodes(plan)[0]
    assert (node["name"], node["address"], node["profile"]["memory_mib"]) == ("gpu001", "10.20.0.11", 2000000)


@pytest.mark.parametrize(
    ("failure", "variable"),
    [
        ({"error_class": "auth", "msg": "no"}, "rack_bmc_password"),
        ({"error_class": "tls", "msg": "no"}, "rack_bmc_ca_path"),
        ({"error_class": "unreachable", "msg": "no"}, "rack_bmc_address"),
        ({"error_class": "invalid", "msg": "no"}, "rack_bmc_system_id"),
        ({"msg": "missing required arguments: bmc_password"}, "rack_bmc_password"),
        ({}, "rack_bmc_address"),
    ],
)
def test_a_bmc_failure_names_the_variable_to_look_at(failure, variable):
    assert bmc_problem("gpu001", failure)["variable"] == variable


def test_problems_of_mirrors_name_the_nodes_or_the_mirror(plan):
    problem = {"mirror": "http://10.20.0.3", "kind": "image", "name": "debian12", "digest": "", "msg": "gone"}
    found = mirror_problems(
        plan,
        [
            {
                "problems": [
                    {**problem, "code": "missing"},
                    {**problem, "code": "unreachable"},
                    {**problem, "code": "unreachable"},
                    {**problem, "kind": "ramdisk", "code": "missing"},
                ]
            }
        ],
    )
    assert [(entry["node"], entry["variable"]) for entry in found] == [
        ("gpu001, gpu002", "rack_image"),
        ("mirror01", "ansible_host"),
        ("mirror01", "rack_arch"),
    ]


@pytest.mark.parametrize(
    ("facts", "fits"),
    [
        ({"arch": "x86_64", "boot": "uefi"}, True),
        ({"arch": "x86_64", "boot": "both"}, True),
        ({"arch": "x86_64", "boot": "bios"}, False),
        ({"arch": "aarch64", "boot": "uefi"}, False),
        ({"arch": "", "boot": ""}, True),
    ],
)
def test_an_image_that_a_node_could_not_start_is_a_problem_of_the_node(plan, facts, fits):
    found = mirror_problems(plan, [{"problems": [], "rows": [{"kind": "image", **facts}]}])
    assert [(entry["node"], entry["variable"]) for entry in found] == (
        [] if fits else [("gpu001", "rack_image"), ("gpu002", "rack_image")]
    )


def test_a_problem_is_one_line_and_told_once():
    problem = {"node": "", "variable": "rack_subnets", "msg": "a\nb"}
    assert (
        as_text([problem, problem, {"node": "gpu001", "variable": "x", "msg": "y"}])
        == "gpu001: x: y\nrack: rack_subnets: a b"
    )
