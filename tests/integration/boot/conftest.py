# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One boot server for all boot tests; a guest for each."""

from __future__ import annotations

import os
import pathlib
import shutil
import signal
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))

import payload
import rack
from lab import Lab


def pytest_configure():
    # A run that is told to end takes its machines and namespaces with it.
    signal.signal(signal.SIGTERM, signal.default_int_handler)


@pytest.fixture(scope="session")
def lab():
    if os.geteuid() != 0:
        pytest.skip("boot tests make namespaces and need root")
    for program in ("qemu-system-x86_64", "systemd-nspawn", "cpio", "mformat"):
        if not shutil.which(program):
            pytest.skip(f"boot tests need {program}")
    kernel, initrd = payload.payload()
    with Lab() as lab:
        lab.play(rack.ROLES)
        rack.publish(lab, kernel, initrd)
        yield lab


@pytest.fixture
def machines(lab):
    """The lab, without the machines of other tests."""
    yield lab
    lab.stop_guests()
