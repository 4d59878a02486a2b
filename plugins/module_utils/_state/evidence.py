# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What an event may carry: JSON of bounded size, without secrets. Private to h200.rack."""

from __future__ import annotations

import json
import re
import typing as t

from ansible_collections.h200.rack.plugins.module_utils._common.errors import InvalidInput

MAX_STRING = 2000
MAX_BYTES = 16384
WITHHELD = "(withheld)"

_SECRET_KEY = re.compile(r"passw|passphrase|secret|token|credential|private_?key|api_?key|munge_?key", re.IGNORECASE)
_PRIVATE_KEY = re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----")


def _clean(value: t.Any, path: str) -> t.Any:
    if isinstance(value, dict):
        return {
            str(key): WITHHELD if _SECRET_KEY.search(str(key)) else _clean(item, f"{path}.{key}")
            for key, item in value.items()
        }
    if isinstance(value, (list, tuple)):
        return [_clean(item, f"{path}[{number}]") for number, item in enumerate(value)]
    if isinstance(value, str):
        if _PRIVATE_KEY.search(value):
            return WITHHELD
        left = len(value) - MAX_STRING
        return value if left <= 0 else f"{value[:MAX_STRING]}... ({left} more characters)"
    if value is None or isinstance(value, (bool, int, float)):
        return value
    raise InvalidInput(f"evidence: {path} is a {type(value).__name__}, which JSON does not know")


def clean_evidence(evidence: t.Optional[t.Mapping[str, t.Any]]) -> dict[str, t.Any]:
    """The evidence as it is written.

    Values under keys that look like secrets are withheld and long strings cut, so that recording a failure never
    fails over what a tool printed; what is then still too big is refused.
    """
    cleaned = _clean(dict(evidence or {}), "evidence")
    size = len(json.dumps(cleaned).encode())
    if size > MAX_BYTES:
        raise InvalidInput(f"evidence: {size} bytes, at most {MAX_BYTES} are kept: record a digest or a path instead")
    return cleaned
