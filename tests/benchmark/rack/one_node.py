# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One virtual node, from the start of its play to the login prompt of the deployed system, and where the time went.

A fresh rack with one node is brought up, and the node provisioned. Nobody but the parts is believed about the parts:
libvirt says when the machine was started and reset, the boot server's log when the script was fetched, a socket when
the ramdisk's SSH server answered, the console when there was a login prompt; only the time of the write is the
module's own word. What is left of the whole is our own overhead.

The last line is JSON. Bars: the whole in 78 s or less (67 by kexec), the overhead at most a tenth of the sum of
the parts. They are for a quiet machine with 2 cores under TCG.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import pathlib
import re
import subprocess
import sys
import threading
import time
import typing as t

ROOT = pathlib.Path(__file__).resolve().parents[3]
RUN = ROOT / "tests" / "virtual_rack" / "run"
STATE = ROOT / ".cache" / "vrack" / "rack"
NODE, ADDRESS = "gpu001", "10.20.1.11"
PLAY = "PLAY [Take each node along its way]"
# OpenStack Ironic 39 with its agent, tuned in its favour, once took this for the same work on a machine of this size.
IRONIC = 112.0
TOTAL = {"reboot": 78.0, "kexec": 67.0}
BARS = {"overhead": 0.10}

BANNER = """
import socket, sys, time
while True:
    try:
        with socket.create_connection((sys.argv[1], 22), timeout=1) as s:
            s.settimeout(10)
            if s.recv(4) == b'SSH-':
                print(time.time(), flush=True)
                break
    except OSError:
        time.sleep(0.2)
"""


def inside(*command: str, **options: t.Any) -> subprocess.Popen[str]:
    return subprocess.Popen([str(RUN), *command], cwd=ROOT, stdout=subprocess.PIPE, text=True, **options)


def must(*command: str) -> str:
    done = subprocess.run([str(RUN), *command], cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(command)}\n{done.stdout}\n{done.stderr}")
    return done.stdout


def make(target: str) -> None:
    subprocess.run(["make", target, "vrack_nodes=1"], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)


class Console(threading.Thread):
    """Notes the moment of the first login prompt."""

    def __init__(self, path: pathlib.Path) -> None:
        super().__init__(daemon=True)
        self.path = path
        self.start_at = path.stat().st_size if path.exists() else 0
        self.login: t.Optional[float] = None

    def run(self) -> None:
        while self.login is None:
            if self.path.exists():
                with open(self.path, "rb") as handle:
                    handle.seek(self.start_at)
                    if b"login:" in handle.read():
                        self.login = time.time()
            time.sleep(0.1)


class Events(threading.Thread):
    """What libvirt tells of the machine: (moment, text)."""

    LINE = re.compile(r"^(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d+)\+0000: event '(\w+[\w-]*)'.*?: ?(.*)$")

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.seen: list[tuple[float, str, str]] = []
        self.process = inside("stdbuf", "-oL", "virsh", "event", "--all", "--loop", "--timestamp")

    def run(self) -> None:
        for line in self.process.stdout or ():
            found = self.LINE.match(line)
            if found:
                moment = datetime.datetime.fromisoformat(found.group(1)).replace(tzinfo=datetime.timezone.utc)
                self.seen.append((moment.timestamp(), found.group(2), found.group(3)))

    def first(self, event: str, word: str = "", after: float = 0) -> t.Optional[float]:
        return next((at for at, kind, text in self.seen if kind == event and word in text and at > after), None)


def script_fetched() -> float:
    """When the node asked its boot server for its own script, by that server's clock, which is this machine's."""
    log = must("ansible", "boot01", "-m", "ansible.builtin.raw", "-a", "cat /var/log/nginx/h200-rack.json")
    for line in log.splitlines():
        if "52-54-00-20-01-0b.ipxe" in line:
            return float(json.loads(line)["epoch"])
    raise SystemExit("the boot server's log does not show that the script was fetched")


