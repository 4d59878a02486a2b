# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From checked options to a result, for modules and action plugins alike. Private to h200.rack."""

from __future__ import annotations

import typing as t

from .._common.deadline import Deadline
from .._common.errors import DeadlineExceeded, RackError
from . import scrub
from .errors import BmcError, invalid

Params = dict[str, t.Any]
Work = t.Callable[[Params, bool, list[str], list[str]], dict[str, t.Any]]


def run(work: Work, params: Params, check_mode: bool) -> dict[str, t.Any]:
    """Call ``work(params, check_mode, warnings, secrets)``; whatever happens becomes a result without secrets."""
    warnings: list[str] = []
    secrets: list[str] = []
    try:
        for name in ("bmc_username", "bmc_password"):
            if not params.get(name):
                raise invalid(f"{name} is empty. Set it, or {'H200_RACK_' + name.upper()} in the environment.")
        for name, least in (("timeout", 1), ("graceful_timeout", 1), ("wait_timeout", 0)):
            if params.get(name) is not None and params[name] < least:
                raise invalid(f"{name} must be at least {least}.")
        result = work(params, check_mode, warnings, secrets)
        result.setdefault("changed", False)
    except BmcError as exc:
        result = {"failed": True, "changed": False, **exc.as_result()}
    except DeadlineExceeded as exc:
        result = {"failed": True, "changed": False, **BmcError("timeout", f"{exc.msg}.").as_result()}
    except RackError as exc:
        result = {"failed": True, "changed": False, **BmcError("invalid", exc.msg).as_result()}
    except Exception as exc:  # a library tripped over what the BMC sent: a result, not a traceback with locals
        text = f"The BMC's answers broke the client: {type(exc).__name__}: {exc}"
        result = {"failed": True, "changed": False, **BmcError("bmc_bug", text).as_result()}
    result["bmc_host"] = str(params.get("bmc_host")).rsplit("@", 1)[-1]  # a user part of a URL is a secret
    if result.get("failed"):
        result["msg"] = f"{result['bmc_host']}: {result['msg']}"
    if warnings:
        result["warnings"] = list(dict.fromkeys(warnings))
    hidden = scrub.forms(params.get("bmc_username"), [params.get("bmc_password"), params.get("kg"), *secrets])
    # The class is one of ours, and programs rely on it: a password of one letter must not spoil it.
    return {key: value if key == "error_class" else scrub.scrub(value, hidden) for key, value in result.items()}


def deadline_of(params: Params) -> Deadline:
    """The deadline of the whole task: what it may wait for, and one request more."""
    return Deadline(float(params.get("wait_timeout") or 0) + float(params["timeout"]))
