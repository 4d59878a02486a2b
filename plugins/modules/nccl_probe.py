#!/usr/bin/python
# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: nccl_probe
short_description: Run an nccl-tests program, or take its log, and judge the result
version_added: 0.1.0
author:
  - The h200.rack maintainers (@h200)
description:
  - Judges what nccl-tests printed (text of every version since 2018, or the JSON of C(-J)) as a careful engineer would.
    Was it one job of the ranks and hosts that were meant, did it run to its end, were results compared and right, is
    every size there, and does the bus bandwidth at one size reach what healthy hardware reaches.
  - The printed average is returned and never judged, for it is the mean over all sizes.
  - With O(log) or O(log_content) nothing is run and no GPU is needed. Else the test is run by O(launcher), with a time
    limit that ends the whole process group, and its environment is never stored.
  - A bad result is a result, not an error of the module. Use RV(verdict).
options:
  log:
    description:
      - Path of a log on the host where the module runs.
    type: path
  log_content:
    description:
      - The log itself.
    type: str
  collective:
    description:
      - What to run (default V(all_reduce)), or what a log is of where the log does not say.
    type: str
    choices: [all_reduce, all_gather, reduce_scatter, alltoall, sendrecv, broadcast]
  launcher:
    description:
      - V(local) runs one process with all GPUs of this node. V(srun) and V(mpirun) run one process for each GPU.
    type: str
    choices: [local, srun, mpirun]
    default: local
  hosts:
    description:
      - The nodes to run on; by default this one, or the one that V(srun) chooses.
    type: list
    elements: str
    default: []
  gpus_per_node:
    description:
      - GPUs to use on every node. By default as many as the profile says, else 8.
    type: int
  program:
    description:
      - Path of the program; by default the one named after the collective (C(all_reduce_perf)), on PATH.
    type: str
  min_bytes:
    description:
      - Smallest size, such as V(8) or V(512M).
    type: str
    default: "8"
  max_bytes:
    description:
      - Largest size. NVLink SHARP shows above 256 MiB, so a small one proves little.
    type: str
    default: 16G
  step_factor:
    description:
      - Each size is this many times the one before.
    type: int
    default: 2
  iterations:
    description:
      - Iterations of each size.
    type: int
    default: 20
  warmup:
    description:
      - Iterations before those that count.
    type: int
    default: 5
  timeout:
    description:
      - Seconds until the test and all it started are ended. Ten more may pass between SIGTERM and SIGKILL.
    type: int
    default: 600
  env:
    description:
      - Environment variables of the test, given on to all ranks. C(NCCL_ALGO=RING) shows dead NIC paths that the
        default algorithm half hides; it belongs here and never into the node's configuration.
    type: dict
    default: {}
  loopback:
    description:
      - Force every hop through the NICs on one node (C(NCCL_P2P_DISABLE=1), C(NCCL_SHM_DISABLE=1) and
        C(NCCL_NVLS_ENABLE=0)), which tests NICs and GPUDirect without a second node. The reference is then one NIC's
        rate, and NCCL must say (C(NCCL_DEBUG=INFO)) that all its connections go from GPU to NIC (C(GDRDMA)).
    type: bool
    default: false
  json:
    description:
      - Ask for JSON as well (C(-J), nccl-tests 2.17.4 and later), into a fresh directory.
    type: bool
    default: false
  launcher_args:
    description:
      - Further arguments of the launcher, such as C(--mpi=pmix) or C(--reservation=NAME).
    type: list
    elements: str
    default: []
  extra_args:
    description:
      - Further arguments of the test.
    type: list
    elements: str
    default: []
  profile:
    description:
      - The expected hardware, a resolved profile, or a mapping with just C(name) of a profile of the collection. It
        gives the reference, the GPU's model and the ranks of a node.
    type: dict
  expect_ranks:
    description:
      - How many ranks must have taken part. When the test is run, as many as were started.
    type: int
  expect_hosts:
    description:
      - How many hosts must have taken part. When the test is run, as many as it was run on.
    type: int
  at_size:
    description:
      - The size to judge, such as V(8G). By default the largest that was asked for.
    type: str
  reference:
    description:
      - Bus bandwidth of healthy hardware in GB/s at that size, instead of the profile's.
    type: float
  min_utilization:
    description:
      - Share of the reference that must be reached. By default the profile's (0.85, and 431 of 480 GB/s for one node of
        H200). V(0) without O(profile) and O(reference) asks not to judge the speed at all.
    type: float
  require_validation:
    description:
      - Results that were not compared with the right ones (C(-c 0), printed as N/A) do not pass.
    type: bool
    default: true
extends_documentation_fragment:
  - h200.rack.attributes
attributes:
  check_mode:
    support: full
    details:
      - The command is returned and nothing is run. A given log is judged all the same.
  diff_mode:
    support: none
  idempotent:
    support: full
    details:
      - Nothing on the host is changed. Running a test again measures again.
  platform:
    platforms: posix
