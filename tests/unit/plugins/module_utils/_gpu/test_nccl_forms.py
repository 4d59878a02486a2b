# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Forms of logs that launchers, log collectors, older versions and accidents give."""

from __future__ import annotations

import importlib.util
import json
import pathlib

import pytest
from ansible_collections.h200.rack.plugins.module_utils._gpu.nccl_probe import probe

_spec = importlib.util.spec_from_file_location("nccl_writer", pathlib.Path(__file__).with_name("nccl_writer.py"))
nccl_writer = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(nccl_writer)
Run, GIB = nccl_writer.Run, nccl_writer.GIB


def judged(text, profile="h200_sxm", **options):
    return probe({"log_content": text, "profile": {"name": profile} if profile else None, **options})


def codes(result):
    return [reason["code"] for reason in result["reasons"]]


def test_the_writer_writes_a_log_that_passes():
    result = judged(Run().text(), expect_ranks=8, expect_hosts=1)
    assert (result["verdict"], codes(result), len(result["rows"])) == ("pass", [], 32)


@pytest.mark.parametrize(
    "prefix",
    [
        "[1,0]<stdout>:",
        " 0: ",
        "(head, rank=0, pid=4711) [1,0]<stdout>:",
        "> ",
        "    # ",
        "\x1b[36m(worker1, rank=0, pid=99)\x1b[0m ",
        "2026-11-30T12:00:00.123456789Z stdout F ",
        "[pod/nccl-launcher-x7/main] ",
    ],
)
def test_whatever_stands_before_a_line_is_taken_off(prefix):
    text = "".join(f"{prefix}{line}\n" for line in Run(nodes=2, peak=478).lines())
    result = judged(text, expect_hosts=2, expect_ranks=16)
    assert (result["verdict"], codes(result)) == ("pass", [])


@pytest.mark.parametrize("columns", ["error", "short", "stamps", "iters", "new"])
def test_columns_are_found_by_name_in_every_version(columns):
    run = Run(columns=columns, collective="all_reduce", wrong="1e-07" if columns == "error" else "0")
    run.wrong, run.foot = run.wrong, lambda: Run().foot()
    result = judged(run.text(), expect_ranks=8)
    assert (result["verdict"], codes(result), result["validated"]) == ("pass", [], True)
    assert len(result["rows"]) == 32


def test_old_alltoall_rows_lack_redop_and_root_and_in_place_is_never_validated():
    run = Run(nodes=2, collective="alltoall", peak=91, columns="short", in_place_wrong="N/A")
    result = judged(run.text(), expect_hosts=2)
    assert (result["verdict"], codes(result)) == ("pass", [])
    assert result["utilization"]["reference"] == 93.75


def test_an_alltoall_at_91_is_healthy_and_an_all_reduce_at_91_is_not():
    assert codes(judged(Run(nodes=2, peak=91).text())) == ["NIC_PATH_SLOW"]


def test_nccl_lines_between_rows_do_not_matter():
    lines = []
    for line in Run(nodes=2, peak=478).lines():
        lines += [line, "r09-n02:7010:7100 [2] NCCL INFO Channel 03/0 : 10[2] -> 2[2] [send] via NET/IB/2/GDRDMA"]
    assert judged("\n".join(lines), expect_hosts=2)["verdict"] == "pass"


@pytest.mark.parametrize("cut", [5, 9])
def test_a_row_that_an_nccl_line_broke_is_put_together_again(cut):
    lines = Run(nodes=2, peak=478).lines()
    at = next(k for k, line in enumerate(lines) if line.split()[:2] == ["8", "2"])
    cells = lines[at].split()
    info = "r09-n02:7010:7100 [2] NCCL INFO comm 0x1 rank 10 nranks 16 - Init COMPLETE"
    lines[at : at + 1] = [
        "           " + "  ".join(cells[:cut]) + info,
        info,
        "   " + "  ".join(cells[cut:]),
    ]
    result = judged("\n".join(lines), expect_hosts=2)
    assert (result["verdict"], len(result["rows"])) == ("pass", 32)


