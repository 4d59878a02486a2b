#!/usr/bin/python
# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: slurm_config
short_description: Add, change and remove the nodes of a Slurm controller as one proven transaction
version_added: 0.1.0
description:
  - Writes the node, GRES, partition and topology files of a Slurm controller for all nodes at once, and brings
    them into
    force with at most one restart or reconfigure, whichever the version needs.
  - Before that, a throwaway slurmctld in a network of its own must have accepted the files. After it, the
    controller must
    be alive and know every node with the GRES declared; else the old files come back and the controller runs with them.
  - New nodes come up drained with the reason C(h200.rack:RUN:provisioning), whatever their slurmd does.
  - Nodes that earlier calls declared stay, also when this call does not name them, so that runs for different
    racks do not
    undo each other. O(absent_nodes) removes.
  - Two runs at once wait for each other. Must run as root on the controller.
options:
  nodes:
    description: The nodes as their inventory declares them.
    type: list
    elements: dict
    default: []
    suboptions:
      name:
        description: The host name, without dots.
        type: str
        required: true
      address:
        description: Where slurmd listens. Without it the name must resolve on the controller.
        type: str
      profile:
        description: The resolved hardware profile; C(cpu), C(memory_mib) and C(gpu) are read.
        type: dict
        required: true
      scalable_unit:
        description: The block of leaf switches that the node hangs on.
        type: str
      features:
        description: Slurm features of the node.
        type: list
        elements: str
        default: []
  absent_nodes:
    description: Names of nodes to remove. They must have no jobs.
    type: list
    elements: str
    default: []
  partitions:
    description: Partitions of these nodes.
    type: list
    elements: dict
    default: []
    suboptions:
      name:
        description: The partition's name.
        type: str
        required: true
      nodes:
        description: Its nodes; all nodes that h200.rack declared, when empty.
        type: list
        elements: str
        default: []
      existing:
        description:
          - Whether it is the site's own, in the site's file. It must exist then and take the nodes;
            C(Nodes=h200_rack) in
            its line does.
        type: bool
        default: false
      options:
        description: Further words of its line, such as C(Default) or C(MaxTime).
        type: dict
        default: {}
  slurm_conf:
    description:
      - The content of C(slurm.conf), which must include C(h200-rack-nodes.conf).
      - Without it the site's own C(slurm.conf) is left alone, and only our included files are written.
    type: str
  cgroup_conf:
    description: The content of C(cgroup.conf); only written together with O(slurm_conf).
    type: str
  config_dir:
    description: Where the files are.
    type: path
    default: /etc/slurm
  gres_detect:
    description:
      - How slurmd finds the GPUs; V(files) by O(gres_file), V(nvml) and V(nvidia) by the plugins of these names.
    type: str
    choices: [files, nvml, nvidia]
    default: files
  gres_file:
    description: The device files; C(%) stands for the numbers.
    type: str
    default: /dev/nvidia%
  topology:
    description: V(tree) writes one switch per scalable unit and a spine above them.
    type: str
    choices: [tree, none]
    default: none
  memory_margin:
    description: The share of the profile's memory that is not declared, since the kernel takes a part that differs.
    type: float
    default: 0.05
  run_id:
    description: This run; it stands in the reason of the drains.
    type: str
    required: true
  strategy:
    description:
      - How a change reaches the controller. V(auto) takes what the version and the change need.
      - V(reconfigure) is refused where it would kill the controller.
      - With V(dynamic), new nodes stand in no file and make themselves known (C(slurmd -Z) with what RV(joining) says),
        so that the controller is neither restarted nor reconfigured for them. O(slurm_conf) must give C(MaxNodeCount)
        room for them, without a topology, and the nodes must have the same GPUs.
      - V(auto) takes this way before Slurm 24.11 where all of that holds, also of the controller that runs, and
        nothing else asks for a restart.
    type: str
    choices: [auto, dynamic, reconfigure, restart]
    default: auto
  service:
    description: The controller's systemd unit.
    type: str
    default: slurmctld
  timeout:
    description: Seconds for each of the lock, the trial, the controller's answer and the proof.
    type: float
    default: 60
