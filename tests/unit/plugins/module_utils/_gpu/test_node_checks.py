# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A healthy H200 node, then one thing wrong at a time."""

from __future__ import annotations

import dataclasses
import pathlib
import re

import pytest
from ansible_collections.h200.rack.plugins.module_utils._common.profiles import PROFILES, resolve
from ansible_collections.h200.rack.plugins.module_utils._gpu import judge_node, ports, smi, wiring, xid
from ansible_collections.h200.rack.plugins.module_utils._gpu.collect import Evidence
from ansible_collections.h200.rack.plugins.module_utils._gpu.gpu_probe import report
from ansible_collections.h200.rack.plugins.module_utils._gpu.programs import FAILED, HUNG, MISSING, OK, Output

FIXTURES = pathlib.Path(__file__).parents[3] / "fixtures" / "gpu"
NAMES = ["mlx5_0", "mlx5_1", "mlx5_2", "mlx5_3", "mlx5_4", "mlx5_5", "mlx5_6", "mlx5_7"]
BUSES = ["18", "2A", "3A", "5D", "9A", "AB", "BA", "DB"]


def read(name: str) -> str:
    return (FIXTURES / f"{name}.txt").read_text()


def healthy_query() -> str:
    """``nvidia-smi -q`` of eight H200, in the shape of the recorded H100 one."""
    head, gpu = re.split(r"(?m)^(?=GPU 0000)", read("query_h100_power_brake"))
    gpu = (
        gpu.replace("NVIDIA H100 80GB HBM3", "NVIDIA H200")
        .replace("81559 MiB", "143771 MiB")
        .replace("HW Slowdown                       : Active", "HW Slowdown                       : Not Active")
        .replace("HW Power Brake Slowdown       : Active", "HW Power Brake Slowdown       : Not Active")
    )
    return head + "".join(gpu.replace("19:00.0", f"{bus}:00.0") for bus in BUSES)


def healthy_nvlink() -> str:
    return "".join(
        f"GPU {n}: NVIDIA H200 (UUID: GPU-{n})\n" + "".join(f"\t Link {k}: 26.562 GB/s\n" for k in range(18))
        for n in range(8)
    )


def ibstat_ports() -> list[ports.Port]:
    return [
        ports.Port(name, "Active", "LinkUp", 400.0, "InfiniBand", "28.43.2026", "MT4129", {"link_downed": 3})
        for name in NAMES
    ]


def healthy(**changes) -> Evidence:
    outputs = {
        "query": Output(OK, 0, healthy_query()),
        "nvlink": Output(OK, 0, healthy_nvlink()),
        "topology": Output(OK, 0, read("topo_h200")),
        "fm_version": Output(OK, 0, "Fabric Manager version is : 535.161.08\n"),
        "fm_active": Output(OK, 0, "active\n"),
    }
    outputs.update(changes.pop("outputs", {}))
    evidence = Evidence(
        outputs=outputs,
        ports=ibstat_ports(),
        ports_source="sysfs",
        kernel_log="systemd[1]: Started\n",
        kernel_log_whole=True,
        device_nodes=tuple(range(8)),
        pci_gpus=8,
        boot_id="b007",
        serial="S1",
        simulated=False,
    )
    return dataclasses.replace(evidence, **changes)


def judge(evidence: Evidence, profile="h200_sxm", **options):
    profile = PROFILES[profile] if isinstance(profile, str) else profile
    node, checks = judge_node.judge(evidence, profile, **options)
    return report(node, checks, 1.0)


def codes(result) -> dict[str, str]:
    return {check["name"]: check["code"] for check in result["checks"] if check["verdict"] != "pass"}


def test_a_healthy_node_passes_every_check():
    result = judge(healthy())
    assert codes(result) == {} and result["verdict"] == "pass" and result["reasons"] == []
    assert result["versions"]["driver"] == "535.161.08" and len(result["serials"]["gpus"]) == 8
    assert len(result["checks"]) == len(judge_node.CHECKS)


