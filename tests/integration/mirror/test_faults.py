# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Mirrors are added, killed, damaged, full, in the wrong time, or serve nonsense, and nodes end right all the same."""

from __future__ import annotations

import contextlib
import itertools
import os
import pathlib
import signal
import subprocess
import threading
import time
import typing as t

import pytest
from image_testing import MIB, Disk
from mirrors import Mirror, in_rotation, in_step, module, wait_for

root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root to mount a file system")
HTML = "location ~ ^/(images|ramdisk|health) { default_type text/html; return 200 '<html>It works!</html>'; }\n"


def urls(*mirrors: Mirror) -> list[str]:
    return [mirror.url for mirror in mirrors]


def right(disk: Disk, result: dict[str, t.Any]) -> bool:
    assert not result.get("failed"), result
    return disk.is_right()


def flip(mirror: Mirror, published: t.Any, offset: int = 10 * MIB) -> pathlib.Path:
    path = mirror.store / "images" / "test" / published.digest / "image.raw.zst"
    state = path.stat()
    with path.open("r+b") as handle:
        handle.seek(offset)
        byte = handle.read(1)
        handle.seek(offset)
        handle.write(bytes([byte[0] ^ 1]))
    os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns))
    return path


def look(mirror: Mirror, deep: bool = True) -> None:
    """What the mirror's timer does."""
    from ansible_collections.h200.rack.plugins.module_utils._mirror import health

    health.refresh(str(mirror.store), deep=deep)


def sent_some(*mirrors: Mirror) -> t.Callable[[], bool]:
    return lambda: sum(mirror.sent() for mirror in mirrors) > 4 * MIB


def test_a_mirror_is_added_while_a_node_is_imaged(mirror, disk, published) -> None:
    slow = {"mirror_limit_rate": "1m"}
    first, second, third, new = mirror(**slow), mirror(**slow), mirror(), mirror(empty=True)
    node, later = disk(), disk()
    writing = node.write(urls(first, second))
    wait_for("the node's first chunks", sent_some(first, second), 30)
    assert in_step(new, [third, first], published)["ready"] and in_rotation(new)
    assert writing.process.poll() is None, "the node was done before the mirror was there"
    assert right(node, writing.result())
    assert right(later, later.write(urls(new)).result())


def test_a_mirror_is_killed_while_nodes_are_imaged(mirror, disk) -> None:
    three = [mirror(mirror_limit_rate="2m") for _number in range(3)]
    nodes = [disk(), disk()]
    writing = [node.write(urls(*three)) for node in nodes]
    wait_for("the nodes' first chunks", sent_some(*three), 30)
    three[0].kill()
    assert all(right(node, write.result()) for node, write in zip(nodes, writing))
    assert three[1].sent() and three[2].sent()


def test_a_flipped_byte_reaches_no_disk_is_found_and_is_repaired_from_the_others(mirror, disk, published) -> None:
    three = [mirror() for _number in range(3)]
    flip(three[1], published)
    node = disk()
    assert right(node, node.write(urls(*three)).result())
    look(three[1], deep=False)
    assert in_rotation(three[1]), "a quick look reads no content"
    look(three[1])
    assert not in_rotation(three[1])
    checked = module("mirror_check", {"mirrors": urls(*three), "everything": True})
    assert [(problem["code"], problem["mirror"]) for problem in checked["problems"] if problem["kind"] == "mirror"] == [
        ("not_ready", three[1].url)
    ]
    done = in_step(three[1], [three[0], three[2]], published, recheck=True)
    assert [(item["state"], item["fetched_bytes"] < 2 * MIB) for item in done["pulled"]] == [("repaired", True)]
    assert done["ready"] and in_rotation(three[1])


def test_a_missing_file_takes_a_mirror_out_of_rotation_and_is_fetched_again(mirror, published) -> None:
    first, second = mirror(), mirror()
    (second.store / "images" / "test" / published.digest / "image.raw.zst").unlink()
    look(second, deep=False)
    assert not in_rotation(second)
    assert in_step(second, [first], published)["pulled"][0]["state"] == "repaired" and in_rotation(second)


def test_the_mirror_that_publishes_is_repaired_from_its_followers(mirror, published) -> None:
    first, second = mirror(), mirror()
    flip(first, published)
    done = in_step(first, [second], published, recheck=True, authority=True)
    assert done["pulled"][0]["state"] == "repaired" and in_rotation(first)


