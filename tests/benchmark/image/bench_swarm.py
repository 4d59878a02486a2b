# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How long a rack takes to fetch one image: BitTorrent against plain HTTP, on links of 200 Mbit/s.

Bars: with BitTorrent all 8 nodes have at least 400 MB within 1.8 times what one HTTP transfer takes alone, and the
mirrors send at most 2 images. Each node and mirror is a network namespace on a bridge, both directions shaped by tbf.
Needs: root, aria2c, opentracker, nginx, curl, iproute2.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import typing as t

HERE = pathlib.Path(__file__).resolve()
ROOT = HERE.parents[3]
sys.path.insert(0, str(ROOT / "tests"))
import conftest  # noqa: E402, F401  # pylint: disable=unused-import  # arranges the import path
from ansible_collections.h200.rack.plugins.module_utils._image import torrent  # noqa: E402
from ansible_collections.h200.rack.plugins.module_utils._image.manifest import WIRE_FILE  # noqa: E402

NAME = "imgbench"
NGINX = """daemon off; master_process off; pid {folder}/nginx.pid; error_log {folder}/nginx.log;
events {{ worker_connections 512; }}
http {{ access_log off; sendfile on; client_body_temp_path {folder}/t1; proxy_temp_path {folder}/t2;
fastcgi_temp_path {folder}/t3; uwsgi_temp_path {folder}/t4; scgi_temp_path {folder}/t5;
server {{ listen 10.99.0.{address}:80; root {root}; }} }}
"""
MEMBER = """
import json, sys, time
sys.path[:0] = [sys.argv[1]]; import conftest
from ansible_collections.h200.rack.plugins.module_utils._image import swarm
folder, metainfo, tracker, seeds = sys.argv[2:6]
member = swarm.Swarm(folder, open(metainfo, "rb").read(), [tracker], seeds.split(","))
try:
    while not swarm.is_complete(member.status):
        if member.error:
            sys.exit(member.error)
        member.wait(1)
    print(flush=True)
    sys.stdin.read()
finally:
    member.stop()
"""


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True)


def inside(number: int) -> list[str]:
    return ["ip", "netns", "exec", f"{NAME}{number}"]


@contextlib.contextmanager
def network(count: int, rate: str) -> t.Iterator[None]:
    """Namespaces 1 to count with 10.99.0.NUMBER, on a bridge in a namespace of its own."""
    made: list[str] = []
    try:
        made.append(f"{NAME}0")
        ip("netns", "add", f"{NAME}0")
        ip("-n", f"{NAME}0", "link", "add", "br0", "type", "bridge")
        ip("-n", f"{NAME}0", "link", "set", "br0", "up")
        for number in range(1, count + 1):
            name = f"{NAME}{number}"
            ip("netns", "add", name)
            made.append(name)
            ip("-n", name, "link", "add", "eth0", "type", "veth", "peer", "name", f"p{number}", "netns", f"{NAME}0")
            ip("-n", f"{NAME}0", "link", "set", f"p{number}", "master", "br0", "up")
            ip("-n", name, "addr", "add", f"10.99.0.{number}/24", "dev", "eth0")
            ip("-n", name, "link", "set", "eth0", "up")
            ip("-n", name, "link", "set", "lo", "up")
            shape = ["root", "tbf", "rate", rate, "burst", "256kb", "latency", "40ms"]
            subprocess.run(["tc", "-n", name, "qdisc", "add", "dev", "eth0", *shape], check=True)
            subprocess.run(["tc", "-n", f"{NAME}0", "qdisc", "add", "dev", f"p{number}", *shape], check=True)
        yield
    finally:
        for name in reversed(made):
            pids = subprocess.run(["ip", "netns", "pids", name], capture_output=True, text=True, check=False).stdout
            for pid in pids.split():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(int(pid), signal.SIGKILL)
            subprocess.run(["ip", "netns", "del", name], check=False)


def sent_bytes(number: int) -> int:
    """What the namespace has put on its link."""
    command = ["ip", "-n", f"{NAME}{number}", "-j", "-s", "link", "show", "eth0"]
    return json.loads(subprocess.run(command, capture_output=True, check=True).stdout)[0]["stats64"]["tx"]["bytes"]


def http(nodes: t.Sequence[int], mirrors: t.Sequence[int]) -> float:
    started = time.monotonic()
    fetches = []
    for index, node in enumerate(nodes):
        url = f"http://10.99.0.{mirrors[index % len(mirrors)]}/image.raw.zst"
        fetches.append(subprocess.Popen([*inside(node), "curl", "-sfo", os.devnull, url]))
    assert all(fetch.wait() == 0 for fetch in fetches)
    return time.monotonic() - started


