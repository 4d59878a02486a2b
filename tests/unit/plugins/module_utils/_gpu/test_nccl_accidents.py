# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Logs that look good at a glance and are not, each with what a careful engineer says of it."""

from __future__ import annotations

import importlib.util
import json
import pathlib
import re

import pytest
from ansible_collections.h200.rack.plugins.module_utils._gpu.nccl_probe import probe

_spec = importlib.util.spec_from_file_location("nccl_writer", pathlib.Path(__file__).with_name("nccl_writer.py"))
nccl_writer = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(nccl_writer)
Run, GIB = nccl_writer.Run, nccl_writer.GIB

ONE = Run().text()
LINES = Run(nodes=2, peak=478).lines()
TWO = Run(nodes=2, peak=478).text()
ROWS = [k for k, line in enumerate(LINES) if re.match(r" +\d+ +\d+ +float", line)]
PAIR = {"expect_hosts": 2, "expect_ranks": 16}


def judged(text, **options):
    return probe({"log_content": text, "profile": {"name": "h200_sxm"}, **options})


def codes(result):
    return [reason["code"] for reason in result["reasons"]]


def notes(result):
    return [note["code"] for note in result["notes"]]


def cell(pattern, replacement, rows=ROWS, count=0):
    """The two-node log with cells of some rows replaced."""
    return "\n".join(
        re.sub(pattern, replacement, line, count=count) if k in rows else line for k, line in enumerate(LINES)
    )


def cut(row, *more):
    return "\n".join([*LINES[: ROWS[row]], *more])


@pytest.mark.parametrize(
    "model",
    ["NVIDIA H100 80GB HBM3", "NVIDIA B200", "NVIDIA GB200", "NVIDIA H200 NVL", "NVIDIA GH200 480GB",
     "NVIDIA H200 MIG 1g.18gb", "AMD Instinct MI300X"],
)  # fmt: skip
def test_another_gpu_at_the_right_speed_is_the_wrong_gpu(model):
    assert codes(judged(Run(model=model).text())) == ["WRONG_GPU"]


def test_one_gpu_of_another_model_among_eight_is_the_wrong_gpu():
    assert codes(judged(ONE.replace("[0000:17:00] NVIDIA H200", "[0000:17:00] NVIDIA H100 80GB HBM3"))) == ["WRONG_GPU"]


def test_two_ranks_on_one_gpu_leave_the_eighth_untested():
    text = ONE.replace("[0000:17:00]", "[0000:16:00]").replace("device  7", "device  6")
    assert codes(judged(text)) == ["RANKS"]


def test_sixteen_ranks_on_one_host_are_not_two_hosts():
    assert "HOSTS" in codes(judged(TWO.replace("r09-n02", "r09-n01"), **PAIR))


def test_two_jobs_of_eight_are_not_one_of_sixteen():
    assert judged(ONE + ONE.replace("r09-n01", "r09-n02"), **PAIR)["verdict"] == "fail"


def test_ranks_split_into_groups_are_not_one_job():
    assert codes(judged(re.sub(r"Rank ( [89]|1\d) Group  0", r"Rank \1 Group  1", TWO), **PAIR)) == ["NOT_ONE_JOB"]


def test_a_communicator_of_eight_under_a_list_of_sixteen_is_not_one_job_even_where_the_figures_cannot_tell():
    said = "r09-n01:1:2 [0] NCCL INFO ncclCommInitRank comm 0x5 rank 0 nranks 8 cudaDev 0 - Init COMPLETE\n"
    run = Run(nodes=2, peak=47, collective="sendrecv", in_place_wrong="N/A")
    assert judged(run.text(), **PAIR)["verdict"] == "pass"
    assert codes(judged(said + run.text(), **PAIR)) == ["NOT_ONE_JOB"]


@pytest.mark.parametrize("peak", [480, 300])
def test_half_a_node_is_not_held_against_the_figure_of_a_whole_one(peak):
    result = judged(Run(gpus=4, ranks=4, peak=peak).text(), expect_ranks=4, expect_hosts=1)
    assert (result["verdict"], codes(result)) == ("not_run", ["NO_REFERENCE"])