@root
def test_a_full_disk_keeps_what_it_has_and_says_so_in_one_error(mirror, disk, published, tmp_path) -> None:
    first = mirror()
    small = tmp_path / "small"
    small.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=20m", "none", small], check=True)
    try:
        full = mirror(empty=True, store=small)
        done = in_step(full, [first], published)
        assert done["failed"] and done["code"] == "no_space" and "MiB are needed" in done["msg"]
        assert done["ready"] is False and not in_rotation(full)
        assert [path.name for path in (small / "images" / "test").iterdir() if not path.name.startswith(".")] == []
        node = disk()
        assert right(node, node.write(urls(full, first)).result())
    finally:
        for made in (first, full):
            made.kill()
        subprocess.run(["umount", "-l", small], check=True)


def test_a_mirror_whose_clock_is_a_day_off_serves_nodes_over_https(mirror, disk, ca, published) -> None:
    for number, shift in enumerate(("+1d", "-1d")):
        address = f"127.70.{os.getpid() % 250}.{number + 1}"
        certificate = ca.issue(f"clock{number}", [address])
        served = mirror(address=address, certificate=certificate, prefix=("faketime", "-f", shift))
        node = disk()
        assert right(node, node.write([served.url], ca_path=str(ca.path)).result())
        served.kill()


def test_a_certificate_that_is_not_valid_now_is_named_and_nodes_use_the_others(mirror, disk, ca, published) -> None:
    good_address, bad_address = (f"127.71.{os.getpid() % 250}.{number}" for number in (1, 2))
    good = mirror(address=good_address, certificate=ca.issue("good", [good_address]))
    bad = mirror(address=bad_address, certificate=ca.issue("bad", [bad_address], "+2d"))
    node = disk()
    assert right(node, node.write(urls(bad, good), ca_path=str(ca.path)).result())
    assert bad.sent() == 0
    found = module("mirror_check", {"mirrors": urls(bad, good), "everything": True, "ca_path": str(ca.path)})
    assert [(problem["code"], problem["mirror"]) for problem in found["problems"]] == [("tls", bad.url)]
    assert "not yet valid" in found["problems"][0]["msg"]
    assert len(found["mirrors"][1]["certificate_ends"]) == 20 and "certificate until" in "".join(found["table"])


def test_a_mirror_whose_own_clock_is_a_day_behind_does_not_enter_rotation_by_mistake(mirror, ca, published) -> None:
    address = f"127.72.{os.getpid() % 250}.1"
    first = mirror(address=address, certificate=ca.issue("first", [address]))
    new = mirror(empty=True)
    arguments = {
        "sources": [first.url],
        "dest": str(new.store),
        "everything": True,
        "ca_path": str(ca.path),
        "timeout": 10,
        "stall_timeout": 1,
    }
    done = module("mirror_pull", arguments, prefix=("faketime", "-f", "-1d"))
    assert done["failed"] and "not yet valid" in done["msg"] and not in_rotation(new)
    assert module("mirror_pull", arguments)["ready"] and in_rotation(new)


def test_pages_of_html_with_status_200_fool_nobody(mirror, disk, published) -> None:
    html, good, new = mirror(empty=True), mirror(), mirror(empty=True)
    (html.folder / "etc/nginx/h200-rack.d/mirror.conf").write_text(HTML)
    html.kill()
    html.start()
    node = disk()
    assert right(node, node.write(urls(html, good)).result())
    done = in_step(new, [html, good], published)
    assert done["ready"] and done["pulled"][0]["digest"] == published.digest
    found = module("mirror_check", {"mirrors": urls(html, good), "everything": True})
    assert [(problem["code"], problem["mirror"]) for problem in found["problems"]][0] == ("health", html.url)
    assert {problem["mirror"] for problem in found["problems"]} == {html.url}


def test_a_page_of_html_for_a_signature_is_not_taken_while_another_mirror_has_it(mirror, published) -> None:
    bad, good, new = mirror(), mirror(), mirror(empty=True)
    (bad.store / "images" / "test" / published.digest / "manifest.json.sig").write_bytes(b"<html>" + bytes(58))
    assert in_step(new, [bad, good], published)["ready"]


def test_a_damaged_signature_is_found_by_a_recheck_and_fetched_again(mirror, published) -> None:
    first, second = mirror(), mirror()
    path = second.store / "images" / "test" / published.digest / "manifest.json.sig"
    path.write_bytes(bytes(64))
    assert in_step(second, [first], published, recheck=True)["pulled"][0]["state"] == "repaired"
    assert path.read_bytes() == (first.store / path.relative_to(second.store)).read_bytes()