def test_every_check_says_what_it_measured_and_expected():
    for check in judge(healthy())["checks"]:
        assert set(check) == {"name", "verdict", "measured", "expected", "code", "hint"}


def changed_query(pattern: str, replacement: str, count: int = 1) -> Evidence:
    text = healthy_query()
    assert re.search(pattern, text)
    return healthy(outputs={"query": Output(OK, 0, re.sub(pattern, replacement, text, count=count))})


@pytest.mark.parametrize(
    ("pattern", "replacement", "name", "code"),
    [
        (r"(Product Name +: ).*", r"\1NVIDIA H100 80GB HBM3", "gpus", "GPU_MODEL"),
        (r"143771 MiB", "139264 MiB", "gpus", "GPU_MEMORY"),
        (r"Attached GPUs( +): 8", r"Attached GPUs\1: 7", "gpus", "GPU_COUNT"),
        (r"(Current Power Limit +: )700", r"\g<1>600", "power_limit", "POWER_LIMIT"),
        (r"(Persistence Mode +: )Enabled", r"\1Disabled", "persistence", "PERSISTENCE_OFF"),
        (r"(DRAM Uncorrectable +: )0", r"\g<1>1", "ecc", "ECC_ERRORS"),
        (r"(ECC Mode\n +Current +: )Enabled", r"\1Disabled", "ecc", "ECC_ERRORS"),
        (r"(SRAM Threshold Exceeded +: )No", r"\1Yes", "ecc", "ECC_ERRORS"),
        (r"(Error +: 0\n +Pending +: )No", r"\1Yes", "remapped_rows", "ROW_REMAP_PENDING"),
        (r"(Remapping Failure Occurred +: )No", r"\1Yes", "remapped_rows", "ROW_REMAP_FAILED"),
        (r"(Reset Required +: )No", r"\1Yes", "reset_required", "RESET_REQUIRED"),
        (r"(HW Thermal Slowdown +: )Not Active", r"\1Active", "clocks", "THROTTLED"),
        (r"(Link Width\n +Max +: 16x\n +Current +: )16x", r"\g<1>8x", "pcie", "PCIE_LINK"),
        (r"(Fabric\n +State +: )Completed", r"\1In Progress", "fabric", "FABRIC_NOT_READY"),
        (r"(VBIOS Version +: ).*", r"\g<1>96.00.99.00.01", "firmware", "FIRMWARE_MIXED"),
    ],
)
def test_one_gpu_that_differs_fails_its_check_and_no_other(pattern, replacement, name, code):
    assert codes(judge(changed_query(pattern, replacement))) == {name: code}


def test_a_software_power_cap_is_normal_under_load():
    assert codes(judge(changed_query(r"(SW Power Cap +: )Not Active", r"\1Active", 0))) == {}


def test_idle_links_may_step_down_and_busy_ones_may_not():
    slow = changed_query(r"(PCIe Generation\n +Max +: 5\n +Current +: )5", r"\g<1>1")
    assert codes(judge(slow)) == {}
    assert codes(judge(slow, under_load=True)) == {"pcie": "PCIE_LINK"}


def test_under_load_without_load_is_not_a_measurement():
    idle = changed_query(r"(Performance State +: )P0", r"\1P8", 0)
    assert codes(judge(idle, under_load=True)) == {"pcie": "NO_LOAD"}


def test_seven_gpus_fail_and_the_bus_tells_whether_the_driver_lost_one():
    seven = (
        healthy_query()
        .rsplit("GPU 00000000:DB", 1)[0]
        .replace("Attached GPUs                             : 8", "Attached GPUs                             : 7")
    )
    result = judge(healthy(outputs={"query": Output(OK, 0, seven)}, device_nodes=tuple(range(7)), pci_gpus=8))
    assert codes(result)["gpus"] == "GPU_COUNT"
    assert "the driver refused some" in next(c["hint"] for c in result["checks"] if c["name"] == "gpus")


def test_missing_device_nodes_fail_because_slurm_counts_them():
    assert codes(judge(healthy(device_nodes=tuple(range(7))))) == {"gpus": "DEVICE_NODES"}