def test_a_small_row_that_an_nccl_line_destroyed_does_not_fail_a_run_whose_foot_counts_it():
    lines = Run(nodes=2, peak=478).lines()
    at = next(k for k, line in enumerate(lines) if line.split()[:2] == ["8", "2"])
    lines[at] = "           8             2     float     sum      -1r09-n02:7010:7100 [2] NCCL INFO Trees [0] 1/-1/-1"
    assert judged("\n".join(lines), expect_hosts=2)["verdict"] == "pass"


def test_a_judged_row_that_was_destroyed_fails():
    lines = Run(nodes=2, peak=478).lines()
    at = next(k for k, line in enumerate(lines) if line.split()[:1] == [str(16 * GIB)])
    lines[at] = f" {16 * GIB}    4294967296     float     sum      -1r09-n02:7010:7100 [2] NCCL INFO Trees [0] 1/-1/-1"
    result = judged("\n".join(lines), expect_hosts=2, at_size="16G")
    assert codes(result) == ["SIZE_MISSING"]


def test_a_row_that_a_cuda_error_broke_is_a_cuda_error():
    lines = Run(collective="alltoall", nodes=2, peak=91).lines()
    at = next(k for k, line in enumerate(lines) if line.split()[:1] == ["2097152"])
    lines[at:] = [
        "     2097152         32768     float    none      -1 r09-n01: Test CUDA failure common.cu:389 "
        "'an illegal memory access was encountered'",
        " .. r09-n01 pid 7000: Test failure common.cu:519",
    ]
    result = judged("\n".join(lines))
    assert codes(result)[0] == "CUDA_ERROR" and result["verdict"] == "fail"


def test_repeated_sizes_are_judged_by_their_median():
    result = judged(Run(low=GIB, cycles=5).text(), expect_ranks=8)
    assert (result["verdict"], len(result["rows"])) == ("pass", 25)


def test_a_cycle_that_stopped_early_is_incomplete():
    lines = Run(low=GIB, cycles=3).lines()
    at = max(k for k, line in enumerate(lines) if line.split()[:1] == [str(16 * GIB)])
    del lines[at]
    assert "INCOMPLETE" in codes(judged("\n".join(lines)))


def test_of_all_types_float_is_judged():
    result = judged(Run(low=GIB, types=["int8", "half", "float", "double"]).text())
    assert result["verdict"] == "pass" and "SEVERAL_TYPES" in [note["code"] for note in result["notes"]]


def test_the_slowest_of_several_tests_in_a_log_counts():
    result = judged(Run().text() + Run(peak=367).text())
    assert (result["verdict"], codes(result)) == ("fail", ["NVLS_ABSENT"])
    assert result["busbw"] < 370


def test_a_test_that_did_not_end_fails_the_log_it_shares_with_a_good_one():
    cut = Run().lines()[:40]
    assert "INCOMPLETE" in codes(judged(Run().text() + "\n".join(cut)))
    assert "INCOMPLETE" in codes(judged("\n".join(cut) + "\n" + Run().text()))


def test_a_sweep_that_gpu_memory_cut_lacks_the_largest_size():
    lines = Run(high=16 * GIB).lines()
    lines = [line for line in lines if not line.strip().startswith(str(16 * GIB))]
    lines.insert(13, "# Reducing maxBytes to 9000000000 due to memory limitation")
    assert "SWEEP_SHORTENED" in codes(judged("\n".join(lines)))


def test_a_memory_limit_above_the_last_size_costs_nothing():
    run = Run(low=10 * GIB, high=48 * GIB)
    lines = run.lines()
    lines.insert(13, "# Reducing maxBytes to 48247057066 due to memory limitation")
    result = judged("\n".join(lines))
    assert (result["verdict"], result["at_size"]) == ("pass", 40 * GIB)


