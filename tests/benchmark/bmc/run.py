# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Power on a fleet of fake BMCs with our module and with community.general.redfish_command.

Usage: python tests/benchmark/bmc/run.py [--bmcs 100] [--forks 50] [--runs 3] [--large 1000]
--runs 0 measures the large fleet alone, --large 0 leaves it out.

The fleet (TLS, 50 ms a request, 3 s to power on) is a process of its own and its CPU is not counted. The runs are
interleaved, and the medians of the ratios are compared with the bars: 1/5 of the CPU and 1/2 of the wall time.
The last line of the output is the result as JSON.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import resource
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import typing as t

ROOT = pathlib.Path(__file__).resolve().parents[3]
BARS = {"cpu": 1 / 5, "wall": 1 / 2}
AIMS = {"cpu": 1 / 6, "wall": 1 / 3}
PLAYS = {
    "ours": """
    - name: The machine is on
      h200.rack.redfish_power:
        bmc_host: "{{ bmc }}"
        bmc_username: admin
        bmc_password: s3cret-Pass
        ca_path: "{{ ca }}"
        state: "on"
""",
    "community_general": """
    - name: The machine is asked to turn on
      community.general.redfish_command:
        category: Systems
        command: PowerOn
        baseuri: "{{ bmc }}"
        username: admin
        password: s3cret-Pass
        ca_path: "{{ ca }}"
        validate_certs: true
      delegate_to: localhost
""",
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bmcs", type=int, default=100)
    parser.add_argument("--forks", type=int, default=50)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--large", type=int, default=1000, help="BMCs of the run of ours alone; 0 leaves it out")
    args = parser.parse_args()
    sys.path.insert(0, str(ROOT / "tests"))
    from fake_bmc.server import make_certificates

    with tempfile.TemporaryDirectory(prefix="bench-bmc-") as folder:
        work = pathlib.Path(folder)
        make_certificates(work)
        pairs = [{name: measure(work, name, args.bmcs, args.forks) for name in PLAYS} for _number in range(args.runs)]
        large = measure(work, "ours", args.large, args.forks) if args.large else None
    print(json.dumps(verdict(args, pairs, large)))


def measure(work: pathlib.Path, name: str, count: int, forks: int) -> dict[str, t.Any]:
    """One play over ``count`` machines that are off; every one must be told exactly once."""
    inventory, play = work / "hosts.yml", work / f"{name}.yml"
    port = 19000
    hosts = {f"node{n:04d}": {"bmc": f"127.0.0.1:{port + n}"} for n in range(count)}
    inventory.write_text(json.dumps({"all": {"hosts": hosts, "vars": {"ca": str(work / "ca.pem")}}}))
    play.write_text(f"- hosts: all\n  gather_facts: false\n  tasks:{PLAYS[name]}")
    fleet = subprocess.Popen(
        [sys.executable, "-m", "fake_bmc", "--count", str(count), "--tls", str(work), "--first-port", str(port)]
        + ["--latency", "0.05", "--on-seconds", "3"],
        env={**os.environ, "PYTHONPATH": str(ROOT / "tests")},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert fleet.stdout is not None
    try:
        assert fleet.stdout.readline() == "ready\n"
        used = _timed(
            [str(pathlib.Path(sys.executable).parent / "ansible-playbook"), "-i", str(inventory), str(play)], forks
        )
        time.sleep(3.5)  # the peer does not wait for On
    finally:
        fleet.terminate()
        summary = json.loads(fleet.communicate(timeout=60)[0])
    assert summary["on"] == count and summary["resets"] == {"1": count}, summary
    if name == "ours":
        assert summary["sessions_open"] == 0, summary
    print(f"{name}: {count} BMCs, {forks} forks: {used}", file=sys.stderr)
    return {**used, "requests": summary["requests"]}


def _timed(command: list[str], forks: int) -> dict[str, float]:
    """Wall and CPU seconds of ``command`` with all its children, and the peak memory of its process tree."""
    env = {**os.environ, "ANSIBLE_FORKS": str(forks), "ANSIBLE_STDOUT_CALLBACK": "ansible.builtin.minimal"}
    env["ANSIBLE_CONFIG"] = str(ROOT / "ansible.cfg")
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    begin = time.monotonic()
    process = subprocess.Popen(command, env=env, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    peak = _Peak(process.pid)
    out = process.communicate()[0]
    wall = time.monotonic() - begin
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert process.returncode == 0, out[-3000:]
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {"wall_s": round(wall, 2), "cpu_s": round(cpu, 2), "peak_pss_mib": peak.stop()}


class _Peak:
    """Samples the proportional memory of a process and its descendants (shared pages count once)."""

    def __init__(self, pid: int) -> None:
        self._pid, self._peak, self._over = pid, 0, threading.Event()
        self._thread = threading.Thread(target=self._sample, daemon=True)
        self._thread.start()

    def _sample(self) -> None:
        while not self._over.wait(1.0):
            self._peak = max(self._peak, sum(map(_pss_kib, [self._pid, *_descendants(self._pid)])))

    def stop(self) -> int:
        self._over.set()
        self._thread.join()
        return self._peak // 1024


def _descendants(pid: int) -> list[int]:
    found: list[int] = []
    for task in pathlib.Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            children = [int(word) for word in task.read_text().split()]
        except OSError:
            continue
        for child in children:
            found += [child, *_descendants(child)]
    return found


def _pss_kib(pid: int) -> int:
    try:
        lines = pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith("Pss:")), 0)


def verdict(
    args: argparse.Namespace, pairs: list[dict[str, t.Any]], large: dict[str, t.Any] | None
) -> dict[str, t.Any]:
    if not pairs:
        return {"benchmark": "bmc_power_on", "forks": args.forks, "large": {"bmcs": args.large, **(large or {})}}
    ratios = {
        kind: round(statistics.median(p["ours"][f"{kind}_s"] / p["community_general"][f"{kind}_s"] for p in pairs), 3)
        for kind in BARS
    }
    medians = {
        name: {key: statistics.median(pair[name][key] for pair in pairs) for key in pairs[0][name]} for name in PLAYS
    }
    return {
        "benchmark": "bmc_power_on",
        "bmcs": args.bmcs,
        "forks": args.forks,
        "runs": args.runs,
        "ratio": ratios,
        "bar": BARS,
        "aim": AIMS,
        "pass": all(ratios[kind] <= BARS[kind] for kind in BARS),
        "aim_met": all(ratios[kind] <= AIMS[kind] for kind in AIMS),
        "medians": medians,
        "large": {"bmcs": args.large, **large} if large else None,
        "cpus": os.cpu_count(),
    }


if __name__ == "__main__":
    main()
