# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: digests_in_use
short_description: The versions of images and ramdisks that nodes need
version_added: 0.1.0
description:
  - All digests that the plan or the state of a node names. Whoever removes old versions spares these.
positional: states
options:
  _input:
    description: What the filter P(h200.rack.plan#filter) returned.
    type: dict
    required: true
  states:
    description: The value RV(h200.rack.node_state_info#module:nodes) of M(h200.rack.node_state_info).
    type: dict
    required: true
author:
  - The h200.rack maintainers (@h200)
"""

EXAMPLES = r"""
- name: Old versions go, but never one that a node has
  h200.rack.image_publish:
    source: /srv/images/debian12.raw
    name: debian12
    version: "2"
    dest: /srv/h200-rack/mirror
    keep: 3
    protect: "{{ rack_plan | h200.rack.digests_in_use(ledger.nodes) }}"
"""

RETURN = r"""
_value:
  description: The digests.
  type: list
  elements: str
"""

import re
import typing as t

from ansible.errors import AnsibleFilterError

_DIGEST = re.compile(r"(?<![0-9a-f])[0-9a-f]{64}(?![0-9a-f])")


def _digests(value: t.Any) -> t.Iterator[str]:
    """Every digest in a state, wherever it stands: sparing one too many costs disk space only."""
    if isinstance(value, t.Mapping):
        for item in value.values():
            yield from _digests(item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _digests(item)
    elif isinstance(value, str):
        yield from _DIGEST.findall(value)


def digests_in_use(plan, states):
    """The filter itself."""
    unread = sorted(name for name, state in states.items() if state.get("error"))
    if unread:
        raise AnsibleFilterError(f"h200.rack.digests_in_use: the state of {', '.join(unread)} cannot be read")
    pinned = [entry["digest"] for entry in plan["images"] if entry["digest"]]
    pinned += [node["image_digest"] for node in plan["nodes"].values() if node["image_digest"]]
    return sorted({*pinned, *_digests(states)})


class FilterModule:
    """The filter digests_in_use."""

    def filters(self):
        return {"digests_in_use": digests_in_use}
