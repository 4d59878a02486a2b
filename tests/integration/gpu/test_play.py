# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The play acceptance over four nodes of one machine: a good one, a slow NIC path, seven GPUs, a probe that hangs.

Each node has an interpreter of its own that shows it its own simulated tools. First every node is measured by itself,
then the pairs, into one report.
"""

from __future__ import annotations

import importlib.util
import json
import os
import pathlib
import shutil
import subprocess
import sys

import pytest
from ansible_collections.h200.rack.plugins.module_utils._state.record import Request, record

TOP = pathlib.Path(__file__).parents[3]
HERE = pathlib.Path(__file__).parent


def sibling(name):
    spec = importlib.util.spec_from_file_location(f"gpu_{name}", HERE / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


acceptance, pairs = sibling("test_acceptance"), sibling("test_pairs")

pytestmark = pytest.mark.skipif(
    os.geteuid() != 0 or not shutil.which("dpkg-deb") or not shutil.which("unshare"),
    reason="needs root, dpkg-deb and unshare",
)

FAULTS = {"n1": [], "n2": ["nic_slow"], "n3": ["gpu_missing=7"], "n4": ["probe_hang"]}
STAGES = ("declared", "bmc_ok", "netboot_set", "powered", "ramdisk_up", "written", "local_boot", "os_up", "ready",
          "accepted")  # fmt: skip


def registered(folder):
    """The ledger of nodes that a provision took all the way."""
    for node in FAULTS:
        earlier = [{"stage": stage, "evidence": {"host_keys": ["ssh-ed25519 AAAA"]}} for stage in STAGES]
        record(
            str(folder),
            Request(node=node, run_id="provision", holder="x", stage="registered", earlier=earlier, release=True),
        )


def inventory(box):
    nodes = {
        name: {
            "ansible_host": f"10.9.1.{number}",
            "rack_bmc_address": f"10.9.2.{number}",
            "rack_boot_mac": f"52:54:00:00:00:0{number}",
            "rack_root_disk": {"serial": f"D{number}"},
            "ansible_python_interpreter": str(box / f"python-{name}"),
        }
        for number, name in enumerate(FAULTS, 1)
    }
    return {
        "all": {
            "vars": {
                "ansible_connection": "local",
                "ansible_become": False,
                "ansible_python_interpreter": sys.executable,
                "rack_name": "r1",
                "rack_os_user": "root",
                "rack_ledger_path": str(box / "ledger"),
                "rack_authorized_keys": ["ssh-ed25519 AAAA"],
                "rack_subnets": [
                    {"name": "prov", "cidr": "10.9.1.0/24", "gateway": "10.9.1.254"},
                    {"name": "bmc", "cidr": "10.9.2.0/24", "role": "bmc"},
                ],
                "rack_bmc_username": "a",
                "rack_bmc_password": "b",
                "rack_profile": "h200_sxm",
                "rack_image": "debian12",
                "acceptance_path": str(box / "records"),
                "acceptance_probe_timeout": 5,
            },
            "children": {
                "rack_nodes": {"hosts": nodes},
                "rack_boot_servers": {"hosts": {"boot01": {"ansible_host": "10.9.1.200"}}},
                "rack_mirrors": {"hosts": {"mirror01": {"ansible_host": "10.9.1.201"}}},
            },
        }
    }


@pytest.fixture(scope="module")
def outcome(tmp_path_factory):
    box = tmp_path_factory.mktemp("play")
    package = subprocess.run([acceptance.SIMGPU, box], check=True, capture_output=True, text=True).stdout.strip()
    for name, faults in {**FAULTS, "good": [], "slow": ["nic_slow"]}.items():
        root = box / name
        subprocess.run(["dpkg-deb", "-x", package, root], check=True)
        (root / "etc" / "h200-rack" / "simulated.faults").write_text("".join(f"{fault}\n" for fault in faults))
        interpreter = box / f"python-{name}"
        interpreter.write_text(f'#!/bin/sh\nSIMGPU_ROOT={root} exec {sys.executable} "$@"\n')
        interpreter.chmod(0o755)
    tools = box / "tools"
    tools.mkdir()
    (tools / "systemctl").write_text("#!/bin/sh\necho active\n")
    (tools / "journalctl").write_text("#!/bin/sh\necho 'systemd[1]: Started'\n")
    (tools / "srun").write_text(pairs.SRUN.replace(",n3,", ",n2,"))
    (tools / "scontrol").write_text("#!/bin/sh\necho \"$3\" | tr , '\\n'\n")
    for tool in tools.iterdir():
        tool.chmod(0o755)
    (box / "root").symlink_to(box / "good")
    (box / "inventory.json").write_text(json.dumps(inventory(box)))
    registered(box / "ledger")
    env = {"SLOW": str(box / "slow"), "JOURNAL": str(box / "journal")}
    results = {}
    plays = {
        "standard": ["h200.rack.acceptance", "-e", "acceptance_tier=standard"],
        "pairwise": ["h200.rack.acceptance", "-e", "acceptance_tier=pairwise"],
        "unknown": ["h200.rack.acceptance", "-e", "acceptance_tier=thorough"],
    }
    for name, argv in plays.items():
        play = ["ansible-playbook", "-i", box / "inventory.json", *argv, "-e", "rack_run_id=run1"]
        results[name] = acceptance.inside(box, range(8), *play, **env)
    return box, results


def report(outcome):
    return json.loads((outcome[0] / "records" / "run1" / "report.json").read_text())


def codes(outcome, node):
    row = next(row for row in report(outcome)["nodes"] if row["node"] == node)
    return [reason["code"] for reason in row["reasons"]]


def told(outcome, name):
    return outcome[1][name].stdout[-6000:] + outcome[1][name].stderr


def test_the_good_node_is_accepted_and_the_bad_ones_are_refused_with_their_codes(outcome):
    rows = {row["node"]: row for row in report(outcome)["nodes"]}
    assert rows["n1"]["tiers"] == {"standard": "pass", "pairwise": "pass"}, told(outcome, "standard")
    assert rows["n1"]["verdict"] == "pass"
    assert {name: row["verdict"] for name, row in rows.items() if name != "n1"} == dict.fromkeys(
        ["n2", "n3", "n4"], "fail"
    )
    assert "NIC_PATH_SLOW" in codes(outcome, "n2")
    assert codes(outcome, "n3")[0] == "GPU_COUNT"
    assert codes(outcome, "n4")[0] == "PROBE_HUNG"


def test_the_play_ends_with_an_error_and_tells_why(outcome):
    done = outcome[1]["standard"]
    assert done.returncode != 0 and "n3: GPU_COUNT" in done.stdout, told(outcome, "standard")
    recap = done.stdout[done.stdout.index("PLAY RECAP") :]
    assert "unreachable=0" in recap and "n1" in recap


def test_the_pairs_name_the_node_with_the_slow_path_and_the_one_with_seven_gpus(outcome):
    found = report(outcome)["pairs"]
    assert (found["nodes"], found["links"]) == (["n2", "n3"], []), told(outcome, "pairwise")
    assert "PAIRS_BAD" in codes(outcome, "n2") and "PAIRS_BAD" not in codes(outcome, "n1")


def test_an_unknown_tier_touches_no_node(outcome):
    done = outcome[1]["unknown"]
    assert done.returncode != 0 and "shall be one of quick, standard" in done.stdout
    assert "Measure each node by itself" not in done.stdout


def test_first_pass_yield_is_the_racks_and_the_page_says_that_it_is_simulated(outcome):
    found = report(outcome)
    assert (found["first_pass_yield"], found["accepted"], found["simulated"]) == (0.25, 1, True)
    page = (outcome[0] / "records" / "run1" / "report.html").read_text()
    assert "<b>simulated</b>" in page and "first-pass yield of the rack" in page


def test_nothing_of_a_hung_probe_is_left(outcome):
    assert acceptance.processes_of(outcome[0]) == []
