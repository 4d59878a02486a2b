# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import importlib.util
import json
import pathlib

import pytest
from ansible_collections.h200.rack.plugins.module_utils._plan.plan import make_plan
from hypothesis import given, settings
from hypothesis import strategies as st

_spec = importlib.util.spec_from_file_location("racks", pathlib.Path(__file__).with_name("racks.py"))
racks = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(racks)
Rack = racks.Rack


@pytest.fixture
def rack():
    return Rack()


def plan_of(rack, **more):
    return make_plan(rack.hostvars, rack.groups, **more)


def found(rack, **more):
    return {(problem["node"], problem["variable"]) for problem in plan_of(rack, **more)["problems"]}


def messages(rack, variable, **more):
    return [problem["msg"] for problem in plan_of(rack, **more)["problems"] if problem["variable"] == variable]


def test_a_sound_inventory_has_no_problem_and_all_defaults(rack):
    plan = plan_of(rack, forks=2)
    assert plan["problems"] == []
    node = plan["nodes"]["gpu001"]
    assert node["address"] == "10.20.0.11/20"
    assert node["netmask"] == "255.255.240.0"
    assert node["gateway"] == "10.20.0.1"
    assert node["fqdn"] == "gpu001.rack.test"
    assert node["console"] == ["tty0", "ttyS0,115200n8"]
    assert node["mirrors"] == ["http://10.20.0.3", "http://10.20.0.4"]
    assert node["boot_servers"] == ["boot01"]
    assert node["http_boot_uri"] == "http://10.20.0.2/ipxe/snponly.efi"
    assert node["profile"]["gpu"]["count"] == 8
    assert node["users"] == [{"name": "rack", "sudo": "ALL=(ALL) NOPASSWD:ALL", "ssh_authorized_keys": [racks.KEY]}]
    assert plan["ledger_host"] == "boot01"
    assert plan["images"] == [
        {
            "image": "debian12",
            "name": "debian12",
            "digest": "",
            "nodes": ["gpu001", "gpu002"],
            "mirrors": ["http://10.20.0.3", "http://10.20.0.4"],
        }
    ]


def test_the_default_network_is_the_boot_card_static(rack):
    assert plan_of(rack)["nodes"]["gpu002"]["network"] == {
        "version": 2,
        "ethernets": {
            "boot0": {
                "match": {"macaddress": "52:54:00:01:00:02"},
                "set-name": "boot0",
                "dhcp4": False,
                "dhcp6": False,
                "addresses": ["10.20.0.12/20"],
                "routes": [{"to": "0.0.0.0/0", "via": "10.20.0.1"}],
                "nameservers": {"addresses": ["10.20.0.2"], "search": ["rack.test"]},
            }
        },
    }


def test_a_network_of_the_site_is_taken_verbatim(rack):
    rack["gpu001"]["rack_network"] = {"version": 2, "bonds": {"bond0": {}}}
    assert plan_of(rack)["nodes"]["gpu001"]["network"] == {"version": 2, "bonds": {"bond0": {}}}
    rack["gpu001"]["rack_network"] = {"network": {"version": 2}}
    assert ("gpu001", "rack_network") in found(rack)


def test_no_secret_is_copied_out_of_the_inventory(rack):
    rack["gpu001"]["rack_bmc_password"] = "unmistakable"
    assert "unmistakable" not in json.dumps(plan_of(rack))


REQUIRED = [
    "ansible_host",
    "rack_bmc_address",
    "rack_bmc_password",
    "rack_bmc_username",
    "rack_boot_mac",
    "rack_image",
    "rack_profile",
    "rack_root_disk",
    "rack_authorized_keys",
    "rack_subnets",
]


@pytest.mark.parametrize("variable", REQUIRED)
def test_a_missing_variable_is_named_with_its_node(rack, variable):
    del rack["gpu002"][variable]
    assert found(rack) == {("gpu002", variable)}


def test_all_missing_variables_are_named_at_once(rack):
    rack.hostvars["gpu002"] = {}
    assert found(rack) == {("gpu002", variable) for variable in REQUIRED}


def test_bmc_credentials_may_come_from_the_environment(rack):
    del rack["gpu001"]["rack_bmc_password"]
    assert found(rack, bmc_credentials=True) == set()


