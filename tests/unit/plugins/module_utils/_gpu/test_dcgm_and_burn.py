# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json
import pathlib

import pytest
from ansible_collections.h200.rack.plugins.module_utils._gpu import dcgm, gpu_burn
from ansible_collections.h200.rack.plugins.module_utils._gpu.checks import overall
from hypothesis import given
from hypothesis import strategies as st

FIXTURES = pathlib.Path(__file__).parents[3] / "fixtures" / "gpu"


def four(tests: dict[str, list[str]], warnings=None, gpus: int = 8) -> str:
    return json.dumps(
        {
            "DCGM Diagnostic": {
                "test_categories": [
                    {
                        "category": "Hardware",
                        "tests": [
                            {
                                "name": name,
                                "results": [
                                    {
                                        "entity_group": "GPU",
                                        "entity_id": k,
                                        "status": status,
                                        "warnings": warnings or [],
                                    }
                                    for k, status in enumerate(statuses)
                                ],
                                "test_summary": {"status": "Pass"},
                            }
                            for name, statuses in tests.items()
                        ],
                    }
                ]
            },
            "entity_groups": [{"entity_group": "GPU", "entities": [{"entity_id": k} for k in range(gpus)]}],
            "metadata": {"Driver Version Detected": "570.211.01", "version": "4.2.3"},
        }
    )


def three(name: str, status: str, ids: str = "0,1,2,3,4,5,6,7", **more) -> str:
    result = {"gpu_ids": ids, "status": status, **more}
    tests = [{"name": name, "results": [result]}]
    return "Successfully ran diagnostic for group.\n" + json.dumps(
        {"DCGM GPU Diagnostic": {"version": "3.3.5", "test_categories": [{"category": "Hardware", "tests": tests}]}}
    )


def judged(text: str, gpus: int = 8, optional=()):
    checks = dcgm.judge(dcgm.parse(text), gpus, optional)
    return overall(check.verdict for check in checks), {c.name: c.code for c in checks if c.verdict != "pass"}


def test_version_4_passes_when_every_gpu_passed_every_test():
    assert judged(four({"memory": ["Pass"] * 8, "pcie": ["Pass"] * 8})) == ("pass", {})


def test_version_3_passes_behind_its_banner():
    text = three("Memory", "Pass")
    assert judged(text) == ("pass", {})
    assert dcgm.parse(text).version == "3.3.5"


def test_persistence_mode_off_is_a_configuration_error_in_a_real_document():
    verdict, codes = judged((FIXTURES / "dcgm_v4_persistence.txt").read_text(), gpus=1)
    assert (verdict, codes) == ("fail", {"dcgm_software": "PERSISTENCE_OFF"})


def test_skipped_is_not_passed_unless_the_test_is_optional():
    text = four({"memory": ["Pass"] * 8, "eud": ["Skip"] * 8})
    assert judged(text) == ("not_run", {"dcgm_eud": "DCGM_SKIPPED"})
    assert judged(text, optional=["eud"]) == ("pass", {})


def test_a_gpu_that_no_test_ran_on_is_not_a_pass():
    assert judged(four({"memory": ["Pass"] * 7})) == ("not_run", {"dcgm_memory": "DCGM_INCOMPLETE"})
    assert judged(four({"memory": ["Pass"] * 7}, gpus=7))[1]["dcgm_gpus"] == "GPU_COUNT"


@pytest.mark.parametrize(
    ("severity", "code"),
    [
        (2, "DCGM_ISOLATE"),
        (3, "DCGM_TRIAGE"),
        (4, "DCGM_TRIAGE"),
        (5, "DCGM_CONFIG"),
        (6, "DCGM_RESET"),
        (0, "DCGM_FAILED"),
    ],
)
def test_the_severity_says_what_to_do(severity, code):
    text = four({"memory": ["Fail", *["Pass"] * 7]}, [{"error_id": 7, "error_severity": severity, "warning": "x"}])
    assert judged(text) == ("fail", {"dcgm_memory": code})


def test_warnings_of_version_3_may_be_plain_text():
    assert judged(three("PCIe", "Fail", warnings="link is slow"))[1] == {"dcgm_pcie": "DCGM_FAILED"}


def test_a_document_without_tests_is_no_pass():
    assert judged(four({}))[0] == "not_run"


@given(st.text(max_size=200))
def test_any_text_is_no_diagnosis_and_raises_nothing(text):
    assert dcgm.parse(text) is None


@given(st.recursive(st.none() | st.integers() | st.text(max_size=5), lambda inner: st.lists(inner, max_size=3)))
def test_any_content_of_a_document_raises_nothing_and_never_passes(content):
    found = dcgm.parse(json.dumps({"DCGM Diagnostic": {"test_categories": content}}))
    assert overall(check.verdict for check in dcgm.judge(found, 8)) != "pass"


def burn(words=("OK",) * 8, rates=(51000.0,) * 8, errors=0) -> str:
    parts = " - ".join(f"100 ({rate:g} Gflop/s)" for rate in rates)
    return (
        f"10.0%  proc'd: {parts}   errors: 0   temps: 60 C\r100.0%  proc'd: {parts}   errors: {errors}  (WARNING!) \n"
        f"Tested {len(words)} GPUs:\n" + "".join(f"\tGPU {k}: {word}\n" for k, word in enumerate(words))
    )


def burnt(text: str):
    checks = gpu_burn.judge(gpu_burn.parse(text), 8)
    return overall(check.verdict for check in checks), [check.code for check in checks if check.verdict != "pass"]


def test_eight_gpus_that_are_ok_and_equally_fast_pass():
    assert burnt(burn()) == ("pass", [])


def test_a_faulty_gpu_fails_although_gpu_burn_ends_with_0():
    assert burnt(burn(("OK",) * 7 + ("FAULTY",))) == ("fail", ["GPU_FAULTY"])


def test_errors_fail_although_every_gpu_says_ok():
    assert burnt(burn(errors=3)) == ("fail", ["GPU_FAULTY"])


def test_seven_tested_gpus_fail():
    assert burnt(burn(("OK",) * 7, (51000.0,) * 7))[0] == "fail"


def test_a_gpu_seven_percent_slower_than_the_others_fails_and_four_percent_is_noted():
    assert burnt(burn(rates=(51000.0,) * 7 + (47000.0,))) == ("fail", ["GPU_SLOW"])
    checks = gpu_burn.judge(gpu_burn.parse(burn(rates=(51000.0,) * 7 + (49000.0,))), 8)
    assert checks[1].verdict == "pass" and "GPU7" in checks[1].hint


def test_a_node_that_is_slow_as_a_whole_has_no_slow_gpu_and_fails_by_the_limit():
    found = gpu_burn.parse(burn(rates=(30000.0,) * 8))
    assert [check.verdict for check in gpu_burn.judge(found, 8)] == ["pass", "pass"]
    assert [check.code for check in gpu_burn.judge(found, 8, 45000.0)] == ["", "GPU_SLOW"]


def test_a_burn_that_was_cut_is_no_pass():
    assert burnt(burn().partition("Tested")[0])[0] == "not_run"
    assert burnt("")[0] == "not_run"
