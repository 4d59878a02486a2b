# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the installed system of a node is told at its first boot. Private to h200.rack."""

from __future__ import annotations

import typing as t


def seed(node: t.Mapping[str, t.Any]) -> dict[str, t.Any]:
    """The option ``seed`` of image_write for a node of the plan. It holds no secret."""
    # cloud-init forbids root's login unless it is told otherwise.
    user_data = {"user_data": {"disable_root": False}} if node["os_user"] == "root" else {}
    return {
        **user_data,
        "hostname": node["hostname"],
        "fqdn": node["fqdn"],
        "users": [dict(user) for user in node["users"]],
        "network_config": node["network"],
    }
