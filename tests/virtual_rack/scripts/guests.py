# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Give the virtual rack's nodes their disks and define them with libvirt, inside the box; tell what was changed.

The plan comes as JSON: {"state": …, "disk_bytes": …, "nodes": [NAME…], "changed": [NAME…]}. A node that is defined
already keeps its definition, which its BMC may have changed, unless it is named in "changed"; one that is defined but
not in the plan any more is ended and removed, with its disk.
"""

from __future__ import annotations

import json
import os
import pathlib
import shutil
import sys

import libvirt


def main() -> None:
    plan = json.load(sys.stdin)
    nodes = pathlib.Path(plan["state"], "nodes")
    connection = libvirt.open("qemu:///system")
    defined = {domain.name(): domain for domain in connection.listAllDomains()}
    for name in sorted(set(defined) - set(plan["nodes"])):
        if defined[name].isActive():
            defined[name].destroy()
        defined[name].undefineFlags(libvirt.VIR_DOMAIN_UNDEFINE_KEEP_NVRAM)
        shutil.rmtree(nodes / name, ignore_errors=True)
        (nodes / f"{name}.xml").unlink(missing_ok=True)
        print(name, "removed")
    for name in plan["nodes"]:
        (nodes / name).mkdir(exist_ok=True)
        disk = nodes / name / "disk.raw"
        if not disk.exists():
            with disk.open("wb") as file:
                os.truncate(file.fileno(), plan["disk_bytes"])
            print(name, "disk")
        if name not in defined or name in plan["changed"]:
            connection.defineXML((nodes / f"{name}.xml").read_text())
            print(name, "defined")


if __name__ == "__main__":
    main()
