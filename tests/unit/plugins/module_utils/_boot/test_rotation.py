# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import collections

from ansible_collections.h200.rack.plugins.module_utils._boot.rotation import rotate

MIRRORS = ["http://10.0.0.3", "http://10.0.0.4", "http://10.0.0.5"]
NODES = [f"gpu{number:03}" for number in range(1, 301)]


def test_the_load_does_not_fall_on_one_mirror():
    first = collections.Counter(rotate(node, MIRRORS)[0] for node in NODES)
    assert min(first.values()) > 70


def test_a_dead_mirror_s_load_is_shared():
    dead = [node for node in NODES if rotate(node, MIRRORS)[0] == MIRRORS[0]]
    second = collections.Counter(rotate(node, MIRRORS)[1] for node in dead)
    assert len(second) == 2 and min(second.values()) > len(dead) // 4


def test_the_order_of_the_inventory_changes_no_script():
    assert all(rotate(node, MIRRORS) == rotate(node, MIRRORS[::-1]) for node in NODES)


def test_one_mirror_more_moves_only_the_nodes_that_go_there():
    for node in NODES:
        more = rotate(node, [*MIRRORS, "http://10.0.0.6"])
        assert [mirror for mirror in more if mirror in MIRRORS] == rotate(node, MIRRORS)
