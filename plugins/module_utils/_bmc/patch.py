# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PATCH of one resource: the ETag forms and the waiting that BMCs ask for. Private to h200.rack."""

from __future__ import annotations

import typing as t

from .answer import Answer
from .http import NoAnswer
from .redfish import Redfish

BUSY_PAUSE, BUSY_PAUSE_MAX = 5.0, 30.0


def etag_forms(header: str | None, body: t.Any) -> list[str | None]:
    """If-Match values to try, each only after 412 or 428: as announced, then as BMCs were seen to want it.

    Sources: c.g #11261 (Lenovo), ansible #60031 (Huawei), Tacklebox #22 (428), c.g #6434 (Gigabyte: weak, only
    accepted without quotes), libredfish nvidia_viking.rs (body etag, and *).
    """
    body = body if isinstance(body, str) and body else None
    forms: list[str | None] = [header]
    for tag in (body, header):
        if tag:
            strong = tag[2:] if tag.startswith("W/") else tag
            quoted = strong if strong.startswith('"') else f'"{strong}"'
            forms += [tag, quoted, quoted.strip('"')]
    forms += ["*", None]
    return list(dict.fromkeys(forms))


def patch(client: Redfish, path: str, data: dict[str, t.Any]) -> Answer | None:
    """PATCH ``path``; the last answer, or None when none came and the effect is unknown."""
    current = client.try_get(path)
    tried: list[str | None] = []
    pause = BUSY_PAUSE
    while True:
        forms = [tag for tag in etag_forms(current.etag, current.body.get("@odata.etag")) if tag not in tried]
        try:
            answer = client.write("PATCH", path, data, {"If-Match": forms[0]} if forms and forms[0] else None)
        except NoAnswer:
            return None
        if answer.status in (412, 428) and len(forms) > 1:
            tried.append(forms[0])
            if len(tried) == 1 and answer.status == 412:  # somebody else may have changed it meanwhile
                current = client.try_get(path)
            continue
        error_class, harmless = answer.verdict
        wait = min(answer.retry_after or pause, BUSY_PAUSE_MAX)
        if answer.ok or not harmless or error_class == "session_limit" or client.patience.remaining <= wait:
            return answer
        client.patience.pause(wait)
        pause = min(pause * 2, BUSY_PAUSE_MAX)
