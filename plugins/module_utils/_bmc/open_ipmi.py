# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From checked options to an IPMI session. Private to h200.rack."""

from __future__ import annotations

import typing as t

from .._common.deadline import Deadline
from .address import parse_ipmi
from .ipmi import Ipmi


def open_ipmi(params: dict[str, t.Any], deadline: Deadline) -> Ipmi:
    """The session of a task, still to be entered."""
    return Ipmi(
        parse_ipmi(params["bmc_host"], params["port"]),
        params["bmc_username"],
        params["bmc_password"],
        kg=params["kg"],
        timeout=float(params["timeout"]),
        deadline=deadline,
    )