def test_output_that_was_cut_is_not_a_pass():
    result = judge(healthy(outputs={"query": Output(OK, 0, read("query_h100_cut"))}), "h100_sxm")
    assert result["verdict"] == "fail" and codes(result)["gpus"] == "GPU_COUNT"
    assert codes(result)["ecc"] == "NOT_REPORTED"


def test_power_brake_on_every_gpu_fails():
    head, gpu = re.split(r"(?m)^(?=GPU 0000)", read("query_h100_power_brake"))
    text = head + "".join(gpu.replace("19:00.0", f"{bus}:00.0") for bus in BUSES)
    result = judge(healthy(outputs={"query": Output(OK, 0, text)}), "h100_sxm")
    assert codes(result) == {"clocks": "THROTTLED"}


@pytest.mark.parametrize(
    ("state", "code", "verdict"), [(MISSING, "TOOL_MISSING", "not_run"), (HUNG, "PROBE_HUNG", "fail")]
)
def test_a_missing_tool_is_not_run_and_a_hung_one_fails(state, code, verdict):
    result = judge(healthy(outputs=dict.fromkeys(("query", "nvlink", "topology"), Output(state))))
    assert set(codes(result).values()) <= {code, "NOT_REPORTED"} and result["verdict"] == verdict
    assert len(codes(result)) >= 12


def test_a_driver_that_does_not_answer_fails_with_its_words():
    text = "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.\n"
    result = judge(healthy(outputs={"query": Output(FAILED, 9, "", text)}))
    check = next(c for c in result["checks"] if c["name"] == "gpus")
    assert (check["code"], "communicate" in check["measured"]) == ("TOOL_FAILED", True)


@pytest.mark.parametrize("link", ["<inactive>", "1.0 GB/s", "1.562 GB/s"])
def test_one_link_inactive_or_slow_fails(link):
    text = healthy_nvlink().replace("Link 7: 26.562 GB/s", f"Link 7: {link}", 1)
    result = judge(healthy(outputs={"nvlink": Output(OK, 0, text)}))
    assert codes(result) == {"nvlink": "NVLINK_DOWN"}


def test_all_links_inactive_is_no_pass():
    text = read("nvlink_all_inactive")
    result = judge(healthy(outputs={"nvlink": Output(OK, 0, text)}))
    assert codes(result) == {"nvlink": "NVLINK_DOWN"}


def test_nvl_cards_are_not_asked_for_links_and_fabric():
    text = healthy_query().replace("NVIDIA H200", "NVIDIA H200 NVL").replace("700.00 W", "600.00 W")
    evidence = healthy(
        outputs={"query": Output(OK, 0, text), "fm_version": Output(MISSING), "nvlink": Output(OK, 0, "")}
    )
    assert codes(judge(evidence, "h200_nvl")) == {}


def test_fabric_manager_of_another_version_fails_and_nobody_is_told_to_restart_it():
    result = judge(healthy(outputs={"fm_version": Output(OK, 0, "Fabric Manager version is : 535.161.07\n")}))
    assert codes(result) == {"fabric_manager": "FM_VERSION"}
    assert "reboot" in result["reasons"][0]["hint"]


def test_fabric_manager_that_does_not_run_fails():
    result = judge(healthy(outputs={"fm_active": Output(FAILED, 3, "inactive\n")}))
    assert codes(result) == {"fabric_manager": "FM_NOT_ACTIVE"}


def test_topology_is_read_from_the_legend_and_without_tabs():
    offset = wiring.parse_topology(read("topo_legend_offset"))
    assert offset.near(0) == ["mlx5_1"] and offset.numa[7] == 1
    text = read("topo_h200")
    assert wiring.parse_topology(text.replace("\t", " ")) == wiring.parse_topology(text)
    glued = wiring.parse_topology(text.replace("\t", ""))
    assert [glued.near(gpu) for gpu in range(8)] == [wiring.parse_topology(text).near(gpu) for gpu in range(8)]


