# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A code that nobody explains helps nobody."""

from __future__ import annotations

import pathlib
import re

import pytest
from ansible_collections.h200.rack.plugins.module_utils._gpu.nccl_probe import probe
from ansible_collections.h200.rack.plugins.module_utils._gpu.nccl_reasons import CODES

TOP = pathlib.Path(__file__).parents[5]
MODULE = (TOP / "plugins" / "modules" / "nccl_probe.py").read_text()
NOTES = MODULE[MODULE.index("\nnotes:\n") : MODULE.index("\nseealso:\n")]
LOGS = sorted((TOP / "tests" / "unit" / "fixtures" / "nccl").glob("*.txt"))


def test_every_code_is_documented_under_its_verdict():
    for entry in re.split(r"\n  - ", NOTES):
        for verdict in ("fail", "not_run"):
            if f"V({verdict}) by" in entry:
                named = set(re.findall(r"C\(([A-Z]{2}[A-Z_]+)\)", entry.partition(" by ")[2])) & set(CODES)
                assert {CODES[code] for code in named} == {verdict}
    assert not [code for code in CODES if f"C({code})" not in NOTES]


@pytest.mark.parametrize("path", LOGS, ids=lambda path: path.stem)
def test_every_reason_and_note_has_a_hint(path):
    result = probe({"log": str(path), "profile": {"name": "h200_sxm"}, "expect_hosts": 2, "expect_ranks": 16})
    assert all(len(item["hint"]) > 10 for item in [*result["reasons"], *result["notes"]])
    assert all(reason["code"] in CODES for reason in result["reasons"])