def test_sixteen_jobs_of_one_rank_are_not_one_job_of_sixteen():
    run = Run(ranks=1, gpus=1, peak=0)
    text = "".join(run.text().replace("Pid   7000", f"Pid {7000 + k:6d}") for k in range(16))
    result = judged(text, expect_ranks=16)
    assert result["verdict"] == "fail" and codes(result)[0] == "NOT_ONE_JOB"


def test_one_rank_jobs_that_wrote_at_once_are_found_by_their_tags_and_ranks():
    run = Run(ranks=1, gpus=1, peak=0)
    mixed = [f"{k}: {line}" for line in run.lines() for k in range(8)]
    result = judged("\n".join(mixed), expect_ranks=8)
    assert result["verdict"] == "fail" and "NOT_ONE_JOB" in codes(result)


@pytest.mark.parametrize("ranks", [7, 12, 15])
def test_missing_ranks_fail_even_when_nobody_said_how_many_were_meant(ranks):
    run = Run(nodes=1 if ranks < 8 else 2, ranks=ranks)
    assert "RANKS" in codes(judged(run.text()))


def test_a_list_of_devices_that_lost_a_line_does_not_match_the_figures():
    lines = [line for line in Run(nodes=2, peak=478).lines() if "Rank 11 " not in line]
    assert judged("\n".join(lines))["verdict"] == "fail"


def test_figures_of_eight_ranks_under_a_list_of_sixteen_are_not_one_job():
    run = Run(nodes=2, peak=478)
    rows = Run(nodes=1)
    run.rows, run.average = rows.rows, rows.average
    assert "NOT_ONE_JOB" in codes(judged(run.text()))


def test_the_wrong_number_of_hosts_fails():
    assert "HOSTS" in codes(judged(Run(nodes=2, peak=478).text(), expect_hosts=4))


def test_wrong_results_fail_also_as_a_power_of_ten():
    result = judged(Run(wrong="1.2e+06").text())
    assert "WRONG_RESULTS" in codes(result) and result["wrong"] > 1000000


def test_an_error_above_the_limit_is_a_wrong_result():
    run = Run(columns="error", wrong="5e-01")
    run.foot = Run().foot
    assert "WRONG_RESULTS" in codes(judged(run.text()))


@pytest.mark.parametrize(("peak", "code"), [(367, "NVLS_ABSENT"), (220, "BUSBW_LOW")])
def test_one_slow_node_is_told_from_a_node_without_nvls(peak, code):
    assert codes(judged(Run(peak=peak).text())) == [code]


def test_nccl_saying_that_nvls_is_off_is_believed():
    text = "r09-n01:7000:7100 [0] NCCL INFO NCCL_NVLS_ENABLE set by environment to 0.\n" + Run(peak=300).text()
    assert codes(judged(text)) == ["NVLS_ABSENT"]


def test_a_marginal_node_passes_with_a_note():
    result = judged(Run(peak=440).text())
    assert result["verdict"] == "pass" and [note["code"] for note in result["notes"]] == ["BUSBW_MARGINAL"]


def test_a_ring_over_two_nodes_is_measured_against_its_nics():
    result = judged(Run(nodes=2, peak=372).text(), env={"NCCL_ALGO": "RING"}, expect_hosts=2)
    assert (result["verdict"], result["utilization"]["reference"]) == ("pass", 400)


def test_more_than_the_hardware_can_do_is_not_believed():
    assert codes(judged(Run(peak=900).text())) == ["INCONSISTENT"]


def test_a_figure_that_was_altered_by_hand_is_found():
    run = Run(peak=300)
    good = Run(peak=480).side(16 * GIB, "0")[2].strip()
    bad = run.side(16 * GIB, "0")[2].strip()
    assert "INCONSISTENT" in codes(judged(run.text().replace(bad, good), expect_ranks=8))


