# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A fleet of fake BMCs as a process of its own: python -m fake_bmc --count 100 --tls CERTS; a summary at the end."""

from __future__ import annotations

import argparse
import collections
import json
import pathlib
import signal
import threading

from .bmc import Bmc
from .captured import CapturedBmc
from .machine import Machine
from .personalities import PERSONALITIES
from .server import Fleet


def main() -> None:
    parser = argparse.ArgumentParser(prog="fake_bmc", description=__doc__)
    parser.add_argument("--count", type=int, default=1)
    parser.add_argument("--personality", choices=sorted(PERSONALITIES), default="plain")
    parser.add_argument("--capture", help="a recorded tree instead: a file or folder, or the name of one of captures/")
    parser.add_argument("--tls", type=pathlib.Path, help="folder with bmc.pem and bmc.key")
    parser.add_argument("--first-port", type=int, default=19000)
    parser.add_argument("--latency", type=float, default=0.0, help="seconds before each answer")
    parser.add_argument("--on-seconds", type=float, default=0.0, help="seconds from the request to On")
    args = parser.parse_args()
    kind = PERSONALITIES[args.personality]
    if args.capture:
        bmcs: list[Bmc] = [CapturedBmc.of(args.capture, latency=args.latency) for _number in range(args.count)]
    else:
        bmcs = [Bmc(kind, Machine(on_seconds=args.on_seconds), latency=args.latency) for _number in range(args.count)]
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_unused: stop.set())
    with Fleet(bmcs, tls=args.tls, first_port=args.first_port):
        print("ready", flush=True)
        stop.wait()
    resets = [bmc.log.resets() for bmc in bmcs]
    summary = {
        "on": sum(bmc.machine.state == "On" for bmc in bmcs),
        "resets": dict(collections.Counter(len(sent) for sent in resets)),
        "sessions_open": sum(bmc.log.sessions_open() for bmc in bmcs),
        "requests": sum(len(bmc.log) for bmc in bmcs),
    }
    print(json.dumps(summary), flush=True)


if __name__ == "__main__":
    main()
