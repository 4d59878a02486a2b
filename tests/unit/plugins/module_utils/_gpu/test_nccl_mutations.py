# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Mutated logs: nothing raises, and nothing passes that lost ranks, rows or its right results."""

from __future__ import annotations

import importlib.util
import pathlib

from ansible_collections.h200.rack.plugins.module_utils._gpu.nccl_probe import probe
from hypothesis import given, settings
from hypothesis import strategies as st

_spec = importlib.util.spec_from_file_location("nccl_writer", pathlib.Path(__file__).with_name("nccl_writer.py"))
nccl_writer = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(nccl_writer)

FIXTURES = sorted((pathlib.Path(__file__).parents[3] / "fixtures" / "nccl").glob("*.txt"))
LOGS = [path.read_text() for path in FIXTURES]
GOOD = {
    path.stem: path.read_text()
    for path in FIXTURES
    if path.stem in ("h200_1node_8g", "h200_2node", "h200_2node_allgather")
}
GOOD["written"] = nccl_writer.Run(nodes=2, peak=478).text()
GOOD["tagged"] = "".join(f"[1,0]<stdout>:{line}\n" for line in nccl_writer.Run().lines())
PREFIX = "[1,0]<stdout>:"

good_logs = st.sampled_from(sorted(GOOD))
quick = settings(max_examples=60, deadline=None)


def judged(text: str, **options):
    return probe({"log_content": text, "profile": {"name": "h200_sxm"}, **options})


def is_row(line: str) -> bool:
    cells = line.replace(PREFIX, "").split()
    return len(cells) >= 13 and cells[0].isdigit()


def is_rank(line: str) -> bool:
    return "#  Rank" in line


@quick
@given(st.sampled_from(LOGS), st.data())
def test_a_log_with_bytes_changed_anywhere_never_raises(text, data):
    characters = list(text)
    for _round in range(data.draw(st.integers(1, 8))):
        at = data.draw(st.integers(0, len(characters) - 1))
        characters[at] = data.draw(st.characters())
    assert judged("".join(characters))["verdict"] in ("pass", "fail", "not_run")


@quick
@given(st.sampled_from(LOGS), st.data())
def test_a_log_with_lines_moved_doubled_and_dropped_never_raises(text, data):
    lines = text.splitlines()
    for _round in range(data.draw(st.integers(1, 6))):
        at = data.draw(st.integers(0, len(lines) - 1))
        line = lines.pop(at) if len(lines) > 1 else lines[0]
        for _round in range(data.draw(st.integers(0, 2))):
            lines.insert(data.draw(st.integers(0, len(lines))), line)
    assert judged("\n".join(lines))["verdict"] in ("pass", "fail", "not_run")


@quick
@given(st.text(max_size=400))
def test_any_text_never_raises_and_never_passes(text):
    assert judged(text)["verdict"] != "pass"


@quick
@given(good_logs, st.data())
def test_a_log_without_one_of_its_rows_never_passes(name, data):
    lines = GOOD[name].splitlines()
    rows = [k for k, line in enumerate(lines) if is_row(line)]
    first = data.draw(st.sampled_from(rows))
    count = data.draw(st.integers(1, 3))
    kept = [line for k, line in enumerate(lines) if not (is_row(line) and first <= k < first + count)]
    assert judged("\n".join(kept))["verdict"] != "pass"


@quick
@given(good_logs, st.data())
def test_a_log_that_was_cut_before_its_foot_never_passes(name, data):
    text = GOOD[name]
    end = data.draw(st.integers(0, text.index("# Avg bus bandwidth")))
    assert judged(text[:end])["verdict"] != "pass"


@quick
@given(good_logs, st.data())
def test_a_log_with_a_wrong_result_never_passes(name, data):
    lines = GOOD[name].splitlines()
    at = data.draw(st.sampled_from([k for k, line in enumerate(lines) if is_row(line)]))
    wrong = data.draw(st.sampled_from(["1", "12", "3e+04", "N/A"]))
    head, _blank, tail = lines[at].rpartition(" ")
    if data.draw(st.booleans()) or wrong == "N/A":
        cells = lines[at].replace(PREFIX, "").split()
        cells[-5] = wrong
        lines[at] = "  ".join(cells)
    else:
        lines[at] = f"{head} {wrong}" if tail == "0" else lines[at] + wrong
    assert judged("\n".join(lines))["verdict"] != "pass"


