# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ways to let one fake BMC answer otherwise than all of its kind."""

from __future__ import annotations

import json
import typing as t

from .bmc import Bmc, Response


def changed_get(server: Bmc, path: str, change: t.Callable[[dict[str, t.Any]], t.Any]) -> None:
    """Let ``change`` edit the answers to GET of ``path``."""
    real = server._get

    def get(asked: str) -> Response:
        response = real(asked)
        if asked == path:
            response.body = json.loads(json.dumps(response.body))
            change(response.body)
        return response

    server._get = get  # type: ignore[method-assign]


def login_answers(server: Bmc, change: t.Callable[[Response], t.Any]) -> None:
    """Let ``change`` edit the answers to logins that succeed."""
    real = server._login

    def login(body: t.Any) -> Response:
        response = real(body)
        if response.status == 201:
            change(response)
        return response

    server._login = login  # type: ignore[method-assign]
