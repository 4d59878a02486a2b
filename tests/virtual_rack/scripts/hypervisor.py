# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Start virtlogd, libvirtd and boot_order.py inside the virtual rack's box: hypervisor.py LOGS CONFIGURATION."""

from __future__ import annotations

import pathlib
import shutil
import subprocess
import sys

import daemon

PYTHON = "/usr/bin/python3"


def main() -> None:
    logs, configuration = sys.argv[1:]
    for file in pathlib.Path(configuration).iterdir():
        shutil.copy(file, "/etc/libvirt")  # the box's own
    for name in ("virtlogd", "libvirtd"):
        if daemon.start(name, [f"/usr/sbin/{name}"], f"{logs}/{name}.log"):
            print(name, "started")
        if name == "virtlogd":
            daemon.wait(name, pathlib.Path("/run/libvirt/virtlogd-sock").exists, 30, f"{logs}/{name}.log")
    daemon.wait("libvirtd", answers, 60, f"{logs}/libvirtd.log")
    script = str(pathlib.Path(__file__).with_name("boot_order.py"))
    python = str(pathlib.Path(PYTHON).resolve())
    if daemon.start("boot_order", [PYTHON, script], f"{logs}/boot_order.log", executable=python):
        print("boot_order started")


def answers() -> bool:
    return subprocess.run(["virsh", "--connect", "qemu:///system", "--quiet", "list"],
                          capture_output=True, check=False).returncode == 0  # fmt: skip


if __name__ == "__main__":
    main()
