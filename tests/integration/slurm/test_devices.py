# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A job opens the GPUs that it was given and no others: with the role's own cgroup.conf, in a virtual machine."""

from __future__ import annotations

import errno
import json
import os
import pathlib
import shlex
import shutil
import subprocess
import sys
import typing as t

import pytest

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE))

from slurm_guest import Guest  # noqa: E402
from slurm_lab import ROOT  # noqa: E402

pytestmark = [
    pytest.mark.full,
    pytest.mark.skipif(
        os.geteuid() != 0 or not shutil.which("qemu-system-x86_64") or not shutil.which("mmdebstrap"),
        reason="the virtual machine needs root, QEMU and mmdebstrap",
    ),
]

# No driver is behind the device files: one that may be opened says so (ENXIO), one that may not is denied (EPERM).
LOOK = """
import json, os, sys
def look(name):
    try:
        os.close(os.open(name, os.O_RDWR))
    except OSError as exc:
        return exc.errno
    return 0
found = {str(n): look(f"/dev/nvidia{n}") for n in range(8)}
print(json.dumps({"devices": found, "control": look("/dev/nvidiactl"), "null": look("/dev/null"),
                  "visible": os.environ.get("CUDA_VISIBLE_DEVICES")}))
"""


@pytest.fixture(scope="module")
def guest(tmp_path_factory: pytest.TempPathFactory) -> t.Iterator[Guest]:
    machine = Guest(tmp_path_factory.mktemp("guest"))
    try:
        machine.up(300)
        _play(machine)
        yield machine
    finally:
        machine.down()


def _play(machine: Guest) -> None:
    done = subprocess.run(
        [str(pathlib.Path(sys.executable).parent / "ansible-playbook"), "-i", str(machine.inventory()),
         str(HERE / "devices.yml")],
        cwd=ROOT, env={**os.environ, "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg")}, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True, timeout=900, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-6000:]


def _look(machine: Guest, way: str = "") -> dict[str, t.Any]:
    said = machine.run(f"{way} python3 -c {shlex.quote(LOOK)}").stdout
    return json.loads(said.splitlines()[-1])


def _open(seen: dict[str, t.Any]) -> list[str]:
    assert set(seen["devices"].values()) <= {errno.ENXIO, errno.EPERM}, seen
    return [number for number, said in seen["devices"].items() if said == errno.ENXIO]


def test_outside_of_jobs_all_device_files_can_be_opened(guest: Guest) -> None:
    assert _open(_look(guest)) == list("01234567")


def test_a_job_with_one_gpu_opens_one_device_file_and_no_other(guest: Guest) -> None:
    seen = _look(guest, "srun --mem=100 --gres=gpu:h200:1")
    assert len(_open(seen)) == 1
    assert list(seen["devices"].values()).count(errno.EPERM) == 7
    assert (seen["control"], seen["null"]) == (errno.ENXIO, 0)


def test_a_job_without_gpus_opens_none(guest: Guest) -> None:
    seen = _look(guest, "srun --mem=100")
    assert _open(seen) == []
    assert (seen["visible"], seen["null"]) == (None, 0)


def test_a_job_with_all_gpus_opens_all(guest: Guest) -> None:
    assert _open(_look(guest, "srun --mem=100 --gres=gpu:h200:8")) == list("01234567")


def test_two_jobs_at_once_open_different_ones(guest: Guest) -> None:
    guest.run(
        f"printf '#!/bin/sh\\n%s\\nsleep 900\\n' {shlex.quote(f'srun python3 -c {shlex.quote(LOOK)}')} > /root/first"
    )
    job = guest.run("sbatch --parsable --mem=100 -c1 --gres=gpu:h200:4 --output=/root/seen /root/first").stdout.strip()
    try:
        second = set(_open(_look(guest, "srun --mem=100 -c1 --gres=gpu:h200:4")))
        said = guest.run(
            "timeout 120 sh -c 'until grep -q devices /root/seen; do sleep 1; done'; cat /root/seen"
        ).stdout
        assert job in guest.run("squeue --noheader --states=running --format=%A").stdout.split()
    finally:
        guest.run(f"scancel {job}")
    first = set(_open(json.loads(said.splitlines()[-1])))
    assert len(first) == len(second) == 4
    assert not first & second
