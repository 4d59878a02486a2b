# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which change may reach which version how: the wrong one takes the cluster down."""

from __future__ import annotations

import pytest
from ansible_collections.h200.rack.plugins.module_utils._common.errors import RackError
from ansible_collections.h200.rack.plugins.module_utils._slurm import strategy, versions

OLD, NEW = versions.Version(22, 5, 8), versions.Version(24, 11, 5)


@pytest.mark.parametrize("version", [OLD, versions.Version(23, 11, 10), versions.Version(24, 5)])
def test_a_reconfigure_with_other_node_names_would_kill_it(version):
    assert strategy.choose(["node_set"], version, running=True) == "restart"
    with pytest.raises(RackError) as caught:
        strategy.choose(["node_set"], version, running=True, wanted="reconfigure")
    assert caught.value.code == "strategy_refused"


def test_from_24_11_new_nodes_need_no_restart():
    assert strategy.choose(["node_set", "gres", "topology"], NEW, running=True) == "reconfigure"


def test_memory_and_partitions_need_no_restart_anywhere():
    assert strategy.choose(["node_values", "partitions"], OLD, running=True) == "reconfigure"


def test_nothing_changed_nothing_done():
    assert strategy.choose([], OLD, running=True) == "none"


def test_a_controller_that_does_not_run_is_started():
    assert strategy.choose([], OLD, running=False) == "start"


def test_a_restart_may_be_asked_for():
    assert strategy.choose(["partitions"], OLD, running=True, wanted="restart") == "restart"


@pytest.mark.parametrize(
    ("said", "is_version"),
    [("slurm-wlm 22.05.8", "22.05.8"), ("slurm 24.11.5\n", "24.11.5"), ("slurm 25.05.0rc1", "25.05.0")],
)
def test_versions_are_read(said, is_version):
    assert str(versions.parse(said)) == is_version


def test_a_version_too_old_is_refused_with_the_remedy():
    with pytest.raises(RackError, match="older than 22.05"):
        versions.supported(versions.parse("slurm 20.11.4"))


def test_a_message_is_not_a_version():
    with pytest.raises(RackError):
        versions.parse("slurmctld: error: could not resolve")
