# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The molecule scenarios of Slurm, each by `molecule test`: containers with the real daemons."""

from __future__ import annotations

import os
import pathlib
import shutil
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[3]
BIN = pathlib.Path(sys.executable).parent
SCENARIOS = sorted(path.parent.name for path in ROOT.glob("extensions/molecule/slurm_*/molecule.yml"))
# Between them: a registration, its repetition, a refusal by Slurm, and one before anything is touched.
QUICK = {"slurm_wrong_memory", "slurm_bad_input_touches_nothing", "slurm_drained_by_the_operator"}

pytestmark = pytest.mark.skipif(
    os.geteuid() != 0 or not shutil.which("systemd-nspawn") or not shutil.which("mmdebstrap"),
    reason="the containers need root, systemd-nspawn and mmdebstrap",
)


def molecule(*arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {
        **os.environ,
        "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}",
        "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"),
        "ANSIBLE_COLLECTIONS_PATH": str(ROOT / ".cache" / "collections"),
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
    "scenario", [pytest.param(name, marks=[] if name in QUICK else pytest.mark.full) for name in SCENARIOS]
)
def test_scenario(scenario: str) -> None:
    try:
        done = molecule("test", "--scenario-name", scenario)
    finally:
        molecule("destroy", "--scenario-name", scenario)
    assert done.returncode == 0, done.stdout[-8000:]


def test_the_quick_ones_exist() -> None:
    assert set(SCENARIOS) >= QUICK
