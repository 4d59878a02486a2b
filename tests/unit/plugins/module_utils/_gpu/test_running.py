# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pathlib
import shlex
import time

import pytest
from ansible_collections.h200.rack.plugins.module_utils._common.errors import InvalidInput
from ansible_collections.h200.rack.plugins.module_utils._gpu import limited, nccl_command, programs
from ansible_collections.h200.rack.plugins.module_utils._gpu.nccl_probe import probe


def alive(pid: int) -> bool:
    """Whether it is still there; a busy machine may need a moment to let a killed process go."""
    end = time.monotonic() + 30
    while time.monotonic() < end:
        try:
            state = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
        except OSError:
            return False
        if state in "ZX":
            return False
        time.sleep(0.02)
    return True


def script(tmp_path, text: str) -> str:
    path = tmp_path / "all_reduce_perf"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


@pytest.mark.parametrize("trap", ["", "trap '' TERM INT HUP\n"])
def test_a_time_limit_ends_children_that_ignore_signals_too(tmp_path, trap):
    program = script(tmp_path, f"{trap}sleep 600 & echo $! >{tmp_path}/child; echo begun; exec sleep 600")
    ended = limited.run([program], {}, 1.0, grace=0.5)
    assert (ended.timed_out, ended.rc, ended.out) == (True, None, "begun\n")
    assert not alive(int((tmp_path / "child").read_text()))


def test_what_a_test_left_behind_is_ended_after_it(tmp_path):
    program = script(tmp_path, f"sleep 600 & echo $! >{tmp_path}/child; exit 3")
    ended = limited.run([program], {}, 20.0)
    assert (ended.timed_out, ended.rc) == (False, 3)
    assert not alive(int((tmp_path / "child").read_text()))


def test_programs_run_side_by_side_and_only_the_hung_one_is_ended():
    done = programs.run_all(
        {
            "good": ("sh", "-c", "echo yes"),
            "bad": ("sh", "-c", "echo no >&2; exit 4"),
            "hung": ("sh", "-c", "trap '' TERM; sleep 600"),
            "none": ("no-such-program-here",),
            "long": ("sh", "-c", "head -c 300000 /dev/zero | tr '\\0' x"),
        },
        timeout=3,
    )
    assert {name: one.state for name, one in done.items()} == {
        "good": "ok",
        "bad": "failed",
        "hung": "hung",
        "none": "missing",
        "long": "ok",
    }
    assert (done["bad"].rc, done["bad"].err, len(done["long"].out)) == (4, "no\n", 300000)


def test_a_run_that_hangs_is_a_timeout_and_its_words_are_kept(tmp_path):
    program = script(tmp_path, "echo '# Collective test starting: all_reduce_perf'; exec sleep 600")
    result = probe({"program": program, "profile": {"name": "h200_sxm"}, "timeout": 1})
    assert result["reasons"][0]["code"] == "TIMEOUT" and result["verdict"] == "fail"
    assert "Collective test starting" in result["stdout_tail"] and result["exit_code"] is None


def test_a_program_that_is_not_installed_was_not_run():
    result = probe({"program": "/nowhere/all_reduce_perf", "profile": {"name": "h200_sxm"}})
    assert (result["verdict"], result["reasons"][0]["code"]) == ("not_run", "TOOL_MISSING")


def test_a_program_that_ends_with_an_error_and_says_why_failed_to_launch(tmp_path):
    result = probe({"program": script(tmp_path, "echo 'bad option' >&2; exit 2"), "profile": {"name": "h200_sxm"}})
    assert result["reasons"][0]["code"] == "LAUNCH_FAILED" and "bad option" in result["reasons"][0]["hint"]


def test_check_mode_shows_the_command_and_runs_nothing(tmp_path):
    program = script(tmp_path, f"touch {tmp_path}/ran")
    result = probe({"program": program, "gpus_per_node": 8, "max_bytes": "1G"}, check_mode=True)
    assert (result["verdict"], result["reasons"][0]["code"]) == ("not_run", "CHECK_MODE")
    assert "-e 1073741824 -f 2 -g 8" in result["command"] and not (tmp_path / "ran").exists()


def test_secrets_in_the_environment_are_not_in_the_result(tmp_path):
    program = script(tmp_path, "exit 0")
    result = probe({"program": program, "env": {"TOKEN": "hunter2", "NCCL_ALGO": "RING"}})
    assert "hunter2" not in str(result) and "NCCL_ALGO=RING" in result["command"]


def request(**changes) -> nccl_command.Request:
    base = {
        "collective": "all_reduce",
        "launcher": "srun",
        "hosts": ("gpu001", "gpu002"),
        "gpus_per_node": 8,
        "min_bytes": 8,
        "max_bytes": 1 << 30,
        "step_factor": 2,
        "iterations": 20,
        "warmup": 5,
        "timeout": 600,
    }
    return nccl_command.Request(**{**base, **changes})


def test_srun_starts_one_rank_for_each_gpu_and_has_a_time_limit_of_its_own():
    line = shlex.join(nccl_command.command(request(), {}, "job"))
    assert "--nodes=2 --ntasks=16 --ntasks-per-node=8 --gres=gpu:8 --nodelist=gpu001,gpu002 --time=11" in line
    assert line.endswith("all_reduce_perf -b 8 -e 1073741824 -f 2 -g 1 -n 20 -w 5 -c 1")


def test_mpirun_gives_the_variables_on_to_all_ranks():
    line = shlex.join(nccl_command.command(request(launcher="mpirun"), {"NCCL_ALGO": "RING"}, "job", as_root=True))
    assert "--allow-run-as-root -np 16 --host gpu001:8,gpu002:8" in line and "-x NCCL_ALGO" in line


@pytest.mark.parametrize(
    ("changes", "variable"),
    [
        ({"launcher": "local"}, "hosts"),
        ({"hosts": ("a", "a")}, "hosts"),
        ({"hosts": ("a;rm",)}, "hosts"),
        ({"hosts": ("--nodelist",)}, "hosts"),
        ({"min_bytes": 1 << 31}, "min_bytes"),
        ({"step_factor": 1}, "step_factor"),
        ({"timeout": 0}, "timeout"),
        ({"gpus_per_node": 0}, "gpus_per_node"),
    ],
)
def test_what_cannot_run_as_meant_is_refused_by_its_name(changes, variable):
    with pytest.raises(InvalidInput) as caught:
        nccl_command.check(request(**changes))
    assert caught.value.details["variable"] == variable


def test_sizes_are_read_with_their_units():
    assert [nccl_command.size(text, "x") for text in ("8", "512M", "16G", "1.5k", "2GiB")] == [
        8,
        512 << 20,
        16 << 30,
        1536,
        2 << 30,
    ]
    with pytest.raises(InvalidInput):
        nccl_command.size("lots", "max_bytes")
