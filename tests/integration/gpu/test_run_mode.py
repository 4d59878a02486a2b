# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""nccl_probe by a real srun: a slurmctld and two slurmds in namespaces of their own, with replayed nccl-tests.

One root is made and one cluster started; every case is one probe in it.
"""

from __future__ import annotations

import importlib.util
import json
import os
import pathlib
import shutil
import subprocess

import pytest

TOP = pathlib.Path(__file__).parents[3]
SIMGPU = TOP / "tests" / "virtual_rack" / "simgpu" / "build"

pytestmark = pytest.mark.skipif(
    os.geteuid() != 0 or not shutil.which("mmdebstrap") or not shutil.which("unshare"),
    reason="needs root, mmdebstrap and unshare",
)

PAIR = {"launcher": "srun", "hosts": ["node1", "node2"], "profile": {"name": "h200_sxm"}, "timeout": 60}
CASES = {
    "good": ([], {**PAIR, "env": {"NCCL_ALGO": "RING"}, "min_bytes": "1G"}),
    "slow": (["nic_slow"], {**PAIR, "min_bytes": "1G"}),
    "crash": (["nccl_crash"], PAIR),
    "wrong": (["nccl_wrong"], PAIR),
    "hang": (["nccl_hang"], {**PAIR, "timeout": 6}),
    "hang_hard": (["nccl_hang_hard"], {**PAIR, "timeout": 6}),
    "no_program": ([], {**PAIR, "program": "/opt/none/all_reduce_perf"}),
    "no_node": ([], {**PAIR, "hosts": ["node1", "node7"]}),
    "busy": (["busy"], {**PAIR, "timeout": 16}),
    "alltoall": ([], {**PAIR, "collective": "alltoall", "min_bytes": "1G"}),
}

INSIDE = r"""
set -e
mount --make-rprivate /
mount -t overlay overlay -o "lowerdir=$BASE,upperdir=$BOX/upper,workdir=$BOX/work" "$BOX/root"
cd "$BOX/root"
mount -t proc proc proc
mount -t sysfs -o ro sysfs sys

mount -t tmpfs tmpfs run
mount -t tmpfs tmpfs tmp
mount -t tmpfs tmpfs dev
for name in null zero full random urandom tty; do cp -a "/dev/$name" dev; done
ln -s /proc/self/fd dev/fd
for i in 0 1 2 3 4 5 6 7; do mknod "dev/nvidia$i" c 1 3; done
mkdir -p opt/ansible_collections/h200/rack/plugins
mount --bind "$TOP/plugins" opt/ansible_collections/h200/rack/plugins
ip link set lo up
# Slurm looks for an address family that more than the loopback has.
ip link add here type veth peer name there
ip addr add 10.99.7.1/24 dev here
ip addr add 10.99.7.2/24 dev here
ip link set here up
ip link set there up
cp "$BOX"/simgpu_*.deb "$BOX/cases.json" "$BOX/start" "$BOX/probe.py" tmp
exec chroot . sh /tmp/start
"""

START = r"""
set -e
dpkg-deb -x /tmp/simgpu_*.deb /tmp/simgpu && cp -a /tmp/simgpu/usr /tmp/simgpu/etc /
hostname node1
printf '127.0.0.1 localhost\n10.99.7.1 node1\n10.99.7.2 node2\n' >/etc/hosts
mkdir -p /run/munge /var/spool/ctld /var/log/slurm /etc/slurm
head -c 128 /dev/urandom >/etc/munge/munge.key
chown -R munge: /etc/munge /run/munge /var/lib/munge /var/log/munge
chmod 400 /etc/munge/munge.key
setpriv --reuid=munge --regid=munge --clear-groups /usr/sbin/munged
cat >/etc/slurm/slurm.conf <<'CONF'
ClusterName=probe
SlurmctldHost=node1
SlurmUser=root
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
GresTypes=gpu
StateSaveLocation=/var/spool/ctld
SlurmdSpoolDir=/var/spool/slurmd.%n
SlurmdPidFile=/run/slurmd.%n.pid
SlurmdLogFile=/var/log/slurm/%n.log
SlurmctldLogFile=/var/log/slurm/ctld.log
SlurmdParameters=config_overrides
KillWait=3
MailProg=/bin/true
NodeName=node1 Port=7001 CPUs=8 Gres=gpu:8
NodeName=node2 Port=7002 CPUs=8 Gres=gpu:8
PartitionName=all Nodes=ALL Default=YES State=UP
CONF
echo 'CgroupPlugin=cgroup/v1' >/etc/slurm/cgroup.conf
echo 'Name=gpu File=/dev/nvidia[0-7]' >/etc/slurm/gres.conf
slurmctld
mkdir -p /var/spool/slurmd.node1 /var/spool/slurmd.node2
slurmd
unshare -u sh -c 'hostname node2; exec slurmd'
exec python3 /tmp/probe.py
"""

PROBE = r"""
import json, os, subprocess, sys, time
sys.path.insert(0, "/opt")
from ansible_collections.h200.rack.plugins.module_utils._gpu.nccl_probe import probe

