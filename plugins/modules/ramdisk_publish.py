#!/usr/bin/python
# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: ramdisk_publish
short_description: Publish a ramdisk on a mirror
version_added: 0.1.0
description:
  - Puts a kernel and an initramfs under C(ramdisk/ARCH/DIGEST/) below O(dest) as C(vmlinuz) and C(initrd.img), with a
    manifest whose sha256 is the digest, and switches C(ramdisk/ARCH/current).
author:
  - The h200.rack maintainers (@h200-rack)
extends_documentation_fragment:
  - h200.rack.attributes
attributes:
  check_mode:
    support: full
  diff_mode:
    support: full
  idempotent:
    support: full
  platform:
    platforms: posix
requirements:
  - C(openssl) 3.0 or newer when O(signing_key) is given.
options:
  kernel:
    description:
      - The kernel.
    type: path
    required: true
  initrd:
    description:
      - The initramfs.
    type: path
    required: true
  dest:
    description:
      - The mirror's root, an existing directory.
    type: path
    required: true
  arch:
    description:
      - The processor architecture that the ramdisk is for.
    type: str
    choices: [x86_64, aarch64]
    default: x86_64
  version:
    description:
      - The ramdisk's version, for people.
    type: str
    default: "0"
  signing_key:
    description:
      - Path of an ed25519 private key in PEM form.
    type: path
  keep:
    description:
      - How many versions to keep. V(0) keeps all.
    type: int
    default: 3
  protect:
    description:
      - Digests that are never removed, because nodes use them.
    type: list
    elements: str
    default: []
  make_current:
    description:
      - Whether C(ramdisk/ARCH/current) shall name the published version.
    type: bool
    default: true
seealso:
  - module: h200.rack.image_publish
"""

EXAMPLES = r"""
- name: The ramdisk is on the mirror
  h200.rack.ramdisk_publish:
    kernel: /var/lib/h200-rack/ramdisk/vmlinuz
    initrd: /var/lib/h200-rack/ramdisk/initrd.img
    version: "2026.11.1"
    dest: /srv/h200-rack/mirror
"""

RETURN = r"""
digest:
  description: The sha256 of the manifest.
  type: str
  returned: success
path:
  description: The folder below the mirror's root.
  type: str
  returned: success
  sample: ramdisk/x86_64/3f0a9f51c6b9d1bb6fb0d4a6ad4a5fd6e3f3b4e8c7a9d5b1e2f3a4b5c6d7e8f9
removed:
  description: Digests of old versions that were removed.
  type: list
  elements: str
  returned: success
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.h200.rack.plugins.module_utils._common.errors import RackError
from ansible_collections.h200.rack.plugins.module_utils._image import ramdisk


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "kernel": {"type": "path", "required": True},
            "initrd": {"type": "path", "required": True},
            "dest": {"type": "path", "required": True},
            "arch": {"type": "str", "choices": ["x86_64", "aarch64"], "default": "x86_64"},
            "version": {"type": "str", "default": "0"},
            "signing_key": {"type": "path", "no_log": False},
            "keep": {"type": "int", "default": 3},
            "protect": {"type": "list", "elements": "str", "default": []},
            "make_current": {"type": "bool", "default": True},
        },
        supports_check_mode=True,
    )
    options = dict(module.params)
    options["protect"] = tuple(options["protect"])
    try:
        outcome = ramdisk.publish(ramdisk.Request(**options), module.check_mode)
    except RackError as exc:
        module.fail_json(**exc.as_result())
    result = {"changed": outcome.changed, "digest": outcome.digest, "path": outcome.path, "removed": outcome.removed}
    if module._diff:
        result["diff"] = outcome.diff
    module.exit_json(**result)


if __name__ == "__main__":
    main()
