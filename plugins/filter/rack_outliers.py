# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: rack_outliers
short_description: Find slow nodes and slow GPUs of a rack
version_added: 0.1.0
description:
  - Scores every node by its distance from the rack's median in median absolute deviations (modified z-score), and holds
    it against an absolute limit, which finds a rack that is slow as a whole.
  - The deviation is never taken for less than O(mad_floor) of the median, for rounded figures can have one of 0.
  - Below O(min_nodes) nodes only the absolute limit decides.
options:
  _input:
    description:
      - A mapping of names to values. A list, one value for each GPU, counts as its worst, and null was not measured.
    type: dict
    required: true
  minimum:
    description: The absolute limit.
    type: float
  higher_is_better:
    description: Set to false for temperatures, times and errors.
    type: bool
    default: true
  min_nodes:
    description: The fewest nodes that statistics are made of.
    type: int
    default: 10
  mad_floor:
    description: The smallest deviation, as a share of the median.
    type: float
    default: 0.005
author:
  - The h200.rack maintainers (@h200)
"""

EXAMPLES = r"""
- name: No node is slower than the others
  ansible.builtin.assert:
    that: busbw | h200.rack.rack_outliers(minimum=431) | selectattr('verdict', 'eq', 'fail') | length == 0
"""

RETURN = r"""
_value:
  description:
    - A list with C(name), C(value), C(worst) (which of several values it is, counted from 0), C(z) (null without
      statistics), C(median), C(verdict) (V(pass), V(look), V(fail), V(not_run)) and C(reason) of every node, the worst
      first.
  type: list
  elements: dict
"""

from ansible_collections.h200.rack.plugins.module_utils._gpu.rack_statistics import outliers


class FilterModule:
    """The filter rack_outliers."""

    def filters(self):
        return {"rack_outliers": outliers}
