# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What scontrol printed, recorded on Debian 12 (22.05) and Debian 13 (24.11), reads as the same node."""

from __future__ import annotations

import pathlib

import pytest
from ansible_collections.h200.rack.plugins.module_utils._common.errors import RackError
from ansible_collections.h200.rack.plugins.module_utils._slurm import records

FIXTURES = pathlib.Path(__file__).parent / "fixtures"


def _read(name):
    content = (FIXTURES / name).read_text()
    nodes = records.from_json(content) if name.endswith(".json") else records.from_text(content)
    return {node.name: node for node in nodes}


def test_a_node_that_never_spoke_is_not_registered():
    node = _read("nodes-22.05.txt")["gpu002"]
    assert not node.registered
    assert node.drained
    assert (node.reason, node.reason_user) == ("h200.rack:R1:provisioning", None)


def test_a_refused_registration_is_seen_although_the_node_works():
    node = _read("nodes-22.05.txt")["gpu001"]
    assert node.invalid
    assert node.busy
    assert node.base == "MIXED"
    assert node.reason_user == "slurm"
    assert node.gpus == 8


def test_words_in_a_reason_or_the_os_are_not_taken_for_fields():
    nodes = _read("nodes-22.05.txt")
    assert nodes["gpu003"].reason == "bad DIMM, State=IDLE says Ann"
    assert nodes["gpu003"].state == "IDLE+DRAIN+NOT_RESPONDING"
    assert nodes["gpu001"].base == "MIXED"


def test_a_node_that_stopped_answering_does_not_count_as_registered():
    assert not _read("nodes-22.05.txt")["gpu003"].registered


def test_text_and_json_of_one_controller_agree():
    text, document = _read("nodes-24.11.txt"), _read("nodes-24.11.json")
    assert list(text) == list(document) == ["gpu001", "gpu002"]
    for name, node in text.items():
        other = document[name]
        same = ["base", "drained", "invalid", "registered", "reason", "gres", "gpus"]
        same += ["real_memory", "cpus", "partitions", "features", "address"]
        assert [getattr(node, key) for key in same] == [getattr(other, key) for key in same]


def test_a_drain_by_an_operator_is_read_from_json():
    node = _read("nodes-24.11.json")["gpu002"]
    assert node.drained
    assert (node.reason, node.reason_user) == ("bad DIMM, ask Ann", "root")


def test_the_old_json_with_plain_numbers_and_flags_apart_is_read():
    node = records.from_json(
        '{"nodes": [{"name": "a", "state": "idle", "state_flags": ["DRAIN"], "real_memory": 5, "boot_time": 7,'
        ' "slurmd_start_time": 9, "gres": "gpu:h200:8", "features": "x,y", "partitions": ["gpu"]}]}'
    )[0]
    assert (node.state, node.real_memory, node.features, node.registered) == ("IDLE+DRAIN", 5, ("x", "y"), True)


def test_a_message_instead_of_json_is_an_error_and_not_an_empty_cluster():
    with pytest.raises(RackError, match="something else"):
        records.from_json("slurm_load_node error: Unable to contact slurm controller")
