# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Nodes that exchange an image by BitTorrent get it right, and get it from the mirrors when the swarm fails."""

from __future__ import annotations

import os
import pathlib
import shutil
import subprocess
import time
import typing as t

import pytest
from ansible_collections.h200.rack.plugins.module_utils._image import deploy, disks, scratch
from guest import free_port
from image_testing import MIB, Disk, Write

pytestmark = [
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root to mount a file system in memory"),
    pytest.mark.skipif(shutil.which("aria2c") is None, reason="aria2c is not installed"),
    pytest.mark.skipif(shutil.which("opentracker") is None, reason="opentracker is not installed"),
]
WRITERS = 4


@pytest.fixture
def tracker(published, tmp_path) -> t.Iterator[str]:
    """Debian's opentracker, which serves whom its whitelist names."""
    folder = tmp_path / "tracker"
    folder.mkdir()
    info_hash = (published.root / "images/test" / published.digest / "image.infohash").read_text()
    (folder / "whitelist").write_text(info_hash)
    port = str(free_port())
    process = subprocess.Popen(
        ["opentracker", "-i", "127.0.0.1", "-p", port, "-P", port, "-d", str(folder), "-w", "/whitelist"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    yield f"http://127.0.0.1:{port}/announce"
    process.kill()
    process.wait()


def write_all(
    targets: list[Disk], mirrors: t.Sequence[t.Any], tracker: str, **options: t.Any
) -> list[dict[str, t.Any]]:
    options = {"transport": "bittorrent", "trackers": [tracker], **options}
    return [write.result() for write in [target.write(mirrors, **options) for target in targets]]


def left_over() -> list[str]:
    return [line for line in pathlib.Path("/proc/self/mounts").read_text().splitlines() if "h200-rack-pieces" in line]


def test_four_nodes_give_each_other_what_the_mirrors_send_less_often(mirror, disk, tracker, published) -> None:
    mirrors = [mirror(rate=4 * MIB), mirror(rate=4 * MIB)]
    targets = [disk() for _number in range(WRITERS)]
    results = write_all(targets, mirrors, tracker, stall_timeout=5)
    for target, result in zip(targets, results):
        assert not result.get("failed"), result
        assert target.is_right()
        assert result["transport"]["used"] == "bittorrent" and result["transport"]["pieces"] == "memory"
        assert not result["transport"]["error"]
    assert sum(result["transport"]["uploaded_bytes"] for result in results) > published.manifest.wire_size
    assert sum(server.sent for server in mirrors) < 3 * published.manifest.wire_size
    assert not left_over()


@pytest.mark.parametrize(
    "fault",
    [
        "corrupt",
        *(pytest.param(fault, marks=pytest.mark.full) for fault in ("dies", "stalls", "html", "truncated", "no_range")),
    ],
)
def test_a_mirror_that_fails_as_a_web_seed_harms_none_of_two_nodes(mirror, disk, tracker, fault) -> None:
    targets = [disk(), disk()]
    results = write_all(targets, [mirror(fault), mirror(rate=20 * MIB)], tracker)
    for target, result in zip(targets, results):
        assert not result.get("failed"), result
        assert target.is_right()
    assert not left_over()


def test_without_a_tracker_the_mirrors_give_everything(mirror, disk) -> None:
    target = disk()
    (result,) = write_all([target], [mirror()], f"http://127.0.0.1:{free_port()}/announce")
    assert target.is_right() and result["transport"]["used"] == "bittorrent"


def test_a_tracker_that_does_not_know_the_image_keeps_nobody_waiting(mirror, disk, tracker, tmp_path) -> None:
    (tmp_path / "tracker" / "whitelist").write_text("0" * 40 + "\n")
    target = disk()
    write_all([target], [mirror()], tracker)
    assert target.is_right()


def test_an_image_that_does_not_fit_into_memory_comes_by_http_and_says_so(mirror, disk, tracker, tmp_path) -> None:
    (tmp_path / "meminfo").write_text("MemAvailable: 1048576 kB\n")
    target = disk()
    prefix = ["unshare", "-m", "sh", "-c", f'mount --bind {tmp_path}/meminfo /proc/meminfo && exec "$@"', "sh"]
    options = target.options([mirror()], transport="bittorrent", trackers=[tracker])
    result = Write(options, prefix=prefix).result()
    assert target.is_right() and result["transport"]["used"] == "http"
    assert "does not fit" in result["transport"]["reason"] and "no scratch disk" in result["transport"]["reason"]


def test_a_scratch_disk_holds_what_memory_cannot_and_is_blank_again(
    mirror, disk, tracker, tmp_path, monkeypatch
) -> None:
    backing, target = tmp_path / "scratch", disk()
    with backing.open("wb") as handle:
        handle.truncate(128 * MIB)
    done = subprocess.run(["losetup", "--show", "-f", str(backing)], capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"no loop device can be had: {done.stderr.strip()}")
    device = done.stdout.strip()
    spare = disks.Disk(device, 128 * MIB, 512, "SPARE", "", "", "", "", False, (), "", "", ())
    monkeypatch.setattr(scratch, "available_memory", lambda: 0)
    monkeypatch.setattr(deploy, "_disks_here", lambda: [spare])
    try:
        options = target.options([mirror()], transport="bittorrent", trackers=(tracker,), scratch={"serial": "SPARE"})
        result = deploy.deploy(deploy.Request(**options))
        assert target.is_right() and result["transport"]["used"] == "bittorrent"
        assert result["transport"]["pieces"] == "disk"
        assert not any(backing.read_bytes()[:MIB]) and not left_over()
        assert subprocess.run(["blkid", "-p", device], capture_output=True, check=False).stdout == b""
    finally:
        subprocess.run(["losetup", "-d", device], check=True)


def test_without_aria2c_the_image_comes_by_http_and_says_so(mirror, disk, tracker, monkeypatch, tmp_path) -> None:
    tools = tmp_path / "tools"
    tools.mkdir()
    for name in ("openssl", "wipefs"):
        (tools / name).symlink_to(shutil.which(name))
    monkeypatch.setenv("PATH", str(tools))
    target = disk()
    (result,) = write_all([target], [mirror()], tracker)
    assert target.is_right() and "aria2c is not installed" in result["transport"]["reason"]


def test_metainfo_of_other_bytes_harms_nobody(mirror, disk, tracker, copy_of_mirror, published) -> None:
    """aria2c refuses every piece; what the mirrors say by HTTP is checked against the manifest."""
    path = copy_of_mirror / "images/test" / published.digest / "image.torrent"
    content = path.read_bytes()
    at = content.index(b"6:pieces") + 20
    path.write_bytes(content[:at] + bytes(len(content) - at - 20) + content[-20:])
    target = disk()
    (result,) = write_all([target], [mirror(root=copy_of_mirror)], tracker, stall_timeout=0.5)
    assert not result.get("failed"), result
    assert target.is_right()


def test_an_aria2c_that_is_killed_leaves_the_rest_to_the_mirrors(mirror, disk, tracker) -> None:
    server, target = mirror(rate=3 * MIB), disk()
    write = target.write([server], transport="bittorrent", trackers=[tracker])
    deadline = time.monotonic() + 30
    while server.sent < 10 * MIB and time.monotonic() < deadline:
        time.sleep(0.05)
    children = pathlib.Path(f"/proc/{write.process.pid}/task/{write.process.pid}/children").read_text().split()
    killed = [pid for pid in children if "aria2c" in pathlib.Path(f"/proc/{pid}/cmdline").read_text()]
    subprocess.run(["kill", "-9", *killed], check=True)
    server.rate = 0
    result = write.result()
    assert len(killed) == 1 and target.is_right()
    assert result["transport"]["error"] == "aria2c has ended"
    assert not left_over()


def test_a_writer_that_is_killed_leaves_no_aria2c_and_no_memory_taken(mirror, disk, tracker) -> None:
    server, target = mirror(rate=3 * MIB), disk()
    write = target.write([server], transport="bittorrent", trackers=[tracker])
    deadline = time.monotonic() + 30
    while server.sent < 10 * MIB and time.monotonic() < deadline:
        time.sleep(0.05)
    write.process.kill()
    write.process.communicate()
    assert not target.boots() and left_over()
    # aria2c looks once a second whether the one it works for is alive.
    server.rate = 0
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        result = write_all([disk()], [server], tracker)[0]
        if not left_over():
            break
    assert not left_over() and not result.get("failed")


def test_a_reimage_of_a_few_changed_chunks_needs_no_swarm(mirror, disk, tracker) -> None:
    server, target = mirror(), disk()
    target.write([server]).result()
    with target.path.open("r+b") as handle:
        handle.seek(30 * MIB)
        handle.write(b"changed")
    (result,) = write_all([target], [server], tracker, allow_overwrite=True)
    assert target.is_right() and result["written_bytes"] == 2 * MIB
    assert "on the disk already" in result["transport"]["reason"]
