# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Render and lint the boot scripts on the controller, then let the module write them on the boot server."""

from __future__ import annotations

import typing as t

from ansible.plugins.action import ActionBase
from ansible_collections.h200.rack.plugins.module_utils._boot.compose import compose
from ansible_collections.h200.rack.plugins.module_utils._boot.spec import ARGUMENT_SPEC
from ansible_collections.h200.rack.plugins.module_utils._common.errors import RackError

# What is left for the host once the scripts are rendered.
_FOR_THE_HOST = ("dest", "prune")


class ActionModule(ActionBase):
    _supports_check_mode = True
    _supports_async = False
    _requires_connection = True

    def run(self, tmp: str | None = None, task_vars: dict[str, t.Any] | None = None) -> dict[str, t.Any]:
        result = super().run(tmp, task_vars)
        params = self.validate_argument_spec(argument_spec=ARGUMENT_SPEC)[1]
        try:
            composed = compose(params)
        except RackError as exc:
            return {**result, "failed": True, "changed": False, **exc.as_result()}
        module_args = {key: params[key] for key in _FOR_THE_HOST}
        result.update(
            self._execute_module(
                module_name="h200.rack.ipxe_render",
                module_args={**module_args, "scripts": composed.scripts},
                task_vars=task_vars,
            )
        )
        # Kilobytes of scripts that the caller has just given are no news.
        result.pop("invocation", None)
        result["lint"] = composed.lint
        return result
