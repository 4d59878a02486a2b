# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What h200.rack has registered on this controller, over all inventories and runs. Private to h200.rack.

A run brings its own nodes only; those of other racks stay as they are because they are kept here. Written last,
after the controller was proven with the files, so it also tells whether the files on disk were ever applied.
"""

from __future__ import annotations

import hashlib
import json
import typing as t

from .._common.errors import RackError
from . import declared

NAME = "h200-rack.json"


class Registry(t.NamedTuple):
    nodes: dict[str, declared.Declared]
    applied: str | None  # digest of the files that the controller was proven with


def load(content: bytes | None) -> Registry:
    if content is None:
        return Registry({}, None)
    try:
        document = json.loads(content)
        nodes = [declared.from_record(record) for record in document["nodes"]]
        return Registry({node.name: node for node in nodes}, document["applied"])
    except (ValueError, KeyError, TypeError) as exc:
        raise RackError(
            f"{NAME} is not what h200.rack wrote ({exc}); restore it, or remove it to have it made anew",
            code="bad_registry",
        ) from exc


def dump(registry: Registry) -> bytes:
    nodes = [declared.as_record(registry.nodes[name]) for name in sorted(registry.nodes)]
    return (json.dumps({"applied": registry.applied, "nodes": nodes}, indent=1, sort_keys=True) + "\n").encode()


def digest(files: t.Mapping[str, bytes]) -> str:
    total = hashlib.sha256()
    for name in sorted(files):
        total.update(f"{name} {len(files[name])}\n".encode())
        total.update(files[name])
    return total.hexdigest()