@quick
@given(good_logs.filter(lambda name: is_rank(GOOD[name]) or "Rank" in GOOD[name]), st.data())
def test_a_log_without_one_of_its_ranks_never_passes(name, data):
    lines = GOOD[name].splitlines()
    ranks = [k for k, line in enumerate(lines) if is_rank(line)]
    gone = set(data.draw(st.lists(st.sampled_from(ranks), min_size=1, max_size=len(ranks) - 1, unique=True)))
    assert judged("\n".join(line for k, line in enumerate(lines) if k not in gone))["verdict"] != "pass"


@quick
@given(st.integers(2, 200).filter(lambda n: n not in (8, 16)), good_logs)
def test_a_log_of_other_ranks_than_were_meant_never_passes(ranks, name):
    assert judged(GOOD[name], expect_ranks=ranks)["verdict"] != "pass"


@quick
@given(good_logs, st.floats(0.1, 0.8))
def test_a_log_slowed_down_as_a_whole_never_passes(name, share):
    out = []
    for line in GOOD[name].splitlines():
        if is_row(line):
            cells = line.replace(PREFIX, "").split()
            for k in (5, 9):
                cells[k] = nccl_writer.clock(float(cells[k]) / share).strip()
            for k in (6, 7, 10, 11):
                cells[k] = f"{float(cells[k]) * share:.2f}"
            line = "  ".join(cells)
        out.append(line)
    assert judged("\n".join(out))["verdict"] != "pass"


@quick
@given(good_logs, st.data())
def test_a_log_with_anything_uncompared_in_place_never_passes(name, data):
    lines = GOOD[name].splitlines()
    at = data.draw(st.sampled_from([k for k, line in enumerate(lines) if is_row(line)]))
    lines[at] = lines[at].rstrip()[:-1] + "N/A"
    assert judged("\n".join(lines))["verdict"] != "pass"


@quick
@given(good_logs, st.data())
def test_noise_between_the_lines_of_a_good_log_does_not_fail_it(name, data):
    noise = st.sampled_from(
        [
            "r09-n02:7010:7100 [2] NCCL INFO Channel 03/0 : 10[2] -> 2[2] [send] via NET/IB/2/GDRDMA",
            "[1764500000.1] [r09-n01:7000 :0]  parser.c:2036 UCX  WARN  unused environment variables: UCX_HOME",
            "",
            "#",
            "some words of a prolog",
            "12 34",
        ]
    )
    lines = GOOD[name].splitlines()
    for _round in range(data.draw(st.integers(1, 12))):
        lines.insert(data.draw(st.integers(0, len(lines))), data.draw(noise))
    options = {"collective": "all_gather"} if "allgather" in name else {}
    assert judged("\n".join(lines), **options)["verdict"] == "pass"


@quick
@given(good_logs, st.text(alphabet=" abcXYZ:|>#[]()<>-_.0123456789", max_size=30).map(lambda text: text + "| "))
def test_no_prefix_makes_a_log_pass_that_lost_a_row(name, prefix):
    lines = GOOD[name].splitlines()
    at = next(k for k, line in enumerate(lines) if is_row(line))
    del lines[at + 1]
    assert judged("".join(f"{prefix}{line}\n" for line in lines))["verdict"] != "pass"


@quick
@given(good_logs, good_logs, st.data())
def test_a_log_with_another_one_in_the_middle_of_its_table_never_passes(outer, inner, data):
    lines = GOOD[outer].splitlines()
    rows = [k for k, line in enumerate(lines) if is_row(line)]
    at = data.draw(st.sampled_from(rows))
    lines[at:at] = GOOD[inner].splitlines()
    assert judged("\n".join(lines))["verdict"] != "pass"