DIGEST = "0" * 64
BAD = [
    ("ansible_host", "gpu001.example"),
    ("ansible_host", "10.20.0"),
    ("ansible_host", "192.0.2.1"),
    ("ansible_host", "10.30.0.200"),
    ("ansible_host", "10.20.0.0"),
    ("ansible_host", "10.20.15.255"),
    ("ansible_host", "10.20.0.1"),
    ("rack_bmc_address", "192.0.2.1"),
    ("rack_bmc_address", "10.20.0.200"),
    ("rack_bmc_address", "https://admin:secret@10.30.0.9"),
    ("rack_bmc_protocol", "snmp"),
    ("rack_boot_mac", "52:54:00:01:00"),
    ("rack_boot_mac", "01:00:5e:00:00:01"),
    ("rack_boot_mac", "00:00:00:00:00:00"),
    ("rack_boot_mac", 41135040001),
    ("rack_bmc_mac", "zz"),
    ("rack_boot_method", "floppy"),
    ("rack_arch", "sparc"),
    ("rack_console", "ttyS0 quiet"),
    ("rack_console", []),
    ("rack_profile", "h300"),
    ("rack_image", "../etc"),
    ("rack_image", "debian12@latest"),
    ("rack_image", ["debian12"]),
    ("rack_root_disk", "/dev/sda"),
    ("rack_root_disk", {"name": "/dev/sda"}),
    ("rack_root_disk", {"serial": ""}),
    ("rack_root_disk", {"rotational": "no"}),
    ("rack_root_disk", {"raid1": [{"serial": "A"}, {"serial": "B"}]}),
    ("rack_kernel_args", "quiet\nrd.break"),
    ("rack_kernel_args", "ip=dhcp"),
    ("rack_os_user", "Root User"),
    ("rack_users", [{"groups": ["sudo"]}]),
    ("rack_users", [{"name": "a"}, {"name": "a"}]),
    ("rack_authorized_keys", ["-----BEGIN OPENSSH PRIVATE KEY-----"]),
    ("rack_authorized_keys", "ssh-ed25519 AAAA"),
    ("rack_network", []),
    ("rack_serial", ["a"]),
    ("rack_verify", "most"),
    ("rack_boot_order", "usb_first"),
    ("rack_finish", "kexec_load"),
    ("os_image_transport", "torrent"),
    ("rack_scratch_disk", {"colour": "red"}),
    ("rack_deadlines", {"os_up": "soon"}),
    ("rack_deadlines", {"coffee": 300}),
    ("rack_deadlines", {"written": 0}),
    ("rack_deadlines", 300),
    ("rack_lease", 5),
    ("rack_power_group", 0),
    ("rack_power_interval", -1),
    ("rack_power_interval", 1.5),
    ("rack_verify_timeout", True),
]


@pytest.mark.parametrize(("variable", "value"), BAD)
def test_a_wrong_value_is_named_with_its_node(rack, variable, value):
    rack["gpu002"][variable] = value
    assert found(rack) == {("gpu002", variable)}


def test_a_deadline_of_one_stage_leaves_the_others(rack):
    rack["gpu001"]["rack_deadlines"] = {"os_up": "60"}
    assert plan_of(rack)["nodes"]["gpu001"]["deadlines"] == {
        "powered": 300, "ramdisk_up": 1800, "written": 3600, "os_up": 60, "registered": 300,
    }  # fmt: skip


def test_an_empty_disk_mapping_is_not_any_disk(rack):
    rack["gpu001"]["rack_root_disk"] = {}
    assert "any disk" in messages(rack, "rack_root_disk")[0]


def test_raid1_says_not_yet(rack):
    rack["gpu001"]["rack_root_disk"] = {"raid1": []}
    assert "not yet" in messages(rack, "rack_root_disk")[0]


@pytest.mark.parametrize(
    ("variable", "other"),
    [
        ("rack_boot_mac", None),
        ("ansible_host", None),
        ("rack_bmc_address", None),
        ("rack_serial", None),
        ("rack_position", None),
    ],
)
def test_what_two_nodes_share_is_said_of_both(rack, variable, other):
    rack["gpu002"][variable] = rack["gpu001"][variable]
    assert found(rack) == {("gpu001", variable), ("gpu002", variable)}
    assert "gpu001" in plan_of(rack)["problems"][-1]["msg"]