@pytest.mark.parametrize(("dtype", "peak"), [("int8", 390), ("f8e4m3", 361)])
def test_types_that_are_reduced_at_other_rates_are_not_called_slow(dtype, peak):
    result = judged(Run(types=[dtype], peak=peak).text())
    assert (result["verdict"], codes(result)) == ("not_run", ["NO_REFERENCE"])


@pytest.mark.parametrize("dtype", ["half", "bfloat16"])
def test_types_that_are_reduced_like_float_are_judged(dtype):
    assert judged(Run(types=[dtype]).text())["verdict"] == "pass"
    assert codes(judged(Run(types=[dtype], peak=220).text())) == ["BUSBW_LOW"]


def test_a_ring_that_the_log_names_is_held_against_a_ring_and_says_so():
    text = "+ mpirun -np 16 -x NCCL_ALGO=RING all_reduce_perf -b 8 -e 16G\n" + Run(nodes=2, peak=372).text()
    result = judged(text, **PAIR)
    assert (result["verdict"], result["utilization"]["reference"], notes(result)) == ("pass", 400, ["RING_JUDGED"])


@pytest.mark.parametrize(("collective", "peak"), [("alltoall", 91), ("sendrecv", 47)])
@pytest.mark.parametrize("columns", ["new", "short"])
def test_a_collective_without_a_name_is_known_by_what_is_never_compared_in_place(collective, peak, columns):
    run = Run(nodes=2, collective=collective, peak=peak, columns=columns, in_place_wrong="N/A")
    text = re.sub(r"# (?:Collective test|nccl-tests).*\n", "", run.text())
    result = judged(text, **PAIR)
    assert (result["verdict"], codes(result), result["collective"]) == ("pass", [], collective)


def test_of_all_operations_sum_is_judged_because_others_go_by_a_ring():
    lines = Run(low=GIB).lines()
    rows = [line for line in lines if re.match(r" +\d+ +\d+ +float", line)]
    slow = [line.replace("  sum", " prod") for line in Run(low=GIB, peak=365).rows()]
    values = [float(cell) for line in [*rows, *slow] for cell in line.split()[7::4]]
    at = lines.index(rows[-1]) + 1
    text = "\n".join([*lines[:at], *slow, *lines[at:]])
    result = judged(re.sub(r"bandwidth    : \S+", f"bandwidth    : {sum(values) / len(values):g}", text))
    assert (result["verdict"], codes(result), notes(result)) == ("pass", [], ["SEVERAL_OPERATIONS"])


@pytest.mark.parametrize(("peak", "verdict"), [(300, "fail"), (360, "pass"), (470, "pass"), (700, "fail")])
def test_all_gather_on_one_node_is_healthy_with_and_without_nvlink_sharp(peak, verdict):
    assert judged(Run(collective="all_gather", peak=peak).text())["verdict"] == verdict


def test_an_alltoall_faster_than_its_nics_is_not_believed():
    run = Run(nodes=2, collective="alltoall", peak=300, in_place_wrong="N/A")
    assert codes(judged(run.text(), **PAIR)) == ["INCONSISTENT"]


def test_every_utilization_carries_its_reference_and_what_that_stands_on():
    for text, options in ((ONE, {}), (TWO, PAIR), (ONE, {"reference": 470.0}), (Run(peak=220).text(), {})):
        utilization = judged(text, **options)["utilization"]
        assert set(utilization) == {"value", "reference", "basis"} and utilization["basis"]


def test_one_slow_repetition_of_five_is_noted():
    run = Run(low=GIB, cycles=5)
    lines = run.lines()
    at = [k for k, line in enumerate(lines) if line.split()[:1] == [str(16 * GIB)]]
    lines[at[2]] = Run(low=GIB, peak=120).row(16 * GIB)
    values = [float(c) for line in lines if re.match(r" +\d+ +\d+ +float", line) for c in line.split()[7::4]]
    text = re.sub(r"bandwidth    : \S+", f"bandwidth    : {sum(values) / len(values):g}", "\n".join(lines))
    result = judged(text)
    assert (result["verdict"], notes(result)) == ("pass", ["UNSTEADY"])


