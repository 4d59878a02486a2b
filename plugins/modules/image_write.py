#!/usr/bin/python
# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: image_write
short_description: Write a published operating system image to the node's disk
version_added: 0.1.0
description:
  - Runs in the ramdisk of a node. Fetches the chunks of an image from all mirrors at once, checks each against the
    signed manifest before it is written, and writes the first sectors last, so that a half-written disk does not
    boot.
  - Chunks of zeros and chunks that the disk already holds are not transferred. A mirror that fails, stalls or gives
    wrong bytes is replaced by another one, within a chunk. A run that was interrupted is continued by the next one.
  - The partition table is made for the disk at hand (its copy at the end, room for the seed), and everything that
    is asked of O(verify) is read back from the disk before the first sectors are written.
  - The seed is a cloud-init NoCloud file system on a partition of its own at the end of the disk. The installed
    system's SSH host key is made for it, here; only the public key is returned.
author:
  - The h200.rack maintainers (@h200-rack)
extends_documentation_fragment:
  - h200.rack.attributes
attributes:
  check_mode:
    support: full
    details:
      - Names the disk by its serial number and what on it would be overwritten.
  diff_mode:
    support: full
  idempotent:
    support: full
    details:
      - A disk that holds exactly what would be written is left alone, see RV(already). A system that has been
        started since has changed its disk. O(finish) happens in any case.
  platform:
    platforms: posix
