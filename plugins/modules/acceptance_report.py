#!/usr/bin/python
# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: acceptance_report
short_description: Write the report of a rack from the acceptance records of a run
version_added: 0.1.0
author:
  - The h200.rack maintainers (@h200)
description:
  - Reads the records that M(h200.rack.acceptance_record) kept and writes C(report.html), one page that needs no other
    file, and C(report.json) beside them.
  - Slow nodes are found by median and MAD (see P(h200.rack.rack_outliers#filter)), and pairs of nodes by what their
    bad pairs share.
  - First-pass yield is the rack's. It is never a node's pass mark.
options:
  run_id:
    description:
      - The run.
    type: str
    required: true
  nodes:
    description:
      - The nodes that should have a record. One without is shown as not run.
    type: list
    elements: str
    default: []
  title:
    description:
      - The heading.
    type: str
    default: Acceptance of the rack
  path:
    description:
      - Where the records are kept.
    type: path
    default: /var/lib/h200-rack/acceptance
extends_documentation_fragment:
  - h200.rack.attributes
attributes:
  check_mode:
    support: full
  diff_mode:
    support: none
  idempotent:
    support: full
  platform:
    platforms: posix
seealso:
  - module: h200.rack.acceptance_record
"""

EXAMPLES = r"""
- name: The rack's report can be read
  h200.rack.acceptance_report:
    run_id: "{{ acceptance_run_id }}"
    nodes: "{{ groups['rack_nodes'] }}"
    title: "Acceptance of {{ rack_name }}"
  delegate_to: "{{ acceptance_record_host }}"
  run_once: true
"""

RETURN = r"""
html:
  description: Path of the page.
  returned: success
  type: str
  sample: /var/lib/h200-rack/acceptance/20261130T120000Z-1a2b/report.html
json:
  description: Path of the same as JSON.
  returned: success
  type: str
  sample: /var/lib/h200-rack/acceptance/20261130T120000Z-1a2b/report.json
accepted:
  description: How many nodes passed all tiers that they were tested in, at whichever try.
  returned: success
  type: int
  sample: 31
total:
  description: How many nodes there are.
  returned: success
  type: int
  sample: 32
first_pass_yield:
  description: Share of nodes that passed all their tiers at the first try of this run; null without nodes.
  returned: success
  type: float
  sample: 0.9688
failed_checks:
  description: Every reason with its nodes.
  returned: success
  type: list
  elements: dict
  sample: [{"code": "GPU_COUNT", "hint": "gpus: a GPU is not on the PCI bus", "nodes": ["gpu007"]}]
bad:
  description: Every node, link and test over the rack that is not good, and nodes that were not run, a sentence each.
  returned: success
  type: list
  elements: str
  sample: ["gpu007: GPU_COUNT"]
pairs:
  description: The nodes and links that bad pairs share.
  returned: success
  type: dict
  sample: {"nodes": [], "links": [], "undecided": [], "bad_pairs": []}
simulated:
  description: Whether any record was made from simulated tools.
  returned: success
  type: bool
  sample: false
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.h200.rack.plugins.module_utils._common.errors import RackError
from ansible_collections.h200.rack.plugins.module_utils._gpu.report_files import write_report


def main():
    module = AnsibleModule(
        argument_spec={
            "run_id": {"type": "str", "required": True},
            "nodes": {"type": "list", "elements": "str", "default": []},
            "title": {"type": "str", "default": "Acceptance of the rack"},
            "path": {"type": "path", "default": "/var/lib/h200-rack/acceptance"},
        },
        supports_check_mode=True,
    )
    try:
        module.exit_json(**write_report(check_mode=module.check_mode, **module.params))
    except RackError as exc:
        module.fail_json(**exc.as_result())


if __name__ == "__main__":
    main()
