# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How the BMC modules run: inside the worker process of the controller, or as a module on a delegate.

No interpreter is started and nothing is copied for a task of ours; with delegate_to on a remote connection (a BMC
network that only that host reaches) the module of the same name runs there.
"""

from __future__ import annotations

import os
import typing as t

from ansible.errors import AnsibleActionFail
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator
from ansible.plugins.action import ActionBase
from ansible_collections.h200.rack.plugins.module_utils._bmc.entry import Work, run
from ansible_collections.h200.rack.plugins.module_utils._bmc.specs import FALLBACKS


class BmcAction(ActionBase):
    """Subclasses name the specification and the work."""

    SPEC: t.ClassVar[dict[str, t.Any]]
    WORK: t.ClassVar[Work]

    _supports_async = False
    _supports_check_mode = True

    def run(self, tmp: str | None = None, task_vars: dict[str, t.Any] | None = None) -> dict[str, t.Any]:
        super().run(None, task_vars)
        args = self._with_fallbacks()
        if self._task.delegate_to and self._connection.transport.rsplit(".", 1)[-1] != "local":
            return self._execute_module(
                module_name=self._task.resolved_action or self._task.action, module_args=args, task_vars=task_vars
            )
        return run(type(self).WORK, self._checked(args), self._task.check_mode)

    def _with_fallbacks(self) -> dict[str, t.Any]:
        args = dict(self._task.args)
        for name, variable in FALLBACKS.items():
            if args.get(name) is None and name in self.SPEC["argument_spec"] and os.environ.get(variable):
                args[name] = os.environ[variable]
        return args

    def _checked(self, args: dict[str, t.Any]) -> dict[str, t.Any]:
        result = ArgumentSpecValidator(**self.SPEC).validate(args)
        if result.error_messages:
            raise AnsibleActionFail("; ".join(result.error_messages))
        return result.validated_parameters