notes:
  - Every reason carries a hint for its case. The codes are stable; what to do about each stands here.
  - It did not run. V(not_run) by C(CHECK_MODE); C(TOOL_MISSING) (install what the hint names); C(NO_RESULT) (empty, or
    another program's output; judge the log of the test); C(MASKED) (a document's template; measure); C(STALE_JSON) (the
    file was there before and a later run wrote another; use a fresh directory).
  - It ran and cannot be judged. V(not_run) by C(NO_REFERENCE) (sound, but no figure is known for this profile, number
    of GPUs or type; give O(profile) or O(reference)); C(SIZE_TOO_SMALL) (latency, not bandwidth; raise O(max_bytes));
    C(RANKS_UNKNOWN) and C(HOSTS_UNKNOWN) (the log names none; keep its beginning); C(PATHS_UNKNOWN) (O(loopback), and
    NCCL does not say which way it took); C(BUSY) (the nodes have other jobs; wait).
  - It did not end well. V(fail) by C(LAUNCH_FAILED) (hosts, slots, paths, libraries, login); C(TIMEOUT) (most often one
    NIC or one GPU; try pairs); C(CRASHED) (kernel log of the node); C(NCCL_ERROR) (again with C(NCCL_DEBUG=WARN), read
    the first complaint); C(CUDA_ERROR) (driver, fabric manager, Xids); C(TEST_ERROR); C(OUT_OF_MEMORY) (other processes
    on the GPUs); C(GPUS_MISSING) (run M(h200.rack.gpu_probe)); C(EXIT_CODE) (a whole table, and an error all the same);
    C(MIN_BW_FAILED) (C(NCCL_TESTS_MIN_BW) is set and not reached).
  - The log is not whole. V(fail) by C(INCOMPLETE) (killed, cut, rows missing or altered; run it again);
    C(SWEEP_SHORTENED) (GPU memory cut the sweep; ask for less); C(SIZE_MISSING) (the judged size was not run).
  - It is not the job that was meant. V(fail) by C(NOT_ONE_JOB) (every process ran alone; build with C(MPI=1), check
    C(--mpi)); C(RANKS) and C(HOSTS) (fewer, more or others than expected, or two ranks on one GPU); C(WRONG_GPU);
    C(WRONG_COLLECTIVE); C(NOT_VALIDATED) (run with C(-c 1)); C(INCONSISTENT) (figures that do not fit together).
  - The hardware, or what is set on it. V(fail) by C(WRONG_RESULTS) (take the node out, find the GPU or link by halves);
    C(NVLS_ABSENT) (a ring's figure where NVLink SHARP was to be; C(NCCL_ALGO) or C(NCCL_NVLS_ENABLE) is set, or the
    fabric manager was restarted; reboot); C(NIC_PATH_SLOW) (NIC, cable, rail or GPUDirect; ports, then pairs with
    C(NCCL_ALGO=RING)); C(GPUDIRECT_ABSENT) (O(loopback) went through host memory; open kernel modules with dma-buf, ACS
    and IOMMU); C(NOT_THROUGH_NICS) (O(loopback) did not reach the NICs); C(BUSBW_LOW) (NVLinks, clocks, heat, other
    processes).
  - RV(notes) have codes as well. They do not change the verdict.
seealso:
  - module: h200.rack.gpu_probe
"""

EXAMPLES = r"""
- name: One node reaches what eight H200 reach
  h200.rack.nccl_probe:
    profile:
      name: h200_sxm
  register: nccl
  failed_when: nccl.verdict != "pass"

- name: Two nodes, every NIC path, by Slurm
  h200.rack.nccl_probe:
    launcher: srun
    hosts: [gpu001, gpu002]
    env:
      NCCL_ALGO: RING
    min_bytes: 1G
    profile: "{{ acceptance_profile }}"
  register: pair

- name: Judge a log that someone sent
  h200.rack.nccl_probe:
    log_content: "{{ lookup('ansible.builtin.file', 'nccl.log') }}"
    profile:
      name: h200_sxm
    expect_hosts: 2
  delegate_to: localhost
"""

RETURN = r"""
verdict:
  description: V(pass), V(fail) or V(not_run).
  returned: success
  type: str
  sample: pass
reasons:
  description: Why it is not a pass, the first cause first. The codes are listed in the notes.
  returned: success
  type: list
  elements: dict
  sample: [{"code": "NVLS_ABSENT", "hint": "367 GB/s, at least 431 needed"}]
notes:
  description: What is worth a look in a result all the same, as code and hint.
  returned: success
  type: list
  elements: dict
  sample: []
busbw:
  description: Out-of-place bus bandwidth in GB/s at the judged size, the median where the size was run several times.
  returned: success
  type: float
  sample: 476.72
at_size:
  description: The judged size in bytes.
  returned: success
  type: int
  sample: 8589934592
in_place_busbw:
  description: In-place bus bandwidth in GB/s at that size.
  returned: success
  type: float
  sample: 478.11
peak_busbw:
  description: Largest bus bandwidth in GB/s of all rows.
  returned: success
  type: float
  sample: 478.11
printed_avg_busbw:
  description: The average that nccl-tests printed, in GB/s. It is not a measure of anything and is not judged.
  returned: success
  type: float
  sample: 477.416
