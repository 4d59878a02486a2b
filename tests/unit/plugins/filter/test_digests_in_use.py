# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest
from ansible.errors import AnsibleFilterError
from ansible_collections.h200.rack.plugins.filter.digests_in_use import digests_in_use

ONE, TWO, THREE = "1" * 64, "2" * 64, "3" * 64
PLAN = {
    "images": [{"digest": ONE}, {"digest": ""}],
    "nodes": {"gpu001": {"image_digest": ONE}, "gpu002": {"image_digest": ""}},
}


def test_what_a_node_was_written_with_and_what_the_inventory_pins_is_spared():
    history = [{"stage": "written", "evidence": {"digest": TWO}}, {"stage": "os_up", "evidence": {"boot_id": "x"}}]
    states = {"gpu001": {"history": history}, "gpu002": {"history": [], "lease": None}}
    assert digests_in_use(PLAN, states) == [ONE, TWO]


def test_a_digest_inside_a_path_is_one_and_a_longer_number_is_none():
    states = {"gpu001": {"history": [{"evidence": {"ramdisk": f"ramdisk/x86_64/{THREE}", "other": "4" * 65}}]}}
    assert digests_in_use(PLAN, states) == [ONE, THREE]


def test_a_ledger_that_cannot_be_read_spares_nothing_by_guessing():
    with pytest.raises(AnsibleFilterError, match="gpu001 cannot be read"):
        digests_in_use(PLAN, {"gpu001": {"error": "not JSON", "history": []}})