def test_ramdisks_with_a_flipped_byte_on_one_source_come_from_the_other(mirror, published, tmp_path) -> None:
    from ansible_collections.h200.rack.plugins.module_utils._image import ramdisk

    bad, good, new = mirror(), mirror(), mirror(empty=True)
    for name, size in (("vmlinuz", 3 * MIB), ("initrd.img", 20 * MIB)):
        (tmp_path / name).write_bytes(os.urandom(size))
    for made in (bad, good):
        ramdisk.publish(
            ramdisk.Request(
                str(tmp_path / "vmlinuz"),
                str(tmp_path / "initrd.img"),
                str(made.store),
                signing_key=published.signing_key,
            )
        )
    (path,) = (bad.store / "ramdisk" / "x86_64").glob("*/initrd.img")
    with path.open("r+b") as handle:
        handle.seek(9 * MIB)
        handle.write(b"flipped")
    assert in_step(new, [bad, good], published)["ready"] and in_rotation(new)
    (copy,) = (new.store / "ramdisk" / "x86_64").glob("*/initrd.img")
    assert copy.read_bytes() == (tmp_path / "initrd.img").read_bytes()


def test_a_pull_that_is_killed_again_and_again_serves_nothing_half_and_ends(mirror, published) -> None:
    first, new = mirror(mirror_limit_rate="3m"), mirror(empty=True)
    family = new.store / "images" / "test"
    kills = 0
    for pause in itertools.chain((0.6, 0.9, 1.2), itertools.repeat(2.0)):
        worker = threading.Thread(target=_may_be_killed, args=(new, first, published), daemon=True)
        worker.start()
        time.sleep(pause)
        victims = [pid for pid in _pulls(new) if pid]
        for pid in victims:
            os.kill(pid, signal.SIGKILL)
        worker.join(timeout=60)
        kills += bool(victims)
        names = {path.name for path in family.iterdir()} if family.exists() else set()
        assert published.digest not in names or not victims or in_step(new, [first], published)["ready"]
        if kills >= 4 or not victims:
            break
    done = in_step(new, [first], published)
    assert done["ready"] and in_rotation(new)
    assert subprocess.run(["diff", "-r", first.store / "images", new.store / "images"], check=False).returncode == 0


def _may_be_killed(new: Mirror, first: Mirror, published: t.Any) -> None:
    # A killed one has no result, and that is the point.
    with contextlib.suppress(AssertionError):
        in_step(new, [first], published)


def _pulls(mirror: Mirror) -> t.Iterator[int]:
    for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().split(b"\0")
        except OSError:
            continue
        if b"mirror_pull" in words and str(mirror.store).encode() in b" ".join(words):
            yield int(path.parent.name)


@pytest.mark.full
@root
def test_everything_at_once_and_three_nodes_end_right(mirror, disk, ca, published, tmp_path) -> None:
    small = tmp_path / "small"
    small.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=20m", "none", small], check=True)
    try:
        dies, flipped, html = (mirror(mirror_limit_rate="2m") for _number in range(3))
        flip(flipped, published)
        (html.folder / "etc/nginx/h200-rack.d/mirror.conf").write_text(HTML)
        html.kill()
        html.start()
        addresses = [f"127.73.{os.getpid() % 250}.{number}" for number in (1, 2)]
        clock = mirror(
            address=addresses[0],
            certificate=ca.issue("clock", addresses[:1]),
            prefix=("faketime", "-f", "+1d"),
            mirror_limit_rate="2m",
        )
        early = mirror(address=addresses[1], certificate=ca.issue("early", addresses[1:], "+2d"))
        full, new = mirror(empty=True, store=small), mirror(empty=True)
        nodes = [disk() for _number in range(3)]
        seven = urls(dies, flipped, html, clock, early, full, new)
        writing = [node.write(seven, ca_path=str(ca.path)) for node in nodes]
        wait_for("the nodes' first chunks", sent_some(dies, clock), 60)
        dies.kill()
        sources = [clock, flipped]
        assert in_step(full, sources, published, ca_path=str(ca.path))["code"] == "no_space"
        assert in_step(new, sources, published, ca_path=str(ca.path))["ready"]
        assert all(right(node, write.result()) for node, write in zip(nodes, writing))
        full.kill()
    finally:
        subprocess.run(["umount", "-l", small], check=True)
