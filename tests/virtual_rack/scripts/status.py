# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tell as JSON what there is inside the virtual rack's box."""

from __future__ import annotations

import contextlib
import json
import pathlib
import subprocess


def runs(pid_file: pathlib.Path) -> bool:
    return pathlib.Path("/proc", pid_file.read_text().strip(), "exe").exists()


def guests() -> dict[str, str]:
    with contextlib.suppress(ImportError):
        import libvirt

        libvirt.registerErrorHandler(lambda *_: None, None)
        try:
            connection = libvirt.openReadOnly("qemu:///system")
        except libvirt.libvirtError:  # not up yet
            return {}
        return {domain.name(): "on" if domain.isActive() else "off" for domain in connection.listAllDomains()}
    return {}


def interfaces() -> list[str]:
    listed = subprocess.run(["ip", "-j", "link", "show"], capture_output=True, text=True, check=True).stdout
    return [link["ifname"] for link in json.loads(listed)]


def main() -> None:
    print(json.dumps({
        "daemons": {path.stem: "runs" if runs(path) else "has ended"
                    for path in sorted(pathlib.Path("/run/vrack").glob("*.pid"))},
        "nodes": guests(),
        "namespaces": sorted(path.name for path in pathlib.Path("/run/netns").iterdir()),
        "interfaces": interfaces(),
    }))  # fmt: skip


if __name__ == "__main__":
    main()
