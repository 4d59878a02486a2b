# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The entry points pairwise, rack and report of the role acceptance over four nodes, one of which has a slow NIC path.

A stand-in for srun starts the replayed nccl-tests here; test_run_mode has the real one.
"""

from __future__ import annotations

import json
import os
import pathlib
import shutil
import subprocess
import sys

import pytest

TOP = pathlib.Path(__file__).parents[3]
SIMGPU = TOP / "tests" / "virtual_rack" / "simgpu" / "build"

pytestmark = [pytest.mark.full, pytest.mark.skipif(not shutil.which("dpkg-deb"), reason="needs dpkg-deb")]

PLAY = """
- hosts: all
  gather_facts: false
  tasks:
    - name: Neighbours are measured
      ansible.builtin.include_role:
        name: h200.rack.acceptance
        tasks_from: pairwise
    - name: All nodes are measured
      ansible.builtin.include_role:
        name: h200.rack.acceptance
        tasks_from: rack
      vars:
        acceptance_must_pass: false
    - name: The report can be read
      ansible.builtin.include_role:
        name: h200.rack.acceptance
        tasks_from: report
      when: inventory_hostname == 'n1'
"""
# Keeps a log of who is in which test when, and gives tests with node n3 in them a slow path.
SRUN = """#!/bin/sh
for word in "$@"; do
    case $word in
    --nodes=*) SLURM_NNODES=${word#*=} ;;
    --ntasks=*) SLURM_NTASKS=${word#*=} ;;
    --nodelist=*) SLURM_JOB_NODELIST=${word#*=} ;;
    esac
done
while [ "${1#--}" != "$1" ]; do shift; done
SLURM_PROCID=0
export SLURM_NNODES SLURM_NTASKS SLURM_JOB_NODELIST SLURM_PROCID
case ,$SLURM_JOB_NODELIST, in *,n3,*) export SIMGPU_ROOT=$SLOW ;; esac
echo "begin $SLURM_JOB_NODELIST" >>"$JOURNAL"
"$@"
rc=$?
sleep 1
echo "end $SLURM_JOB_NODELIST" >>"$JOURNAL"
exit $rc
"""


@pytest.fixture(scope="module")
def outcome(tmp_path_factory):
    box = tmp_path_factory.mktemp("pairs")
    package = subprocess.run([SIMGPU, box], check=True, capture_output=True, text=True).stdout.strip()
    for name in ("good", "slow"):
        subprocess.run(["dpkg-deb", "-x", package, box / name], check=True)
    (box / "slow" / "etc" / "h200-rack" / "simulated.faults").write_text("nic_slow\n")
    tools = box / "tools"
    tools.mkdir()
    (tools / "srun").write_text(SRUN)
    (tools / "scontrol").write_text("#!/bin/sh\necho \"$3\" | tr , '\\n'\n")
    for tool in tools.iterdir():
        tool.chmod(0o755)
    (box / "play.yml").write_text(PLAY)
    extra = {
        "acceptance_profile": {"name": "h200_sxm"},
        "acceptance_record_host": "n1",
        "acceptance_run_id": "run1",
        "acceptance_path": str(box / "records"),
        "ansible_python_interpreter": sys.executable,
    }
    env = {
        **os.environ,
        "PATH": f"{tools}:{box / 'good' / 'usr' / 'bin'}:{TOP / '.venv' / 'bin'}:{os.environ['PATH']}",
        "SIMGPU_ROOT": str(box / "good"),
        "SLOW": str(box / "slow"),
        "JOURNAL": str(box / "journal"),
        "ANSIBLE_COLLECTIONS_PATH": str(TOP / ".cache" / "collections"),
    }
    play = ["ansible-playbook", "-i", "n1,n2,n3,n4,", "-c", "local", box / "play.yml", "-e", json.dumps(extra)]
    done = subprocess.run(play, capture_output=True, text=True, env=env, cwd=TOP, check=False)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr
    return box


def test_the_node_with_the_slow_path_is_named(outcome):
    report = json.loads((outcome / "records" / "run1" / "report.json").read_text())
    assert report["pairs"]["nodes"] == ["n3"]
    assert sorted(map(sorted, report["pairs"]["bad_pairs"])) == [["n2", "n3"], ["n3", "n4"]]
    assert "n3" in (outcome / "records" / "run1" / "report.html").read_text()


def test_no_node_is_in_two_tests_at_once(outcome):
    busy: set[str] = set()
    for line in (outcome / "journal").read_text().splitlines():
        word, nodes = line.split()
        named = set(nodes.split(","))
        assert word == "end" or not named & busy, f"{nodes} began while {busy} were measured"
        busy = busy | named if word == "begin" else busy - named


def test_the_whole_rack_is_held_against_the_reference_of_its_number_of_nodes(outcome):
    record = json.loads((outcome / "records" / "run1" / "n1.rack.json").read_text())
    assert record["verdict"] == "fail" and record["parts"]["all_reduce"]["ranks"] == 32
    assert {reason["code"] for reason in record["reasons"]} == {"NIC_PATH_SLOW"}
