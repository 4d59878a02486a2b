# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A node that is not what its inventory says is told apart from one that is."""

from __future__ import annotations

import pathlib
import subprocess

import pytest
from ansible_collections.h200.rack.plugins.module_utils._node import gather, judge, pci, run_check

TOP = pathlib.Path(__file__).parents[5]
FACTS = {
    "cloud_init": {"status": "done", "errors": [], "waited_out": False},
    "hostname": "gpu001",
    "links": [{"name": "boot0", "mac": "52:54:00:20:01:0b", "up": True, "mtu": 1500, "addresses": ["10.20.1.11/24"]}],
    "gateways": ["10.20.1.1"],
    "users": ["rack"],
    "clock": {"synchronized": True, "service": True},
    "time": 1000.0,
    "units": {"nvidia-fabricmanager.service": {"installed": True, "active": True, "enabled": True}},
    "gpu_devices": 8,
    "open_driver": True,
    "memlock": ["* - memlock unlimited"],
    "nccl_conf": None,
    "hosts": "127.0.0.1 localhost\n10.20.1.5  slurm01\n",
    "cmdline": "quiet",
    "iommu_types": [],
    "virtual": False,
    "acs": [],
}
CARD = {
    "match": {"macaddress": "52:54:00:20:01:0B"},
    "set-name": "boot0",
    "addresses": ["10.20.1.11/24"],
    "routes": [{"to": "0.0.0.0/0", "via": "10.20.1.1"}],
}
EXPECTED = {
    "cloud_init": True, "hostname": "gpu001", "network": {"version": 2, "ethernets": {"boot0": CARD}},
    "users": ["rack"], "time_sync": True, "time": 1001.0, "max_skew": 60, "units": ["nvidia-fabricmanager.service"],
    "gpus": 8,
    "open_driver": True, "memlock": True, "hosts": ["10.20.1.5 slurm01"], "acs_off": True,
}  # fmt: skip


def _failed(**facts):
    return [check.name for check in judge.judge({**FACTS, **facts}, EXPECTED) if check.verdict != "pass"]


def test_a_good_node_passes_every_check():
    assert _failed() == []


@pytest.mark.parametrize(
    ("facts", "name"),
    [
        ({"cloud_init": {"status": "error", "errors": ["no seed"], "waited_out": False}}, "cloud_init"),
        ({"cloud_init": {"status": "done", "errors": ["user-data is no YAML"], "waited_out": False}}, "cloud_init"),
        ({"cloud_init": {"status": "running", "errors": [], "waited_out": True}}, "cloud_init"),
        ({"hostname": "debian"}, "hostname"),
        ({"users": []}, "users"),
        ({"clock": {"synchronized": False, "service": True}}, "time_sync"),
        ({"time": 5000.0}, "clock_skew"),
        ({"units": {}}, "unit.nvidia-fabricmanager.service"),
        ({"gpu_devices": 7}, "gpu_devices"),
        ({"gpu_devices": 9}, "gpu_devices"),
        ({"open_driver": False}, "open_driver"),
        ({"memlock": ["* soft memlock unlimited"]}, "memlock"),
        ({"memlock": []}, "memlock"),
        ({"hosts": ""}, "hosts"),
        ({"gateways": []}, "network.boot0.gateway"),
        ({"nccl_conf": "NCCL_ALGO=Ring\n"}, "nccl_conf.minimal"),
        ({"acs": ["0000:01:00.0"]}, "acs"),
        ({"iommu_types": ["DMA-FQ", "identity"]}, "iommu"),
    ],
)
def test_each_thing_that_is_wrong_has_its_own_check(facts, name):
    assert _failed(**facts) == [name]


def test_another_card_at_the_address_is_not_taken_for_the_planned_one():
    links = [{**FACTS["links"][0], "mac": "52:54:00:00:00:01"}]
    assert _failed(links=links) == ["network.boot0"]


