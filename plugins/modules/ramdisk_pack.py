#!/usr/bin/python
# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: ramdisk_pack
short_description: Make a kernel and one initramfs of an unpacked system
version_added: 0.1.0
description:
  - Takes the kernel modules that are asked for and all that these need, the firmware that they name, and the system,
    and writes C(vmlinuz), C(initrd.img) and C(contents.json). The same input makes the same bytes.
  - The initramfs holds C(/usr) as a squashfs file, of which a booting machine unpacks only what it uses.
  - Used by the role P(h200.rack.ramdisk#role).
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
  - C(depmod) (kmod) and C(mksquashfs) (squashfs-tools).
options:
  source:
    description:
      - What M(h200.rack.ramdisk_bootstrap) left.
    type: path
    required: true
  dest:
    description:
      - The folder for the results.
    type: path
    required: true
  files:
    description:
      - A folder whose files are laid over the system, owned by root.
    type: path
  arch:
    description:
      - The architecture, for C(contents.json).
    type: str
    required: true
  suite:
    description:
      - The Debian release, for C(contents.json).
    type: str
    required: true
  modules:
    description:
      - The kernel modules to keep, as patterns. With a slash, a pattern is matched against the path below the kernel's
        module folder; without one, against the module's name. What they need is kept, too.
    type: list
    elements: str
    required: true
  modules_exclude:
    description:
      - Modules that are never kept, in the same form. It is an error when a kept one needs them.
    type: list
    elements: str
    default: []
  modules_required:
    description:
      - Names of modules without which there is no ramdisk. Being built into the kernel counts.
    type: list
    elements: str
    default: []
  exclude:
    description:
      - Patterns of paths of the system that are left out. The last pattern that fits decides; one that begins with
        C(!) takes back in.
    type: list
    elements: str
    default: []
  links:
    description:
      - Symbolic links to add, path to target.
    type: dict
    default: {}
  compression_level:
    description:
      - The zstd level of the squashfs, from V(1) to V(22).
    type: int
    default: 15
seealso:
  - module: h200.rack.ramdisk_publish
"""

EXAMPLES = r"""
- name: Kernel and initramfs are made
  h200.rack.ramdisk_pack:
    source: /var/cache/h200-rack/ramdisk/x86_64.tree
    dest: /var/cache/h200-rack/ramdisk/x86_64
    arch: x86_64
    suite: trixie
    modules: [drivers/net/ethernet/intel/*, nvme, ext4]
    modules_required: [ice, nvme, ext4]
"""

RETURN = r"""
contents:
  description: What C(contents.json) says but for the lists of modules and packages; none in check mode for a new one.
  type: dict
  returned: when known
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.h200.rack.plugins.module_utils._common.errors import RackError
from ansible_collections.h200.rack.plugins.module_utils._ramdisk import pack


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "source": {"type": "path", "required": True},
            "dest": {"type": "path", "required": True},
            "files": {"type": "path"},
            "arch": {"type": "str", "required": True},
            "suite": {"type": "str", "required": True},
            "modules": {"type": "list", "elements": "str", "required": True},
            "modules_exclude": {"type": "list", "elements": "str", "default": []},
            "modules_required": {"type": "list", "elements": "str", "default": []},
            "exclude": {"type": "list", "elements": "str", "default": []},
            "links": {"type": "dict", "default": {}},
            "compression_level": {"type": "int", "default": 15},
        },
        supports_check_mode=True,
    )
    recipe = pack.Recipe(**module.params)
    contents = pack.built(recipe)
    changed = contents is None
    try:
        if changed and not module.check_mode:
            contents = pack.build(recipe)
    except RackError as exc:
        module.fail_json(**exc.as_result())
    result = {"changed": changed}
    if contents is not None:
        result["contents"] = {key: contents[key] for key in ("arch", "suite", "kernel", "files", "firmware")}
    module.exit_json(**result)


if __name__ == "__main__":
    main()
