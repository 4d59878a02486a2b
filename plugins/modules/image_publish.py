#!/usr/bin/python
# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: image_publish
short_description: Publish an operating system image on a mirror
version_added: 0.1.0
description:
  - Compresses a disk image into independent zstd frames of one chunk each, computes every digest in the same pass on
    all cores, signs the manifest, and puts the result under C(images/NAME/DIGEST/) below O(dest).
  - Beside the image's file stands C(image.torrent), by which nodes give it to each other, and its info hash in
    C(image.infohash), by which a tracker knows it. Both follow from the image, and what comes by them is checked
    against the manifest.
  - The folder gets its name only when it is complete, and V(current) is switched afterwards; a reader never sees half
    an image.
  - The manifest records what is in the image as found in it (distribution, kernel, NVIDIA driver, fabric manager,
    CUDA, NCCL, OFED or DOCA), where its file system is ext4 and its packages are Debian's or Ubuntu's. An image whose
    NVIDIA driver and fabric manager differ in version is refused.
author:
  - The h200.rack maintainers (@h200-rack)
extends_documentation_fragment:
  - h200.rack.attributes
attributes:
  check_mode:
    support: full
    details:
      - The image is read and compared with the current one; nothing is compressed, so the digest of a new one is not
        returned.
  diff_mode:
    support: full
  idempotent:
    support: full
  platform:
    platforms: posix
requirements:
  - The Python library zstandard (Debian's python3-zstandard).
  - C(openssl) 3.0 or newer when O(signing_key) is given.
  - C(qemu-img) for other formats than raw.
  - C(debugfs) (e2fsprogs) to look into the image.
options:
  source:
    description:
      - The image, in raw, qcow2, vmdk, vdi, vhd or vhdx format. The format is found by content, not by suffix.
    type: path
    required: true
  name:
    description:
      - The image's name, a plain word, such as V(ubuntu-24.04-h200).
    type: str
    required: true
  version:
    description:
      - The image's version, for people.
    type: str
    required: true
  dest:
    description:
      - The mirror's root, an existing directory.
    type: path
    required: true
  arch:
    description:
      - The processor architecture that the image is for.
    type: str
    choices: [x86_64, aarch64]
    default: x86_64
  boot:
    description:
      - How the image boots. V(auto) finds it by the partition table.
    type: str
    choices: [auto, uefi, bios, both]
    default: auto
  chunk_size:
    description:
      - Bytes of raw image in each chunk, a power of two from 1 MiB to 64 MiB.
    type: int
    default: 4194304
  compression_level:
    description:
      - The zstd level, V(1) to V(19). Higher ones take longer to publish and not longer to write.
    type: int
    default: 3
  signing_key:
    description:
      - Path of an ed25519 private key in PEM form (C(openssl genpkey -algorithm ed25519)). Without one the image is
        not signed, and M(h200.rack.image_write) does not accept it.
    type: path
  minimum_disk:
    description:
      - The smallest disk the image is for, in bytes. Defaults to the image's size.
    type: int
  contents:
    description:
      - What is in the image, for what cannot be found in it; these entries win over those found.
    type: dict
    default: {}
  keep:
    description:
      - How many versions of this image to keep. V(0) keeps all.
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
      - Whether C(images/NAME/current) shall name the published version.
    type: bool
    default: true
seealso:
  - module: h200.rack.image_write
  - module: h200.rack.mirror_pull
"""

EXAMPLES = r"""
- name: The image is on the mirror
  h200.rack.image_publish:
    source: /var/lib/images/ubuntu-24.04-h200.qcow2
    name: ubuntu-24.04-h200
    version: "2026.11.1"
    dest: /srv/h200-rack/mirror
    signing_key: /etc/h200-rack/image-signing.pem
    keep: 3
"""

RETURN = r"""
digest:
  description: The sha256 of the manifest; none in check mode when the image would be published.
  type: str
  returned: success
manifest:
  description: The manifest without its chunks.
  type: dict
  returned: when known
raw_size:
  description: Bytes of the disk image.
  type: int
  returned: when known
wire_size:
  description: Bytes that a node fetches.
  type: int
  returned: when known
removed:
  description: Digests of old versions that were removed.
  type: list
  elements: str
  returned: success
"""

from ansible.module_utils.basic import AnsibleModule, missing_required_lib
from ansible_collections.h200.rack.plugins.module_utils._common.errors import RackError
from ansible_collections.h200.rack.plugins.module_utils._image import publish


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "source": {"type": "path", "required": True},
            "name": {"type": "str", "required": True},
            "version": {"type": "str", "required": True},
            "dest": {"type": "path", "required": True},
            "arch": {"type": "str", "choices": ["x86_64", "aarch64"], "default": "x86_64"},
            "boot": {"type": "str", "choices": ["auto", "uefi", "bios", "both"], "default": "auto"},
            "chunk_size": {"type": "int", "default": 4194304},
            "compression_level": {"type": "int", "default": 3},
            "signing_key": {"type": "path", "no_log": False},
            "minimum_disk": {"type": "int"},
            "contents": {"type": "dict", "default": {}},
            "keep": {"type": "int", "default": 3},
            "protect": {"type": "list", "elements": "str", "default": []},
            "make_current": {"type": "bool", "default": True},
        },
        supports_check_mode=True,
    )
    if publish.ZSTANDARD_ERROR:
        module.fail_json(msg=missing_required_lib("zstandard"), exception=publish.ZSTANDARD_ERROR)
    options = dict(module.params)
    options["level"] = options.pop("compression_level")
    options["protect"] = tuple(options["protect"])
    options["contents"] = {key: str(value) for key, value in options["contents"].items()}
    try:
        outcome = publish.publish(publish.Request(**options), module.check_mode)
    except RackError as exc:
        module.fail_json(**exc.as_result())
    result = {"changed": outcome.changed, "digest": outcome.digest, "removed": outcome.removed}
    if outcome.manifest:
        result["manifest"] = {key: value for key, value in outcome.manifest._asdict().items() if key != "chunks"}
        result["raw_size"] = outcome.manifest.raw_size
        result["wire_size"] = outcome.manifest.wire_size
    if module._diff:
        result["diff"] = outcome.diff
    module.exit_json(**result)


if __name__ == "__main__":
    main()
