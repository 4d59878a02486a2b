#!/usr/bin/python
# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: mirror_pull
short_description: Bring a mirror in step with others
version_added: 0.1.0
description:
  - Runs on a mirror. Fetches images, ramdisks and overlays that it lacks from other mirrors, by chunk and from all
    of them at once, checks signature and digests, and gives the result its name only when it is complete.
  - C(current) is switched last, when what it names is there. What cannot be had does not stop the rest, and fails the
    module at the end.
  - An interrupted run is continued by the next one. A file that is missing or, with O(recheck), damaged is repaired.
  - With O(everything), the mirror then looks at its store and says at C(/health) whether it is in rotation. A new one
    enters it only here, when it holds all that the others do.
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
  - The Python library zstandard (Debian's python3-zstandard).
  - C(openssl) 3.0 or newer when O(public_key) is given.
options:
  sources:
    description:
      - Base URLs of the mirrors to fetch from. The first that answers says what is current, so the one that images
        are published on stands first.
      - May be empty with O(authority), when there are no other mirrors.
    type: list
    elements: str
    required: true
  dest:
    description:
      - This mirror's root, an existing directory.
    type: path
    required: true
  images:
    description:
      - The images to hold.
    type: list
    elements: dict
    default: []
    suboptions:
      name:
        description: The image's name.
        type: str
        required: true
      digest:
        description: The version. Defaults to the current one of the sources.
        type: str
  ramdisks:
    description:
      - The ramdisks to hold.
    type: list
    elements: dict
    default: []
    suboptions:
      arch:
        description: The architecture.
        type: str
        choices: [x86_64, aarch64]
        default: x86_64
      digest:
        description: The version. Defaults to the current one of the sources.
        type: str
  overlays:
    description:
      - Digests of the ramdisk overlays to hold, the sha256 of C(ramdisk/overlay/DIGEST.cpio).
    type: list
    elements: str
    default: []
  everything:
    description:
      - Whether to hold all images, ramdisks and overlays that the first source that answers lists.
    type: bool
    default: false
  authority:
    description:
      - Whether images are published on this mirror, so that the others follow it and not it them. With O(everything),
        what it holds is kept whole, and of the sources only what it has no version of is taken.
    type: bool
    default: false
  public_key:
    description:
      - The ed25519 public key that manifests must be signed with, as PEM text or as the path of a file with it.
        Without it, digests are checked but signatures are not, and are not fetched.
    type: str
  ca_path:
    description:
      - A file with the certificates that https sources are checked against. Without it, the system's.
    type: path
  recheck:
    description:
      - Whether to read everything that is there and compare it with its digests, not only the sizes.
    type: bool
    default: false
  make_current:
    description:
      - Whether C(current) shall name the versions that were asked for.
    type: bool
    default: true
  keep:
    description:
      - How many versions of each image and ramdisk to keep. V(0) keeps all.
    type: int
    default: 3
  protect:
    description:
      - Digests that are never removed, because nodes use them.
    type: list
    elements: str
    default: []
  timeout:
    description:
      - Seconds after which fetching is given up.
    type: int
    default: 3600
  stall_timeout:
    description:
      - Seconds after which a source that sends nothing, or next to nothing, is replaced.
    type: int
    default: 5
seealso:
  - module: h200.rack.image_publish
  - module: h200.rack.ramdisk_publish
"""

EXAMPLES = r"""
- name: The mirror holds what the rack needs
  h200.rack.mirror_pull:
    sources: ["http://mirror01", "http://mirror02"]
    dest: /srv/h200-rack/mirror
    images:
      - name: ubuntu-24.04-h200
    ramdisks:
      - arch: x86_64
    public_key: /etc/h200-rack/image.pub

- name: A new mirror fills itself and enters rotation
  h200.rack.mirror_pull:
    sources: ["https://mirror01", "https://mirror02"]
    dest: /srv/h200-rack/mirror
    everything: true
    public_key: /etc/h200-rack/image.pub
    ca_path: /etc/h200-rack/ca.pem
"""

RETURN = r"""
pulled:
  description: For each wanted thing its kind, name, digest, state (present, fetched, repaired, removed because it was
    damaged and no source has it, and in check mode missing), and the bytes fetched for it.
  type: list
  elements: dict
  returned: success
switched:
  description: The C(current) files that were switched.
  type: list
  elements: str
  returned: success
removed:
  description: Digests of old versions that were removed.
  type: list
  elements: str
  returned: success
ready:
  description: Whether the mirror is in rotation now. Not in check mode.
  type: bool
  returned: with O(everything)
problems:
  description: Why it is not.
  type: list
  elements: str
  returned: with O(everything)
"""

from ansible.module_utils.basic import AnsibleModule, missing_required_lib
from ansible_collections.h200.rack.plugins.module_utils._common.errors import RackError
from ansible_collections.h200.rack.plugins.module_utils._image import fetch, pull
from ansible_collections.h200.rack.plugins.module_utils._mirror import health, step
from ansible_collections.h200.rack.plugins.module_utils._mirror.client import Trust


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "sources": {"type": "list", "elements": "str", "required": True},
            "dest": {"type": "path", "required": True},
            "images": {
                "type": "list",
                "elements": "dict",
                "default": [],
                "options": {"name": {"type": "str", "required": True}, "digest": {"type": "str"}},
            },
            "ramdisks": {
                "type": "list",
                "elements": "dict",
                "default": [],
                "options": {
                    "arch": {"type": "str", "choices": ["x86_64", "aarch64"], "default": "x86_64"},
                    "digest": {"type": "str"},
                },
            },
            "overlays": {"type": "list", "elements": "str", "default": []},
            "everything": {"type": "bool", "default": False},
            "authority": {"type": "bool", "default": False},
            "public_key": {"type": "str", "no_log": False},
            "ca_path": {"type": "path"},
            "recheck": {"type": "bool", "default": False},
            "make_current": {"type": "bool", "default": True},
            "keep": {"type": "int", "default": 3},
            "protect": {"type": "list", "elements": "str", "default": []},
            "timeout": {"type": "int", "default": 3600},
            "stall_timeout": {"type": "int", "default": 5},
        },
        supports_check_mode=True,
    )
    if fetch.ZSTANDARD_ERROR:
        module.fail_json(msg=missing_required_lib("zstandard"), exception=fetch.ZSTANDARD_ERROR)
    options = dict(module.params)
    wanted = [pull.Wanted("image", image["name"], image["digest"]) for image in options.pop("images")]
    wanted += [pull.Wanted("ramdisk", item["arch"], item["digest"]) for item in options.pop("ramdisks")]
    wanted += [pull.Wanted("overlay", "overlay", digest) for digest in options.pop("overlays")]
    everything, authority = options.pop("everything"), options.pop("authority")
    told: dict = {}
    try:
        if everything:
            held = _everything(module.params, authority)
            wanted += [pull.Wanted(*want) for want in held]
        options.update(wanted=tuple(wanted), sources=tuple(options.pop("sources")), protect=tuple(options["protect"]))
        try:
            outcome = pull.pull(pull.Request(**options), module.check_mode)
            if everything and not module.check_mode:
                health.record(options["dest"], step.families(held))
        finally:
            # Also when not everything could be had: what is damaged must not stay in rotation.
            if everything and not module.check_mode:
                told["problems"] = health.refresh(options["dest"], deep=options["recheck"])
                told["ready"] = not told["problems"]
    except RackError as exc:
        module.fail_json(**exc.as_result(), **told)
    result = {
        "changed": outcome.changed,
        "pulled": [item._asdict() for item in outcome.items],
        "switched": outcome.switched,
        "removed": outcome.removed,
        **told,
    }
    if module._diff:
        changed = [item for item in outcome.items if item.state != "present"]
        result["diff"] = {
            "before": "".join(f"{digest}\n" for digest in outcome.removed),
            "after": "".join(f"{item.kind} {item.name} {item.digest}\n" for item in changed),
        }
    module.exit_json(**result)


def _everything(params: dict, authority: bool) -> list[step.Want]:
    """What the mirror has to hold. The authority asks others only when it has nothing itself, and does without them."""
    mine = step.own(params["dest"])
    reference = None
    if params["sources"] and not (authority and mine.families):
        try:
            trust = Trust(params["ca_path"])
            reference = step.find_reference(params["sources"], 2 * params["stall_timeout"], trust).catalog
        except RackError:
            if not authority:
                raise
    return step.wants(mine, reference, authority)


if __name__ == "__main__":
    main()
