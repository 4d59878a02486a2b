# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The small archive that makes the generic ramdisk one of a certain rack. Private to h200.rack."""

from __future__ import annotations

import json
import os
import re
import typing as t
from dataclasses import dataclass
from urllib.parse import urlsplit

from ansible_collections.h200.rack.plugins.module_utils._common.atomic import read_or_none, write_atomic
from ansible_collections.h200.rack.plugins.module_utils._common.errors import InvalidInput

from . import cpio
from .manifest import digest

FOLDER = "etc/h200-rack"
_KEY = re.compile(r"(?:[^\s#].* )?(?:ssh-|ecdsa-|sk-)[a-z0-9@.-]+ [A-Za-z0-9+/]+={0,3}(?: .*)?")


@dataclass(frozen=True)
class Overlay:
    authorized_keys: t.Sequence[str]
    mirrors: t.Sequence[str] = ()
    ca: str = ""
    image_public_key: str = ""


@dataclass(frozen=True)
class Outcome:
    path: str  # below the mirror's root
    digest: str
    changed: bool
    files: t.Mapping[str, str]


def files(overlay: Overlay) -> dict[str, str]:
    """The files by name. Raises InvalidInput, naming the option, for what a ramdisk must not carry."""
    if not overlay.authorized_keys:
        raise InvalidInput("authorized_keys: without a key nobody could log in to the ramdisk")
    for key in overlay.authorized_keys:
        if "\n" in key.strip() or not _KEY.fullmatch(key.strip()):
            raise InvalidInput("authorized_keys: one of them is not a public SSH key on one line")
    for url in overlay.mirrors:
        if urlsplit(url).scheme not in ("http", "https") or not urlsplit(url).hostname:
            raise InvalidInput(f"mirrors: {url!r} is not an http or https URL")
        if urlsplit(url).username or urlsplit(url).password:
            raise InvalidInput("mirrors: a URL holds credentials, and every node could read them")
    for option, text, label in (
        ("ca", overlay.ca, "CERTIFICATE"),
        ("image_public_key", overlay.image_public_key, "PUBLIC KEY"),
    ):
        if "PRIVATE KEY" in text:
            raise InvalidInput(f"{option}: holds a private key, and every node could read it")
        if text and f"-----BEGIN {label}-----" not in text:
            raise InvalidInput(f"{option}: is not in PEM form ({label})")
    content = {
        "authorized_keys": "".join(f"{key.strip()}\n" for key in overlay.authorized_keys),
        "mirrors.json": json.dumps(list(overlay.mirrors)) + "\n",
    }
    if overlay.ca:
        content["ca.pem"] = overlay.ca.strip() + "\n"
    if overlay.image_public_key:
        content["image.pub"] = overlay.image_public_key.strip() + "\n"
    return content


def archive(content: t.Mapping[str, str]) -> bytes:
    """The archive: sorted, without dates, so that its digest names it on every mirror."""
    return cpio.archive(
        cpio.with_parents(cpio.regular(f"{FOLDER}/{name}", text.encode()) for name, text in content.items())
    )


def publish(overlay: Overlay, root: str, check_mode: bool = False) -> Outcome:
    """Put the archive under its digest below the mirror's root."""
    content = files(overlay)
    data = archive(content)
    name = digest(data)
    path = f"ramdisk/overlay/{name}.cpio"
    full = os.path.join(root, path)
    changed = read_or_none(full) != data
    if not check_mode and not os.path.isdir(root):
        raise InvalidInput(f"dest: {root} is not a directory")
    if changed and not check_mode:
        os.makedirs(os.path.dirname(full), exist_ok=True)
        write_atomic(full, data)
    return Outcome(path, name, changed, content)
