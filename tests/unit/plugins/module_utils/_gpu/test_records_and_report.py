# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json

import pytest
from ansible_collections.h200.rack.plugins.module_utils._common.errors import InvalidInput
from ansible_collections.h200.rack.plugins.module_utils._gpu import rack_report, records, report_html
from ansible_collections.h200.rack.plugins.module_utils._gpu.rack_statistics import outliers, pairs, suspects
from ansible_collections.h200.rack.plugins.module_utils._gpu.report_files import write_report
from hypothesis import given
from hypothesis import strategies as st

GPU = {"verdict": "pass", "boot_id": "b1", "serials": {"system": "S1"}, "versions": {"driver": "570"}, "changed": False}


def build(parts=None, **options):
    return records.build("gpu001", "r1", "standard", {"gpu": GPU} if parts is None else parts, **options)


def test_a_record_of_good_parts_passes_and_keeps_serial_boot_and_versions():
    record = build(serial="S1")
    assert (record["verdict"], record["boot_id"], record["versions"]) == ("pass", "b1", {"driver": "570"})
    assert "changed" not in record["parts"]["gpu"]


def test_one_bad_part_fails_the_record_and_names_the_part():
    bad = {"verdict": "fail", "reasons": [{"code": "NVLS_ABSENT", "hint": "x"}]}
    record = build({"gpu": GPU, "nccl": bad})
    assert record["verdict"] == "fail" and record["reasons"] == [{"code": "NVLS_ABSENT", "hint": "x", "part": "nccl"}]
    assert records.failure(record)["code"] == "NVLS_ABSENT"


def test_a_part_that_was_not_run_blocks_and_one_that_is_missing_too():
    assert build({"gpu": {**GPU, "verdict": "not_run"}})["verdict"] == "not_run"
    record = build(required=["gpu", "dcgm"])
    assert (record["verdict"], record["reasons"][0]["code"]) == ("not_run", "PART_MISSING")
    assert build({})["verdict"] == "not_run"
    assert records.failure(build({}))["code"] == "NOT_RUN"


def test_a_reboot_between_the_parts_and_another_serial_number_fail():
    assert build({"gpu": GPU, "after": {**GPU, "boot_id": "b2"}})["reasons"][0]["code"] == "REBOOTED"
    assert build(serial="S2")["reasons"][0]["code"] == "SERIAL"


def test_simulated_tools_mark_the_whole_record():
    assert build({"gpu": GPU, "nccl": {"verdict": "pass", "simulated": True}})["simulated"] is True


def test_a_record_counts_only_for_its_node_run_serial_and_boot():
    record = build()
    assert records.counts_for(record, node="gpu001", run_id="r1", serial="S1", boot_id="b1")
    for wrong in ({"node": "gpu002"}, {"run_id": "r2"}, {"serial": "S9"}, {"boot_id": "b9"}):
        given_all = {"node": "gpu001", "run_id": "r1", "serial": "S1", "boot_id": "b1", **wrong}
        assert not records.counts_for(record, **given_all)


def test_a_record_is_written_once_and_damaged_ones_are_not_read(tmp_path):
    path, changed = records.write(str(tmp_path), build(time="t1"))
    assert changed and records.write(str(tmp_path), build(time="t2")) == (path, False)
    assert records.load_run(str(tmp_path), "r1")[0]["time"] == "t1"
    (tmp_path / "r1" / "gpu002.quick.json").write_text('{"format": 1, ')
    assert len(records.load_run(str(tmp_path), "r1")) == 1
    assert records.load_run(str(tmp_path), "r9") == []


def test_the_summary_is_what_slurms_gate_takes(tmp_path):
    keys = ("node", "run_id", "tier", "verdict", "boot_id", "simulated", "reasons")
    params = {"node": "n1", "run_id": "r1", "tier": "quick", "parts": {"gpu": GPU}, "path": str(tmp_path)}
    params.update(serial="", profile="", required=[])
    assert set(records.keep(params, False)[0]["summary"]) == set(keys)


