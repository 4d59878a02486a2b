# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Writes the result of every task as a line of JSON: of ansible-core alone, so that every version of it will do."""

from __future__ import annotations

import json
import os

from ansible.plugins.callback import CallbackBase

DOCUMENTATION = r"""
name: callback
type: aggregate
short_description: Results as lines of JSON
description: [For the tests of the BMC modules.]
"""


class CallbackModule(CallbackBase):
    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "aggregate"
    CALLBACK_NAME = "callback"
    CALLBACK_NEEDS_ENABLED = True

    def _write(self, result, failed):
        kept = getattr(result, "result", None) or result._result  # 2.19 renamed it
        with open(os.environ["H200_RACK_RESULTS"], "a") as out:
            out.write(json.dumps({**kept, "failed": failed}, default=str) + "\n")

    def v2_runner_on_ok(self, result):
        self._write(result, failed=False)

    def v2_runner_on_failed(self, result, ignore_errors=False):
        self._write(result, failed=True)

    def v2_runner_on_unreachable(self, result):
        self._write(result, failed=True)
