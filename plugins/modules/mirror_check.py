#!/usr/bin/python
# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: mirror_check
short_description: Prove that mirrors serve what was published
version_added: 0.1.0
description:
  - Asks every mirror for every image and ramdisk named, the way a node does, and compares what it serves with the
    manifest, whose sha256 must be the digest.
  - For each file, HEAD must tell the size that the manifest says. Of each image, some chunks are fetched by Range. They
    are unpacked and their sha256 is compared where the host has the Python module C(compression.zstd) or C(zstandard),
    or the command C(zstd).
  - The module succeeds whatever it finds. What is wrong is in RV(problems).
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
options:
  mirrors:
    description:
      - Base URLs of the mirrors.
    type: list
    elements: str
    required: true
  images:
    description:
      - Names of images, or V(name@digest).
    type: list
    elements: str
    default: []
  ramdisks:
    description:
      - Architectures whose current ramdisk is checked.
    type: list
    elements: str
    choices: [x86_64, aarch64]
    default: []
  sample:
    description:
      - How many chunks of each image are fetched from each mirror.
    type: int
    default: 2
  timeout:
    description:
      - Seconds that one request may take to show a sign of life.
    type: int
    default: 10
  ca_path:
    description:
      - A file with the certificates of the authority that signed those of the mirrors.
    type: path
seealso:
  - module: h200.rack.image_publish
author:
  - The h200.rack maintainers (@h200)
"""

EXAMPLES = r"""
- name: All mirrors serve the image
  h200.rack.mirror_check:
    mirrors: [http://10.20.1.3, http://10.20.1.4]
    images: [ubuntu-24.04-h200]
    ramdisks: [x86_64]
  register: mirrors
  delegate_to: localhost
  failed_when: mirrors.problems | length > 0
"""

RETURN = r"""
verdict:
  description: V(pass) when there is no problem, else V(fail).
  returned: success
  type: str
  sample: pass
rows:
  description: One row for each mirror and each image or ramdisk.
  returned: success
  type: list
  elements: dict
  contains:
    mirror:
      description: The base URL.
      type: str
    kind:
      description: V(image) or V(ramdisk).
      type: str
    name:
      description: The name of the image, or the architecture of the ramdisk.
      type: str
    digest:
      description: The digest that was checked. Empty when the mirror does not say which one is current.
      type: str
    current:
      description: The digest that the mirror calls current. Empty when a digest was given.
      type: str
    arch:
      description: The architecture that the manifest says.
      type: str
    boot:
      description: How the image boots, as the manifest says (V(uefi), V(bios) or V(both)). Empty for a ramdisk.
      type: str
    version:
      description: The version that the manifest says.
      type: str
    size:
      description: The bytes of all files checked by HEAD.
      type: int
    sampled_bytes:
      description: The bytes fetched by Range.
      type: int
    verified:
      description: Whether the sampled chunks were unpacked and have their sha256.
      type: bool
    seconds:
      description: How long the samples took.
      type: float
    throughput:
      description: Bytes per second of the samples.
      type: int
    code:
      description: V(ok), or the kind of problem.
      type: str
    msg:
      description: The problem. Empty when there is none.
      type: str
digests:
  description: The digest that each image named without one stands for.
  returned: success
  type: dict
ramdisks:
  description: The digest of the current ramdisk of each architecture.
  returned: success
  type: dict
problems:
  description: What is wrong.
  returned: success
  type: list
  elements: dict
  contains:
    mirror:
      description: The base URL.
      type: str
    kind:
      description: V(image) or V(ramdisk).
      type: str
    name:
      description: The name of the image, or the architecture of the ramdisk.
      type: str
    digest:
      description: The digest.
      type: str
    code:
      description: The kind of problem.
      type: str
      choices:
        - unreachable
        - tls
        - missing
        - http
        - current
        - digest
        - manifest
        - size
        - range
        - short
        - too_long
        - damaged
        - out_of_step
        - invalid
    msg:
      description: The problem.
      type: str
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.h200.rack.plugins.module_utils._common.errors import RackError
from ansible_collections.h200.rack.plugins.module_utils._mirror.check import Settings, Wanted, check, parse_image
from ansible_collections.h200.rack.plugins.module_utils._mirror.unpack import find


def main():
    module = AnsibleModule(
        argument_spec={
            "mirrors": {"type": "list", "elements": "str", "required": True},
            "images": {"type": "list", "elements": "str", "default": []},
            "ramdisks": {"type": "list", "elements": "str", "choices": ["x86_64", "aarch64"], "default": []},
            "sample": {"type": "int", "default": 2},
            "timeout": {"type": "int", "default": 10},
            "ca_path": {"type": "path"},
        },
        supports_check_mode=True,
    )
    params = module.params
    unpack = find(module.run_command, module.get_bin_path("zstd"))
    settings = Settings(params["sample"], params["timeout"], params["ca_path"], unpack=unpack)
    try:
        wanted = [parse_image(image) for image in params["images"]]
        wanted += [Wanted("ramdisk", arch) for arch in params["ramdisks"]]
        result = check(params["mirrors"], wanted, settings)
    except RackError as exc:
        module.fail_json(**exc.as_result())
    module.exit_json(changed=False, verdict="fail" if result["problems"] else "pass", **result)


if __name__ == "__main__":
    main()