def test_nic_order_is_not_gpu_order():
    topology = wiring.parse_topology(read("topo_h200"))
    assert [topology.near(gpu)[0] for gpu in range(8)] == [f"mlx5_{n}" for n in (4, 1, 0, 3, 6, 7, 5, 2)]


def test_a_gpu_without_a_near_nic_fails():
    text = read("topo_h200").replace("PIX", "NODE", 1)
    assert codes(judge(healthy(outputs={"topology": Output(OK, 0, text)}))) == {"topology": "NIC_TOPOLOGY"}


def test_a_pair_of_gpus_with_fewer_links_fails():
    text = read("topo_h200").replace("NV18", "NV17", 1)
    assert codes(judge(healthy(outputs={"topology": Output(OK, 0, text)}))) == {"topology": "NVLINK_TOPOLOGY"}


def test_numa_off_is_seen_where_the_profile_knows_the_sockets():
    text = re.sub(r"64-127,192-255\t1", "0-255\t0", read("topo_h200"))
    profile = resolve("site", {"site": {"base": "h200_sxm", "cpu": {"sockets": 2}}})
    assert codes(judge(healthy(outputs={"topology": Output(OK, 0, text)}), profile)) == {"topology": "NUMA_HIDDEN"}


def with_ports(name: str, profile_changes=None) -> dict[str, str]:
    profile = resolve("site", {"site": {"base": "h200_sxm", **(profile_changes or {})}})
    evidence = healthy(ports=ports.parse_ibstat(read(name)), ports_source="ibstat")
    result = judge(evidence, profile, names=["ports"])
    return codes(result)


def test_eight_400g_ports_pass_beside_a_bonded_200g_one():
    assert with_ports("ibstat_ib_8_ports_and_bond") == {}


def test_management_ports_that_are_down_do_not_matter():
    assert with_ports("ibstat_management_down") == {}


def test_a_roce_site_passes_by_its_link_layer_and_fails_by_the_other():
    assert with_ports("ibstat_roce_12_ports", {"nics": {"link_layer": "Ethernet"}}) == {}
    assert with_ports("ibstat_roce_12_ports") == {"ports": "PORT_LAYER"}


def test_compute_ports_that_poll_fail_by_number_and_by_name():
    assert with_ports("ibstat_compute_down", {"nics": {"link_layer": "Ethernet"}}) == {"ports": "PORT_DOWN"}
    names = [f"mlx5_{n}" for n in (0, 3, 4, 5, 6, 9, 10, 11)]
    assert with_ports("ibstat_compute_down", {"nics": {"link_layer": "Ethernet", "compute": names}}) == {
        "ports": "PORT_DOWN"
    }


def test_a_named_port_that_is_not_there_fails():
    assert with_ports("ibstat_ib_8_ports_and_bond", {"nics": {"compute": ["mlx5_0", "mlx5_99"]}}) == {
        "ports": "PORT_MISSING"
    }


def test_slower_ports_fail_by_rate_also_after_an_ibpanic():
    assert with_ports("ibstat_ibpanic") == {"ports": "PORT_RATE"}


def test_ibstatus_and_devinfo_name_the_same_things():
    assert ports.parse_ibstatus(read("ibstatus_a100"))[0] == ports.Port(
        "mlx5_0", "Active", "LinkUp", 200.0, "InfiniBand"
    )
    found = ports.parse_devinfo(read("ibv_devinfo_h200"))
    assert len(found) == 9 and found[0].firmware == "28.40.1702" and found[-1].link_layer == "Ethernet"


def test_sysfs_is_read_with_its_counters(tmp_path):
    port = tmp_path / "mlx5_0" / "ports" / "1"
    (port / "counters").mkdir(parents=True)
    for path, text in {
        port / "state": "4: ACTIVE",
        port / "phys_state": "5: LinkUp",
        port / "rate": "400 Gb/sec (4X NDR)",
        port / "link_layer": "InfiniBand",
        tmp_path / "mlx5_0" / "fw_ver": "28.43.2026",
        tmp_path / "mlx5_0" / "hca_type": "MT4129",
        port / "counters" / "link_downed": "2",
    }.items():
        path.write_text(text + "\n")
    assert ports.read_sysfs(str(tmp_path)) == [
        ports.Port("mlx5_0", "Active", "LinkUp", 400.0, "InfiniBand", "28.43.2026", "MT4129", {"link_downed": 2})
    ]


