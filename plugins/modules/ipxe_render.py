#!/usr/bin/python
# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: ipxe_render
short_description: Render the iPXE boot scripts of all nodes
version_added: 0.1.0
description:
  - Renders one boot script per node, the entry script C(boot.ipxe) and the script C(unknown.ipxe) for machines that are
    not in the plan, and brings them into a directory that a boot server serves over HTTP.
  - Rendering and checking happen on the controller. A script that cannot work with the iPXE binary in use is refused
    before anything is written. The host compares, and writes what differs, atomically and under a lock.
  - Every fetch goes to the mirrors in an order that differs from node to node, with a timeout and bounded retries.
author:
  - The h200.rack maintainers (@h200)
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
    description: The directory of the boot scripts on the boot server. The role P(h200.rack.netboot#role) makes it.
    type: path
    default: /srv/h200-rack/boot
  nodes:
    description:
      - The nodes and what each does when it next boots from the network.
      - All of them are checked before any script is written; all problems are reported at once.
    type: list
    elements: dict
    suboptions:
      name:
        description: The node's name.
        type: str
        required: true
      mac:
        description: The MAC address of the port that the node boots from, in any of the usual notations.
        type: str
        required: true
      action:
        description:
          - What the node does. V(deploy) and V(rescue) start the ramdisk, V(local) boots from the node's own disk,
            V(poweroff) switches the node off, V(installer) starts a kernel with its initrds, V(custom) renders the
            node's own O(nodes[].template).
        type: str
        required: true
        choices: [deploy, local, rescue, poweroff, installer, custom]
      arch:
        description: The node's architecture.
        type: str
        choices: [x86_64, aarch64]
        default: x86_64
      address:
        description: The node's address in the provisioning network with its prefix length, such as V(10.20.1.11/24).
        type: str
      gateway:
        description: The router of the provisioning network; must lie in the node's subnet.
        type: str
      hostname:
        description: The host name; the node's name if not given.
        type: str
      console:
        description: Kernel consoles such as V(ttyS0,115200n8); the last one becomes C(/dev/console).
        type: list
        elements: str
      kernel_args:
        description:
          - Further kernel arguments. Quotes, C($), C(;) and spaces reach the kernel unchanged.
          - The sequence C(${...}) is refused, since iPXE replaces it and knows no escape.
        type: str
      ramdisk:
        description: Where the ramdisk lies below a mirror's root, such as V(ramdisk/x86_64/DIGEST).
        type: str
      overlay:
        description: The rack's overlay below a mirror's root, such as V(ramdisk/overlay/DIGEST.cpio).
        type: str
      mirrors:
        description: The base URLs of this node's mirrors, instead of O(mirrors).
        type: list
        elements: str
      fallback_mirrors:
        description: The base URLs of mirrors that are tried after the others.
        type: list
        elements: str
      kernel:
        description: The kernel of V(installer), a URL or a path below a mirror's root.
        type: str
      initrds:
        description: The initrds of V(installer), URLs or paths below a mirror's root, in the order of their loading.
        type: list
        elements: str
      template:
        description: A Jinja2 template below O(template_dir) to render instead of the built-in script.
        type: str
      vars:
        description: Variables for O(nodes[].template).
        type: dict
      ipxe_build:
        description: The iPXE build that this node boots, instead of O(ipxe_build).
        type: str
  mirrors:
    description: Base URLs of the mirrors, scheme included.
    type: list
    elements: str
  unknown_action:
    description:
      - What a machine does that is not in the plan.
      - Without it, an existing C(unknown.ipxe) stays as it is, and a missing one is written for V(local).
    type: str
    choices: [local, poweroff, shell]
  prune:
    description:
      - Whether to remove the scripts of earlier calls that are not among those of this call.
      - Meant for the call that names all nodes. Files that this module did not write are never removed.
    type: bool
    default: false
  template_dir:
    description: The directory of the user's own templates on the controller.
    type: path
  ipxe_build:
    description:
      - The iPXE build that runs the scripts; decides which commands and URL schemes they may use.
      - V(debian_2019) is what Debian 11 and 12 ship, V(debian_2025) what Debian 13 ships, V(upstream_2_0) iPXE 2.0.
        Other names must be in O(ipxe_builds).
    type: str
    default: debian_2019
  ipxe_builds:
    description:
      - The site's own builds by name; each a dictionary of C(base) (the build to start from), C(commands) (added),
        C(without) (taken away) and C(schemes) (replaced).
    type: dict
  scripts:
    description:
      - Finished scripts to check and write besides, such as hand-written ones.
      - With C(check_mode) they are only checked.
    type: list
    elements: dict
    suboptions:
      name:
        description: The file name.
        type: str
        required: true
      content:
        description: The script.
        type: str
        required: true
      node:
        description: The node that it is for.
        type: str
      action:
        description: What it does.
        type: str
      keep:
        description: Whether an existing file stays as it is.
        type: bool
        default: false
"""

EXAMPLES = r"""
- name: Every node has its boot script, and nobody else's is left
  h200.rack.ipxe_render:
    nodes:
      - name: gpu001
        mac: 52:54:00:00:01:0b
        action: deploy
        address: 10.20.1.11/24
        gateway: 10.20.1.1
        console: [tty0, "ttyS0,115200n8"]
        ramdisk: ramdisk/x86_64/6f1e60f9
        overlay: ramdisk/overlay/0d2a11be.cpio
    mirrors: [http://10.20.1.3, http://10.20.1.4]
    unknown_action: local
    prune: true

- name: A written node boots from its disk from now on
  h200.rack.ipxe_render:
    nodes:
      - name: gpu001
        mac: 52:54:00:00:01:0b
        action: local

- name: Ubuntu installs itself by autoinstall
  h200.rack.ipxe_render:
    nodes:
      - name: login01
        mac: 52:54:00:00:02:01
        action: installer
        kernel: ubuntu/24.04/vmlinuz
        initrds: [ubuntu/24.04/initrd]
        address: 10.20.1.200/24
        gateway: 10.20.1.1
        kernel_args: >-
          autoinstall url=http://10.20.1.3/ubuntu/24.04/ubuntu-24.04-live-server-amd64.iso
          ds=nocloud;s=http://10.20.1.3/ubuntu/seed/login01/ cloud-config-url=/dev/null
    mirrors: [http://10.20.1.3]

- name: A hand-written script is fit for Debian 13's iPXE
  h200.rack.ipxe_render:
    ipxe_build: debian_2025
    scripts:
      - name: firmware-update.ipxe
        content: "{{ lookup('ansible.builtin.file', 'firmware-update.ipxe') }}"
  check_mode: true
"""

RETURN = r"""
scripts:
  description: The scripts of this call.
  returned: success
  type: list
  elements: dict
  contains:
    path:
      description: The file on the boot server.
      type: str
    node:
      description: The node it is for; empty for C(boot.ipxe) and C(unknown.ipxe).
      type: str
    action:
      description: What it does.
      type: str
    changed:
      description: Whether it differed.
      type: bool
removed:
  description: The files that O(prune) removed.
  returned: success
  type: list
  elements: str
lint:
  description: What the linter found; an error refuses the whole call.
  returned: success, or when scripts are refused
  type: list
  elements: dict
  contains:
    script:
      description: The script's file name.
      type: str
    node:
      description: The node it is for.
      type: str
    line:
      description: The line.
      type: int
    code:
      description: A stable word for the finding.
      type: str
    severity:
      description: V(error) or V(warning).
      type: str
    message:
      description: What is wrong.
      type: str
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.h200.rack.plugins.module_utils._boot import store
from ansible_collections.h200.rack.plugins.module_utils._boot.spec import ARGUMENT_SPEC
from ansible_collections.h200.rack.plugins.module_utils._common.errors import RackError


def main() -> None:
    module = AnsibleModule(argument_spec=ARGUMENT_SPEC, supports_check_mode=True)
    if module.params["nodes"] is not None or not module.params["scripts"]:
        module.fail_json(msg="scripts are rendered by the action plugin of ipxe_render, which did not run")
    try:
        outcome = store.update(
            module.params["dest"], module.params["scripts"], module.params["prune"], dry_run=module.check_mode
        )
    except RackError as exc:
        module.fail_json(**exc.as_result())
    except OSError as exc:
        module.fail_json(msg=f"the scripts in {module.params['dest']} cannot be written: {exc}")
    result = {"changed": outcome.changed, "scripts": outcome.scripts, "removed": outcome.removed}
    if module._diff:
        result["diff"] = outcome.diff
    module.exit_json(**result)


if __name__ == "__main__":
    main()
