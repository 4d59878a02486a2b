# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The edge between an ordinary module run and the BMC work. Private to h200.rack."""

from __future__ import annotations

import typing as t

from .entry import Work, run


def exit_with(module: t.Any, work: Work) -> None:
    """Do ``work`` with the options of ``module``, an AnsibleModule, and leave with its result."""
    result = run(work, module.params, module.check_mode)
    for warning in result.pop("warnings", []):
        module.warn(warning)
    if result.pop("failed", False):
        module.fail_json(**result)
    module.exit_json(**result)