def test_a_card_with_another_name_or_address_is_named():
    assert _failed(links=[{**FACTS["links"][0], "name": "eth0"}]) == ["network.boot0.name"]
    assert _failed(links=[{**FACTS["links"][0], "addresses": []}]) == ["network.boot0.addresses"]


def test_a_passing_iommu_is_fine():
    assert _failed(iommu_types=["identity"]) == []


def test_in_a_virtual_machine_acs_and_iommu_are_the_hosts_affair():
    assert _failed(virtual=True, acs=["0000:01:00.0"], iommu_types=["DMA"]) == []


def test_the_iommu_is_read_from_its_groups(tmp_path):
    for number, kind in enumerate(["identity", "DMA-FQ", "identity"]):
        (tmp_path / str(number)).mkdir()
        (tmp_path / str(number) / "type").write_text(f"{kind}\n")
    assert gather.iommu_types(str(tmp_path)) == ["DMA-FQ", "identity"]
    assert gather.iommu_types(str(tmp_path / "none")) == []


UNIT = {"installed": True, "active": False, "enabled": True, "ran": False}


@pytest.mark.parametrize(
    ("name", "unit", "started"),
    [
        ("nvidia-fabricmanager.service", UNIT, True),
        ("nvidia-fabricmanager.service", {**UNIT, "ran": True}, False),
        ("nvidia-fabricmanager.service", {**UNIT, "active": True, "ran": True}, False),
        ("nvidia-fabricmanager.service", {**UNIT, "active": True, "enabled": False, "ran": True}, True),
        ("nvidia-persistenced.service", {**UNIT, "ran": True}, True),
        ("nvidia-persistenced.service", {**UNIT, "installed": False}, False),
    ],
)
def test_a_fabric_manager_that_ran_in_this_boot_is_never_started_again(name, unit, started):
    assert run_check._to_start(name, unit) is started


def test_a_fabric_manager_that_died_asks_for_a_reboot():
    facts = {**FACTS, "units": {"nvidia-fabricmanager.service": {**UNIT, "ran": True}}}
    check = next(c for c in judge.judge(facts, EXPECTED) if c.name.startswith("unit."))
    assert check.verdict == "fail" and "drain and reboot" in check.hint


def test_acs_is_switched_off_at_every_bridge_though_some_have_none(tmp_path):
    text = (TOP / "roles" / "node_ready" / "templates" / "acs.service.j2").read_text()
    script = text.partition("/bin/sh -c '")[2].partition("'")[0].replace("\\\n", "").replace("$$", "$")
    for name, kind in {"0000:00:01.0": "0x060400", "0000:01:00.0": "0x030200", "0000:02:00.0": "0x060400"}.items():
        (tmp_path / "devices" / name).mkdir(parents=True)
        (tmp_path / "devices" / name / "class").write_text(f"{kind}\n")
    tool = tmp_path / "setpci"
    tool.write_text(f'#!/bin/sh\necho "$@" >>{tmp_path}/said\nexit 1\n')
    tool.chmod(0o755)
    script = script.replace("/sys/bus/pci/devices", str(tmp_path / "devices"))
    subprocess.run(["sh", "-c", script], check=True, env={"PATH": f"{tmp_path}:/usr/bin:/bin"})
    said = (tmp_path / "said").read_text().splitlines()
    assert said == [f"-s {name} ECAP_ACS+0x6.w=0000" for name in ("0000:00:01.0", "0000:02:00.0")]


def test_soft_and_hard_limits_together_are_unlimited():
    assert _failed(memlock=["* soft memlock unlimited", "* hard memlock unlimited"]) == []


def test_a_system_without_cloud_init_is_not_blamed_for_it():
    assert _failed(cloud_init={"status": None, "errors": [], "waited_out": False}) == []


def test_without_a_profile_nothing_is_expected_of_the_hardware():
    assert [c.name for c in judge.judge({**FACTS, "gpu_devices": 0}, {"hostname": "gpu001"})] == ["hostname"]