def test_check_mode_writes_nothing(tmp_path):
    assert records.write(str(tmp_path), build(), check_mode=True)[1] is True
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["../x", "a/b", "", ".hidden"])
def test_names_cannot_leave_the_folder(tmp_path, name):
    with pytest.raises(InvalidInput):
        records.path_of(str(tmp_path), name, "gpu001", "quick")
    with pytest.raises(InvalidInput):
        records.path_of(str(tmp_path), "r1", name, "quick")


def rack(slow=None, count=16):
    values = {f"n{k:02d}": 478.0 + k % 5 for k in range(count)}
    values.update(slow or {})
    return values


def verdicts(found):
    return {one["name"]: one["verdict"] for one in found if one["verdict"] != "pass"}


def test_a_node_far_below_the_others_fails_and_one_a_little_below_is_looked_at():
    assert verdicts(outliers(rack({"n03": 460.0, "n05": 471.5}))) == {"n03": "fail", "n05": "look"}


def test_equal_figures_have_no_outliers_and_one_among_them_is_found():
    same = dict.fromkeys(rack(), 480.0)
    assert verdicts(outliers(same)) == {}
    assert verdicts(outliers({**same, "n03": 479.5})) == {}
    assert verdicts(outliers({**same, "n03": 400.0})) == {"n03": "fail"}


def test_below_ten_nodes_only_the_limit_decides():
    few = rack({"n03": 300.0}, count=9)
    assert verdicts(outliers(few)) == {}
    assert verdicts(outliers(few, minimum=431)) == {"n03": "fail"}


def test_a_rack_that_is_slow_as_a_whole_has_no_outliers_and_fails_by_the_limit():
    assert len(verdicts(outliers(dict.fromkeys(rack(), 367.0), minimum=431))) == 16


def test_a_node_is_as_good_as_its_worst_gpu():
    values = {name: [51000.0] * 8 for name in rack()}
    values["n07"] = [51000.0] * 7 + [44000.0]
    assert verdicts(outliers(values)) == {"n07": "fail"}


def test_heat_is_bad_upwards_and_a_node_without_a_figure_was_not_run():
    values = {**dict.fromkeys(rack(), 60.0), "n01": 85.0, "n02": None}
    assert verdicts(outliers(values, higher_is_better=False)) == {"n01": "fail", "n02": "not_run"}


@given(st.dictionaries(st.text(min_size=1, max_size=3), st.floats(0, 1e6), max_size=40), st.floats(1, 1e5))
def test_no_node_below_the_limit_ever_passes(values, minimum):
    for one in outliers(values, minimum=minimum):
        assert one["verdict"] == "fail" or one["value"] >= minimum


@given(st.integers(2, 40))
def test_pairs_of_a_round_share_no_node_and_every_node_is_in_two(count):
    nodes = [f"n{k}" for k in range(count)]
    rounds = pairs(nodes)
    for one in rounds:
        flat = [node for pair in one.values() for node in pair]
        assert len(flat) == len(set(flat)) and all(pair[0] == lead for lead, pair in one.items())
    everything = [tuple(pair) for one in rounds for pair in one.values()]
    assert len(everything) == (count if count > 2 else 1)
    assert all(sum(node in pair for pair in everything) == (2 if count > 2 else 1) for node in nodes)


def ring(bad):
    nodes = [f"n{k}" for k in range(6)]
    out = []
    for one in pairs(nodes):
        for pair in one.values():
            out.append({"hosts": pair, "verdict": "fail" if bad(*pair) else "pass"})
    return suspects(out)


def test_the_node_in_all_bad_pairs_is_to_blame():
    assert ring(lambda a, b: "n3" in (a, b))["nodes"] == ["n3"]


def test_a_bad_pair_of_good_nodes_is_a_link():
    found = ring(lambda a, b: {a, b} == {"n2", "n3"})
    assert (found["nodes"], found["links"]) == ([], [["n2", "n3"]])


