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
from ansible_collections.h200.rack.plugins.module_utils._plan.findings import (
    as_text,
    bmc_problem,
    mirror_problems,
    mirror_warnings,
)
from ansible_collections.h200.rack.plugins.module_utils._plan.known_hosts import known_hosts
from ansible_collections.h200.rack.plugins.module_utils._plan.plan import make_plan
from ansible_collections.h200.rack.plugins.module_utils._plan.rotation import in_rotation
from ansible_collections.h200.rack.plugins.module_utils._plan.scripts import ipxe_node
from ansible_collections.h200.rack.plugins.module_utils._plan.seed import seed
from ansible_collections.h200.rack.plugins.module_utils._plan.slurm import slurm_nodes
from ansible_collections.h200.rack.plugins.plugin_utils.ipxe_https import can_https

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


SITE_BUILD = {"site": {"base": "debian_2025", "schemes": ["http", "https"]}}


@pytest.mark.parametrize(
    ("variables", "scheme"),
    [
        ({}, "http"),
        # Debian 13's iPXE speaks HTTPS, and does not believe the rack's CA.
        ({"rack_ipxe_build": "debian_2025"}, "http"),
        ({"rack_ipxe_build": "site", "rack_ipxe_builds": SITE_BUILD}, "https"),
        ({"rack_ipxe_build": "site", "rack_ipxe_builds": {"site": {"base": "debian_2019"}}}, "http"),
    ],
)
def test_ipxe_takes_https_only_with_a_build_that_knows_the_rack_s_ca(variables, scheme):
    rack = racks.Rack()
    for name in ("mirror01", "mirror02"):
        rack[name]["mirror_tls"] = True
    rack["mirror02"]["rack_mirror_url"] = "https://mirror02.test:8443"
    rack["gpu001"].update(variables)
    plan = make_plan(rack.hostvars, rack.groups)
    node = plan["nodes"]["gpu001"]
    assert plan["problems"] == []
    assert node["mirrors"] == ["https://10.20.0.3", "https://mirror02.test:8443"]
    item = ipxe_node(node, "deploy", {"x86_64": "abc"}, https=can_https(node))
    assert [url.partition(":")[0] for url in item["mirrors"]] == [scheme, scheme]
    assert item["mirrors"][1] in ("http://mirror02.test", "https://mirror02.test:8443")
    assert item["ipxe_build"] == variables.get("rack_ipxe_build", "debian_2019")


@pytest.mark.parametrize("url", ["mirror01", "ftp://mirror01", "http://a:b@mirror01", "http://[x", "http://m?x=1"])
def test_a_mirror_s_url_that_is_none_is_a_problem(url):
    rack = racks.Rack()
    rack["mirror01"]["rack_mirror_url"] = url
    found = make_plan(rack.hostvars, rack.groups)["problems"]
    assert [(problem["node"], problem["variable"]) for problem in found] == [("mirror01", "rack_mirror_url")]


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


def found_by(mirror, kind="image", code="missing", name="debian12"):
    name = {"mirror": "", "ramdisk": "x86_64"}.get(kind, name)
    return {"mirror": mirror, "kind": kind, "name": name, "digest": "", "code": code, "msg": "gone"}


def places(found):
    return [(entry["node"], entry["variable"]) for entry in found]


def test_problems_of_all_mirrors_stop_the_nodes_and_name_them_or_the_mirror(plan):
    for mirrors in (["http://10.20.0.3"], plan["nodes"]["gpu001"]["mirrors"]):
        bad = [
            found_by(mirror, kind, code)
            for mirror in mirrors
            for kind, code in (("image", "missing"), ("mirror", "unreachable"), ("ramdisk", "missing"))
        ]
        checks = [{"problems": bad}]
        stopping, others = mirror_problems(plan, checks), mirror_warnings(plan, checks)
        told = places(stopping or others)
        assert bool(stopping) != bool(others)
        assert told[:3] == [("gpu001, gpu002", "rack_image"), ("mirror01", "ansible_host"), ("mirror01", "rack_arch")]
    assert stopping


