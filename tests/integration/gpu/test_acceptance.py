# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The role acceptance against the simulated GPUs, as root in a mount namespace of its own with device nodes in it.

What test_play shows of several nodes at once in less time is marked full here.
"""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import shutil
import subprocess
import sys

import pytest

TOP = pathlib.Path(__file__).parents[3]
SIMGPU = TOP / "tests" / "virtual_rack" / "simgpu" / "build"

pytestmark = pytest.mark.skipif(
    os.geteuid() != 0 or not shutil.which("dpkg-deb") or not shutil.which("unshare"),
    reason="needs root, dpkg-deb and unshare",
)

PLAY = """
- hosts: all
  gather_facts: false
  tasks:
    - name: The node is accepted
      ansible.builtin.include_role:
        name: h200.rack.acceptance
    - name: The report can be read
      ansible.builtin.include_role:
        name: h200.rack.acceptance
        tasks_from: report
"""

# A /dev of our own holds what the node would have; nothing outside the namespace is touched.
INSIDE = """
set -e
mount --make-rprivate /
mkdir -p "$BOX/dev"
mount -t tmpfs tmpfs "$BOX/dev"
for name in null zero full random urandom tty fd stdin stdout stderr; do cp -a "/dev/$name" "$BOX/dev"; done
[ -e /dev/kmsg ] && cp -a /dev/kmsg "$BOX/dev"
mkdir "$BOX/dev/pts" "$BOX/dev/shm"
mount --rbind /dev/pts "$BOX/dev/pts"
mount -t tmpfs tmpfs "$BOX/dev/shm"
for i in $GPUS; do mknod "$BOX/dev/nvidia$i" c 1 3; done
mount --rbind "$BOX/dev" /dev
exec "$@"
"""


@pytest.fixture(scope="module")
def box(tmp_path_factory):
    """The simulated tools, unpacked, with a systemctl that knows their services."""
    folder = tmp_path_factory.mktemp("simgpu")
    package = subprocess.run([SIMGPU, folder], check=True, capture_output=True, text=True).stdout.strip()
    subprocess.run(["dpkg-deb", "-x", package, folder / "root"], check=True)
    tools = folder / "tools"
    tools.mkdir()
    (tools / "systemctl").write_text("#!/bin/sh\necho active\n")
    # The kernel log of the machine that runs the tests is not the node's.
    (tools / "journalctl").write_text("#!/bin/sh\necho 'systemd[1]: Started'\n")
    for tool in tools.iterdir():
        tool.chmod(0o755)
    (folder / "play.yml").write_text(PLAY)
    return folder


def inside(box, gpus, *argv, **more):
    """Run ``argv`` where the simulated node's devices and tools are."""
    env = {
        **os.environ,
        "PATH": f"{box / 'tools'}:{box / 'root' / 'usr' / 'bin'}:{TOP / '.venv' / 'bin'}:{os.environ['PATH']}",
        "SIMGPU_ROOT": str(box / "root"),
        "BOX": str(box / "box"),
        "GPUS": " ".join(map(str, gpus)),
        "ANSIBLE_COLLECTIONS_PATH": str(TOP / ".cache" / "collections"),
        "ANSIBLE_LOCALHOST_WARNING": "false",
        **more,
    }
    argv = ["unshare", "-m", "sh", "-c", INSIDE, "sh", *map(str, argv)]
    return subprocess.run(argv, capture_output=True, text=True, env=env, check=False, cwd=TOP)


def run(box, *faults, tier="quick", gpus=range(8), check=False, **variables):
    root = box / "root"
    file = root / "etc" / "h200-rack" / "simulated.faults"
    file.write_text("".join(f"{fault}\n" for fault in faults))
    records = box / f"records-{tier}-{'-'.join(faults) or 'good'}"
    extra = {
        "acceptance_tier": tier,
        "acceptance_profile": {"name": "h200_sxm"},
        "acceptance_record_host": "node",
        "acceptance_run_id": "run1",
        "acceptance_path": str(records),
        "acceptance_burn_seconds": 1,
        "acceptance_burn_arguments": [],
        "ansible_python_interpreter": sys.executable,
        **variables,
    }
    play = ["ansible-playbook", "-i", "node,", "-c", "local", box / "play.yml", "-e", json.dumps(extra)]
    done = inside(box, gpus, *play, *(["--check"] if check else []))
    path = records / "run1" / f"node.{tier}.json"
    return done, json.loads(path.read_text()) if path.exists() else None