def test_two_nodes_that_are_only_tested_together_stay_open():
    found = suspects([{"target_hosts": ["a", "b"], "hosts": [], "verdict": "fail"}])
    assert (found["nodes"], found["links"], found["undecided"]) == ([], [], [["a", "b"]])


def sample_records():
    out = []
    for number, busbw in enumerate([480, 481, 365]):
        nccl = {
            "verdict": "pass" if busbw > 431 else "fail",
            "busbw": busbw,
            "utilization": {"value": 1, "reference": 480, "basis": "h200_sxm: 1 node"},
            "reasons": [] if busbw > 431 else [{"code": "NVLS_ABSENT", "hint": "<b>reboot</b>"}],
        }
        out.append(records.build(f"gpu{number}", "r1", "standard", {"gpu": GPU, "nccl": nccl}))
    return out


def test_the_report_counts_what_passed_and_lists_who_was_not_run():
    report = rack_report.build(sample_records(), "r1", ["gpu0", "gpu1", "gpu2", "gpu9"])
    assert (report["accepted"], report["total"], report["first_pass_yield"]) == (2, 4, 0.5)
    assert [row["verdict"] for row in report["nodes"]] == ["pass", "pass", "fail", "not_run"]
    assert report["failed_checks"][0]["nodes"] == ["gpu2"]
    assert report["measures"][0]["reference"] == 480


def pair_record(first, second, verdict):
    part = {"verdict": verdict, "target_hosts": [first, second], "busbw": 370 if verdict == "pass" else 90}
    part["reasons"] = [] if verdict == "pass" else [{"code": "NIC_PATH_SLOW", "hint": "x"}]
    return records.build(first, "r1", "pairwise", {"pair": part})


def test_a_bad_pair_is_held_against_the_node_that_all_bad_pairs_share_and_not_against_who_led_it():
    bad = {"n2 n3", "n3 n4"}
    ring = ["n1 n2", "n2 n3", "n3 n4", "n4 n1"]
    found = [pair_record(*pair.split(), "fail" if pair in bad else "pass") for pair in ring]
    report = rack_report.build(found, "r1", ["n1", "n2", "n3", "n4"])
    assert {row["node"]: row["verdict"] for row in report["nodes"]} == {
        "n1": "pass",
        "n2": "pass",
        "n3": "fail",
        "n4": "pass",
    }
    assert report["failed_checks"] == [
        {"code": "PAIRS_BAD", "hint": "all its pairs are bad, so it is this node", "nodes": ["n3"]}
    ]
    drawn = {row["name"]: row["verdict"] for row in report["measures"][0]["nodes"]}
    assert drawn == {"n1 + n2": "pass", "n2 + n3": "fail", "n3 + n4": "fail", "n4 + n1": "pass"}


def test_a_slow_rack_fails_the_rack_and_not_its_first_node():
    slow = {"verdict": "fail", "target_hosts": ["n1", "n2"], "busbw": 90.0, "reasons": [{"code": "NIC_PATH_SLOW"}]}
    slow["utilization"] = {"value": 0.19, "reference": 480.0, "basis": "2 nodes"}
    report = rack_report.build([records.build("n1", "r1", "rack", {"all_reduce": slow})], "r1", ["n1", "n2"])
    assert [row["verdict"] for row in report["nodes"]] == ["not_run", "not_run"]
    assert (report["rack"][0]["verdict"], report["rack"][0]["nodes"]) == ("fail", 2)
    assert "19% of 480 GB/s (2 nodes)" in report_html.page(report, "t")


def test_a_node_below_its_gate_is_red_among_few_nodes_too():
    measure = rack_report.build(sample_records(), "r1")["measures"][0]
    assert [(row["name"], row["verdict"], row["reason"]) for row in measure["nodes"]][0] == (
        "gpu2",
        "fail",
        "NVLS_ABSENT",
    )


