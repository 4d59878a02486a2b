# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A BMC made of nothing but the standard library: Redfish and IPMI, vendors' manners, faults to inject, a request log.

with Fleet([Bmc(PERSONALITIES["dgx_h200"])]) as fleet:
    fleet.bmcs[0].url ...
    fleet.bmcs[0].faults.append(Fault(method="POST", path="Reset$", drop=True))
    fleet.bmcs[0].log.resets()
"""

from __future__ import annotations

from .bmc import Bmc
from .captured import CapturedBmc
from .faults import Fault
from .machine import Machine
from .personalities import PERSONALITIES, Personality
from .server import Fleet

__all__ = ["PERSONALITIES", "Bmc", "CapturedBmc", "Fault", "Fleet", "Machine", "Personality"]
