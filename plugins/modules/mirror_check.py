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
  - Asks every mirror for every image and ramdisk named, or with O(everything) for all that is published, the way a node
    does, and compares what it serves with the manifest, whose sha256 must be the digest.
  - For each file, HEAD must tell the size that the manifest says. Of each image, some chunks are fetched by Range. They
    are unpacked and their sha256 is compared where the host has the Python module C(compression.zstd) or C(zstandard),
    or the command C(zstd). Of each file of a ramdisk, some bytes are fetched by Range. Overlays are read whole.
  - Also asks each mirror for C(/health), where it says whether it is in rotation.
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
      - Base URLs of the mirrors. The first one in rotation says what is current, and what all must have.
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
  everything:
    description:
      - Whether every mirror is also asked for all images, ramdisks and overlays that the first one and it itself list.
    type: bool
    default: false
  health:
    description:
      - Whether C(/health) is asked, and a mirror out of rotation is a problem.
    type: bool
    default: true
  public_key:
    description:
      - The ed25519 public key that manifests must be signed with, as PEM text or as the path of a file with it. Without
        it, signatures are not looked at. Needs C(openssl) 3.0 or newer on the host.
    type: str
  sample:
    description:
      - How many chunks of each image, and pieces of each file of a ramdisk, are fetched from each mirror.
    type: int
    default: 2
  timeout:
    description:
      - Seconds that one request may take to show a sign of life.
    type: int
    default: 10
  ca_path:
    description:
      - A file with the certificates of the authority that signed those of the mirrors. Without it, the system's.
    type: path
  ca_content:
    description:
      - The same as PEM text.
    type: str
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

- name: Whatever is published is asked of all mirrors
  h200.rack.mirror_check:
    mirrors: [https://10.20.1.3, https://10.20.1.4]
    everything: true
    ca_content: "{{ rack_ca_certificate }}"
    public_key: "{{ lookup('ansible.builtin.file', 'image.pub') }}"
  delegate_to: localhost
"""

RETURN = r"""
verdict:
  description: V(pass) when there is no problem, else V(fail).
  returned: success
  type: str
  sample: pass
mirrors:
  description: What each mirror says of itself.
  returned: success
  type: list
  elements: dict
  contains:
    mirror:
      description: The base URL.
      type: str
    ready:
      description: Whether it is in rotation.
      type: bool
    certificate_ends:
      description: When its certificate ends, in UTC. Empty without HTTPS.
      type: str
    code:
      description: V(ok), or the kind of problem.
      type: str
    msg:
      description: The problem. Empty when there is none.
      type: str
table:
  description: The same as RV(mirrors) and RV(rows), as lines for a person.
  returned: success
  type: list
  elements: str
rows:
  description: One row for each mirror and each image, ramdisk or overlay.
  returned: success
  type: list
  elements: dict
  contains:
    mirror:
      description: The base URL.
      type: str
    kind:
      description: V(image), V(ramdisk) or V(overlay).
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
    signature:
      description: V(good) when the signature of the manifest was checked.
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
      description: V(mirror), V(image), V(ramdisk) or V(overlay).
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
        - catalog
        - health
        - not_ready
        - signature
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
from ansible_collections.h200.rack.plugins.module_utils._mirror import table
from ansible_collections.h200.rack.plugins.module_utils._mirror.check import Request, check, parse_image
from ansible_collections.h200.rack.plugins.module_utils._mirror.client import Trust
from ansible_collections.h200.rack.plugins.module_utils._mirror.content import Settings, Wanted
from ansible_collections.h200.rack.plugins.module_utils._mirror.signature import Verifier
from ansible_collections.h200.rack.plugins.module_utils._mirror.unpack import find


def main():
    module = AnsibleModule(
        argument_spec={
            "mirrors": {"type": "list", "elements": "str", "required": True},
            "images": {"type": "list", "elements": "str", "default": []},
            "ramdisks": {"type": "list", "elements": "str", "choices": ["x86_64", "aarch64"], "default": []},
            "everything": {"type": "bool", "default": False},
            "health": {"type": "bool", "default": True},
            "public_key": {"type": "str", "no_log": False},
            "sample": {"type": "int", "default": 2},
            "timeout": {"type": "int", "default": 10},
            "ca_path": {"type": "path"},
            "ca_content": {"type": "str"},
        },
        mutually_exclusive=[("ca_path", "ca_content")],
        supports_check_mode=True,
    )
    params = module.params
    unpack = find(module.run_command, module.get_bin_path("zstd"))
    try:
        verifier = Verifier(params["public_key"], module.run_command) if params["public_key"] else None
        wanted = [parse_image(image) for image in params["images"]]
        wanted += [Wanted("ramdisk", arch) for arch in params["ramdisks"]]
        result = check(
            Request(
                params["mirrors"],
                wanted,
                everything=params["everything"],
                health=params["health"],
                trust=Trust(params["ca_path"], params["ca_content"]),
                settings=Settings(params["sample"], params["timeout"], unpack, verifier),
            )
        )
    except RackError as exc:
        module.fail_json(**exc.as_result())
    result["table"] = table.lines(result["mirrors"], result["rows"])
    module.exit_json(changed=False, verdict="fail" if result["problems"] else "pass", **result)


if __name__ == "__main__":
    main()
