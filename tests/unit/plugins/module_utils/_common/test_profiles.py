# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest
from ansible_collections.h200.rack.plugins.module_utils._common.errors import InvalidInput
from ansible_collections.h200.rack.plugins.module_utils._common.profiles import (
    PROFILES,
    complete,
    compute_nics,
    resolve,
)


@pytest.mark.parametrize("name", sorted(PROFILES))
def test_every_profile_of_ours_resolves_to_what_the_table_says(name):
    assert resolve(name, None) == PROFILES[name]


def test_h200_sxm_expects_what_a_healthy_node_shows():
    gpu = resolve("h200_sxm", {})["gpu"]
    assert (gpu["count"], gpu["model"], gpu["memory_mib"], gpu["power_limit_w"]) == (8, "NVIDIA H200", 143771, 700)
    assert (gpu["nvlinks"], gpu["nvlink_gbs"], gpu["fabric_manager"]) == (18, 26.562, True)


def test_nvl_cards_have_no_fabric_manager_to_wait_for():
    assert resolve("h200_nvl", {})["gpu"]["fabric_manager"] is False


def test_dgx_adds_cpus_memory_and_the_names_of_its_nics():
    dgx = resolve("dgx_h200", {})
    assert dgx["cpu"] == {"sockets": 2, "cores_per_socket": 56, "threads_per_core": 2}
    assert compute_nics(dgx)[0] == 8 and "mlx5_1" not in compute_nics(dgx)[1]
    assert dgx["gpu"] == PROFILES["h200_sxm"]["gpu"]


def test_a_site_changes_only_what_it_names_and_leaves_ours_alone():
    user = {
        "site": {"base": "h200_sxm", "cpu": {"sockets": 2}, "memory_mib": 2000000, "nics": {"link_layer": "Ethernet"}},
        "site_b": {"base": "site", "memory_mib": 1000000},
    }
    site = resolve("site_b", user)
    assert site["name"] == "site_b" and "base" not in site
    assert site["memory_mib"] == 1000000
    assert site["nics"] == {"compute": 8, "rate_gbps": 400, "link_layer": "Ethernet"}
    assert PROFILES["h200_sxm"]["nics"]["link_layer"] == "InfiniBand"


@pytest.mark.parametrize(
    ("name", "user", "variable", "part"),
    [
        ("h2000", {}, "rack_profile", "h2000"),
        ("a", {"a": {"base": "b"}}, "rack_profiles", "'b'"),
        ("a", {"a": {"base": "b"}, "b": {"base": "a"}}, "rack_profiles", "circle"),
        ("a", {"a": {"base": "h200_sxm", "gpus": 8}}, "rack_profiles", "gpus"),
        ("a", {"a": {"base": "h200_sxm", "gpu": {"count": "8"}}}, "rack_profiles", "gpu.count"),
        ("a", {"a": {"base": "h200_sxm", "gpu": {"count": True}}}, "rack_profiles", "gpu.count"),
        ("a", {"a": {"base": "h200_sxm", "gpu": {"memory_mib": -1}}}, "rack_profiles", "gpu.memory_mib"),
        ("a", {"a": {"base": "h200_sxm", "gpu": None}}, "rack_profiles", "gpu"),
        ("a", {"a": {"gpu": {"model": "NVIDIA H200"}}}, "rack_profiles", "gpu.count"),
        ("a", {"a": {"base": "h200_sxm", "nics": {"link_layer": "IB"}}}, "rack_profiles", "link_layer"),
        ("a", {"a": {"base": "h200_sxm", "nics": {"compute": ["mlx5_0", "mlx5_0"]}}}, "rack_profiles", "twice"),
        ("h200_sxm", {"h200_sxm": {"base": "h200_nvl"}}, "rack_profiles", "another name"),
        ("h200_sxm", {"a": 3}, "rack_profiles", "mapping"),
        ("h200_sxm", [], "rack_profiles", "mapping"),
    ],
)
def test_a_profile_that_cannot_be_meant_is_refused_by_the_variable(name, user, variable, part):
    with pytest.raises(InvalidInput) as caught:
        resolve(name, user)
    assert caught.value.details["variable"] == variable
    assert part in caught.value.msg


def test_a_module_takes_a_resolved_profile_a_name_or_an_extension():
    resolved = resolve("dgx_h200", {})
    assert complete(resolved) == resolved
    assert complete({"name": "h200_sxm"}) == PROFILES["h200_sxm"]
    assert complete({"base": "h200_sxm", "gpu": {"count": 4}})["gpu"]["count"] == 4
    site = resolve("site", {"site": {"base": "h200_nvl", "memory_mib": 5}})
    assert complete(site) == site


def test_a_module_refuses_a_profile_that_says_nothing():
    with pytest.raises(InvalidInput):
        complete({})
