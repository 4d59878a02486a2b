#!/usr/bin/python
# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: config_files
short_description: Change several configuration files of a service as one
version_added: 0.1.0
description:
  - Writes configuration files that are valid only together, and has the service's own check judge the result in place.
  - If the check fails, all the files are put back as they were and the task fails with what the check said, so that a
    service never finds a configuration that it cannot start with.
author:
  - The h200.rack maintainers (@h200)
extends_documentation_fragment:
  - h200.rack.attributes
attributes:
  check_mode:
    support: full
    details: The check does not run in check mode, since it would judge the old files.
  diff_mode:
    support: full
  idempotent:
    support: full
  platform:
    platforms: posix
options:
  files:
    description: The files with their content.
    type: list
    elements: dict
    default: []
    suboptions:
      path:
        description: The file. Its directory must exist.
        type: path
        required: true
      content:
        description: The whole content.
        type: str
        required: true
      mode:
        description: The permissions, in octal.
        type: str
        default: "0644"
  absent:
    description: Files that must not exist.
    type: list
    elements: path
    default: []
  validate:
    description: The command that checks the service's configuration, as a list; it runs only when a file changed.
    type: list
    elements: str
    default: []
"""

EXAMPLES = r"""
- name: The boot scripts are served
  h200.rack.config_files:
    files:
      - path: /etc/nginx/h200-rack.d/netboot.conf
        content: "{{ lookup('ansible.builtin.template', 'netboot.conf.j2') }}"
    validate: [nginx, -t]
  notify: Reload nginx
"""

RETURN = r"""
paths:
  description: The files that were, or in check mode would be, written or removed.
  returned: success
  type: list
  elements: str
"""

import os

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.h200.rack.plugins.module_utils._boot import config_files
from ansible_collections.h200.rack.plugins.module_utils._common.errors import RackError


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "files": {
                "type": "list",
                "elements": "dict",
                "default": [],
                "options": {
                    "path": {"type": "path", "required": True},
                    "content": {"type": "str", "required": True},
                    "mode": {"type": "str", "default": "0644"},
                },
            },
            "absent": {"type": "list", "elements": "path", "default": []},
            "validate": {"type": "list", "elements": "str", "default": []},
        },
        supports_check_mode=True,
    )

    def run(command: list[str]) -> tuple[int, str]:
        status, output, errors = module.run_command(list(command))
        return status, output + errors

    params = module.params
    folders = sorted({os.path.dirname(item["path"]) for item in params["files"]})
    missing = [folder for folder in folders if not os.path.isdir(folder)]
    if missing and not module.check_mode:
        module.fail_json(msg=f"the directory {missing[0]} does not exist")
    try:
        outcome = config_files.apply(params["files"], params["absent"], params["validate"], run, module.check_mode)
    except RackError as exc:
        module.fail_json(**exc.as_result())
    except (OSError, ValueError) as exc:
        module.fail_json(msg=f"the configuration cannot be written: {exc}")
    result = {"changed": bool(outcome.paths), "paths": outcome.paths}
    if module._diff:
        result["diff"] = outcome.diff
    module.exit_json(**result)


if __name__ == "__main__":
    main()
