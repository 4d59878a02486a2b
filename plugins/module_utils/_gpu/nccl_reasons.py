# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Why an nccl-tests result is not a pass, as stable codes. Private to h200.rack."""

from __future__ import annotations

import dataclasses

from .checks import FAIL, NOT_RUN


@dataclasses.dataclass(frozen=True)
class Reason:
    code: str
    hint: str

    @property
    def verdict(self) -> str:
        return CODES[self.code]

    def as_dict(self) -> dict[str, str]:
        return dataclasses.asdict(self)


# What each code means for the verdict: something wrong was seen, or nothing was.
CODES: dict[str, str] = {
    # Nothing was measured.
    "CHECK_MODE": NOT_RUN,
    "NO_RESULT": NOT_RUN,
    "MASKED": NOT_RUN,
    "TOOL_MISSING": NOT_RUN,
    "STALE_JSON": NOT_RUN,
    # It was measured, and cannot be judged.
    "NO_REFERENCE": NOT_RUN,
    "SIZE_TOO_SMALL": NOT_RUN,
    "RANKS_UNKNOWN": NOT_RUN,
    "HOSTS_UNKNOWN": NOT_RUN,
    "PATHS_UNKNOWN": NOT_RUN,
    "BUSY": NOT_RUN,
    # It did not run to its end.
    "LAUNCH_FAILED": FAIL,
    "TIMEOUT": FAIL,
    "CRASHED": FAIL,
    "NCCL_ERROR": FAIL,
    "CUDA_ERROR": FAIL,
    "TEST_ERROR": FAIL,
    "OUT_OF_MEMORY": FAIL,
    "GPUS_MISSING": FAIL,
    "EXIT_CODE": FAIL,
    "INCOMPLETE": FAIL,
    "SWEEP_SHORTENED": FAIL,
    "SIZE_MISSING": FAIL,
    # It ran, but not as what was meant.
    "NOT_ONE_JOB": FAIL,
    "RANKS": FAIL,
    "HOSTS": FAIL,
    "WRONG_GPU": FAIL,
    "WRONG_COLLECTIVE": FAIL,
    "NOT_VALIDATED": FAIL,
    "INCONSISTENT": FAIL,
    # The hardware, or what is set on it.
    "WRONG_RESULTS": FAIL,
    "NVLS_ABSENT": FAIL,
    "NIC_PATH_SLOW": FAIL,
    "GPUDIRECT_ABSENT": FAIL,
    "NOT_THROUGH_NICS": FAIL,
    "MIN_BW_FAILED": FAIL,
    "BUSBW_LOW": FAIL,
}

HINTS: dict[str, str] = {
    "OUT_OF_MEMORY": "the largest size does not fit, or other processes hold GPU memory",
    "GPUS_MISSING": "fewer GPUs are visible than were asked for: run gpu_probe",
    "TIMEOUT": "it did not end in time; a hang in the first collective is most often one NIC or one GPU: try pairs",
    "NCCL_ERROR": "run it again with NCCL_DEBUG=WARN and read the first complaint, not the last",
    "CUDA_ERROR": "driver, fabric manager and library must fit; look for an Xid in the kernel log",
    "TEST_ERROR": "the test ended with an error of its own: see its output",
    "LAUNCH_FAILED": "the launcher could not start the test: check hosts, slots, paths, libraries and login",
    "BUSY": "the nodes have other jobs, so nothing was measured: run it again when they have ended",
    "CRASHED": "a process died: see its output and the kernel log of its node",
}
