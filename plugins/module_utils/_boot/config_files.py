# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Several configuration files as one change: all of them valid together, or all of them as before.

Private to h200.rack.
"""

from __future__ import annotations

import contextlib
import os
import stat
import typing as t

from ansible_collections.h200.rack.plugins.module_utils._common.atomic import read_or_none, write_atomic
from ansible_collections.h200.rack.plugins.module_utils._common.errors import RackError

# Runs a command and returns its exit status and what it printed.
Runner = t.Callable[[t.Sequence[str]], "tuple[int, str]"]


class InvalidConfiguration(RackError):
    """The service refuses the new files; the old ones are back."""

    code = "invalid_configuration"


class _Wanted(t.NamedTuple):
    path: str
    content: bytes | None
    mode: int


class _State(t.NamedTuple):
    content: bytes | None
    mode: int


class Outcome(t.NamedTuple):
    """Which files differ, and how."""

    paths: list[str]
    diff: list[dict[str, str]]


def apply(
    files: t.Sequence[t.Mapping[str, t.Any]],
    absent: t.Sequence[str],
    validate: t.Sequence[str],
    run: Runner,
    dry_run: bool = False,
) -> Outcome:
    """Bring the files into their places and keep them only when ``validate`` succeeds."""
    wanted = [_Wanted(item["path"], item["content"].encode(), int(item["mode"], 8)) for item in files]
    wanted += [_Wanted(path, None, 0) for path in absent]
    before = {item.path: _state(item.path) for item in wanted}
    changes = [item for item in wanted if _differs(item, before[item.path])]
    if changes and not dry_run:
        _keep_if_valid(changes, before, validate, run)
    return Outcome([item.path for item in changes], [_difference(item, before[item.path]) for item in changes])


def _keep_if_valid(
    changes: t.Sequence[_Wanted], before: t.Mapping[str, _State], validate: t.Sequence[str], run: Runner
) -> None:
    try:
        for item in changes:
            _put(item.path, item.content, item.mode)
        if validate:
            status, output = run(validate)
            if status != 0:
                raise InvalidConfiguration(
                    f"{' '.join(validate)} refuses the new configuration, the old one is back: {output.strip()}",
                    paths=[item.path for item in changes],
                )
    except BaseException:
        for item in changes:
            _put(item.path, before[item.path].content, before[item.path].mode)
        raise


def _put(path: str, content: bytes | None, mode: int) -> None:
    if content is None:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)
    else:
        write_atomic(path, content, mode)


def _state(path: str) -> _State:
    content = read_or_none(path)
    return _State(content, 0 if content is None else stat.S_IMODE(os.stat(path).st_mode))


def _differs(item: _Wanted, now: _State) -> bool:
    return item.content != now.content or (item.content is not None and item.mode != now.mode)


def _difference(item: _Wanted, now: _State) -> dict[str, str]:
    return {
        "before_header": item.path,
        "after_header": item.path,
        "before": (now.content or b"").decode(errors="replace"),
        "after": (item.content or b"").decode(errors="replace"),
    }