def test_a_mac_in_another_spelling_is_the_same_mac(rack):
    rack["gpu002"]["rack_boot_mac"] = rack["gpu001"]["rack_boot_mac"].upper().replace(":", "-")
    assert ("gpu001", "rack_boot_mac") in found(rack)


def test_a_bmc_mac_may_not_be_a_boot_mac(rack):
    rack["gpu002"]["rack_bmc_mac"] = rack["gpu001"]["rack_boot_mac"]
    assert found(rack) == {("gpu001", "rack_boot_mac"), ("gpu002", "rack_bmc_mac")}


def test_a_node_may_not_have_the_address_of_a_server(rack):
    rack["gpu001"]["ansible_host"] = "10.20.0.3"
    assert found(rack) == {("gpu001", "ansible_host"), ("mirror01", "ansible_host")}


def test_two_systems_behind_one_bmc_are_told_apart_by_their_ids(rack):
    for name, system in (("gpu001", "1"), ("gpu002", "2")):
        rack[name].update(rack_bmc_address="10.30.0.99", rack_bmc_system_id=system)
    assert found(rack) == set()
    rack["gpu002"]["rack_bmc_system_id"] = "1"
    assert found(rack) == {("gpu001", "rack_bmc_address"), ("gpu002", "rack_bmc_address")}


def test_names_that_make_one_host_name_are_duplicates(rack):
    rack.groups["rack_nodes"] = ["gpu001.a", "gpu001.b"]
    rack.hostvars["gpu001.a"], rack.hostvars["gpu001.b"] = rack["gpu001"], rack["gpu002"]
    assert found(rack) == {("gpu001.a", "inventory_hostname"), ("gpu001.b", "inventory_hostname")}


def test_a_name_that_cannot_be_a_host_name_is_refused(rack):
    rack.groups["rack_nodes"] = ["gpu_001"]
    rack.hostvars["gpu_001"] = rack["gpu001"]
    assert found(rack) == {("gpu_001", "inventory_hostname")}


@pytest.mark.parametrize(
    "subnet",
    [
        {"name": "x", "cidr": "10.20.8.0/24", "role": "storage"},
        {"name": "prov", "cidr": "10.99.0.0/24", "role": "storage"},
        {"name": "x", "cidr": "10.99.0.0/24", "gateway": "10.98.0.1", "role": "storage"},
        {"name": "x", "cidr": "10.99.0.5/24", "role": "storage"},
        {"name": "x", "cidr": "10.99.0.0", "role": "storage"},
        {"name": "x", "cidr": "ten", "role": "storage"},
        {"name": "x", "cidr": "10.99.0.0/24", "role": "lunch"},
        {"name": "x", "cidr": "10.99.0.0/24", "role": "storage", "vlan": 5000},
        {"name": "x", "cidr": "10.99.0.0/24", "role": "storage", "dns": ["one.one.one.one"]},
        {"name": "x", "cidr": "10.99.0.0/24", "role": "storage", "mtu": 9000},
        {"cidr": "10.99.0.0/24", "role": "storage"},
        "10.99.0.0/24",
    ],
)
def test_a_wrong_subnet_is_said_once_for_the_rack(rack, subnet):
    for name in rack.groups["rack_nodes"]:
        rack[name]["rack_subnets"] = [*racks.SUBNETS, subnet]
    assert found(rack) == {("", "rack_subnets")}
    assert len(plan_of(rack)["problems"]) == 1


def test_without_a_bmc_network_bmc_addresses_are_the_sites_business(rack):
    for name in rack.groups["rack_nodes"]:
        rack[name]["rack_subnets"] = racks.SUBNETS[:1]
        rack[name]["rack_bmc_address"] = f"{name}-bmc.example"
    assert found(rack) == set()


