# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: in_rotation
short_description: The plan with those mirrors only that are in rotation
version_added: 0.1.0
description:
  - Leaves in each node's C(mirrors), C(boot_mirrors) and C(mirror_hosts) only the mirrors that
    M(h200.rack.mirror_check) found in rotation, and with the image and the ramdisk that the node needs. A node for
    which none is left keeps all. Where a rack has a cache, the mirrors behind it are in the lists C(fallback_...).
positional: checks
extends_documentation_fragment: [h200.rack.mirror_findings]
author:
  - The h200.rack maintainers (@h200)
"""

EXAMPLES = r"""
- name: Nodes ask only mirrors that can serve them
  ansible.builtin.set_fact:
    rack_plan: "{{ rack_plan | h200.rack.in_rotation(mirror_checks.results) }}"
"""

RETURN = r"""
_value:
  description: The plan.
  type: dict
"""

from ansible_collections.h200.rack.plugins.module_utils._plan.rotation import in_rotation


class FilterModule:
    """The filter in_rotation."""

    def filters(self):
        return {"in_rotation": in_rotation}