def test_a_record_of_an_earlier_boot_or_another_board_counts_no_more():
    old = records.build("n1", "r1", "burn_in", {"gpu": {**GPU, "boot_id": "b0"}}, time="t1")
    new = records.build("n1", "r1", "quick", {"gpu": GPU}, time="t2")
    row = rack_report.build([old, new], "r1")["nodes"][0]
    assert (row["verdict"], row["tiers"]["burn_in"], row["reasons"][0]["code"]) == ("not_run", "not_run", "OUTDATED")


def test_a_node_that_passed_at_its_second_try_is_accepted_and_lowers_the_yield(tmp_path):
    bad = records.build("n1", "r1", "quick", {"gpu": {**GPU, "verdict": "fail"}})
    records.write(str(tmp_path), bad)
    records.write(str(tmp_path), records.build("n1", "r1", "quick", {"gpu": GPU}))
    record = records.load_run(str(tmp_path), "r1")[0]
    assert (record["verdict"], record["first_verdict"], record["attempts"]) == ("pass", "fail", 2)
    report = rack_report.build([record], "r1")
    assert (report["accepted"], report["first_pass_yield"]) == (1, 0.0)


def test_a_node_that_passes_its_own_gate_and_is_left_behind_by_the_others_is_an_outlier():
    found = []
    for number in range(12):
        busbw = 455.0 if number == 4 else 480.0 + number % 3
        nccl = {"verdict": "pass", "busbw": busbw, "reasons": []}
        found.append(records.build(f"n{number:02d}", "r1", "standard", {"gpu": GPU, "nccl": nccl}))
    report = rack_report.build(found, "r1")
    assert [(one["node"], one["verdict"]) for one in report["outliers"]] == [("n04", "fail")]
    assert [row["node"] for row in report["nodes"] if row["verdict"] != "pass"] == ["n04"]
    assert report["bad"] == ["n04: OUTLIER"]
    assert "455 GB/s; the rack" in report_html.page(report, "t")


def test_the_slow_gpu_of_a_node_is_named():
    burn = {"verdict": "pass", "rates": [51000.0] * 5 + [44000.0] + [51000.0] * 2}
    report = rack_report.build([records.build("n1", "r1", "burn_in", {"gpu": GPU, "burn": burn})], "r1")
    assert report["measures"][0]["nodes"][0]["worst"] == 5
    assert "n1 (GPU 5): 44000" in report_html.page(report, "t")


def test_the_page_needs_no_other_file_and_escapes_what_nodes_say():
    page = report_html.page(rack_report.build(sample_records(), "r1"), "Rack <7>")
    assert "http" not in page.replace("https://www.gnu.org", "") and "<script" not in page
    assert "&lt;b&gt;reboot" in page and "Rack &lt;7&gt;" in page and "<svg" in page


def test_a_measure_without_a_reference_is_drawn_all_the_same():
    burn = {"verdict": "pass", "rates": [51000.0] * 7 + [50000.0]}
    record = records.build("gpu001", "r1", "burn_in", {"gpu": GPU, "burn": burn})
    page = report_html.page(rack_report.build([record], "r1"), "t")
    assert "Gflop/s" in page and "50000" in page and "Dashed" not in page


def test_a_simulated_run_says_so_on_the_page():
    record = build({"gpu": {**GPU, "simulated": True}})
    assert "<b>simulated</b>" in report_html.page(rack_report.build([record], "r1"), "t")


def test_a_report_of_nothing_can_be_read(tmp_path):
    result = write_report("r1", [], "t", str(tmp_path))
    assert result["first_pass_yield"] is None and result["changed"]


def test_the_report_is_written_once(tmp_path):
    for record in sample_records():
        records.write(str(tmp_path), record)
    first = write_report("r1", ["gpu0"], "t", str(tmp_path))
    assert first["changed"] and not write_report("r1", ["gpu0"], "t", str(tmp_path))["changed"]
    assert json.loads((tmp_path / "r1" / "report.json").read_text())["accepted"] == 2
    assert (tmp_path / "r1" / "report.html").read_text().startswith("<!doctype html>")