def test_ipv6_racks_work_as_well(rack):
    for number, name in enumerate(rack.groups["rack_nodes"], start=1):
        rack[name]["rack_subnets"] = [
            {"name": "prov", "cidr": "2001:db8:1::/64", "gateway": "2001:db8:1::1", "role": "provisioning"},
            {"name": "bmc", "cidr": "2001:db8:2::/64", "role": "bmc"},
        ]
        rack[name]["ansible_host"] = f"2001:db8:1::{number + 10}"
        rack[name]["rack_bmc_address"] = f"[2001:db8:2::{number + 10}]:8443"
    for number, name in enumerate(("boot01", "mirror01", "mirror02", "slurm01"), start=2):
        rack[name]["ansible_host"] = f"2001:db8:1::{number}"
    plan = plan_of(rack)
    assert plan["problems"] == []
    node = plan["nodes"]["gpu001"]
    assert (node["address"], node["mirrors"][0]) == ("2001:db8:1::11/64", "http://[2001:db8:1::3]")
    assert node["network"]["ethernets"]["boot0"]["routes"][0]["to"] == "::/0"
    assert (node["bmc_host"], node["bmc_port"]) == ("2001:db8:2::11", 8443)


def test_a_node_uses_the_servers_of_its_rack_and_then_the_shared_ones(rack):
    rack["mirror01"]["rack_name"] = "r2"
    rack["gpu001"]["rack_name"] = "r1"
    rack["gpu002"]["rack_name"] = "r2"
    nodes = plan_of(rack)["nodes"]
    assert nodes["gpu001"]["mirror_hosts"] == ["mirror02"]
    assert nodes["gpu002"]["mirror_hosts"] == ["mirror01", "mirror02"]
    rack["mirror02"]["rack_name"] = "r2"
    assert found(rack) == {("gpu001", "rack_name")}


def test_a_mirror_may_have_a_url_of_its_own(rack):
    rack["mirror01"]["rack_mirror_url"] = "https://mirror.example:8443/"
    assert plan_of(rack)["nodes"]["gpu001"]["mirrors"][0] == "https://mirror.example:8443"


@pytest.mark.parametrize("group", ["rack_mirrors", "rack_boot_servers"])
def test_a_rack_without_servers_is_refused(rack, group):
    rack.groups[group] = []
    assert ("gpu001", "rack_name") in found(rack)


def test_an_empty_rack_is_a_problem(rack):
    rack.groups["rack_nodes"] = []
    assert ("", "rack_nodes") in found(rack)


def test_the_ledger_has_one_host(rack):
    rack["gpu001"]["rack_ledger_host"] = "slurm01"
    assert plan_of(rack)["ledger_host"] == "slurm01"
    rack["gpu002"]["rack_ledger_host"] = "boot01"
    assert found(rack) == {("", "rack_ledger_host")}
    rack["gpu001"]["rack_ledger_host"] = rack["gpu002"]["rack_ledger_host"] = "nowhere"
    assert found(rack) == {("", "rack_ledger_host")}


@pytest.mark.parametrize("variable", ["reimage", "overwrite"])
@pytest.mark.parametrize("value", [True, "true", "all", "yes", ["gpu001", True], ["*"], {"gpu001": True}, 1])
def test_consent_without_names_is_refused(rack, variable, value):
    plan = plan_of(rack, **{variable: value})
    assert [(problem["node"], problem["variable"]) for problem in plan["problems"]] == [("", f"rack_{variable}")]
    assert plan[variable] == []


def test_consent_for_a_name_that_is_no_node_is_refused(rack):
    assert found(rack, reimage=["gpu001", "gpu0O2"]) == {("", "rack_reimage")}
    assert found(rack, overwrite=["mirror01"]) == {("", "rack_overwrite")}


@pytest.mark.parametrize("value", [["gpu002", "gpu001"], "gpu002, gpu001", "gpu002\ngpu001\n", "gpu002,gpu001,gpu002"])
def test_names_may_come_as_a_list_or_from_a_text_field(rack, value):
    assert plan_of(rack, reimage=value)["reimage"] == ["gpu002", "gpu001"]


@pytest.mark.parametrize("value", [None, "", [], False])
def test_no_consent_is_no_problem(rack, value):
    assert found(rack, reimage=value, overwrite=value) == set()


