# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What gpu-burn says: it ends with 0 even when a GPU is faulty, and OK is silent on speed. Private to h200.rack."""

from __future__ import annotations

import re
import statistics
import typing as t

from .checks import Check, failed, not_run, passed

_TESTED = re.compile(r"Tested (\d+) GPUs?:")
_GPU = re.compile(r"^\s*GPU (\d+): (OK|FAULTY)\s*$", re.M)
_RATE = re.compile(r"\(([\d.]+) Gflop/s\)")
_ERRORS = re.compile(r"errors:\s*([\d\s\-]+)")
# Below the median of the node's GPUs by so much: Azure's node tests warn at 3.5 % and fail at 7 %.
WARN_BELOW, FAIL_BELOW = 0.035, 0.07


def parse(text: str) -> dict[str, t.Any]:
    """Verdicts, errors and the last rates (Gflop/s) of every GPU."""
    tested = _TESTED.search(text)
    progress = [line for line in re.split(r"[\r\n]+", text) if "Gflop/s" in line]
    rates: list[float] = []
    for line in progress:
        found = [float(rate) for rate in _RATE.findall(line)]
        rates = found if len(found) >= len(rates) else rates
    errors = [int(number) for line in progress for part in _ERRORS.findall(line) for number in re.findall(r"\d+", part)]
    return {
        "tested": int(tested.group(1)) if tested else None,
        "gpus": {int(number): word for number, word in _GPU.findall(text)},
        "rates": rates,
        "errors": sum(errors),
    }


def judge(found: t.Mapping[str, t.Any], gpus: int, minimum: t.Optional[float] = None) -> list[Check]:
    """``minimum``: Gflop/s of every GPU, for a node that is slow as a whole has no slow GPU."""
    if found["tested"] is None:
        return [not_run("gpu_burn", "OK", "BURN_INCOMPLETE", "gpu-burn did not come to its end")]
    words = found["gpus"]
    faulty = sorted(gpu for gpu, word in words.items() if word != "OK")
    checks = []
    if faulty or found["errors"]:
        measured = {"faulty": faulty, "errors": found["errors"]}
        checks.append(failed("gpu_burn", measured, "OK", "GPU_FAULTY", "wrong results under load: replace the GPU"))
    elif found["tested"] != gpus or len(words) != gpus:
        checks.append(failed("gpu_burn", found["tested"], gpus, "GPU_COUNT", "gpu-burn ran on another number of GPUs"))
    else:
        checks.append(passed("gpu_burn", "OK", "OK"))
    checks.append(_speed(found["rates"], gpus, minimum))
    return checks


def _speed(rates: t.Sequence[float], gpus: int, minimum: t.Optional[float]) -> Check:
    if len(rates) < gpus:
        return not_run("gpu_burn_rates", gpus, "BURN_NO_RATES", "the rates of the GPUs are missing")
    below = {f"GPU{k}": rate for k, rate in enumerate(rates) if minimum is not None and rate < minimum}
    if below:
        expected = f"at least {minimum:g} Gflop/s"
        return failed("gpu_burn_rates", below, expected, "GPU_SLOW", "heat, power or a weak GPU: compare clocks")
    median = statistics.median(rates)
    slow = {f"GPU{k}": rate for k, rate in enumerate(rates) if rate < median * (1 - FAIL_BELOW)}
    if slow:
        expected = f"within {FAIL_BELOW:.0%} of the node's median {median:g} Gflop/s"
        return failed("gpu_burn_rates", slow, expected, "GPU_SLOW", "heat, power or a weak GPU: compare clocks")
    near = [f"GPU{k}" for k, rate in enumerate(rates) if rate < median * (1 - WARN_BELOW)]
    hint = f"slower than the others, within limits: {', '.join(near)}" if near else ""
    return passed("gpu_burn_rates", list(rates), f"within {FAIL_BELOW:.0%} of the median", hint)
