# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Profiles, resolved once for all nodes that share them. Private to h200.rack."""

from __future__ import annotations

import json
import typing as t

from ansible_collections.h200.rack.plugins.module_utils._common.errors import InvalidInput
from ansible_collections.h200.rack.plugins.module_utils._common.profiles import Profile, resolve

Known = t.Callable[[str], t.Union[Profile, InvalidInput]]


class Profiles:
    """Hosts mostly share one rack_profiles."""

    def __init__(self) -> None:
        self._resolved: dict[tuple[str, str], t.Union[Profile, InvalidInput]] = {}

    def known_to(self, user_profiles: t.Any) -> Known:
        """The profiles by name for a host with this rack_profiles. An error is returned, not raised."""
        key = json.dumps(user_profiles, sort_keys=True, default=str)

        def known(name: str) -> t.Union[Profile, InvalidInput]:
            if (key, name) not in self._resolved:
                try:
                    self._resolved[key, name] = resolve(name, user_profiles)
                except InvalidInput as exc:
                    self._resolved[key, name] = exc
            return self._resolved[key, name]

        return known
