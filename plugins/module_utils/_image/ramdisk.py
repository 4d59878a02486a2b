# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Publish a ramdisk (kernel and initramfs) the way images are published. Private to h200.rack."""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
import typing as t

from ansible_collections.h200.rack.plugins.module_utils._common.errors import InvalidInput, RackError

from . import store
from .manifest import (
    MANIFEST_FILE,
    RAMDISK_FILES,
    RAMDISK_FORMAT,
    SIGNATURE_FILE,
    canonical,
    digest_of,
    require_name,
)
from .signature import sign

FORMAT, FILES = RAMDISK_FORMAT, RAMDISK_FILES


class Request(t.NamedTuple):
    kernel: str
    initrd: str
    dest: str
    arch: str = "x86_64"
    version: str = "0"
    signing_key: str | None = None
    keep: int = 3
    protect: tuple[str, ...] = ()
    make_current: bool = True
    lock_timeout: float = 600


class Outcome(t.NamedTuple):
    changed: bool
    digest: str
    path: str
    removed: list[str]
    diff: dict[str, str]


def describe(path: str) -> dict[str, t.Any]:
    """Size and sha256 of a file."""
    digest = hashlib.sha256()
    size = 0
    with open(path, "rb") as handle:
        for block in iter(lambda: handle.read(1 << 20), b""):
            digest.update(block)
            size += len(block)
    return {"size": size, "sha256": digest.hexdigest()}


def publish(request: Request, check_mode: bool = False) -> Outcome:
    """Make kernel and initramfs available under their digest and, unless told otherwise, the current ones."""
    require_name(request.version, "version")
    sources = dict(zip(FILES, (request.kernel, request.initrd)))
    for option, path in (("kernel", request.kernel), ("initrd", request.initrd)):
        if not os.path.isfile(path):
            raise InvalidInput(f"{option}: {path} is not a file")
    files = {name: describe(path) for name, path in sources.items()}
    data = canonical({"format": FORMAT, "arch": request.arch, "version": request.version, "files": files})
    digest = digest_of(data)
    family = os.path.join(store.require_root(request.dest), "ramdisk", request.arch)
    changed = not store.has(family, digest) or (request.make_current and store.current(family) != digest)
    before = after = store.current(family)
    if request.make_current:
        after = digest
    if check_mode:
        removed = store.prune(family, request.keep, request.protect, check_mode=True)
    else:
        with store.publishing(family, request.lock_timeout):
            if not store.has(family, digest):
                _add(request, sources, data, family, digest)
            if request.make_current and store.current(family) != digest:
                store.switch(family, digest)
            removed = store.prune(family, request.keep, request.protect)
    path = f"ramdisk/{request.arch}/{digest}"
    return Outcome(changed or bool(removed), digest, path, removed, store.diff(family, before, after, removed))


def _add(request: Request, sources: dict[str, str], data: bytes, family: str, digest: str) -> None:
    try:
        with store.staging(family) as folder:
            for name, path in sources.items():
                shutil.copyfile(path, os.path.join(folder, name))
            with open(os.path.join(folder, MANIFEST_FILE), "wb") as handle:
                handle.write(data)
            if request.signing_key:
                with open(os.path.join(folder, SIGNATURE_FILE), "wb") as handle:
                    handle.write(sign(data, request.signing_key))
            store.commit(folder, family, digest)
    except OSError as exc:
        if exc.errno in (errno.ENOSPC, errno.EDQUOT):
            raise RackError(
                f"dest: {request.dest} has no room for the ramdisk; nothing was published", code="no_space"
            ) from exc
        raise
