# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module of this name, run in the controller's own process."""

from __future__ import annotations

# Imported here, in the main process, the libraries are shared by all forks.
from ansible_collections.h200.rack.plugins.module_utils._bmc.redfish_info import info
from ansible_collections.h200.rack.plugins.module_utils._bmc.specs import REDFISH_INFO
from ansible_collections.h200.rack.plugins.plugin_utils.bmc_action import BmcAction


class ActionModule(BmcAction):
    SPEC = REDFISH_INFO
    WORK = info
