# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How long a rack takes from one mirror, from two, and two racks without and with caches, against docs/scale.md.

Every node, mirror and cache is a network namespace on a bridge, with a link shaped by tbf in both directions. Nodes run
the real image_write, mirrors and caches nginx with the role's configuration. Bar: each time is 0.9 to 1.4 times what
the page's formula says, and the caches' origin sends at most 1.15 images for each rack.
Needs: root, nginx-light, iproute2.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import typing as t

HERE = pathlib.Path(__file__).resolve()
ROOT = HERE.parents[3]
sys.path[:0] = [str(ROOT / "tests" / part) for part in ("", "integration/mirror", "integration/image")]
import conftest  # noqa: E402, F401  # pylint: disable=unused-import  # arranges the import path
from image_testing import (  # noqa: E402
    Disk,
    Published,
    Write,
    make_key,
    publish_raw,
    raw_image,
)
from mirrors import Mirror, publish_into  # noqa: E402

NAME = f"scale{os.getpid()}"


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True)


class Net:
    """A bridge in a namespace of its own, and members on shaped links."""

    def __init__(self, stack: contextlib.ExitStack) -> None:
        self._stack = stack
        self._count = 0
        ip("netns", "add", NAME)
        stack.callback(ip, "netns", "del", NAME)
        ip("-n", NAME, "link", "add", "br0", "type", "bridge")
        ip("-n", NAME, "link", "set", "br0", "up")

    def member(self, mbit: int) -> tuple[str, str]:
        """Name of the namespace and address of a new member; its link carries ``mbit`` in each direction."""
        self._count += 1
        name, address = f"{NAME}-{self._count}", f"10.98.0.{self._count}"
        ip("netns", "add", name)
        self._stack.callback(ip, "netns", "del", name)
        outer = f"p{self._count}"
        ip("-n", NAME, "link", "add", outer, "type", "veth", "peer", "name", "eth0", "netns", name)
        ip("-n", NAME, "link", "set", outer, "master", "br0", "up")
        ip("-n", name, "address", "add", f"{address}/24", "dev", "eth0")
        for device in ("lo", "eth0"):
            ip("-n", name, "link", "set", device, "up")
        for place, device in ((NAME, outer), (name, "eth0")):
            shape = ["tc", "qdisc", "add", "dev", device, "root", "tbf", "rate", f"{mbit}mbit"]
            subprocess.run(["ip", "netns", "exec", place, *shape, "burst", "128k", "latency", "50ms"], check=True)
        return name, address


class Shaped(Mirror):
    """A mirror in a member's namespace, where nobody outside can ask whether it answers."""

    def _answers(self) -> bool:
        assert self._process is not None and self._process.poll() is None, (self.folder / "nginx.log").read_text()
        pid = self.folder / "nginx.pid"
        return pid.exists() and bool(pid.read_text().strip())


class Lab:
    def __init__(self, folder: pathlib.Path, stack: contextlib.ExitStack, mbit: int) -> None:
        self.folder = folder
        self.mbit = mbit
        self._stack = stack
        self._net = Net(stack)
        self._disks = 0
        private, public = make_key(folder, "signing")
        raw = raw_image()
        outcome = publish_raw(folder, raw, private)
        assert outcome.digest and outcome.manifest
        self.published = Published(folder / "mirror", raw, outcome.digest, outcome.manifest, str(public), str(private))

    @property
    def copy(self) -> float:
        """Seconds that one image takes over one link; Ethernet, IP and TCP headers cost 5 %."""
        return self.published.manifest.wire_size * 8 / (self.mbit * 1e6) / 0.95

    def mirror(self, *origins: Mirror) -> Mirror:
        name, address = self._net.member(self.mbit)
        options = {"mirror_origins": [origin.http for origin in origins], "mirror_cache_size": "1g"} if origins else {}
        made = Shaped(self.folder / name, address=address, prefix=("ip", "netns", "exec", name), **options)
        if not origins:
            subprocess.run(["cp", "-a", f"{self.published.root}/.", str(made.store)], check=True)
            publish_into(made)
        made.start()
        self._stack.callback(made.kill)
        return made

    def nodes(self, count: int) -> list[str]:
        return [self._net.member(self.mbit)[0] for _number in range(count)]

    def image(self, plan: t.Sequence[tuple[str, t.Sequence[Mirror]]]) -> float:
        """Image all nodes of the plan at a time; seconds of the slowest."""
        disks, writes = [], []
        for node, mirrors in plan:
            self._disks += 1
            disk = Disk(self.folder / f"disk{self._disks}", self.published)
            options = disk.options([mirror.http for mirror in mirrors], verify="none", stall_timeout=20, timeout=300)
            writes.append(Write(options, prefix=("ip", "netns", "exec", node)))
            disks.append(disk)
        results = [write.result() for write in writes]
        assert not any(result.get("failed") for result in results), results
        assert all(disk.is_right() for disk in disks)
        for disk in disks:
            disk.path.unlink()
        return max(result["seconds"] for result in results)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mbit", type=int, default=100, help="what every link carries")
    parser.add_argument("--nodes", type=int, default=4, help="nodes of a rack")
    options = parser.parse_args()
    count = options.nodes
    with contextlib.ExitStack() as stack:
        folder = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="h200-scale-")))
        lab = Lab(folder, stack, options.mbit)
        first, second = lab.mirror(), lab.mirror()
        rack = lab.nodes(count)
        other = lab.nodes(count)
        rows = [
            ("one node, one mirror", lab.image([(rack[0], [first])]), lab.copy),
            (f"{count} nodes, one mirror", lab.image([(node, [first]) for node in rack]), count * lab.copy),
            (
                f"{count} nodes, two mirrors",
                lab.image([(node, [first, second]) for node in rack]),
                count / 2 * lab.copy,
            ),
            (f"2 racks of {count}, one mirror", lab.image([(n, [first]) for n in rack + other]), 2 * count * lab.copy),
        ]
        sent = first.sent()
        caches = [lab.mirror(first), lab.mirror(first)]
        plan = [(node, [cache]) for cache, nodes in zip(caches, (rack, other)) for node in nodes]
        rows.append((f"2 racks of {count}, a cache in each", lab.image(plan), max(count, 2) * lab.copy))
        copies = (first.sent() - sent) / lab.published.manifest.wire_size
    missed = 0
    print(f"links of {options.mbit} Mbit/s, one copy takes {lab.copy:.1f} s")
    for what, seconds, model in rows:
        good = 0.9 <= seconds / model <= 1.4
        missed += not good
        verdict = f"ratio {seconds / model:.2f} {'ok' if good else 'MISSED'}"
        print(f"{what:28} {seconds:6.1f} s, formula {model:6.1f} s, {verdict}")
    good = copies <= 2 * 1.15
    missed += not good
    print(f"the caches' origin sent {copies:.2f} images for 2 racks {'ok' if good else 'MISSED'}")
    print(json.dumps({"copy": lab.copy, "rows": rows, "copies": copies}))
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