def test_counters_since_boot_say_nothing_and_their_growth_fails():
    before = {name: {"link_downed": 3} for name in NAMES}
    assert codes(judge(healthy(), baseline=before)) == {}
    before["mlx5_5"] = {"link_downed": 2}
    assert codes(judge(healthy(), baseline=before)) == {"port_counters": "PORT_ERRORS"}


def test_firmware_is_compared_with_the_pinned_version_not_with_the_majority():
    profile = resolve("site", {"site": {"base": "h200_sxm", "gpu": {"driver_version": "570.211.01"}}})
    assert codes(judge(healthy(), profile)) == {"firmware": "FIRMWARE_VERSION"}


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("NVRM: Xid (PCI:0000:9b:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.", "XID"),
        ("NVRM: Xid (PCI:0000:9b:00): 48, pid=1, DBE", "XID"),
        ("NVRM: Xid (PCI:0000:9b:00): 777, pid=1, new", "XID"),
        (
            "NVRM: Xid (PCI:0000:9b:00): 154, GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)",
            "XID",
        ),
        (
            "NVRM: Xid (PCI:0000:9b:00): 154, GPU recovery action changed from 0x1 (GPU Reset Required) to 0x0 (None)",
            None,
        ),
        ("NVRM: Xid (PCI:0000:9b:00): 31, pid=1, name=python, MMU Fault", None),
        ("NVRM: Xid (PCI:0000:9b:00): 94, pid=1, Contained memory error", None),
        ("nvidia-nvswitch0: SXid (PCI:0000:05:00.0): 12028, Non-fatal, Link 32 egress", None),
        ("nvidia-nvswitch0: SXid (PCI:0000:05:00.0): 20034, Fatal, Link 32 LTSSM Fault Up", "XID"),
    ],
)
def test_each_xid_asks_for_its_action(line, code):
    assert codes(judge(healthy(kernel_log=f"{line}\n"))) == ({"xids": code} if code else {})


def test_xid_119_of_a_real_log_is_counted_and_asks_for_a_reset():
    found = xid.parse(read("dmesg_xid_119"))
    assert [(one.number, one.action, one.count, one.bus_id) for one in found] == [(119, "reset", 5, "0000:9b:00")]


def test_after_a_reset_the_driver_takes_its_recovery_action_back():
    line = "NVRM: Xid (PCI:0000:9b:00): 154, GPU recovery action changed from {} to {}\n"
    none, reset = "0x0 (None)", "0x1 (GPU Reset Required)"
    assert codes(judge(healthy(kernel_log=line.format(none, reset) + line.format(reset, none)))) == {}


def test_a_gpu_that_comes_and_goes_between_two_queries_fails():
    text = "\n".join(read("query_gpu_h200").splitlines()[:-1])
    assert codes(judge(healthy(outputs={"csv": Output(OK, 0, text)}))) == {"gpus": "GPU_COUNT"}


def test_a_kernel_log_that_cannot_be_read_or_was_cut_is_not_a_pass():
    assert codes(judge(healthy(kernel_log=None))) == {"xids": "NOT_READABLE"}
    assert codes(judge(healthy(kernel_log_whole=False))) == {"xids": "LOG_CUT"}


def test_csv_is_read_by_its_column_names():
    gpus = smi.parse_csv(read("query_gpu_h200")).gpus
    assert len(gpus) == 8 and {(g.model, g.memory_mib, g.power_limit_w) for g in gpus} == {
        ("NVIDIA H200", 143771, 700.0)
    }


def test_only_what_the_checks_need_is_run():
    assert judge_node.needs(["ports"]) == {"ibstat"}
    assert "journal" not in judge_node.needs(["gpus", "nvlink"])
