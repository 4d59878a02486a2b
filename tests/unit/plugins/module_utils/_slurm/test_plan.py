# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What one call changes, with whom, and what of the site's it refuses to touch."""

from __future__ import annotations

import pytest
from ansible_collections.h200.rack.plugins.module_utils._common import atomic
from ansible_collections.h200.rack.plugins.module_utils._common.errors import InvalidInput, RackError
from ansible_collections.h200.rack.plugins.module_utils._slurm import declared, plan, registry, trial

PROFILE = {"gpu": {"count": 8, "gres_type": "h200"}, "memory_mib": 1000,
           "cpu": {"sockets": 1, "cores_per_socket": 2, "threads_per_core": 1}}  # fmt: skip


def _nodes(*names, memory=1000):
    items = [{"name": name, "profile": {**PROFILE, "memory_mib": memory}, "scalable_unit": "su1"} for name in names]
    return declared.read_nodes(items, 0)


def _wanted(folder, *names, absent=(), slurm_conf="Include h200-rack-nodes.conf\n", tree="none", memory=1000):
    return plan.Wanted(_nodes(*names, memory=memory), tuple(absent), [{"name": "gpu"}], slurm_conf, None, "files",
                       "/dev/nvidia%", tree, str(folder))  # fmt: skip


def _applied(folder, wanted, old=registry.Registry({}, None)):  # noqa: B008 - immutable
    made = plan.make(wanted, old, atomic.read_or_none)
    for name, content in made.files.items():
        (folder / name).write_bytes(content)
    return registry.load(registry.dump(registry.Registry(made.nodes, registry.digest(made.files))))


def test_a_second_call_changes_nothing(tmp_path):
    old = _applied(tmp_path, _wanted(tmp_path, "gpu001"))
    assert plan.make(_wanted(tmp_path, "gpu001"), old, atomic.read_or_none).changes == []


def test_a_run_for_another_rack_does_not_remove_this_ones_nodes(tmp_path):
    old = _applied(tmp_path, _wanted(tmp_path, "gpu001"))
    made = plan.make(_wanted(tmp_path, "gpu002"), old, atomic.read_or_none)
    assert list(made.nodes) == ["gpu001", "gpu002"]
    assert "node_set" in made.changes


def test_only_what_is_named_is_removed(tmp_path):
    old = _applied(tmp_path, _wanted(tmp_path, "gpu001", "gpu002", tree="tree"))
    made = plan.make(_wanted(tmp_path, absent=["gpu002"], tree="tree"), old, atomic.read_or_none)
    assert list(made.nodes) == ["gpu001"]
    assert b"gpu002" not in made.files[plan.TOPOLOGY]


def test_less_memory_is_not_taken_for_another_node_set(tmp_path):
    old = _applied(tmp_path, _wanted(tmp_path, "gpu001"))
    assert plan.make(_wanted(tmp_path, "gpu001", memory=900), old, atomic.read_or_none).changes == ["node_values"]


def test_files_that_no_controller_was_proven_with_are_applied_again(tmp_path):
    old = _applied(tmp_path, _wanted(tmp_path, "gpu001"))
    interrupted = registry.Registry(old.nodes, None)
    assert plan.make(_wanted(tmp_path, "gpu001"), interrupted, atomic.read_or_none).changes == ["settings"]


def test_a_registry_that_is_not_ours_is_not_overwritten():
    with pytest.raises(RackError, match="restore it"):
        registry.load(b"[]")


def test_the_site_is_told_what_to_add_and_nothing_is_written_there(tmp_path):
    (tmp_path / "slurm.conf").write_text("ClusterName=x\nNodeName=gpu[001-002]\n")
    with pytest.raises(InvalidInput) as caught:
        plan.make(_wanted(tmp_path, "gpu001", slurm_conf=None, tree="tree"), registry.Registry({}, None), None)
    told = "\n".join(caught.value.details["problems"])
    for word in ("Include h200-rack-nodes.conf", "GresTypes=gpu", "Include h200-rack-gres.conf",
                 "TopologyPlugin=topology/tree", "defines gpu001 itself"):  # fmt: skip
        assert word in told


def test_a_site_without_slurm_conf_is_refused(tmp_path):
    with pytest.raises(InvalidInput, match="does not exist"):
        plan.make(_wanted(tmp_path, "gpu001", slurm_conf=None), registry.Registry({}, None), None)


def test_a_prepared_site_gets_only_our_files(tmp_path):
    (tmp_path / "slurm.conf").write_text("GresTypes=gpu\nInclude h200-rack-nodes.conf\n")
    (tmp_path / "gres.conf").write_text("Include h200-rack-gres.conf\n")
    made = plan.make(_wanted(tmp_path, "gpu001", slurm_conf=None), registry.Registry({}, None), atomic.read_or_none)
    assert sorted(made.files) == ["h200-rack-gres.conf", "h200-rack-nodes.conf"]


def test_a_trial_reaches_no_node():
    line = "NodeName=gpu001 NodeAddr=10.0.0.1 Port=7000 CPUs=2\n"
    assert trial.harmless(line) == "NodeName=gpu001 NodeAddr=127.0.0.2 Port=9 CPUs=2\n"
    assert trial.harmless("SwitchName=a Nodes=b\n") == "SwitchName=a Nodes=b\n"