attributes:
  check_mode:
    support: full
  diff_mode:
    support: full
  idempotent:
    support: full
  platform:
    platforms: posix
extends_documentation_fragment:
  - h200.rack.attributes
author:
  - The h200.rack maintainers (@h200)
"""

EXAMPLES = r"""
- name: The controller knows the nodes of this rack and keeps them drained
  h200.rack.slurm_config:
    nodes: "{{ slurm_rack_nodes }}"
    partitions:
      - name: gpu
        options: {Default: true, MaxTime: UNLIMITED}
    topology: tree
    run_id: "{{ slurm_run_id }}"
"""

RETURN = r"""
action:
  description: What was done to the controller.
  type: str
  returned: success
  sample: restart
pushed:
  description:
    - Whether the nodes that were registered before were given the new configuration after a restart. Those that fetch
      theirs would not know the new nodes otherwise.
  type: bool
  returned: success
changes:
  description: What kinds of things changed.
  type: list
  elements: str
  returned: success
  sample: [node_set]
drained:
  description: Nodes that were put behind the gate.
  type: list
  elements: str
  returned: success
joining:
  description: Of the nodes given, those that make themselves known, each with what slurmd's C(--conf) must say.
  type: dict
  returned: success
  sample: {gpu002: "Sockets=2 CoresPerSocket=48 ThreadsPerCore=2 RealMemory=1900000 Gres=gpu:h200:8 State=DRAIN"}
removed:
  description: Nodes that were removed.
  type: list
  elements: str
  returned: success
files:
  description: Files that were written.
  type: list
  elements: str
  returned: success
version:
  description: Slurm's version.
  type: str
  returned: success
code:
  description:
    - What kind of failure this is, such as C(invalid), C(config_refused), C(controller_died), C(strategy_refused).
  type: str
  returned: failure
rolled_back:
  description: Whether the old files came back.
  type: bool
  returned: failure after the files were written
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.h200.rack.plugins.module_utils._common.errors import RackError
from ansible_collections.h200.rack.plugins.module_utils._slurm import command, run_config


def argument_spec():
    node = {
        "name": {"type": "str", "required": True},
        "address": {"type": "str"},
        "profile": {"type": "dict", "required": True},
        "scalable_unit": {"type": "str"},
        "features": {"type": "list", "elements": "str", "default": []},
    }
    partition = {
        "name": {"type": "str", "required": True},
        "nodes": {"type": "list", "elements": "str", "default": []},
        "existing": {"type": "bool", "default": False},
        "options": {"type": "dict", "default": {}},
    }
    return {
        "nodes": {"type": "list", "elements": "dict", "default": [], "options": node},
        "absent_nodes": {"type": "list", "elements": "str", "default": []},
        "partitions": {"type": "list", "elements": "dict", "default": [], "options": partition},
        "slurm_conf": {"type": "str"},
        "cgroup_conf": {"type": "str"},
        "config_dir": {"type": "path", "default": "/etc/slurm"},
        "gres_detect": {"type": "str", "choices": ["files", "nvml", "nvidia"], "default": "files"},
        "gres_file": {"type": "str", "default": "/dev/nvidia%"},
        "topology": {"type": "str", "choices": ["tree", "none"], "default": "none"},
        "memory_margin": {"type": "float", "default": 0.05},
        "run_id": {"type": "str", "required": True},
        "strategy": {"type": "str", "choices": ["auto", "dynamic", "reconfigure", "restart"], "default": "auto"},
        "service": {"type": "str", "default": "slurmctld"},
        "timeout": {"type": "float", "default": 60},
    }


def main():
    module = AnsibleModule(argument_spec=argument_spec(), supports_check_mode=True)
    try:
        result, warnings = run_config.run(module.params, command.runner(module), module.check_mode)
    except RackError as exc:
        module.fail_json(**exc.as_result())
    for warning in warnings:
        module.warn(warning)
    module.exit_json(**result)


if __name__ == "__main__":
    main()
