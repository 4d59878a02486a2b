# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Lines that tell why a test did not run or did not end well. Private to h200.rack."""

from __future__ import annotations

import re
import typing as t

from .nccl_model import Trouble

# First match wins. The words are those of nccl-tests, NCCL, CUDA, Slurm, Open MPI, PRRTE, MPICH and the shell.
_PATTERNS: tuple[tuple[str, str], ...] = (
    # With --immediate srun does not wait for nodes that are in use; that says nothing about them.
    ("BUSY", r"srun: .*(?:Requested nodes are busy|Immediate execution impossible|Unable to allocate .* [Ii]mmediate)"),
    ("OUT_OF_MEMORY", r"Test CUDA failure.*out of memory|CUDA.*out of memory|oom[-_]kill|Out Of Memory"),
    ("GPUS_MISSING", r"Invalid number of GPUs: \d+ requested but only \d+|no CUDA-capable device|No devices found"),
    ("TIMEOUT", r"Test timeout \(|DUE TO TIME LIMIT|timed out waiting|Timed out after"),
    (
        "NCCL_ERROR",
        r"(?:Test )?NCCL failure\b|ncclSystemError|ncclInternalError|ncclUnhandledCudaError|ncclRemoteError",
    ),
    (
        "CUDA_ERROR",
        r"(?:Test )?Cuda failure\b|CUDA driver version is insufficient|NVRM: Xid|has fallen off the bus",
    ),
    ("TEST_ERROR", r"Test failure \S+:\d+"),
    ("LAUNCH_FAILED", r"There are not enough slots available|not enough slots"),
    (
        "LAUNCH_FAILED",
        r"(?:mpirun|mpiexec|prterun|ORTE|PRTE)\S* (?:was|were) unable to (?:launch|find|start)|"
        r"(?:ORTE|PRTE) has lost communication|unable to reliably start|execvp error|"
        r"(?:_perf|srun|mpirun|mpiexec)\S*: (?:command not found|No such file or directory|not found)|"
        r"error while loading shared libraries|cannot open shared object file.*\n?.*_perf|"
        r"srun: (?:error: )?(?:Unable to (?:create step|allocate|confirm)|Invalid|Requested node|Job request|"
        r"Unable to contact|Task launch .* failed|Application launch failed|Force Terminated)|MPI_Init.*fail",
    ),
    (
        "CRASHED",
        r"Segmentation fault|Floating point exception|Bus error|core dumped|exited on signal \d+|"
        r"(?:srun|slurmstepd): (?:error: )?.*(?:Exited with exit code [1-9]|Killed|Aborted|CANCELLED|Segmentation)|"
        r"(?:mpirun|mpiexec|prterun)\S* (?:detected|noticed) that|Primary job +terminated normally, but|^Killed$|"
        r"process .* (?:killed|died)",
    ),
)
_COMPILED = tuple((code, re.compile(pattern, re.I)) for code, pattern in _PATTERNS)
# PMIx complains of locks, compression and plugins in jobs that run to their end.
_SURVIVABLE = re.compile(r"(?:PMI\w*|pmix\S*).*(?:error|failed)", re.I)
# No line without one of these words is a complaint; most lines have none.
_WORDS = re.compile(
    r"fail|error|kill|time|no(?:t| such| cuda| devices)|unable|cannot|lost|exit|signal|abort|cancel|memory|fault"
    r"|dumped|invalid|request|slots|terminated|noticed|died|xid|fallen",
    re.I,
)


def trouble_of(text: str) -> t.Optional[Trouble]:
    """What ``text`` complains of, if it does."""
    if not _WORDS.search(text):
        return None
    for code, pattern in _COMPILED:
        if pattern.search(text):
            return Trouble(code, text.strip()[:300])
    return Trouble("LAUNCH_FAILED", text.strip()[:300], True) if _SURVIVABLE.search(text) else None
