# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import os
import subprocess
import sys

import pytest
from ansible_collections.h200.rack.plugins.module_utils._state.runner import is_dead, this_process

pytestmark = pytest.mark.skipif(not os.path.exists("/proc/self/ns/pid"), reason="only Linux tells")


def parts():
    return this_process().split(":")


def test_a_run_that_goes_on_is_not_dead():
    assert not is_dead(this_process())


def test_a_fork_of_a_run_is_the_same_run():
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.write(write, this_process().encode())
        os._exit(0)
    os.waitpid(pid, 0)
    assert os.read(read, 1000).decode() == this_process()


def test_a_process_that_ended_is_dead():
    done = subprocess.Popen([sys.executable, "-c", ""])
    done.wait()
    boot, namespace, _pid, start = parts()
    assert is_dead(f"{boot}:{namespace}:{done.pid}:{start}")


def test_a_number_that_another_process_got_is_dead():
    boot, namespace, pid, start = parts()
    assert is_dead(f"{boot}:{namespace}:{pid}:{int(start) - 1}")


@pytest.mark.parametrize("place", [0, 1])
def test_of_another_machine_boot_or_container_nothing_is_concluded(place):
    words = parts()
    words[place] = "0" * len(words[place])
    words[2] = "4194304"
    assert not is_dead(":".join(words))


@pytest.mark.parametrize("process", ["", None, "1234", "a:b:c:d"])
def test_of_nothing_nothing_is_concluded(process):
    assert not is_dead(process)


def test_without_proc_there_is_no_identity(tmp_path):
    assert this_process(str(tmp_path)) == ""
    assert not is_dead(this_process(), str(tmp_path))
