#!/usr/bin/python
# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: ramdisk_bootstrap
short_description: Unpack the Debian system that a ramdisk is made of
version_added: 0.1.0
description:
  - Unpacks a minimal Debian system with C(mmdebstrap), and the files of a kernel and of firmware packages beside it.
  - Used by the role P(h200.rack.ramdisk#role). The folder is replaced when what it is made of changes, and only then.
author:
  - The h200.rack maintainers (@h200-rack)
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
requirements:
  - C(mmdebstrap) and C(dpkg), and root.
options:
  dest:
    description:
      - The folder to make. Its parent exists.
    type: path
    required: true
  suite:
    description:
      - The Debian release.
    type: str
    required: true
  mirror:
    description:
      - The Debian mirror. Its component non-free-firmware is used where there is one.
      - The default is the one that this host takes its own packages from.
    type: str
  security_mirror:
    description:
      - The mirror of the security fixes; empty for none.
      - The default is the one that this host takes its own from.
    type: str
  arch:
    description:
      - Debian's name of the architecture.
    type: str
    choices: [amd64, arm64]
    required: true
  packages:
    description:
      - The packages to install.
    type: list
    elements: str
    required: true
  kernel:
    description:
      - The kernel's package or meta package. Its files are unpacked, not installed.
    type: str
    required: true
  firmware:
    description:
      - Packages with firmware. Those that the sources offer are unpacked, not installed.
    type: list
    elements: str
    default: []
  hooks:
    description:
      - Shell commands that run once the system is unpacked, with its root as C($1).
    type: list
    elements: str
    default: []
seealso:
  - module: h200.rack.ramdisk_pack
"""

EXAMPLES = r"""
- name: A Debian system is unpacked
  h200.rack.ramdisk_bootstrap:
    dest: /var/cache/h200-rack/ramdisk/x86_64.tree
    suite: trixie
    mirror: http://mirror.example.org/debian
    arch: amd64
    packages: [systemd, udev, openssh-server, python3]
    kernel: linux-image-amd64
    firmware: [firmware-misc-nonfree]
"""

RETURN = r"""
dest:
  description: The folder, holding C(tree), C(kernel) and C(firmware).
  type: str
  returned: success
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.h200.rack.plugins.module_utils._common.errors import RackError
from ansible_collections.h200.rack.plugins.module_utils._ramdisk import bootstrap


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "dest": {"type": "path", "required": True},
            "suite": {"type": "str", "required": True},
            "mirror": {"type": "str"},
            "security_mirror": {"type": "str"},
            "arch": {"type": "str", "choices": ["amd64", "arm64"], "required": True},
            "packages": {"type": "list", "elements": "str", "required": True},
            "kernel": {"type": "str", "required": True},
            "firmware": {"type": "list", "elements": "str", "default": []},
            "hooks": {"type": "list", "elements": "str", "default": []},
        },
        supports_check_mode=True,
    )
    try:
        system = bootstrap.System(**bootstrap.with_own_mirrors(module.params))
        changed = not bootstrap.is_current(system)
        if changed and not module.check_mode:
            bootstrap.build(system)
    except RackError as exc:
        module.fail_json(**exc.as_result())
    module.exit_json(changed=changed, dest=system.dest)


if __name__ == "__main__":
    main()