@pytest.mark.parametrize(
    ("count", "forks", "batch", "enough"),
    [
        (10, 10, None, True),
        (10, 9, None, False),
        (10, 5, "100%", False),
        (10, 5, 5, True),
        (10, 4, "5", False),
        (10, 5, "50%", True),
        (10, 4, [1, "50%"], False),
        (10, 50, 100, True),
        (10, 50, "half", False),
        (10, 50, 0, False),
    ],
)
def test_forks_must_carry_a_whole_batch(count, forks, batch, enough):
    problems = plan_of(Rack(count), forks=forks, batch=batch)["problems"]
    assert bool(problems) is not enough
    if problems and batch not in ("half", 0):
        for word in ("ansible.cfg", "-f ", "AWX job template"):
            assert word in problems[0]["msg"]


def test_a_limited_run_needs_forks_for_its_own_nodes_only():
    assert found(Rack(10), forks=1, limit=["gpu003"]) == set()


def test_a_limited_run_is_not_stopped_by_the_troubles_of_others(rack):
    rack["gpu002"]["rack_boot_mac"] = "nonsense"
    assert found(rack, limit=["gpu001"]) == set()
    rack["gpu002"]["rack_boot_mac"] = rack["gpu001"]["rack_boot_mac"]
    assert found(rack, limit=["gpu001"]) == {("gpu001", "rack_boot_mac")}
    assert found(rack, limit=["boot01"]) == {("", "rack_limit")}


def test_a_profile_that_slurm_cannot_be_told_of_is_refused_only_where_slurm_is(rack):
    rack["gpu001"]["rack_profile"] = "h200_sxm"
    assert found(rack) == {("gpu001", "rack_profile")}
    assert "memory_mib" in messages(rack, "rack_profile")[0]
    rack.groups["rack_slurm_controllers"] = []
    assert found(rack) == set()


def test_a_template_that_fails_is_a_problem_of_its_variable(rack):
    class Broken(dict):
        def __getitem__(self, key):
            if key == "rack_serial":
                raise RuntimeError("'nothing' is undefined")
            return super().__getitem__(key)

    rack.hostvars["gpu001"] = Broken(rack["gpu001"])
    assert messages(rack, "rack_serial") == ["cannot be evaluated: 'nothing' is undefined"]


def test_a_mistake_of_a_thousand_nodes_is_not_told_a_million_times():
    rack = Rack(200)
    for name in rack.groups["rack_nodes"]:
        rack[name]["rack_serial"] = "Not Specified"
    text = json.dumps(plan_of(rack)["problems"])
    assert "and 194 more" in text
    assert len(text) < 200 * 400


junk = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.text(max_size=20),
    st.sampled_from(["10.20.0.11", "10.20.0.1/24", "[::1]:5", "::", "https://[", "http://10.30.0.11:99999", "a:b:c"]),
    st.lists(
        st.one_of(st.text(max_size=5), st.integers(), st.dictionaries(st.text(max_size=5), st.text())), max_size=3
    ),
    st.dictionaries(st.sampled_from(["serial", "size", "name", "cidr", "version"]), st.text(max_size=5), max_size=3),
)
VARIABLES = sorted({*REQUIRED, *(variable for variable, _value in BAD), "rack_profiles", "rack_domain", "rack_name"})


@settings(max_examples=150, deadline=None)
@given(st.dictionaries(st.sampled_from(VARIABLES), junk), st.dictionaries(st.sampled_from(VARIABLES), junk), junk, junk)
def test_nothing_that_stands_in_an_inventory_breaks_the_plan(node, server, consent, batch):
    rack = Rack()
    rack["gpu001"].update(node)
    rack["mirror01"].update({key: value for key, value in server.items() if key in ("ansible_host", "rack_name")})
    plan = plan_of(rack, reimage=consent, overwrite=consent, forks=5, batch=batch)
    json.dumps(plan)
    assert all(isinstance(problem["msg"], str) and problem["variable"] for problem in plan["problems"])


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from(BAD), min_size=1, unique_by=lambda bad: bad[0]))
def test_several_mistakes_are_all_found_in_one_go(mistakes):
    rack = Rack()
    rack["gpu002"].update(dict(mistakes))
    assert {("gpu002", variable) for variable, _value in mistakes} <= found(rack)
