#!/usr/bin/python
# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: munge_key
short_description: Make a munge key once, or give a host the cluster's
version_added: 0.1.0
description:
  - Without O(content), makes a random key when there is none, and leaves one that is there.
  - With O(content), the host has that key afterwards. The key is binary, which M(ansible.builtin.copy) cannot
    take as text.
  - The key is never returned, logged or shown in a diff; its digest is.
options:
  path:
    description: The key's file.
    type: path
    default: /etc/munge/munge.key
  content:
    description: The key in Base64, as M(ansible.builtin.slurp) reads it from another host.
    type: str
  owner:
    description: The user that munged runs as.
    type: str
    default: munge
attributes:
  check_mode:
    support: full
  diff_mode:
    support: none
  idempotent:
    support: full
  platform:
    platforms: posix
extends_documentation_fragment:
  - h200.rack.attributes
author:
  - The h200.rack maintainers (@h200)
"""

EXAMPLES = r"""
- name: The cluster has a munge key
  h200.rack.munge_key:
"""

RETURN = r"""
digest:
  description: SHA-256 of the key, the same on all hosts that understand each other.
  type: str
  returned: when there is a key
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.h200.rack.plugins.module_utils._common.errors import RackError
from ansible_collections.h200.rack.plugins.module_utils._slurm import munge


def argument_spec():
    return {
        "path": {"type": "path", "default": "/etc/munge/munge.key", "no_log": False},
        "content": {"type": "str", "no_log": True},
        "owner": {"type": "str", "default": "munge"},
    }


def main():
    module = AnsibleModule(argument_spec=argument_spec(), supports_check_mode=True)
    params = module.params
    try:
        outcome = munge.ensure(params["path"], params["content"], params["owner"], module.check_mode)
    except (RackError, OSError) as exc:
        module.fail_json(**(exc.as_result() if isinstance(exc, RackError) else {"msg": str(exc), "code": "os_error"}))
    module.exit_json(changed=outcome.changed, digest=outcome.digest)


if __name__ == "__main__":
    main()
