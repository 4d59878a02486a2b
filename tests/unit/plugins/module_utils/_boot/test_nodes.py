# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest
from ansible_collections.h200.rack.plugins.module_utils._boot import nodes
from ansible_collections.h200.rack.plugins.module_utils._common.errors import InvalidInput

MIRRORS = ["http://10.0.0.3"]


def item(**changes):
    return {
        "name": "gpu001",
        "mac": "52:54:00:00:00:01",
        "action": "deploy",
        "address": "10.0.0.11/24",
        "gateway": "10.0.0.1",
        "ramdisk": "ramdisk/x86_64/abc",
        **changes,
    }


def parse(*items, mirrors=tuple(MIRRORS)):
    return nodes.parse(items, mirrors, "debian_2019")


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"mac": "nonsense"}, "MAC"),
        ({"address": "10.0.0.11"}, "prefix"),
        ({"address": "10.0.0.300/24"}, "address"),
        ({"address": "10.0.0.255/24"}, "broadcast"),
        ({"gateway": "10.9.0.1"}, "outside"),
        ({"ramdisk": None}, "needs ramdisk"),
        ({"address": None}, "needs address"),
        ({"ramdisk": "../secret"}, "path below"),
        ({"overlay": "a b"}, "path below"),
        ({"console": ["ttyS0 init=/bin/sh"]}, "console"),
        ({"hostname": "a b"}, "host name"),
        ({"mirrors": ["10.0.0.3"]}, "scheme"),
        ({"mirrors": ["ftp://10.0.0.3"]}, "scheme"),
        ({"kernel_args": "a=${x}"}, "replaces"),
        ({"action": "installer"}, "needs kernel"),
        ({"action": "custom"}, "needs template"),
    ],
)
def test_what_cannot_work_names_the_node(changes, said):
    with pytest.raises(InvalidInput, match=f"node gpu001.*{said}"):
        parse(item(**changes))


def test_a_mirror_without_a_scheme_is_refused_for_all():
    with pytest.raises(InvalidInput, match="scheme"):
        parse(item(), mirrors=["mirror01"])


def test_without_mirrors_nothing_can_be_fetched():
    with pytest.raises(InvalidInput, match="needs mirrors"):
        parse(item(), mirrors=[])


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"mac": "52:54:00:00:00:02", "address": "10.0.0.12/24"}, "name gpu001"),
        ({"name": "gpu002", "address": "10.0.0.12/24", "mac": "5254.0000.0001"}, "mac 52:54:00:00:00:01"),
        ({"name": "gpu002", "mac": "52:54:00:00:00:02"}, "address 10.0.0.11"),
    ],
)
def test_what_two_nodes_share_is_refused(changes, said):
    with pytest.raises(InvalidInput, match=said):
        parse(item(), item(**changes))


def test_all_problems_are_told_at_once():
    with pytest.raises(InvalidInput) as caught:
        parse(item(mac="x"), item(name="gpu002", address="y"), item(name="gpu003", mac="52:54:00:00:00:03"))
    assert len(caught.value.details["problems"]) == 2


def test_a_name_that_could_leave_its_line_is_refused():
    with pytest.raises(InvalidInput, match="a name holds"):
        parse(item(name="gpu001\nreboot"))