@pytest.mark.parametrize("text", ["", "\n\n", "GPU burn: OK\n" * 100, "{}", '{"a": 1}', "\x00\xff" * 100, "[]"])
def test_empty_output_and_output_of_another_program_are_no_run(text):
    result = judged(text)
    assert (result["verdict"], codes(result)) == ("not_run", ["NO_RESULT"])


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("srun: error: Unable to create step for job 12: Job/step already completing", "LAUNCH_FAILED"),
        ("srun: error: r09-n02: tasks 8-15: Exited with exit code 3", "CRASHED"),
        (
            "slurmstepd: error: *** STEP 12.0 ON r09-n01 CANCELLED AT 2026-11-30T12:00:00 DUE TO TIME LIMIT ***",
            "TIMEOUT",
        ),
        ("bash: line 1: all_reduce_perf: command not found", "LAUNCH_FAILED"),
        ("/opt/all_reduce_perf: error while loading shared libraries: libnccl.so.2: cannot open", "LAUNCH_FAILED"),
        ("Invalid number of GPUs: 8 requested but only 7 were found.", "GPUS_MISSING"),
        ("r09-n01: Test CUDA failure common.cu:1 'out of memory'", "OUT_OF_MEMORY"),
        ("r09-n01: Test timeout (120s) common.cu:1", "TIMEOUT"),
        ("Floating point exception (core dumped)", "CRASHED"),
    ],
)
def test_every_kind_of_failure_has_its_code(line, code):
    assert codes(judged(line + "\n"))[0] == code
    begun = "\n".join(Run().lines()[:20] + [line])
    assert codes(judged(begun))[0] == code


def test_a_collective_that_was_not_asked_for_fails():
    assert "WRONG_COLLECTIVE" in codes(judged(Run().text(), collective="all_gather"))


def test_json_passes_like_the_text():
    result = judged(Run(nodes=2, peak=478).json(), expect_hosts=2, expect_ranks=16)
    assert (result["verdict"], codes(result), len(result["rows"])) == ("pass", [], 32)
    assert (result["nccl_version"], result["collective"]) == ("2.27.5", "all_reduce")


def test_json_never_gives_the_environment_away():
    assert "hunter2" not in json.dumps(judged(Run().json()))
    assert "hunter2" not in json.dumps(judged(Run().json()[:-400]))


def test_json_without_an_end_time_is_a_crashed_run():
    document = Run().document()
    del document["end_time"]
    assert "INCOMPLETE" in codes(judged(json.dumps(document)))


def test_json_cut_anywhere_never_passes():
    whole = Run(low=GIB).json()
    for end in range(0, len(whole) - 1, 37):
        assert judged(whole[:end])["verdict"] != "pass"


def test_json_with_strings_for_booleans_and_nan_is_read():
    document = Run().document()
    document["out_of_bounds"] = {"count": 4, "okay": "false"}
    document["results"][3]["in_place"]["nwrong"] = "nan"
    assert "WRONG_RESULTS" in codes(judged(json.dumps(document)))


def test_json_of_one_process_with_eight_gpus_names_one_device_for_eight_ranks():
    document = Run().document()
    document["config"]["ngpus"] = 8
    document["config"]["devices"] = document["config"]["devices"][:1]
    assert judged(json.dumps(document), expect_ranks=8)["verdict"] == "pass"


def test_json_without_mpi_is_one_rank():
    run = Run(ranks=1, gpus=1, peak=0)
    assert "NOT_ONE_JOB" in codes(judged(run.json(), expect_ranks=8))


def test_a_json_file_that_was_there_before_is_not_taken_for_the_new_result(tmp_path):
    path = tmp_path / "out.json"
    path.write_text(Run().json())
    (tmp_path / "out.json.0").write_text(Run(peak=100).json())
    result = probe({"log": str(path), "profile": {"name": "h200_sxm"}})
    assert (result["verdict"], codes(result)) == ("not_run", ["STALE_JSON"])
