# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Real logs of many versions and launchers, each judged as an engineer would, with the reason."""

from __future__ import annotations

import pathlib

import pytest
from ansible_collections.h200.rack.plugins.module_utils._gpu.nccl_probe import probe

FIXTURES = pathlib.Path(__file__).parents[3] / "fixtures" / "nccl"
# A site whose H100 nodes have eight NICs of 200 Gb/s.
A3MEGA = {"base": "h100_sxm", "nics": {"rate_gbps": 200}}


def judged(name: str, profile=None, **options):
    given = {"name": profile} if isinstance(profile, str) else profile
    return probe({"log": str(FIXTURES / f"{name}.txt"), "profile": given, **options})


def codes(result):
    return [reason["code"] for reason in result["reasons"]]


def test_h200_node_at_8g_passes_because_477_of_480_is_what_nvlink_sharp_gives():
    result = judged("h200_1node_8g", "h200_sxm", expect_ranks=8, expect_hosts=1)
    assert (result["verdict"], result["busbw"], result["at_size"]) == ("pass", 476.72, 8 << 30)
    assert result["utilization"]["reference"] == 480 and "NVLink SHARP" in result["utilization"]["basis"]
    assert (result["ranks"], result["gpu_models"], result["nccl_version"]) == (8, ["NVIDIA H200"], "2.19.3+cuda12.2")
    assert result["validated"] and result["complete"] and result["wrong"] == 0


def test_h200_node_log_pasted_into_a_comment_passes_because_403_is_right_for_128_mib():
    result = judged("h200_1node_in_comment", "h200_sxm", expect_ranks=8)
    assert (result["verdict"], result["busbw"]) == ("pass", 403.5)
    assert "128 MiB" in result["utilization"]["basis"]


def test_two_h200_nodes_pass_although_478_is_more_than_their_nics_carry():
    result = judged("h200_2node", "h200_sxm", expect_ranks=16, expect_hosts=2)
    assert (result["verdict"], result["busbw"], result["ranks"], len(result["hosts"])) == ("pass", 478.15, 16, 2)
    assert result["printed_avg_busbw"] == 467.089
    assert "capped by NVLink SHARP" in result["utilization"]["basis"]


def test_two_h200_nodes_all_gather_passes_because_325_is_near_a_ring_and_the_average_122_says_nothing():
    result = judged("h200_2node_allgather", "h200_sxm", collective="all_gather", expect_hosts=2)
    assert (result["verdict"], result["busbw"], result["collective"]) == ("pass", 325.52, "all_gather")
    assert result["utilization"]["reference"] == 365


def test_h100_node_passes_at_474():
    assert judged("h100_1node", "h100_sxm", expect_ranks=8, expect_hosts=1)["verdict"] == "pass"


def test_h100_node_behind_mpi_tags_passes_with_its_ranks_computed_from_the_bandwidths():
    result = judged("h100_1node_mpi_tags", "h100_sxm", expect_ranks=8)
    assert (result["verdict"], result["busbw"], result["ranks"], result["ranks_basis"]) == (
        "pass",
        483.05,
        8,
        "busbw/algbw",
    )


def test_two_h100_nodes_by_ring_fail_because_90_is_two_nics_worth_and_nothing_was_compared():
    result = judged("h100_2node_ring_slow", "h100_sxm", expect_ranks=16)
    assert result["verdict"] == "fail"
    assert codes(result) == ["NOT_VALIDATED", "NIC_PATH_SLOW"]
    assert (result["busbw"], result["validated"], result["wrong"]) == (89.9, False, None)


def test_two_h100_nodes_by_ring_stay_slow_when_validation_is_not_asked_for():
    result = judged("h100_2node_ring_slow", "h100_sxm", require_validation=False, env={"NCCL_ALGO": "RING"})
    assert codes(result) == ["NIC_PATH_SLOW"]
    assert result["utilization"]["reference"] == 400 and "ring" in result["utilization"]["basis"]


def test_two_h100_nodes_with_200g_nics_fail_where_the_profile_promises_400g():
    assert codes(judged("h100_2node_200g", "h100_sxm", expect_hosts=2)) == ["NIC_PATH_SLOW"]


def test_two_h100_nodes_with_200g_nics_pass_by_their_own_profile():
    result = judged("h100_2node_200g", A3MEGA, expect_hosts=2)
    assert (result["verdict"], result["utilization"]["reference"]) == ("pass", round(200 * 2 * 15 / 16 * 0.97, 2))


def test_unchecked_all_gather_fails_because_na_is_not_zero():
    result = judged("h100_2node_allgather_unchecked", None, reference=75)
    assert codes(result) == ["NOT_VALIDATED"]
    assert result["wrong"] is None and result["ranks"] == 16


def test_a_log_with_rows_left_out_fails_although_its_last_row_is_good():
    for name, profile in (("h100_2node_elided", "h100_sxm"), ("h200_16node_elided", "h200_sxm")):
        result = judged(name, profile)
        assert (result["verdict"], codes(result), result["complete"]) == ("fail", ["INCOMPLETE"], False)