def history() -> list[dict[str, t.Any]]:
    """The node's events, from its ledger."""
    text = must("ansible", "boot01", "-o", "-m", "h200.rack.node_state_info")
    return json.JSONDecoder().raw_decode(text[text.index("{") :])[0]["nodes"][NODE]["history"]


def provision(finish: str) -> tuple[float, float, float]:
    """Run it; returns when the command, the nodes' play and the command's end were."""
    begun = time.time()
    play = None
    process = inside(
        *("ansible-playbook", "h200.rack.provision", "-e", f"rack_finish={finish}"),
        stderr=subprocess.STDOUT,
        env={**os.environ, "ANSIBLE_NOCOLOR": "1"},
    )
    lines = []
    for line in process.stdout or ():
        lines.append(line)
        if line.startswith(PLAY):
            play = time.time()
    if process.wait() != 0 or play is None:
        raise SystemExit("".join(lines[-60:]))
    return begun, play, time.time()


def left_ramdisk(events: Events, ramdisk: float, history: list[dict[str, t.Any]], finish: str) -> float:
    """When the written system was started: by the machine's reset, or in place, which only the ledger knows."""
    if finish == "kexec":
        event = next(event for event in history if event.get("stage") == "local_boot")
        if event["evidence"].get("finish", {}).get("method") != "kexec_loaded":
            raise SystemExit(f"the node was not started in place: {event}")
        return datetime.datetime.fromisoformat(event["time"].replace("Z", "+00:00")).timestamp()
    reset = events.first("reboot", after=ramdisk) or events.first("lifecycle", "Started", after=ramdisk)
    if reset is None:
        raise SystemExit(f"libvirt did not tell of the restart into the disk: {events.seen}")
    return reset


def measure(finish: str) -> dict[str, float]:
    make("rack-down")
    make("rack-up")
    must("ansible-playbook", "h200.rack.images")
    console = Console(STATE / "log" / f"{NODE}.console.log")
    events = Events()
    console.start()
    events.start()
    banner = inside("python3", "-c", BANNER, ADDRESS)
    begun, play, ended = provision(finish)
    events.process.terminate()
    ramdisk = float(banner.communicate(timeout=5)[0])
    told = history()
    write = next(event["evidence"]["seconds"] for event in told if event.get("stage") == "written")
    started = events.first("lifecycle", "Started")
    if started is None or console.login is None:
        raise SystemExit(f"libvirt or the console did not tell: {events.seen}")
    script = script_fetched()
    parts = {
        "firmware to script": script - started,
        "script to ramdisk's SSH": ramdisk - script,
        "write": float(write),
        "disk boot to login": console.login - left_ramdisk(events, ramdisk, told, finish),
    }
    return {
        **parts,
        "parts": sum(parts.values()),
        "total": console.login - play,
        "overhead": (console.login - play) / sum(parts.values()) - 1,
        "before the nodes' play": play - begun,
        "command": ended - begun,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--finish", choices=["reboot", "kexec"], default="reboot", help="how the ramdisk is left")
    arguments = parser.parse_args()
    results = [measure(arguments.finish) for _round in range(arguments.rounds)]
    middle = sorted(results, key=lambda result: result["total"])[len(results) // 2]
    for key, value in middle.items():
        print(f"{key:26} {value * 100:8.1f} %" if key == "overhead" else f"{key:26} {value:8.1f} s")
    print(f"{'of Ironic (orientation)':26} {middle['total'] / IRONIC:8.2f}")
    bars = {**BARS, "total": TOTAL[arguments.finish]}
    met = {key: middle[key] <= limit for key, limit in bars.items()}
    name = f"rack/one_node/{arguments.finish}"
    print(json.dumps({"benchmark": name, "rounds": results, "median": middle, "bars": bars, "met": met}), flush=True)
    make("rack-down")
    sys.exit(0 if all(met.values()) else 1)


if __name__ == "__main__":
    main()