utilization:
  description: Share of the reference, with the reference in GB/s and what it stands on.
  returned: success
  type: dict
  contains:
    value:
      description: RV(busbw) divided by the reference.
      type: float
    reference:
      description: GB/s.
      type: float
    basis:
      description: Where the reference comes from.
      type: str
  sample: {"value": 0.9932, "reference": 480.0, "basis": "h200_sxm: 1 node, all_reduce by NVLink SHARP, 480 GB/s"}
rows:
  description: Every row with size, type, redop, and time (us), algbw, busbw (GB/s) and wrong (null if not compared).
  returned: success
  type: list
  elements: dict
  sample: []
wrong:
  description: Wrong elements of all rows; null where results were not compared.
  returned: success
  type: int
  sample: 0
validated:
  description: Whether the results were compared.
  returned: success
  type: bool
  sample: true
complete:
  description: Whether the log has its beginning, its end and every size in between.
  returned: success
  type: bool
  sample: true
ranks:
  description: How many ranks took part.
  returned: success
  type: int
  sample: 8
ranks_basis:
  description: How that is known; V(listed), V(busbw/algbw) (the ratio of the bandwidths), V(NCCL), or nothing.
  returned: success
  type: str
  sample: listed
hosts:
  description: The hosts that the log names.
  returned: success
  type: list
  elements: str
  sample: [gpu001]
gpu_models:
  description: The GPU models that the log names.
  returned: success
  type: list
  elements: str
  sample: [NVIDIA H200]
collective:
  description: The collective, as the log says or its figures show.
  returned: success
  type: str
  sample: all_reduce
nccl_version:
  description: The version of NCCL, where the log names it.
  returned: success
  type: str
  sample: 2.27.5
nccl_warnings:
  description: NCCL's own warnings.
  returned: success
  type: list
  elements: str
  sample: []
simulated:
  description: Whether the tools of this node are simulated, as in the virtual rack.
  returned: success
  type: bool
  sample: false
command:
  description: The command line, with the names of O(env), and the values of those that are NCCL's, UCX' or CUDA's.
  returned: when a test was to be run
  type: str
  sample: all_reduce_perf -b 8 -e 17179869184 -f 2 -g 8 -n 20 -w 5 -c 1
target_hosts:
  description: The value of O(hosts).
  returned: when a test was to be run
  type: list
  elements: str
  sample: [gpu001, gpu002]
exit_code:
  description: Exit code; null where the test had to be ended.
  returned: when a test was run
  type: int
  sample: 0
seconds:
  description: How long it ran.
  returned: when a test was run
  type: float
  sample: 41.2
boot_id:
  description: The boot under which it was run, of the host that started it.
  returned: when a test was run
  type: str
  sample: 6e1b0a4c-1f7e-4f0f-a6a3-0d5f5a0b7c11
serials:
  description: C(system), the serial number of the host that started it; empty where it cannot be read.
  returned: when a test was run
  type: dict
  sample: {"system": "S412345X1"}
stdout_tail:
  description: The end of what it printed.
  returned: when a test was run
  type: str
  sample: ""
stderr_tail:
  description: The end of what it complained of.
  returned: when a test was run
  type: str
  sample: ""
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.h200.rack.plugins.module_utils._common.errors import RackError
from ansible_collections.h200.rack.plugins.module_utils._gpu.nccl_command import LAUNCHERS, PROGRAMS
from ansible_collections.h200.rack.plugins.module_utils._gpu.nccl_probe import probe


def main():
    module = AnsibleModule(
        argument_spec={
            "log": {"type": "path"},
            "log_content": {"type": "str"},
            "collective": {"type": "str", "choices": list(PROGRAMS)},
            "launcher": {"type": "str", "choices": list(LAUNCHERS), "default": "local"},
            "hosts": {"type": "list", "elements": "str", "default": []},
            "gpus_per_node": {"type": "int"},
            "program": {"type": "str"},
            "min_bytes": {"type": "str", "default": "8"},
            "max_bytes": {"type": "str", "default": "16G"},
            "step_factor": {"type": "int", "default": 2},
            "iterations": {"type": "int", "default": 20},
            "warmup": {"type": "int", "default": 5},
            "timeout": {"type": "int", "default": 600},
            "env": {"type": "dict", "default": {}},
            "loopback": {"type": "bool", "default": False},
            "json": {"type": "bool", "default": False},
            "launcher_args": {"type": "list", "elements": "str", "default": []},
            "extra_args": {"type": "list", "elements": "str", "default": []},
            "profile": {"type": "dict"},
            "expect_ranks": {"type": "int"},
            "expect_hosts": {"type": "int"},
            "at_size": {"type": "str"},
            "reference": {"type": "float"},
            "min_utilization": {"type": "float"},
            "require_validation": {"type": "bool", "default": True},
        },
        mutually_exclusive=[("log", "log_content")],
        supports_check_mode=True,
    )
    try:
        module.exit_json(changed=False, **probe(module.params, module.check_mode))
    except RackError as exc:
        module.fail_json(**exc.as_result())


if __name__ == "__main__":
    main()