requirements:
  - The Python library zstandard (Debian's python3-zstandard).
  - In the ramdisk, C(lsblk), C(wipefs) (util-linux), C(openssl) 3.0 or newer, and C(ssh-keygen), C(mkfs.vfat),
    C(mcopy) for a seed, C(efibootmgr) for the boot entry, C(kexec) for that way to finish, C(aria2c) for BitTorrent.
options:
  mirrors:
    description:
      - Base URLs of the mirrors, such as V(http://10.20.1.3). IPv6 addresses stand in brackets. All of them are used.
    type: list
    elements: str
    required: true
  fallback_mirrors:
    description:
      - Base URLs of mirrors that are asked only while none of O(mirrors) works, such as the site's mirrors behind a
        cache of the rack.
    type: list
    elements: str
    default: []
  image:
    description:
      - The image's name.
    type: str
    required: true
  digest:
    description:
      - Which version of the image, by the sha256 of its manifest. Without it, the one that the mirrors call
        current; they must agree.
    type: str
  public_key:
    description:
      - The ed25519 public key that the manifest must be signed with, as PEM text or as the path of a file with it.
    type: str
    default: /etc/h200-rack/image.pub
  ca_path:
    description:
      - A file with the certificates that https mirrors are checked against. Without it, the system's.
    type: path
  disk:
    description:
      - Which disk to write to. Everything given must fit, and exactly one disk must fit everything; otherwise the
        module fails with a list of all disks. Disks that are removable, read-only or virtual media are never
        chosen.
    type: dict
    required: true
    suboptions:
      serial:
        description: The disk's serial number.
        type: str
      wwn:
        description: The World Wide Name, with or without V(0x).
        type: str
      model:
        description: The model, complete.
        type: str
      vendor:
        description: The vendor, complete.
        type: str
      size:
        description: The size in whole GiB, optionally after V(>=), V(<=), V(>), V(<), V(=) or V(!=).
        type: str
      by_path:
        description: A name in C(/dev/disk/by-path).
        type: str
      hctl:
        description: The SCSI address, such as V(0:0:0:0).
        type: str
      rotational:
        description: Whether it is a disk that turns.
        type: bool
      path:
        description:
          - A device, which may be another disk after the next boot, or a regular file that plays the part of a disk.
            Stands alone.
        type: path
      raid1:
        description: Reserved for a mirrored pair; refused for now.
        type: raw
  allow_overwrite:
    description:
      - Whether what is on the disk may be overwritten when it is something else than this image. Give V(true) only
        for nodes that somebody has named.
    type: bool
    default: false
  require_ramdisk:
    description:
      - Whether to refuse to work on a machine that does not run the ramdisk, or that was booted as another node
        than O(node).
    type: bool
    default: true
  node:
    description:
      - The node's name, as the boot script passes it to the kernel in C(rack.node).
    type: str
  seed:
    description:
      - What the installed system's cloud-init is told. Without it, no seed is written.
      - It may hold secrets, and so appears in no result, diff or log.
    type: dict
    suboptions:
      hostname:
        description: The host name.
        type: str
        required: true
      fqdn:
        description: The fully qualified name. Defaults to the host name.
        type: str
      users:
        description: Users as cloud-init takes them, each with C(name), C(groups), C(sudo) and C(ssh_authorized_keys).
        type: list
        elements: dict
      network_config:
        description: A cloud-init network configuration of version 2, which is passed on as it is.
        type: dict
      user_data:
        description: More of cloud-config, merged over what this module writes.
        type: dict
      manage_etc_hosts:
        description: How cloud-init treats C(/etc/hosts), V(localhost), V(true) or V(false).
        type: str
        default: localhost
      instance_id:
        description: The instance's identity. Defaults to one that changes with the seed and the image.
        type: str
  verify:
    description:
      - How much is read back from the disk and compared, before the first sectors are written.
    type: str
    choices: [none, sample, all]
    default: sample
  boot_order:
    description:
      - Where the firmware's boot entry for the disk goes, behind the network, before everything, or at the end.
    type: str
    choices: [network_first, disk_first, keep]
    default: network_first
  finish:
    description:
      - What the node does afterwards. V(kexec) starts the written system without the firmware; where that is not
        possible (Secure Boot, no kernel found on the disk) it reboots, and RV(finish) says why.
      - V(kexec_load) makes the written kernel ready without starting it, for a caller that has something to do first;
        C(kexec --exec) starts it then. Where that is not possible, RV(finish) is V(none) and says why.
    type: str
    choices: [none, reboot, kexec, kexec_load]
    default: none
  timeout:
    description:
      - Seconds after which fetching is given up.
    type: int
    default: 3600
  stall_timeout:
    description:
      - Seconds after which a mirror that sends nothing, or next to nothing, is replaced.
    type: int
    default: 5
  transport:
    description:
      - V(http) fetches from the mirrors alone.
      - V(bittorrent) fetches from the other nodes that write the same image, too, with C(aria2c), which pays when many
        do at once. The mirrors are web seeds. Every chunk is checked against the signed manifest all the same.
      - Where something speaks against BitTorrent (no room for the pieces, no C(aria2c), most of the image already on
        the disk) or the swarm gives nothing, the image comes by HTTP, and RV(transport) says why.
    type: str
    choices: [http, bittorrent]
    default: http
  trackers:
    description:
      - With O(transport=bittorrent), the announce URLs of the trackers, such as V(http://10.20.1.2:6969/announce).
    type: list
    elements: str
    default: []
  scratch:
    description:
      - With O(transport=bittorrent), hints like those of O(disk) for another disk, where the compressed image is kept
        meanwhile if it does not fit into memory with 1 GiB to spare. It must be empty, unless O(allow_overwrite), and
        is empty afterwards.
    type: dict
  progress_path:
    description:
      - A file that is rewritten about once a second with how far the work is, as JSON.
    type: path
    default: /run/h200-rack-image-write.json
seealso:
  - module: h200.rack.image_publish
  - module: h200.rack.disk_wipe
"""

EXAMPLES = r"""
- name: The image is on the root disk
  h200.rack.image_write:
    mirrors: ["http://10.20.1.3", "http://10.20.1.4"]
    image: ubuntu-24.04-h200
    digest: 3f0a9f51c6b9d1bb6fb0d4a6ad4a5fd6e3f3b4e8c7a9d5b1e2f3a4b5c6d7e8f9
    node: gpu001
    disk:
      serial: S64GNG0T612345
    allow_overwrite: "{{ inventory_hostname in rack_reimage }}"
    seed:
      hostname: gpu001
      users:
        - name: admin
          sudo: ALL=(ALL) NOPASSWD:ALL
          ssh_authorized_keys: ["ssh-ed25519 AAAA..."]
    finish: reboot

- name: The written kernel is ready, and started once the boot scripts say so
  h200.rack.image_write:
    mirrors: ["http://10.20.1.3"]
    image: ubuntu-24.04-h200
    node: gpu001
    disk:
      serial: S64GNG0T612345
    finish: kexec_load
  register: written

- name: The node starts the written system, after this task has answered
  ansible.builtin.raw: setsid sh -c 'sleep 1; exec kexec --exec' >/dev/null 2>&1 </dev/null &
  when: written.finish.method == 'kexec_loaded'
"""

RETURN = r"""
already:
  description: Whether the disk already held exactly this image and seed, so that nothing was written.
  type: bool
  returned: success
digest:
  description: The digest of the image.
  type: str
  returned: success
version:
  description: The version of the image.
  type: str
  returned: success
disk:
  description: The disk, with path, serial, wwn, model, size, sector size and what was on it.
  type: dict
  returned: success
overwrites:
  description: What was on the disk before.
  type: list
  elements: str
  returned: success
raw_size:
  description: Bytes of the image.
  type: int
  returned: success
written_bytes:
  description: Bytes that were written to the disk.
  type: int
  returned: success
skipped_bytes:
  description: Bytes of zero and unchanged chunks.
  type: int
  returned: success
unchanged_bytes:
  description: The part of RV(skipped_bytes) that the disk already held.
  type: int
  returned: success
fetched_bytes:
  description: Bytes that came from the mirrors or, by BitTorrent, from other nodes.
  type: int
  returned: success
verified_bytes:
  description: Bytes that were read back and compared.
  type: int
  returned: success
mirrors_used:
  description: For each mirror its URL, the bytes it gave, and its last error or an empty text.
  type: list
  elements: dict
  returned: success
seconds:
  description: How long it took.
  type: float
  returned: success
stages:
  description: How long each part took.
  type: dict
  returned: success
throughput:
  description: Bytes of the image per second.
  type: int
  returned: success
host_keys:
  description: The public SSH host keys of the installed system; empty without a seed, and in check mode.
  type: list
  elements: str
  returned: success
boot_entry:
  description: The firmware's boot entry (state, number, loader, order), or why there is none.
  type: dict
  returned: success on a disk, not in check mode
transport:
  description:
    - How the chunks came (C(used), V(http), V(bittorrent), or V(none) when nothing was written), and why not by
      BitTorrent (C(reason)). With BitTorrent where the C(pieces) were, C(swarm_bytes), C(uploaded_bytes), C(peers),
      and an C(error) when the mirrors had to give the rest.
  type: dict
  returned: success
finish:
  description:
    - How the node leaves the ramdisk (C(method), one of V(none), V(reboot), V(kexec) and V(kexec_loaded)), and why when
      it is not the one asked for (C(reason)). With kexec the C(kernel), C(initrd) and C(cmdline) that were loaded.
  type: dict
  returned: success on a disk, not in check mode
"""

from ansible.module_utils.basic import AnsibleModule, missing_required_lib
from ansible_collections.h200.rack.plugins.module_utils._common.errors import RackError
from ansible_collections.h200.rack.plugins.module_utils._image import deploy, fetch

_TEXT = {"type": "str"}


def hide_seed(module: AnsibleModule) -> None:
    """Nothing of the seed is in a result, and all of it is left out of the log.

    It may hold passwords in any place. But it holds host names, numbers and common words, too, and as secret values
    each of them would be blotted out of disks, digests and messages.
    """
    if module.params["seed"] is not None:
        module.params["seed"] = "VALUE_SPECIFIED_IN_NO_LOG_PARAMETER"
    module.no_log_values.clear()


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "mirrors": {"type": "list", "elements": "str", "required": True},
            "fallback_mirrors": {"type": "list", "elements": "str", "default": []},
            "image": {"type": "str", "required": True},
            "digest": {"type": "str"},
            "public_key": {"type": "str", "default": "/etc/h200-rack/image.pub", "no_log": False},
            "ca_path": {"type": "path"},
            "disk": {
                "type": "dict",
                "required": True,
                "options": {
                    "serial": _TEXT,
                    "wwn": _TEXT,
                    "model": _TEXT,
                    "vendor": _TEXT,
                    "size": _TEXT,
                    "by_path": _TEXT,
                    "hctl": _TEXT,
                    "rotational": {"type": "bool"},
                    "path": {"type": "path"},
                    "raid1": {"type": "raw"},
                },
            },
            "allow_overwrite": {"type": "bool", "default": False},
            "require_ramdisk": {"type": "bool", "default": True},
            "node": {"type": "str"},
            "seed": {
                "type": "dict",
                "no_log": True,
                "options": {
                    "hostname": {"type": "str", "required": True},
                    "fqdn": _TEXT,
                    "users": {"type": "list", "elements": "dict"},
                    "network_config": {"type": "dict"},
                    "user_data": {"type": "dict"},
                    "manage_etc_hosts": {"type": "str", "default": "localhost"},
                    "instance_id": _TEXT,
                },
            },
            "verify": {"type": "str", "choices": ["none", "sample", "all"], "default": "sample"},
            "boot_order": {
                "type": "str",
                "choices": ["network_first", "disk_first", "keep"],
                "default": "network_first",
            },
            "finish": {"type": "str", "choices": ["none", "reboot", "kexec", "kexec_load"], "default": "none"},
            "timeout": {"type": "int", "default": 3600},
            "stall_timeout": {"type": "int", "default": 5},
            "transport": {"type": "str", "choices": ["http", "bittorrent"], "default": "http"},
            "trackers": {"type": "list", "elements": "str", "default": []},
            "scratch": {"type": "dict"},
            "progress_path": {"type": "path", "default": "/run/h200-rack-image-write.json"},
        },
        supports_check_mode=True,
    )
    seed = dict(module.params["seed"]) if module.params["seed"] is not None else None
    hide_seed(module)
    if fetch.ZSTANDARD_ERROR:
        module.fail_json(msg=missing_required_lib("zstandard"), exception=fetch.ZSTANDARD_ERROR)
    options = {**{key: module.params[key] for key in deploy.Request._fields}, "seed": seed}
    options.update({key: tuple(options[key]) for key in ("mirrors", "fallback_mirrors", "trackers")})
    options["disk"] = {key: value for key, value in options["disk"].items() if value is not None}
    try:
        result = deploy.deploy(deploy.Request(**options), module.check_mode)
    except RackError as exc:
        module.fail_json(**exc.as_result())
    if module._diff:
        result["diff"] = deploy.diff(result)
    module.exit_json(**result)


if __name__ == "__main__":
    main()