def processes_of(box) -> list[str]:
    """Whatever still runs with the tools of this test."""
    mark = f"SIMGPU_ROOT={box}".encode()
    left = []
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if mark in (folder / "environ").read_bytes():
                left.append((folder / "cmdline").read_bytes().replace(b"\0", b" ").decode())
    return left


def codes(record):
    return [reason["code"] for reason in record["reasons"]]


def test_a_good_node_is_accepted_and_its_record_says_that_it_is_simulated(box):
    done, record = run(box)
    assert done.returncode == 0, done.stdout + done.stderr
    assert (record["verdict"], record["simulated"], codes(record)) == ("pass", True, [])
    report = (box / "records-quick-good" / "run1" / "report.html").read_text()
    assert "<b>simulated</b>" in report


@pytest.mark.full
def test_a_node_with_seven_gpus_is_refused(box):
    done, record = run(box, "gpu_missing=7", gpus=range(7))
    assert done.returncode == 2 and "GPU_COUNT" in done.stdout
    assert record["verdict"] == "fail" and codes(record)[0] == "GPU_COUNT"


@pytest.mark.full
def test_a_node_whose_probe_hangs_is_refused_in_time_and_nothing_of_it_is_left(box):
    done, record = run(box, "probe_hang", acceptance_probe_timeout=4)
    assert done.returncode == 2 and codes(record)[0] == "PROBE_HUNG"
    assert processes_of(box) == []


PASSIVE = {
    "nvlink_down=3": "NVLINK_DOWN",
    "ecc=2": "ECC_ERRORS",
    "fm_version": "FM_VERSION",
    "nic_rate=mlx5_4": "PORT_RATE",
    "nic_down=mlx5_4": "PORT_DOWN",
    "persistence_off": "PERSISTENCE_OFF",
}
PROBES = """
import json, sys
sys.path.insert(0, sys.argv[1])
from ansible_collections.h200.rack.plugins.module_utils._gpu.gpu_probe import probe
out = {}
for fault in sys.argv[3:]:
    with open(sys.argv[2], "w") as handle:
        handle.write(fault + "\\n")
    out[fault] = [reason["code"] for reason in probe({"name": "h200_sxm"})["reasons"]]
print(json.dumps(out))
"""


@pytest.fixture(scope="module")
def passive(box):
    """What gpu_probe says of a node with each fault."""
    file = box / "root" / "etc" / "h200-rack" / "simulated.faults"
    done = inside(box, range(8), sys.executable, "-c", PROBES, TOP / ".cache" / "collections", file, *PASSIVE)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize(("fault", "code"), PASSIVE.items())
def test_every_passive_fault_has_its_code(passive, fault, code):
    assert code in passive[fault]


@pytest.mark.full
def test_a_good_node_passes_the_standard_tier(box):
    done, record = run(box, tier="standard")
    assert done.returncode == 0, done.stdout + done.stderr
    assert set(record["parts"]) == {"gpu", "dcgm", "nccl", "load", "nics", "after"}
    assert record["parts"]["nccl"]["utilization"]["reference"] == 480


LOADED = {
    "nic_slow": "NIC_PATH_SLOW",
    "gdr_absent": "GPUDIRECT_ABSENT",
    "nvls_absent": "NVLS_ABSENT",
    "nccl_wrong": "WRONG_RESULTS",
}


@pytest.mark.full
@pytest.mark.parametrize(("fault", "code"), LOADED.items())
def test_a_slow_or_wrong_node_is_refused_by_the_standard_tier_though_it_looks_good(box, fault, code):
    done, record = run(box, fault, tier="standard")
    assert done.returncode == 2 and code in codes(record)
    assert record["parts"]["gpu"]["verdict"] == "pass"


@pytest.mark.full
def test_a_good_node_passes_the_burn_in(box):
    done, record = run(box, tier="burn_in")
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(record["parts"]["burn"]["rates"]) == 8


def test_a_wrong_serial_number_is_refused(box):
    done, record = run(box, acceptance_serial="NOT-THIS-ONE")
    assert done.returncode == 2 and codes(record) == ["SERIAL"]


def test_check_mode_writes_no_record(box):
    done, record = run(box, tier="quick", check=True, acceptance_path=str(box / "never"))
    assert done.returncode == 0, done.stdout + done.stderr
    assert not (box / "never").exists()
