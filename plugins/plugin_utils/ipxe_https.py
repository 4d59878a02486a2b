# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a node's iPXE can fetch from the rack's https mirrors. Private to h200.rack."""

from __future__ import annotations

import typing as t

from ansible_collections.h200.rack.plugins.module_utils._boot import builds


def can_https(node: t.Mapping[str, t.Any]) -> bool:
    """Only a build of the site's own has the rack's CA compiled in; those of distributions trust public CAs alone."""
    name, own = node["ipxe_build"], node["ipxe_builds"]
    return name in own and "https" in builds.lookup(builds.feature_table(own), name).schemes
