# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a Slurm version can do. Private to h200.rack."""

from __future__ import annotations

import re
import typing as t

from .._common.errors import RackError

OLDEST = (22, 5)


class Version(t.NamedTuple):
    major: int
    minor: int
    micro: int = 0

    def __str__(self) -> str:
        return f"{self.major}.{self.minor:02d}.{self.micro}"

    @property
    def release(self) -> tuple[int, int]:
        return self.major, self.minor

    @property
    def has_json(self) -> bool:
        """``scontrol --json show node`` with the fields that are read here; before, its plain text is read."""
        return self.release >= (23, 2)

    @property
    def reconfigure_takes_nodes(self) -> bool:
        """``scontrol reconfigure`` may change the set of node names.

        22.05 to 23.11 die of it ("MaxNodeCount has changed during reconfig"); for 24.05 the FAQ still asks
        for a restart; from 24.11 reconfigure is the documented way.
        """
        return self.release >= (24, 11)

    @property
    def takes_cgroup_automount(self) -> bool:
        return self.release < (23, 11)


def parse(text: str) -> Version:
    """Read ``slurmctld -V`` ("slurm-wlm 22.05.8", "slurm 24.11.5")."""
    match = re.search(r"\b(\d{2})\.(\d{1,2})(?:\.(\d+))?", text)
    if not match:
        raise RackError(f"this is not what slurmctld -V prints: {text.strip()[:120]!r}", code="unknown_version")
    return Version(int(match[1]), int(match[2]), int(match[3] or 0))


def supported(version: Version) -> Version:
    """``version`` itself, when this collection knows how to change a controller of it."""
    if version.release < OLDEST:
        raise RackError(
            f"Slurm {version} is older than 22.05, the oldest that h200.rack drives; upgrade it first",
            code="unsupported_version",
            version=str(version),
        )
    return version
