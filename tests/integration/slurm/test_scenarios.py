# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The molecule scenarios of Slurm, each by `molecule test`: containers with the real daemons.

Every scenario runs on Slurm 22.05 (Debian 12) and on 24.11 (Debian 13), and converges twice: the second time must
change nothing.
"""

from __future__ import annotations

import os
import pathlib
import shutil
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[3]
BIN = pathlib.Path(sys.executable).parent
SUITES = ("bookworm", "trixie")
SCENARIOS = sorted(path.parent.name for path in ROOT.glob("extensions/molecule/slurm_*/molecule.yml"))
# Between them: a restart with a job on the cluster, refusals before anything is touched, a refusal by Slurm, and
# the gate on the newer version.
QUICK = {
    ("slurm_node_joins_a_busy_cluster", "bookworm"),
    ("slurm_bad_input_touches_nothing", "bookworm"),
    ("slurm_wrong_memory", "bookworm"),
    ("slurm_drained_by_the_operator", "trixie"),
}

pytestmark = pytest.mark.skipif(
    os.geteuid() != 0 or not shutil.which("systemd-nspawn") or not shutil.which("mmdebstrap"),
    reason="the containers need root, systemd-nspawn and mmdebstrap",
)


def molecule(suite: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {
        **os.environ,
        "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}",
        "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"),
        "ANSIBLE_COLLECTIONS_PATH": str(ROOT / ".cache" / "collections"),
        "LAB_SUITE": suite,
    }
    return subprocess.run(
        [str(BIN / "molecule"), *arguments],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=1500,
        check=False,
    )


@pytest.mark.parametrize(
    ("scenario", "suite"),
    [
        pytest.param(name, suite, marks=[] if (name, suite) in QUICK else pytest.mark.full)
        for name in SCENARIOS
        for suite in SUITES
    ],
)
def test_scenario(scenario: str, suite: str) -> None:
    passed = False
    try:
        done = molecule(suite, "test", "--scenario-name", scenario)
        passed = done.returncode == 0
    finally:
        # It ends with that itself when all went well.
        if not passed:
            molecule(suite, "destroy", "--scenario-name", scenario)
    assert passed, done.stdout[-8000:]


def test_the_quick_ones_exist() -> None:
    assert {name for name, _suite in QUICK} <= set(SCENARIOS)