WRONG = {
    "errors that cancel out": "\n".join(
        re.sub("0$", {ROWS[5]: "-1", ROWS[6]: "1"}.get(k, "0"), line) if k in ROWS else line
        for k, line in enumerate(LINES)
    ),
    "a count that says OK": TWO.replace("values : 0 OK", "values : 4 OK"),
    "no count that says FAILED": TWO.replace("values : 0 OK", "values : 0 FAILED"),
}


@pytest.mark.parametrize("text", WRONG.values(), ids=WRONG)
def test_wrong_results_are_found_however_they_are_told(text):
    assert "WRONG_RESULTS" in codes(judged(text, **PAIR))


UNCHECKED = {
    "one row": cell("0$", "N/A", rows=ROWS[9:10]),
    "all in place": Run(nodes=2, peak=478, in_place_wrong="N/A").text(),
    "figures although nothing was compared": TWO.replace("validation: 1", "validation: 0"),
    "JSON": json.dumps({**(d := Run(nodes=2, peak=478).document()), "config": {**d["config"], "validation": 0}}),
}


@pytest.mark.parametrize("text", UNCHECKED.values(), ids=UNCHECKED)
def test_results_that_were_not_all_compared_are_not_validated(text):
    assert codes(judged(text, **PAIR)) == ["NOT_VALIDATED"]


BROKEN = {
    "a row cut in the middle": cut(-1, LINES[ROWS[-1]][:70]),
    "the last cell is cut": cut(-1, LINES[ROWS[-1]][:-1]),
    "rows that are left out with words": "\n".join([*LINES[: ROWS[4]], "[... omitted ...]", *LINES[ROWS[20] :]]),
    "no rows": "\n".join(LINES[: ROWS[0]]),
    "rows alone": "\n".join(LINES[k] for k in ROWS),
    "the end alone": "\n".join(LINES[ROWS[20] :]),
    "another average": re.sub(r"bandwidth    : \S+", "bandwidth    : 12.5", TWO),
    "no number": cell(r"\d+\.\d\d", "nan", rows=ROWS[20:21]),
    "infinite": cell(r"\d+\.\d\d", "inf", rows=ROWS[20:21], count=1),
    "no count of wrong elements": cell("0$", "nan", rows=ROWS[5:6]),
    "JSON without one row": json.dumps({**(e := Run(nodes=2, peak=478).document()), "results": e["results"][1:]}),
    "JSON without its end": json.dumps({**e, "end_time": None}),
}


@pytest.mark.parametrize("text", BROKEN.values(), ids=BROKEN)
def test_what_is_not_whole_is_incomplete(text):
    result = judged(text, **PAIR)
    assert result["verdict"] == "fail" and codes(result)[0] == "INCOMPLETE"


ENDINGS = {
    "srun: error: r09-n02: task 9: Exited with exit code 1": "CRASHED",
    "mpirun noticed that process rank 3 with PID 0 on node n1 exited on signal 11 (Segmentation fault).": "CRASHED",
    "slurmstepd: error: Detected 1 oom-kill event(s) in StepId=1.0.": "OUT_OF_MEMORY",
    "[12345.678] NVRM: Xid (PCI:0000:1b:00): 79, pid=0, GPU has fallen off the bus.": "CUDA_ERROR",
    "# error: Call to ibv_poll_cq failed": "NCCL_ERROR",
}


@pytest.mark.parametrize(("line", "code"), ENDINGS.items())
def test_a_whole_table_does_not_hide_how_the_job_ended(line, code):
    assert codes(judged(f"{TWO}{line}\n", **PAIR)) == [code]


def test_the_tests_own_check_of_the_average_counts_because_it_ends_with_an_error():
    assert codes(judged(re.sub(r"(bandwidth    : \S+) ", r"\1 FAILED", TWO), **PAIR)) == ["MIN_BW_FAILED"]


