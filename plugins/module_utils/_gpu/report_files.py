# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The two files of a rack's report. Private to h200.rack."""

from __future__ import annotations

import os
import typing as t

from ansible_collections.h200.rack.plugins.module_utils._common.atomic import read_or_none, write_atomic
from ansible_collections.h200.rack.plugins.module_utils._common.errors import RackError

from . import rack_report, records, report_html

_RETURNED = ("accepted", "total", "first_pass_yield", "failed_checks", "bad", "pairs", "simulated")


def write_report(
    run_id: str, nodes: t.Sequence[str], title: str, path: str, check_mode: bool = False
) -> dict[str, t.Any]:
    """The module's result; files that would be the same are left alone."""
    report = rack_report.build(records.load_run(path, run_id), run_id, nodes)
    folder = os.path.join(path, run_id)
    files = {
        os.path.join(folder, "report.json"): records.encode(report),
        os.path.join(folder, "report.html"): report_html.page(report, title).encode(),
    }
    changed = False
    for name, data in files.items():
        if read_or_none(name) == data:
            continue
        changed = True
        if check_mode:
            continue
        try:
            os.makedirs(folder, mode=0o755, exist_ok=True)
            write_atomic(name, data)
        except OSError as exc:
            raise RackError(f"{name} cannot be written: {exc.strerror}", code="io") from exc
    names = list(files)
    return {"changed": changed, "json": names[0], "html": names[1], **{key: report[key] for key in _RETURNED}}
