# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Scripts and DHCP entries of 1,000 nodes, one task each, as a play runs them (bar: 5 s together)."""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import subprocess
import tempfile

REPO = pathlib.Path(__file__).resolve().parents[3]


# Seconds for both tasks together, for 1,000 nodes.
BAR = 5.0


def nodes(count: int) -> list[dict[str, object]]:
    return [
        {
            "name": f"gpu{number:04}",
            "mac": f"52:54:00:20:{number // 256:02x}:{number % 256:02x}",
            "action": "deploy" if number % 4 else "local",
            "address": f"10.20.{number // 250}.{number % 250 + 2}/16",
            "gateway": "10.20.0.1",
            "console": ["tty0", "ttyS0,115200n8"],
            "kernel_args": 'iommu=pt quiet dyndbg="file drivers/net/* +p"',
            "ramdisk": "ramdisk/x86_64/" + "6f1e60f9" * 8,
            "overlay": "ramdisk/overlay/" + "0d2a11be" * 8 + ".cpio",
        }
        for number in range(1, count + 1)
    ]


def play(folder: pathlib.Path, count: int) -> list[dict[str, object]]:
    given = nodes(count)
    hosts = [{"name": node["name"], "mac": node["mac"], "address": node["address"]} for node in given]
    return [
        {
            "hosts": "localhost",
            "connection": "local",
            "gather_facts": False,
            "vars": {
                "subnets": [{"name": "p", "cidr": "10.20.0.0/16", "role": "provisioning"}],
                "given": given,
                "h": hosts,
            },
            "tasks": [
                {
                    "name": "scripts",
                    "h200.rack.ipxe_render": {
                        "dest": str(folder),
                        "nodes": "{{ given }}",
                        "mirrors": ["http://10.20.0.3", "http://10.20.0.4"],
                        "prune": True,
                    },
                },
                {
                    "name": "dhcp entries",
                    "h200.rack.config_files": {
                        "files": [
                            {
                                "path": str(folder / "dhcp-hosts"),
                                "content": "{{ (h | h200.rack.dnsmasq_plan(subnets)).hosts_file }}",
                            }
                        ]
                    },
                },
            ],
        }
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=1000)
    count = parser.parse_args().nodes
    with tempfile.TemporaryDirectory() as place:
        folder = pathlib.Path(place, "boot")
        folder.mkdir()
        playbook = pathlib.Path(place, "play.json")
        playbook.write_text(json.dumps(play(folder, count)))
        environment = {
            **os.environ,
            "ANSIBLE_COLLECTIONS_PATH": str(REPO / ".cache/collections"),
            "ANSIBLE_STDOUT_CALLBACK": "ansible.posix.json",
            "ANSIBLE_PYTHON_INTERPRETER": str(REPO / ".venv/bin/python"),
        }
        missed = False
        for run in ("first", "second"):
            done = subprocess.run(
                [REPO / ".venv/bin/ansible-playbook", "-i", "localhost,", playbook],
                env=environment, capture_output=True, text=True, check=False, cwd=REPO,
            )  # fmt: skip
            if done.returncode:
                raise SystemExit(done.stdout + done.stderr)
            tasks = json.loads(done.stdout[done.stdout.index("{") :])["plays"][0]["tasks"]
            together = 0.0
            for task in tasks:
                taken, changed = seconds(task["task"]["duration"]), task["hosts"]["localhost"]["changed"]
                together += taken
                missed |= changed is not (run == "first")
                print(f"{run} run, {task['task']['name']}: {taken:.2f} s, changed: {changed}")
            missed |= together > BAR * count / 1000
            print(f"{run} run: {together:.2f} s for {count} nodes, bar {BAR * count / 1000:g} s")
        raise SystemExit(int(missed))


def seconds(duration: dict[str, str]) -> float:
    import datetime

    start, end = (datetime.datetime.fromisoformat(duration[key].rstrip("Z")) for key in ("start", "end"))
    return round((end - start).total_seconds(), 2)


if __name__ == "__main__":
    main()
