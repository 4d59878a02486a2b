# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the attributes of our modules mean."""

from __future__ import annotations


class ModuleDocFragment:
    DOCUMENTATION = r"""
options: {}
attributes:
  check_mode:
    description: Can run in C(check_mode) and return changed status prediction without modifying the target.
  diff_mode:
    description: Will return details on what has changed (or would change in C(check_mode)), when in diff mode.
  idempotent:
    description: Run again with the same options while nothing else has changed, the module does nothing.
  platform:
    description: Target OS/families that can be operated against.
    support: N/A
"""
