# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The molecule scenario of the whole way, started in extensions/ as collections do. It makes a rack of its own."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[3]
BIN = pathlib.Path(sys.executable).parent


@pytest.mark.full
@pytest.mark.skipif(os.geteuid() != 0, reason="the virtual rack needs root")
def test_provision_converges_and_changes_nothing_when_it_is_repeated(tmp_path: pathlib.Path) -> None:
    environment = {
        **os.environ,
        "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}",
        "ANSIBLE_COLLECTIONS_PATH": str(ROOT / ".cache" / "collections"),
        "VRACK_STATE": str(tmp_path / "rack"),
    }
    done = subprocess.run(
        [str(BIN / "molecule"), "test", "--scenario-name", "provision"],
        cwd=ROOT / "extensions",
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=3600,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-8000:]