def swarm(folder: pathlib.Path, nodes: t.Sequence[int], mirrors: t.Sequence[int], size: int) -> dict[str, t.Any]:
    """All nodes by BitTorrent as image_write does it, with the mirrors as web seeds; the tracker is on the first."""
    root = folder / "mirror"
    (folder / "whitelist").write_text((root / torrent.INFO_HASH_FILE).read_text())
    first = f"10.99.0.{mirrors[0]}"
    with contextlib.ExitStack() as stack:
        tracker = subprocess.Popen(
            # It changes its root to -d before it reads the list.
            [*inside(mirrors[0]), "opentracker", "-i", first, "-p", "6969", "-d", str(folder), "-w", "/whitelist"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        stack.callback(tracker.wait)
        stack.callback(tracker.kill)
        before = [sent_bytes(number) for number in mirrors]
        started = time.monotonic()
        members = []
        for index, number in enumerate(nodes):
            place = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory(dir="/dev/shm")))
            turned = [mirrors[(index + step) % len(mirrors)] for step in range(len(mirrors))]
            seeds = ",".join(f"http://10.99.0.{mirror}/{WIRE_FILE}" for mirror in turned)
            arguments = [str(place), str(root / torrent.TORRENT_FILE), f"http://{first}:6969/announce", seeds]
            process = subprocess.Popen(
                [*inside(number), sys.executable, "-c", MEMBER, str(ROOT / "tests"), *arguments],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            members.append((process, place))
            stack.callback(process.wait)
            stack.callback(process.terminate)
        for process, _place in members:
            assert process.stdout is not None
            assert process.stdout.readline(), "a node failed"
        seconds = time.monotonic() - started
        sent = sum(sent_bytes(number) - start for number, start in zip(mirrors, before))
        want = hash_of(root / WIRE_FILE)
        wrong = sum(hash_of(place / WIRE_FILE) != want for _process, place in members)
        for process, _place in members:
            process.communicate()
    return {"seconds": seconds, "images_sent_by_mirrors": sent / size, "wrong": wrong}


def hash_of(path: pathlib.Path) -> str:
    with path.open("rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nodes", type=int, default=8)
    parser.add_argument("--mirrors", type=int, default=2)
    parser.add_argument("--megabytes", type=int, default=420)
    parser.add_argument("--rate", default="200mbit")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--no-unicast", action="store_true")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_arguments: sys.exit(1))
    mirrors = range(1, options.mirrors + 1)
    nodes = range(options.mirrors + 1, options.mirrors + options.nodes + 1)
    size = options.megabytes * 10**6
    rows: dict[str, list[t.Any]] = {"single": [], "unicast": [], "swarm": []}
    with contextlib.ExitStack() as stack:
        folder = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory(dir="/dev/shm")))
        folder.chmod(0o755)
        root = folder / "mirror"
        root.mkdir()
        pieces = torrent.Pieces(torrent.piece_length(size))
        with (root / WIRE_FILE).open("wb") as handle:
            for _block in range(size // 10**6):
                data = os.urandom(10**6)
                pieces.add(data)
                handle.write(data)
        for name, content in torrent.files(pieces.metainfo()).items():
            (root / name).write_bytes(content)
        stack.enter_context(network(options.mirrors + options.nodes, options.rate))
        for number in mirrors:
            config = folder / f"nginx{number}.conf"
            config.write_text(NGINX.format(folder=folder, root=root, address=number))
            server = subprocess.Popen([*inside(number), "nginx", "-c", str(config)], stderr=subprocess.DEVNULL)
            stack.callback(server.wait)
            stack.callback(server.kill)
        time.sleep(0.5)
        for _round in range(options.rounds):
            rows["single"].append(http(nodes[:1], mirrors))
            rows["swarm"].append(swarm(folder, nodes, mirrors, size))
            if not options.no_unicast:
                rows["unicast"].append(http(nodes, mirrors))
            print(json.dumps({key: values[-1:] for key, values in rows.items()}), flush=True)
    ratios = sorted(one["seconds"] / single for one, single in zip(rows["swarm"], rows["single"]))
    result = {
        "nodes": options.nodes,
        "mirrors": options.mirrors,
        "megabytes": options.megabytes,
        "swarm_vs_single": round(ratios[len(ratios) // 2], 2),
        "images_sent_by_mirrors": round(max(one["images_sent_by_mirrors"] for one in rows["swarm"]), 2),
        "wrong": sum(one["wrong"] for one in rows["swarm"]),
        "unicast_vs_single": [round(many / one, 2) for many, one in zip(rows["unicast"], rows["single"])],
    }
    bars = {
        "all nodes within 1.8 times one transfer": result["swarm_vs_single"] <= 1.8,
        "mirrors send at most 2 images": result["images_sent_by_mirrors"] <= 2,
        "nothing is wrong": result["wrong"] == 0,
    }
    print(json.dumps({**result, "bars": bars}, indent=2))
    return 0 if all(bars.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
