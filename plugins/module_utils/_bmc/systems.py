# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which ComputerSystem a task means, decided from URIs alone. Private to h200.rack.

A BMC of an HGX machine lists its GPU baseboard beside the host; reading it while the host is off answers 503 and may
block everything (infra-controller #5418, #6412), so what is not chosen is never fetched.
"""

from __future__ import annotations

import re
import typing as t
from urllib.parse import unquote, urlsplit

from .errors import BmcError

# Not a host: GPU baseboards, and the DPUs that present themselves as systems.
_NOT_A_HOST = re.compile(r"(^|[_.-])(hgx|baseboard|gpu)|baseboard|bluefield|(^|[_.-])dpu(?![a-z])", re.IGNORECASE)


def path_of(link: t.Any) -> str | None:
    """The path in a Redfish link ({"@odata.id": …}), without host, fragment and trailing slash."""
    if isinstance(link, dict):
        link = link.get("@odata.id") or link.get("href")
    return _path(link) if isinstance(link, str) else None


def _path(link: str) -> str | None:
    try:
        return urlsplit(link.strip()).path.rstrip("/") or None
    except ValueError:  # "http://[": no URL, so no link
        return None


def members(collection: dict[str, t.Any], base: str) -> list[str]:
    """The systems that ``collection`` (at ``base``) lists; what lies deeper, such as a log service, is none."""
    found: list[str] = []
    listed = collection.get("Members")
    for link in listed if isinstance(listed, list) else []:
        path = path_of(link)
        if path and path not in found and is_below(path, base) and "/" not in path[len(base) + 1 :]:
            found.append(path)
    return found


def is_below(path: str, base: str) -> bool:
    """Whether ``path`` lies below ``base``; iLO spells its own links now /Systems/1, now /systems/1."""
    return path.lower().startswith(base.lower() + "/")


def next_page(collection: dict[str, t.Any]) -> str | None:
    """The path (and query) of the next part of a collection that comes in parts."""
    link = collection.get("Members@odata.nextLink") or collection.get("@odata.nextLink")
    if isinstance(link, dict):
        link = link.get("@odata.id")
    path = _path(link) if isinstance(link, str) else None
    if not path:
        return None
    query = urlsplit(link.strip()).query
    return f"{path}?{query}" if query else path


def system_id_of(path: str) -> str:
    return unquote(path.rsplit("/", 1)[-1])


def is_host(path: str) -> bool:
    return not _NOT_A_HOST.search(system_id_of(path))


def choose(paths: t.Sequence[str], wanted: str | None) -> str:
    """The path of the system to act on; never a guess."""
    ids = [system_id_of(path) for path in paths]
    if wanted:
        for path, found in zip(paths, ids):
            if wanted in (found, path) or (path_of(wanted) or "").lower() == path.lower():
                return path
        raise BmcError(
            "invalid", f"system_id: this BMC has no system {wanted!r}. It has: {_listed(ids)}.", system_ids=ids
        )
    if not paths:
        raise BmcError("unsupported", "This BMC lists no ComputerSystem.", system_ids=[])
    if len(paths) == 1:
        return paths[0]
    hosts = [path for path in paths if is_host(path)]
    if len(hosts) == 1:
        return hosts[0]
    raise BmcError("invalid", f"This BMC has several systems; set system_id to one of: {_listed(ids)}.", system_ids=ids)


def _listed(ids: t.Sequence[str]) -> str:
    return ", ".join(ids) or "none"