def test_one_mirror_of_two_may_be_down_and_no_node_asks_it(plan):
    first, second = plan["nodes"]["gpu001"]["mirrors"]
    for problem in (
        found_by(first, "mirror", "unreachable"),
        found_by(first, "mirror", "not_ready"),
        found_by(first, "image", "damaged"),
        found_by(first, "image", "out_of_step"),
        found_by(first, "ramdisk", "missing"),
    ):
        checks = [{"problems": [problem]}]
        assert mirror_problems(plan, checks) == []
        assert len(mirror_warnings(plan, checks)) == 1
        node = in_rotation(plan, checks)["nodes"]["gpu001"]
        assert (node["mirrors"], node["boot_mirrors"], node["mirror_hosts"]) == ([second], [second], ["mirror02"])


def test_a_mirror_that_cannot_be_managed_is_done_without_while_another_is_left(plan):
    checks = [{"problems": []}]
    lost = [{"node": "mirror01", "variable": "ansible_host", "msg": "no route to host"}]
    assert mirror_problems(plan, checks, lost) == []
    assert mirror_warnings(plan, checks, lost) == lost
    assert in_rotation(plan, checks, lost)["nodes"]["gpu001"]["mirror_hosts"] == ["mirror02"]
    lost.append({**lost[0], "node": "mirror02"})
    assert mirror_problems(plan, checks, lost) == lost
    assert in_rotation(plan, checks, lost)["nodes"]["gpu001"]["mirror_hosts"] == ["mirror01", "mirror02"]


def test_a_rack_s_cache_is_asked_first_and_the_mirrors_behind_it_while_it_is_away():
    rack = racks.Rack()
    rack.groups["rack_mirrors"].append("cache01")
    rack.hostvars["cache01"] = {"ansible_host": "10.20.0.6", "rack_name": "r1", "mirror_origins": ["http://10.20.0.3"]}
    for name in ("gpu001", "gpu002"):
        rack[name]["rack_name"] = "r1"
    rack["boot01"]["rack_name"] = "r1"
    plan = make_plan(rack.hostvars, rack.groups)
    node = plan["nodes"]["gpu001"]
    assert (node["mirrors"], node["fallback_mirror_hosts"]) == (["http://10.20.0.6"], ["mirror01", "mirror02"])
    assert plan["images"][0]["mirrors"] == ["http://10.20.0.6", "http://10.20.0.3", "http://10.20.0.4"]
    item = ipxe_node(node, "deploy", {"x86_64": "abc"})
    assert item["fallback_mirrors"] == ["http://10.20.0.3", "http://10.20.0.4"]
    checks = [{"problems": [found_by("http://10.20.0.6", "mirror", "unreachable")]}]
    left = in_rotation(plan, checks)["nodes"]["gpu001"]
    assert (left["mirror_hosts"], left["fallback_mirrors"]) == (["mirror01", "mirror02"], [])
    assert mirror_problems(plan, checks) == [] and len(mirror_warnings(plan, checks)) == 1


def test_the_mirror_that_publishes_is_no_cache():
    rack = racks.Rack()
    rack["mirror01"]["mirror_origins"] = ["http://10.20.0.4"]
    (problem,) = make_plan(rack.hostvars, rack.groups)["problems"]
    assert (problem["node"], problem["variable"]) == ("mirror01", "mirror_origins")


def test_what_another_image_lacks_is_not_this_node_s_problem(plan):
    mirrors = plan["nodes"]["gpu001"]["mirrors"]
    checks = [{"problems": [found_by(mirror, name="other") for mirror in mirrors]}]
    assert mirror_problems(plan, checks) == []
    assert in_rotation(plan, checks)["nodes"]["gpu001"]["mirrors"] == mirrors


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
