# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations


class ModuleDocFragment:
    """The plan and what was found out about its mirrors, as the filters over both take them."""

    DOCUMENTATION = r"""
options:
  _input:
    description: What the filter P(h200.rack.plan#filter) returned.
    type: dict
    required: true
  checks:
    description: One result of M(h200.rack.mirror_check) for each of the plan's C(images), in their order.
    type: list
    elements: dict
    required: true
  lost:
    description: Problems of mirrors that cannot be managed, whose C(node) is the mirror's name. Nodes do without these.
    type: list
    elements: dict
    default: []
"""