end = time.monotonic() + 60
while subprocess.run(["sinfo", "-h", "-t", "idle", "-o", "%D"], capture_output=True, text=True).stdout.strip() != "2":
    if time.monotonic() > end:
        sys.exit(subprocess.run("sinfo -N; cat /var/log/slurm/*", shell=True, capture_output=True, text=True).stdout)
    time.sleep(0.2)


def tests_left():
    out = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            words = open(f"/proc/{pid}/cmdline", "rb").read().replace(b"\0", b" ").decode()
        except OSError:
            continue
        if ("_perf" in words or words.startswith("sleep 86400")) and "probe.py" not in words:
            out.append(words)
    return out


def queue():
    return subprocess.run(["squeue", "-h", "-t", "PD,R"], capture_output=True, text=True).stdout


results = {}
for name, (faults, params) in json.load(open("/tmp/cases.json")).items():
    with open("/etc/h200-rack/simulated.faults", "w") as handle:
        handle.writelines(f"{fault}\n" for fault in faults)
    job = subprocess.Popen(["srun", "-w", "node2", "--gres=gpu:8", "sleep", "300"]) if "busy" in faults else None
    if job:
        time.sleep(2)
    result = probe(params)
    if job:
        job.terminate()
        job.wait()
    # That a job is completing is the controller's affair; what must not stay are processes and running jobs.
    end = time.monotonic() + 20
    while (tests_left() or queue()) and time.monotonic() < end:
        time.sleep(0.2)
    result["left"], result["queue"] = tests_left(), queue()
    results[name] = result
print("RESULTS " + json.dumps(results))
"""


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    spec = importlib.util.spec_from_file_location("slurm_lab", TOP / "tests" / "integration" / "slurm" / "lab.py")
    lab = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(lab)
    base = lab.base_root("bookworm")
    box = tmp_path_factory.mktemp("srun")
    for part in ("upper", "work", "root"):
        (box / part).mkdir()
    subprocess.run([SIMGPU, box], check=True, capture_output=True)
    (box / "cases.json").write_text(json.dumps(CASES))
    (box / "start").write_text(START)
    (box / "probe.py").write_text(PROBE)
    done = subprocess.run(
        ["unshare", "-m", "-p", "-n", "-u", "--fork", "--kill-child", "sh", "-c", INSIDE],
        env={**os.environ, "BASE": str(base), "BOX": str(box), "TOP": str(TOP)},
        capture_output=True,
        text=True,
        timeout=400,
        check=False,
    )
    line = next((line for line in done.stdout.splitlines() if line.startswith("RESULTS ")), None)
    assert line, f"{done.stdout[-6000:]}\n{done.stderr[-3000:]}"
    return json.loads(line.removeprefix("RESULTS "))


def codes(result):
    return [reason["code"] for reason in result["reasons"]]


def test_two_nodes_that_reach_their_nics_pass(results):
    good = results["good"]
    assert (good["verdict"], codes(good)) == ("pass", []), good
    assert (good["ranks"], good["hosts"], good["exit_code"]) == (16, ["node1", "node2"], 0)
    assert good["utilization"]["reference"] == 400 and good["simulated"]


def test_a_slow_nic_path_between_two_nodes_fails(results):
    assert codes(results["slow"]) == ["NIC_PATH_SLOW"]


def test_an_alltoall_is_held_against_its_own_reference(results):
    assert (results["alltoall"]["verdict"], results["alltoall"]["utilization"]["reference"]) == ("pass", 93.75)


def test_an_nccl_error_keeps_its_exit_code_and_its_words(results):
    crash = results["crash"]
    assert codes(crash)[0] == "NCCL_ERROR" and crash["exit_code"] != 0
    assert "unhandled system error" in crash["stdout_tail"] + crash["stderr_tail"]


def test_nodes_with_another_job_were_not_measured_and_are_not_called_bad(results):
    assert (results["busy"]["verdict"], codes(results["busy"])) == ("not_run", ["BUSY"]), results["busy"]


def test_wrong_results_fail(results):
    assert "WRONG_RESULTS" in codes(results["wrong"])


@pytest.mark.parametrize("name", ["hang", "hang_hard"])
def test_a_test_that_hangs_ends_in_time_with_everything_it_started(results, name):
    result = results[name]
    assert codes(result)[0] == "TIMEOUT" and result["exit_code"] is None
    assert (result["left"], result["queue"]) == ([], "")
    assert "Collective test starting" in result["stdout_tail"]


@pytest.mark.parametrize("name", ["no_program", "no_node"])
def test_what_srun_could_not_start_is_a_failed_launch(results, name):
    assert codes(results[name])[0] == "LAUNCH_FAILED", results[name]
    assert results[name]["stderr_tail"]


def test_no_case_leaves_a_process_or_a_job(results):
    assert {name: (one["left"], one["queue"]) for name, one in results.items() if one["left"] or one["queue"]} == {}