def test_a_job_that_was_cancelled_in_the_middle_tells_both():
    line = "slurmstepd: error: *** STEP 77.0 ON r09-n01 CANCELLED AT 2026-11-30T12:00:00 ***"
    assert codes(judged(cut(3, line), **PAIR)) == ["CRASHED", "INCOMPLETE"]


@pytest.mark.parametrize("mask", ["XXX.XX", "nnn.nn", "###.##", "***", "TBD", "-", "--", "x.xx", "NNN", "?", "<time>"])
def test_whatever_stands_for_a_figure_in_a_document_makes_it_a_template(mask):
    result = judged(cell(r"\d+\.\d\d", mask), **PAIR)
    assert (result["verdict"], codes(result)) == ("not_run", ["MASKED"])
    assert codes(judged(cell(r"\d+\.\d\d", mask, rows=ROWS[9:10], count=1), **PAIR)) == ["MASKED"]


OTHERS = {
    "the foot alone": "\n".join(LINES[ROWS[-1] + 1 :]),
    "a command": "$ ./build/all_reduce_perf -b 8 -e 16G -f 2 -g 8\n",
    "OSU": "# OSU MPI-CUDA Allreduce Latency Test v7.3\n# Size       Avg Latency(us)\n4                      12.3\n",
    "perftest": " #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]\n 65536      5000   392.2   392.1\n",
    "nvbandwidth": "nvbandwidth Version: v0.5\n 0 1 2\n 0 55.1 55.2 55.3\nSUM host_to_device_memcpy_ce 441.2\n",
    "DCGM": '{"DCGM Diagnostic":{"test_categories":[]}}',
    "the module's own result": json.dumps(judged(ONE)),
    "the source": 'PRINT("# nThread %d nGpus %d minBytes %ld maxBytes %ld\\n",\nPRINT("# Using devices\\n");\n',
    "the usage": "USAGE: all_reduce_perf \n\t[-t,--nthreads <num threads>] \n\t[-g,--ngpus <gpus per thread>] \n",
    "a list without end": '{"results":[' + '{"size":1,' * 20000,
    "a mapping without end": '{"a":' * 3000,
}


@pytest.mark.parametrize("text", OTHERS.values(), ids=OTHERS)
def test_what_is_no_table_of_nccl_tests_is_no_run(text):
    result = judged(text)
    assert (result["verdict"], codes(result)) == ("not_run", ["NO_RESULT"])


PATHS = {
    "r09-n01:1:2 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] [send] via NET/IB/0/GDRDMA\n": [],
    "r09-n01:1:2 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] [send] via NET/IB/3(1)/GDRDMA/Shared\n": [],
    "r09-n01:1:2 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] [send] via NET/AWS Libfabric/0/GDRDMA\n": [],
    "r09-n01:1:2 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] [send] via NET/IB/0\n": ["GPUDIRECT_ABSENT"],
    "r09-n01:1:2 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] [receive] via NET/Socket/0\n": ["GPUDIRECT_ABSENT"],
    "r09-n01:1:2 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] [send] via SHM/direct/direct\n": ["NOT_THROUGH_NICS"],
}


@pytest.mark.parametrize(("line", "expected"), PATHS.items())
def test_a_loopback_proves_gpudirect_only_where_nccl_says_that_it_took_that_way(line, expected):
    assert codes(judged(line * 8 + Run(peak=47, low=GIB).text(), loopback=True)) == expected


def test_a_loopback_that_names_no_way_is_noted():
    assert notes(judged(Run(peak=47, low=GIB).text(), loopback=True)) == ["PATHS_UNKNOWN"]


@pytest.mark.parametrize(
    "line",
    [
        "srun: error: Unable to allocate resources: Requested nodes are busy",
        "srun: error: Unable to allocate resources: Immediate execution impossible, insufficient priority",
    ],
)
def test_nodes_that_have_other_jobs_were_not_measured(line):
    result = judged(line + "\n")
    assert (result["verdict"], codes(result)) == ("not_run", ["BUSY"])