def test_sixteen_nodes_are_recognised_by_the_ratio_of_the_bandwidths_and_measured_by_their_own_reference():
    result = judged("h200_16node_elided", "h200_sxm")
    assert result["ranks"] == 128
    assert result["utilization"]["reference"] == pytest.approx(400 * 16 / 15 * 127 / 128, abs=0.01)


def test_a_documents_template_with_masked_figures_is_no_run():
    result = judged("documentation_masked", "h200_sxm")
    assert (result["verdict"], codes(result)) == ("not_run", ["MASKED"])


def test_one_rank_jobs_fail_although_they_end_with_ok():
    result = judged("one_rank_headless_tail", None)
    assert result["verdict"] == "fail"
    assert codes(result)[0] == "NOT_ONE_JOB" and "INCOMPLETE" in codes(result)
    assert result["peak_busbw"] == 0


def test_open_mpi_without_slots_never_ran_the_test():
    assert (judged("openmpi_no_slots")["verdict"], codes(judged("openmpi_no_slots"))) == ("fail", ["LAUNCH_FAILED"])


def test_a_log_that_stops_in_the_list_of_devices_was_killed():
    result = judged("b200_header_truncated")
    assert (result["verdict"], codes(result), result["rows"]) == ("fail", ["INCOMPLETE"], [])


def test_an_nccl_error_is_the_reason_and_not_the_chain_that_follows_it():
    result = judged("unhandled_system_error")
    assert (result["verdict"], codes(result)) == ("fail", ["NCCL_ERROR"])
    assert "unhandled system error" in result["reasons"][0]["hint"]


def test_a_log_of_2018_is_read_up_to_its_cuda_error():
    result = judged("p100_2018_format_failure")
    assert (result["verdict"], codes(result), result["ranks"]) == ("fail", ["NCCL_ERROR"], 8)


def test_a_broadcast_of_2020_that_was_cut_fails_and_keeps_its_warnings():
    result = judged("v100_broadcast_2020_truncated")
    assert result["verdict"] == "fail" and "INCOMPLETE" in codes(result)
    assert len(result["nccl_warnings"]) == 2 and "libibverbs" in result["nccl_warnings"][0]


def test_h100_nvl_in_the_place_of_h200_fails_by_its_model_and_number():
    result = judged("h100nvl_2node_step_bytes", "h200_sxm")
    assert result["verdict"] == "fail"
    assert {"WRONG_GPU", "RANKS", "SIZE_TOO_SMALL"} <= set(codes(result))


def test_a_sweep_up_to_1_5_mb_tells_of_latency_only():
    result = judged("h100nvl_2node_step_bytes", {"base": "h100_sxm", "gpu": {"model": "NVIDIA H100 NVL", "count": 2}})
    assert (result["verdict"], codes(result)) == ("not_run", ["SIZE_TOO_SMALL"])
    assert result["complete"]


@pytest.mark.parametrize(
    ("name", "ranks", "hosts", "busbw", "reference"),
    [
        ("a100_1node", 8, 1, 231.72, 235),
        ("a100_2node", 16, 2, 182.8, 192),
        ("a100_2node_error_column", 16, 2, 188.53, 192),
        ("a100_4node_error_column", 32, 4, 191.05, 192),
    ],
)
def test_a100_logs_pass_by_a_given_reference_also_with_the_old_error_column(name, ranks, hosts, busbw, reference):
    result = judged(name, None, reference=reference, expect_ranks=ranks, expect_hosts=hosts)
    assert (result["verdict"], result["busbw"], result["validated"]) == ("pass", busbw, True)
    assert result["utilization"]["value"] == round(busbw / reference, 4)


def test_a_sound_log_without_a_reference_is_not_a_pass():
    result = judged("a100_1node")
    assert (result["verdict"], codes(result)) == ("not_run", ["NO_REFERENCE"])
    assert judged("a100_1node", None, min_utilization=0)["verdict"] == "pass"


def test_a100_nodes_where_h200_were_bought_fail_by_their_model():
    assert "WRONG_GPU" in codes(judged("a100_1node", "h200_sxm"))


def test_jittery_roce_nodes_fail_because_23_is_one_nics_worth():
    result = judged("roce_2node_one_nic_jittery", "h200_sxm", expect_hosts=2)
    assert (result["verdict"], codes(result), result["busbw"]) == ("fail", ["NIC_PATH_SLOW"], 22.92)


@pytest.mark.parametrize("name", sorted(path.stem for path in FIXTURES.glob("*.txt")))
def test_no_log_passes_for_twice_its_ranks_or_another_number_of_hosts(name):
    result = judged(name, "h200_sxm", expect_ranks=64 if name != "h200_16node_elided" else 256)
    assert result["verdict"] != "pass"
