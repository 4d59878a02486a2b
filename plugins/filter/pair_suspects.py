# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: pair_suspects
short_description: Name the node or link that all bad pairs share
version_added: 0.1.0
description:
  - A node all of whose pairs are bad, of two or more, is to blame. A bad pair of nodes that are good with others is a
    bad link.
options:
  _input:
    description: Results of M(h200.rack.nccl_probe) on pairs; C(hosts) and C(verdict) are read.
    type: list
    elements: dict
    required: true
author:
  - The h200.rack maintainers (@h200)
"""

EXAMPLES = r"""
- name: Who is to blame is shown
  ansible.builtin.debug:
    msg: "{{ acceptance_pair.results | h200.rack.pair_suspects }}"
"""

RETURN = r"""
_value:
  description: C(nodes), C(links), C(undecided) (bad pairs of nodes that were in no other) and C(bad_pairs).
  type: dict
"""

from ansible_collections.h200.rack.plugins.module_utils._gpu.rack_statistics import suspects


class FilterModule:
    """The filter pair_suspects."""

    def filters(self):
        return {"pair_suspects": suspects}
