#!/usr/bin/python
# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: ramdisk_overlay
short_description: Publish what the ramdisk of a rack knows beyond the generic one
version_added: 0.1.0
description:
  - Makes a small archive that the boot script loads after the ramdisk, with the keys that may log in, the mirrors, the
    certificates to check them with, and the public key of the images. The files lie in C(/etc/h200-rack) there.
  - The archive is named by its digest, so it is the same on every mirror, and never changes under a node that boots.
  - Every node of the provisioning network can read it. Private keys and credentials are refused.
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
options:
  dest:
    description:
      - The mirror's root, an existing directory.
    type: path
    required: true
  authorized_keys:
    description:
      - The public SSH keys that may log in as root, one line each.
    type: list
    elements: str
    required: true
  mirrors:
    description:
      - Base URLs of the mirrors.
    type: list
    elements: str
    default: []
  ca:
    description:
      - The certificates, in PEM form, that HTTPS mirrors are checked against.
    type: str
    default: ""
  image_public_key:
    description:
      - The public key, in PEM form, that the signatures of images are checked with.
    type: str
    default: ""
seealso:
  - module: h200.rack.ramdisk_publish
"""

EXAMPLES = r"""
- name: The overlay of this rack is on the mirror
  h200.rack.ramdisk_overlay:
    dest: /srv/h200-rack/mirror
    authorized_keys: "{{ rack_authorized_keys }}"
    mirrors:
      - http://10.20.1.3
      - http://10.20.1.4
    image_public_key: "{{ lookup('ansible.builtin.file', 'image.pub') }}"
"""

RETURN = r"""
path:
  description: The archive's path below the mirror's root.
  type: str
  returned: success
  sample: ramdisk/overlay/3f0a9f51c6b9d1bb6fb0d4a6ad4a5fd6e3f3b4e8c7a9d5b1e2f3a4b5c6d7e8f9.cpio
digest:
  description: The archive's sha256.
  type: str
  returned: success
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.h200.rack.plugins.module_utils._common.errors import RackError
from ansible_collections.h200.rack.plugins.module_utils._ramdisk import overlay


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "dest": {"type": "path", "required": True},
            "authorized_keys": {"type": "list", "elements": "str", "required": True, "no_log": False},
            "mirrors": {"type": "list", "elements": "str", "default": []},
            "ca": {"type": "str", "default": ""},
            "image_public_key": {"type": "str", "default": "", "no_log": False},
        },
        supports_check_mode=True,
    )
    options = dict(module.params)
    root = options.pop("dest")
    try:
        outcome = overlay.publish(overlay.Overlay(**options), root, module.check_mode)
    except RackError as exc:
        module.fail_json(**exc.as_result())
    result = {"changed": outcome.changed, "path": outcome.path, "digest": outcome.digest}
    if module._diff:
        text = "".join(f"# {name}\n{content}" for name, content in sorted(outcome.files.items()))
        result["diff"] = {
            "before_header": outcome.path,
            "after_header": outcome.path,
            "before": "" if outcome.changed else text,
            "after": text,
        }
    module.exit_json(**result)


if __name__ == "__main__":
    main()
