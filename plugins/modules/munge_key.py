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
  digest:
    description: What RV(digest) must be. Another O(content) is refused.
    type: str
  time:
    description:
      - The time now by the clock that all hosts are compared with, in seconds since 1970.
      - Munge takes no credential from a host whose clock is five minutes off, and does not say so there.
    type: float
  max_skew:
    description: Seconds that the host's clock may differ from O(time).
    type: float
    default: 60
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
    time: "{{ now(utc=true).timestamp() }}"
"""

RETURN = r"""
code:
  description: What kind of failure this is, such as C(clock_skew).
  type: str
  returned: failure
digest:
  description: SHA-256 of the key, the same on all hosts that understand each other.
  type: str
  returned: when there is a key
"""

import time

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.h200.rack.plugins.module_utils._common.errors import RackError
from ansible_collections.h200.rack.plugins.module_utils._slurm import munge


def argument_spec():
    return {
        "path": {"type": "path", "default": "/etc/munge/munge.key", "no_log": False},
        "content": {"type": "str", "no_log": True},
        "digest": {"type": "str"},
        "time": {"type": "float"},
        "max_skew": {"type": "float", "default": 60},
        "owner": {"type": "str", "default": "munge"},
    }


def main():
    module = AnsibleModule(argument_spec=argument_spec(), supports_check_mode=True)
    params = module.params
    try:
        munge.check_clock(time.time(), params["time"], params["max_skew"])
        outcome = munge.ensure(params["path"], params["content"], params["owner"], module.check_mode, params["digest"])
    except (RackError, OSError) as exc:
        module.fail_json(**(exc.as_result() if isinstance(exc, RackError) else {"msg": str(exc), "code": "os_error"}))
    module.exit_json(changed=outcome.changed, digest=outcome.digest)


if __name__ == "__main__":
    main()
