# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Node lines, gres.conf, topology and what Slurm would only warn about."""

from __future__ import annotations

import pytest
from ansible_collections.h200.rack.plugins.module_utils._common.errors import InvalidInput
from ansible_collections.h200.rack.plugins.module_utils._slurm import declared, hostlist, render, topology

PROFILE = {
    "name": "h200",
    "gpu": {"count": 8, "gres_type": "h200"},
    "cpu": {"sockets": 2, "cores_per_socket": 48, "threads_per_core": 2},
    "memory_mib": 2000000,
}


def _node(number, **more):
    return {"name": f"gpu{number:03d}", "address": f"10.0.0.{number}", "profile": PROFILE, **more}


def _read(*nodes, margin=0.05):
    return declared.read_nodes(nodes, margin)


def test_a_node_line_says_less_memory_than_there_is():
    # One MiB too much, and the node is drained at every kernel update.
    line = render.nodes_conf(_read(_node(1)), []).splitlines()[1]
    assert line == (
        "NodeName=gpu001 NodeAddr=10.0.0.1 Sockets=2 CoresPerSocket=48 ThreadsPerCore=2 RealMemory=1900000 "
        "Gres=gpu:h200:8 State=UNKNOWN"
    )


def test_the_gate_is_in_the_line_for_one_start_only():
    nodes = _read(_node(1), _node(2))
    gated = render.nodes_conf(nodes, [], {"gpu002": "h200.rack:r:provisioning"})
    assert gated.count("State=DRAIN") == 1
    assert 'State=DRAIN Reason="h200.rack:r:provisioning"' in gated
    assert "DRAIN" not in render.nodes_conf(nodes, [])


@pytest.mark.parametrize(
    ("node", "words"),
    [
        ({**_node(1), "profile": {"name": "h200_sxm", "gpu": {"count": 8, "gres_type": "h200"}}}, "cpu.sockets"),
        ({**_node(1), "profile": {**PROFILE, "memory_mib": None}}, "memory_mib"),
        (_node(1, scalable_unit=["su1", "su2"]), "not on 2: su1, su2"),
        (_node(1, scalable_unit="su 1"), "one word"),
        ({**_node(1), "name": "gpu001.example.org"}, "without dots"),
        ({**_node(1), "profile": {**PROFILE, "gpu": {"count": 8, "gres_type": "H200 SXM"}}}, "gres_type"),
    ],
)
def test_what_the_inventory_lacks_is_named_with_the_node(node, words):
    with pytest.raises(InvalidInput) as caught:
        _read(node)
    assert words in caught.value.msg
    assert node["name"] in caught.value.msg


def test_all_problems_are_told_at_once():
    with pytest.raises(InvalidInput) as caught:
        _read({**_node(1), "profile": {}}, _node(2, scalable_unit="a b"), _node(3), {**_node(4), "address": "10.0.0.3"})
    assert len(caught.value.details["problems"]) == 3


def test_a_node_in_two_units_is_refused_although_it_is_named_in_two_items():
    with pytest.raises(InvalidInput, match="two scalable units, su1 and su2"):
        _read(_node(1, scalable_unit="su1"), _node(1, scalable_unit="su2"))


def test_gres_conf_joins_nodes_of_one_kind():
    nodes = _read(_node(1), _node(2), _node(4))
    assert "NodeName=gpu[001-002,004] Name=gpu Type=h200 File=/dev/nvidia[0-7]" in render.gres_conf(
        nodes, "files", "/dev/nvidia%"
    )
    assert "AutoDetect=nvml" in render.gres_conf(nodes, "nvml", "")


def test_a_rail_optimised_node_is_listed_once_and_a_spine_joins_the_units():
    nodes = _read(*(_node(n, scalable_unit=f"su{1 + n // 3}") for n in range(1, 6)))
    text = render.topology_conf(nodes)
    assert "SwitchName=su1 Nodes=gpu[001-002]" in text
    assert "SwitchName=spine Switches=su[1-2]" in text
    assert topology.problems(text, [node.name for node in nodes]) == []


def test_a_unit_called_spine_does_not_swallow_the_spine():
    nodes = _read(_node(1, scalable_unit="spine"), _node(2, scalable_unit="su2"))
    assert topology.problems(render.topology_conf(nodes), ["gpu001", "gpu002"]) == []


def test_a_node_without_a_unit_has_no_place_in_the_tree():
    with pytest.raises(InvalidInput, match="gpu002: rack_scalable_unit"):
        render.topology_conf(_read(_node(1, scalable_unit="su1"), _node(2)))


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("SwitchName=a Nodes=n1", "no switch for n2"),
        ("SwitchName=a Nodes=n[1-3]", "n3 under switch a is not a node"),
        ("SwitchName=a Nodes=n[1-2]\nSwitchName=b Nodes=n2\nSwitchName=s Switches=a,b", "n2 hangs on more than one"),
        ("SwitchName=a Nodes=n1\nSwitchName=b Nodes=n2", "a spine is missing"),
        ("SwitchName=a Nodes=n[1-2]\nSwitchName=s Switches=a,c", "switch c under s is not described"),
        ("SwitchName=a Nodes=n1\nSwitchName=a Nodes=n2", "described twice"),
        ("", "no switch at all"),
        ("SwitchName=a Switches=b\nSwitchName=b Switches=a", "ring"),
    ],
)
def test_what_slurm_only_warns_about_is_found(text, word):
    assert any(word in problem for problem in topology.problems(text, ["n1", "n2"]))


def test_a_partition_of_unknown_nodes_is_refused():
    with pytest.raises(InvalidInput, match="gpu009"):
        render.read_partitions([{"name": "gpu", "nodes": ["gpu009"]}], ["gpu001"])


def test_booleans_of_a_partition_are_slurms():
    [item] = render.read_partitions([{"name": "gpu", "options": {"Default": True, "MaxTime": 5}}], [])
    assert item.options == {"Default": "YES", "MaxTime": "5"}


@pytest.mark.parametrize("text", ["gpu[001-003,007]", "gpu001", "a[1-2],b", "login,gpu[01-12]"])
def test_a_host_list_survives_the_way_there_and_back(text):
    names = hostlist.expand(text)
    assert sorted(hostlist.expand(hostlist.compress(names))) == sorted(names)


def test_brackets_multiply():
    assert hostlist.expand("r[1-2]n[1-2]") == ["r1n1", "r1n2", "r2n1", "r2n2"]


def test_names_of_other_widths_stay_apart():
    assert hostlist.compress(["gpu1", "gpu01"]) == "gpu1,gpu01"
