# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""node_check: gather until the checks pass or the time is up. Private to h200.rack."""

from __future__ import annotations

import typing as t

from .._common.deadline import Deadline
from . import gather, judge

# What becomes true by itself a while after boot; the rest does not get better by waiting.
# What a check's code is where it is not its name, as gpu_probe calls the same.
_CODES = {"GPU_DEVICES": "GPU_COUNT"}
_SETTLING = ("time_sync", "network.", "gpu_devices")
POLL = 1.0


def run(params: t.Mapping[str, t.Any], command: gather.Run, deadline: Deadline | None = None) -> dict[str, t.Any]:
    deadline = deadline or Deadline(params["wait"])
    units = list(params["units"])
    while True:
        facts = gather.gather(command, params["users"], units, params["cloud_init_timeout"])
        checks = judge.judge(facts, params)
        wrong = [check for check in checks if check.verdict != judge.PASS]
        settling = wrong and all(check.name.startswith(_SETTLING) for check in wrong)
        if not settling or not deadline.pause(POLL):
            break
    return {
        "verdict": judge.FAIL if wrong else judge.PASS,
        "failed_checks": [check.name for check in wrong],
        "checks": [check.as_dict() for check in checks],
        "boot_id": facts["boot_id"],
        "units": facts["units"],
        "to_start": [name for name, unit in facts["units"].items() if _to_start(name, unit)],
    }


def _to_start(name: str, unit: t.Mapping[str, t.Any]) -> bool:
    """Installed and not as it shall be, and a start (or being enabled, where it runs) puts it right."""
    if unit["active"]:
        return not unit["enabled"]
    return judge.may_start(name, unit)


def failure(result: t.Mapping[str, t.Any]) -> dict[str, str]:
    """``msg`` with everything that is wrong and ``code`` of the first, for a result that did not pass; else empty."""
    wrong = [check for check in result["checks"] if check["verdict"] != judge.PASS]
    if not wrong:
        return {}
    words = [f"{c['name']}: {c['hint']} (is {c['measured']}, shall be {c['expected']})" for c in wrong]
    code = wrong[0]["name"].partition(".")[0].upper()
    return {"code": _CODES.get(code, code), "msg": "; ".join(words)}
