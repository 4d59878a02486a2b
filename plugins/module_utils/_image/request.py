# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is asked of ``image_write``, and whether it can be done: the machine, the manifest, the disk. Private.

Nothing here changes a disk.
"""

from __future__ import annotations

import os
import typing as t

from ansible_collections.h200.rack.plugins.module_utils._common.errors import InvalidInput, RackError

from . import disks, seed, transport
from .manifest import (
    MANIFEST_FILE,
    MAX_MANIFEST,
    SIGNATURE_FILE,
    Manifest,
    digest_of,
    is_digest,
    parse,
    require_digest,
    require_name,
)
from .mirrors import NoMirrors, Pool
from .signature import Verification, public_key_pem

MARKER = "/etc/h200-rack/ramdisk"
_BACKUP_ROOM = 1 << 20


class Request(t.NamedTuple):
    mirrors: tuple[str, ...]
    image: str
    disk: dict[str, t.Any]
    digest: str | None = None
    fallback_mirrors: tuple[str, ...] = ()
    public_key: str = "/etc/h200-rack/image.pub"
    ca_path: str | None = None
    node: str | None = None
    allow_overwrite: bool = False
    require_ramdisk: bool = True
    verify: str = "sample"
    seed: dict[str, t.Any] | None = None
    boot_order: str = "network_first"
    finish: str = "none"
    timeout: float = 3600
    stall_timeout: float = 5
    progress_path: str | None = None
    transport: str = "http"
    trackers: tuple[str, ...] = ()
    scratch: dict[str, t.Any] | None = None

    @property
    def wish(self) -> transport.Wish:
        return transport.Wish(
            self.transport,
            tuple(self.trackers),
            self.scratch,
            self.allow_overwrite,
            self.stall_timeout,
            self.ca_path,
        )


def check(request: Request) -> None:
    require_name(request.image, "image")
    if request.digest is not None:
        require_digest(request.digest, "digest")
    public_key_pem(request.public_key)
    disks.check_hints(request.disk)
    transport.check(request.wish)
    if request.seed is not None:
        seed.check(request.seed)
    if request.require_ramdisk:
        require_ramdisk(request.node)


def require_ramdisk(node: str | None, marker: str = MARKER, cmdline: str = "/proc/cmdline") -> None:
    """Refuse to touch a disk on a machine that is not running the ramdisk, or is another node than meant."""
    if not os.path.exists(marker):
        raise InvalidInput(f"this machine does not run the ramdisk ({marker} is missing); no disk was touched")
    if node is not None:
        with open(cmdline, encoding="utf-8", errors="replace") as handle:
            names = [word[10:] for word in handle.read().split() if word.startswith("rack.node=")]
        if names != [node]:
            raise InvalidInput(
                f"node: this machine was booted as {', '.join(names) or 'nobody'}, not as {node}; no disk was touched"
            )


def current_digest(pool: Pool, image: str) -> str:
    """The digest that the mirrors call current; they must agree, or the node would get what nobody chose."""
    said = {
        mirror: data.decode("ascii", "replace").strip()
        for mirror, data in pool.ask_each(f"/images/{image}/current", 200).items()
    }
    answers = {mirror: text for mirror, text in said.items() if is_digest(text)}
    if not answers:
        raise NoMirrors(f"image: no mirror says which version of {image} is current: {pool.complaints()}")
    if len(set(answers.values())) > 1:
        each = "; ".join(f"{mirror} says {digest[:12]}" for mirror, digest in answers.items())
        raise RackError(f"image: the mirrors disagree about the current {image}: {each}; give digest", code="stale")
    return next(iter(answers.values()))


def fetch_manifest(pool: Pool, request: Request, digest: str) -> tuple[Manifest, Verification]:
    """The manifest of ``digest``, and the check of its signature, which is running."""
    folder = f"/images/{request.image}/{digest}"

    def is_it(data: bytes) -> None:
        if digest_of(data) != digest:
            raise RackError(f"its sha256 is {digest_of(data)[:12]}…, not the digest asked for")

    data = pool.get(f"{folder}/{MANIFEST_FILE}", MAX_MANIFEST, is_it)
    signature = pool.get(f"{folder}/{SIGNATURE_FILE}", 4096)
    what = f"{request.image} {digest[:12]}"
    verification = Verification(data, signature, request.public_key, what)
    try:
        manifest = parse(data, f"{what}: {MANIFEST_FILE}")
        if manifest.name != request.image:
            raise InvalidInput(f"image: the manifest {digest[:12]} is that of {manifest.name}, not of {request.image}")
    except RackError:
        verification.finish()
        raise
    return manifest, verification


def require_fit(disk: disks.Disk, manifest: Manifest, request: Request) -> None:
    if disk.in_use:
        raise RackError(f"disk: {disk.describe()} is in use: {disk.in_use}", code="disk_busy", disk=disk.summary())
    if disk.unfit:
        raise RackError(f"disk: {disk.describe()} cannot be a root disk", code="disk_unfit", disk=disk.summary())
    is_file = disk.model == "regular file"
    if disk.sector_size != manifest.sector_size and not is_file:
        raise RackError(
            f"disk: {disk.describe()} has sectors of {disk.sector_size} bytes, the image is made for "
            f"{manifest.sector_size}; format the namespace for the latter or publish an image for the former",
            code="sector_size",
            disk=disk.summary(),
        )
    needed = manifest.minimum_disk
    if request.seed is not None:
        needed = max(needed, manifest.raw_size + seed.SIZE + _BACKUP_ROOM)
    if disk.size < needed:
        raise RackError(
            f"disk: {disk.describe()} is too small: the image needs {needed} bytes, the disk has {disk.size}",
            code="disk_too_small",
            disk=disk.summary(),
        )
