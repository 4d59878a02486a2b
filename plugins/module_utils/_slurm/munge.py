# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The munge key's file: made once, or equal to the cluster's. Private to h200.rack."""

from __future__ import annotations

import base64
import binascii
import hashlib
import os
import pwd
import typing as t

from .._common import atomic
from .._common.errors import InvalidInput, RackError

# munged refuses less than 32 bytes; mungekey makes 128.
SHORTEST, LENGTH = 32, 128


class Outcome(t.NamedTuple):
    changed: bool
    digest: str | None  # of the key that is there now; None before a key is made in check mode


def ensure(path: str, content: str | None, owner: str, check_mode: bool, digest: str | None = None) -> Outcome:
    """``content`` is the key in Base64; without it a key that is there stays, and one is made when none is.

    ``digest`` is what the key must have; another one is refused before it replaces a good one.
    """
    wanted = None if content is None else _decode(content)
    if digest is not None and wanted is not None and _digest(wanted) != digest:
        raise InvalidInput("content: the key has another digest than the cluster's; it was read from elsewhere or cut")
    there = atomic.read_or_none(path)
    changed = there is None if wanted is None else there != wanted
    account = _account(owner)
    loose = there is not None and account is not None and not _is_private(path, account)
    if check_mode:
        shown = wanted if wanted is not None else there
        return Outcome(changed or loose, None if shown is None else _digest(shown))
    key = wanted if wanted is not None else there if there is not None else os.urandom(LENGTH)
    if account is None:
        raise RackError(f"{owner}: there is no such user; is munge installed?", code="no_munge")
    if changed:
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        atomic.write_atomic(path, key, mode=0o400)
    if changed or loose:
        os.chown(path, account.pw_uid, account.pw_gid)
        os.chmod(path, 0o400)
    return Outcome(changed or loose, _digest(key))


def check_clock(now: float, reference: float | None, most: float) -> None:
    """Refuse a clock that munge would refuse every credential for."""
    if reference is not None and abs(now - reference) > most:
        raise RackError(
            f"this host's clock differs by {now - reference:+.0f} s from the one that it is compared with (at most "
            f"{most:g} s); munge takes no credential that is 300 s off: synchronise the clocks of both, then run again",
            code="clock_skew",
            seconds=round(now - reference, 1),
        )


def _decode(content: str) -> bytes:
    try:
        key = base64.b64decode(content, validate=True)
    except (binascii.Error, ValueError) as exc:
        raise InvalidInput("content: is not Base64") from exc
    if len(key) < SHORTEST:
        raise InvalidInput(f"content: a munge key has at least {SHORTEST} bytes, this one has {len(key)}")
    return key


def _account(owner: str) -> pwd.struct_passwd | None:
    try:
        return pwd.getpwnam(owner)
    except KeyError:
        return None


def _is_private(path: str, account: pwd.struct_passwd) -> bool:
    status = os.stat(path)
    return status.st_uid == account.pw_uid and status.st_mode & 0o077 == 0


def _digest(key: bytes) -> str:
    return hashlib.sha256(key).hexdigest()
