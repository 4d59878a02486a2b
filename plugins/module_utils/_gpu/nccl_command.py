# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The command that runs an nccl-tests program on one node or several. Private to h200.rack."""

from __future__ import annotations

import dataclasses
import re
import typing as t

from ansible_collections.h200.rack.plugins.module_utils._common.errors import InvalidInput

PROGRAMS = ("all_reduce", "all_gather", "reduce_scatter", "alltoall", "sendrecv", "broadcast")
LAUNCHERS = ("local", "srun", "mpirun")

# Seconds that srun waits for nodes that are in use. What it waits is lost to the test.
_QUEUE = 60

_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
_SIZE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([KMGT]?)(?:i?B)?\s*", re.I)
_ENV_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_HOST = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]*")


@dataclasses.dataclass(frozen=True)
class Request:
    collective: str
    launcher: str
    hosts: tuple[str, ...]
    gpus_per_node: int
    min_bytes: int
    max_bytes: int
    step_factor: int
    iterations: int
    warmup: int
    timeout: int
    program: str = ""
    launcher_args: tuple[str, ...] = ()
    extra_args: tuple[str, ...] = ()
    validate: bool = True
    json_path: str = ""

    @property
    def nodes(self) -> int:
        return max(1, len(self.hosts))

    @property
    def ranks(self) -> int:
        return self.nodes * self.gpus_per_node


def size(text: t.Union[str, int], variable: str) -> int:
    """``16G`` in bytes."""
    found = _SIZE.fullmatch(str(text))
    if not found:
        raise InvalidInput(f"{variable}: {text!r} is not a size such as 8, 512M or 16G", variable=variable)
    return int(float(found.group(1)) * _UNITS[found.group(2).upper()])


def check(request: Request) -> None:
    """Raise InvalidInput for what cannot run as meant."""
    problems = {
        "hosts": request.launcher == "local" and len(request.hosts) > 1 and "launcher=local runs on one host",
        "gpus_per_node": request.gpus_per_node < 1 and "at least one GPU is needed",
        "min_bytes": request.min_bytes > request.max_bytes and "min_bytes is above max_bytes",
        "step_factor": request.step_factor < 2 and "step_factor must be 2 or more",
        "iterations": request.iterations < 1 and "iterations must be 1 or more",
        "timeout": request.timeout < 1 and "timeout must be 1 second or more",
    }
    for variable, problem in problems.items():
        if problem:
            raise InvalidInput(f"{variable}: {problem}", variable=variable)
    if len(set(request.hosts)) != len(request.hosts):
        raise InvalidInput("hosts: a host is named twice", variable="hosts")
    for host in request.hosts:
        if not _HOST.fullmatch(host):
            raise InvalidInput(f"hosts: {host!r} is not a host name", variable="hosts")


def check_env(env: t.Mapping[str, t.Any]) -> dict[str, str]:
    for name in env:
        if not _ENV_NAME.fullmatch(str(name)):
            raise InvalidInput(f"env: {name!r} is not the name of an environment variable", variable="env")
    return {str(name): str(value) for name, value in env.items()}


def command(request: Request, env: t.Mapping[str, str], job_name: str, as_root: bool = False) -> list[str]:
    """The whole command line."""
    program = request.program or f"{request.collective}_perf"
    one_process = request.launcher == "local"
    test = [
        program,
        *("-b", str(request.min_bytes), "-e", str(request.max_bytes), "-f", str(request.step_factor)),
        *("-g", str(request.gpus_per_node if one_process else 1)),
        *("-n", str(request.iterations), "-w", str(request.warmup), "-c", "1" if request.validate else "0"),
        *(("-J", request.json_path) if request.json_path else ()),
        *request.extra_args,
    ]
    if one_process:
        return test
    if request.launcher == "srun":
        return [*_srun(request, job_name), *test]
    return [*_mpirun(request, env, as_root), *test]


def _srun(request: Request, job_name: str) -> list[str]:
    minutes = -(-request.timeout // 60) + 1
    return [
        "srun",
        f"--job-name={job_name}",
        f"--nodes={request.nodes}",
        f"--ntasks={request.ranks}",
        f"--ntasks-per-node={request.gpus_per_node}",
        f"--gres=gpu:{request.gpus_per_node}",
        *((f"--nodelist={','.join(request.hosts)}",) if request.hosts else ()),
        f"--time={minutes}",
        f"--immediate={max(1, min(request.timeout // 4, _QUEUE))}",
        "--kill-on-bad-exit=1",
        *request.launcher_args,
    ]


def _mpirun(request: Request, env: t.Mapping[str, str], as_root: bool) -> list[str]:
    hosts = ",".join(f"{host}:{request.gpus_per_node}" for host in request.hosts)
    return [
        "mpirun",
        *(("--allow-run-as-root",) if as_root else ()),
        *("-np", str(request.ranks)),
        *(("--host", hosts) if hosts else ()),
        *("--map-by", f"ppr:{request.gpus_per_node}:node", "--bind-to", "numa"),
        *(part for name in sorted(env) for part in ("-x", name)),
        *request.launcher_args,
    ]
