# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: this_run
short_description: Which process of which machine this run is
version_added: 0.1.0
description:
  - Returns the identity of the running C(ansible-playbook), for the option O(h200.rack.node_state#module:process) of
    M(h200.rack.node_state). A later run in the same place can tell from it that this run is dead, and need not wait for
    its leases to expire.
  - On systems without C(/proc) the identity is empty.
options: {}
author:
  - The h200.rack maintainers (@h200)
"""

EXAMPLES = r"""
- name: The run is known
  ansible.builtin.set_fact:
    run_process: "{{ lookup('h200.rack.this_run') }}"
"""

RETURN = r"""
_list:
  description: The identity.
  type: list
  elements: str
"""

from ansible.plugins.lookup import LookupBase
from ansible_collections.h200.rack.plugins.module_utils._state.runner import this_process


class LookupModule(LookupBase):
    """The lookup this_run."""

    def run(self, terms, variables=None, **kwargs):
        return [this_process()]
