# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run a program by a module's means, a missing one included. Private to h200.rack."""

from __future__ import annotations

import typing as t

from .scontrol import Run


def runner(module: t.Any) -> Run:
    """``module`` is an AnsibleModule; rc 127 stands for a program that is not there."""

    def run(argv: list[str]) -> tuple[int, str, str]:
        try:
            return module.run_command(argv, handle_exceptions=False, environ_update={"LC_ALL": "C"})
        except OSError as exc:
            return 127, "", f"{argv[0]}: {exc.strerror}"

    return run