def test_cloud_inits_dots_before_its_json_are_not_a_failure():
    def run(argv):
        return 0, '....\n{"status": "done", "errors": []}', ""

    assert gather.read_cloud_init(run, 1)["status"] == "done"


def test_a_cloud_init_that_never_ends_is_told_as_such():
    assert gather.read_cloud_init(lambda argv: (124, "...", ""), 1)["waited_out"]


def test_units_that_systemd_does_not_know_are_absent():
    known = "Id=a.service\nLoadState=loaded\nActiveState=active\nUnitFileState=enabled\n"
    out = f"{known}\nId=b.service\nLoadState=not-found\n"
    units = gather.read_units(lambda argv: (0, out, ""), ["a.service", "b.service"])
    assert units["a.service"] == {"installed": True, "active": True, "enabled": True, "ran": False}
    assert not units["b.service"]["installed"]


def _capability(at, identity, following, control=0):
    return at, (identity | 1 << 16 | following << 20).to_bytes(4, "little") + b"\0\0" + control.to_bytes(2, "little")


def _config(*capabilities):
    config = bytearray(4096)
    for at, content in capabilities:
        config[at : at + len(content)] = content
    return bytes(config)


def test_acs_is_found_behind_other_capabilities():
    assert pci.acs_control(_config(_capability(0x100, 1, 0x140), _capability(0x140, 0x0D, 0, 0x5D))) == 0x5D


def test_a_ring_of_capabilities_ends():
    assert pci.acs_control(_config(_capability(0x100, 1, 0x140), _capability(0x140, 2, 0x100))) is None


def test_a_short_configuration_space_has_no_acs():
    assert pci.acs_control(bytes(256)) is None


def test_bridges_only(tmp_path):
    for name, kind in (("0000:00:01.0", "0x060400"), ("0000:01:00.0", "0x030200")):
        device = tmp_path / name
        device.mkdir()
        (device / "class").write_text(kind + "\n")
        (device / "config").write_bytes(_config(_capability(0x100, 0x0D, 0, 1)))
    assert pci.bridges_with_acs(str(tmp_path)) == ["0000:00:01.0"]


class _Clock:
    def __init__(self, turns):
        self.turns = turns

    def pause(self, _seconds):
        self.turns -= 1
        return self.turns >= 0


def test_what_does_not_get_better_by_waiting_is_not_waited_for(monkeypatch):
    looks = []
    monkeypatch.setattr(gather, "gather", lambda *a: looks.append(1) or {**FACTS, "hostname": "x", "boot_id": "b"})
    params = {**EXPECTED, "cloud_init_timeout": 1, "wait": 30}
    assert run_check.run(params, None, _Clock(5))["failed_checks"] == ["hostname"]
    assert len(looks) == 1


def test_a_clock_that_still_settles_is_waited_for(monkeypatch):
    answers = [False, False, True]
    monkeypatch.setattr(
        gather, "gather", lambda *a: {**FACTS, "clock": {"synchronized": answers.pop(0)}, "boot_id": "b"}
    )
    params = {**EXPECTED, "cloud_init_timeout": 1, "wait": 30}
    assert run_check.run(params, None, _Clock(5))["verdict"] == "pass"


def test_a_failure_has_the_code_that_gpu_probe_gives_the_same_thing():
    checks = [
        {"name": "gpu_devices", "measured": 7, "expected": 8, "verdict": "fail", "hint": "look at lspci"},
        {"name": "unit.nvidia-fabricmanager.service", "measured": "stopped", "expected": "running", "verdict": "fail",
         "hint": "not running"},
    ]  # fmt: skip
    failed = run_check.failure({"checks": checks})
    assert failed["code"] == "GPU_COUNT"
    assert failed["msg"].startswith("gpu_devices: look at lspci (is 7, shall be 8); unit.nvidia-fabricmanager.service:")
    assert run_check.failure({"checks": checks[1:]})["code"] == "UNIT"
    assert run_check.failure({"checks": []}) == {}
