# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a mirror serves and how, asked of nginx with the role's own configuration."""

from __future__ import annotations

import json
import subprocess

from mirrors import in_rotation, in_step, module


def curl(*arguments: str) -> str:
    done = subprocess.run(["curl", "-sS", "--max-time", "10", *arguments], capture_output=True, text=True, check=False)
    return done.stdout


def status(*arguments: str) -> str:
    return curl("-o", "/dev/null", "-w", "%{http_code}", *arguments)


def test_ranges_and_heads_are_served_plain_and_for_ever(mirror, published) -> None:
    served = mirror()
    url = f"{served.http}/images/test/{published.digest}/image.raw.zst"
    head = curl("-I", "-H", "Accept-Encoding: gzip", url).lower()
    assert "immutable" in head and "content-encoding" not in head
    assert f"content-length: {published.manifest.wire_size}" in head
    assert "content-range: bytes 100-199/" in curl("-o", "/dev/null", "-D", "-", "-r", "100-199", url).lower()
    assert status("-X", "PUT", url) == "403"
    assert "no-cache" in curl("-D", "-", f"{served.http}/images/test/current")


def test_nothing_whose_name_begins_with_a_dot_is_served_or_listed(mirror, published) -> None:
    served = mirror()
    family = served.store / "images" / "test"
    for folder in (family / ".pull-x", family / ".new-y"):
        folder.mkdir()
        (folder / "image.raw.zst").write_bytes(b"half")
    (family / published.digest / ".tmp").write_bytes(b"half")
    for path in (".pull-x/image.raw.zst", ".new-y/image.raw.zst", f"{published.digest}/.tmp", ".lock"):
        assert status(f"{served.http}/images/test/{path}") == "404"
    for path in (".health.json", ".in-step.json", ".out-of-rotation.json"):
        assert status(f"{served.http}/{path}") == "404"
    names = {entry["name"] for entry in json.loads(curl(f"{served.http}/images/test/"))}
    assert names == {"current", published.digest}


def test_health_is_of_the_store_and_not_of_the_process(mirror, published) -> None:
    served = mirror()
    told = json.loads(curl(f"{served.http}/health"))
    assert told["ready"] and told["current"] == {"images/test": published.digest}
    aside = served.store.with_name("aside")
    served.store.rename(aside)
    assert not in_rotation(served)
    aside.rename(served.store)
    assert in_rotation(served)


def test_an_empty_mirror_fills_itself_before_it_is_in_rotation(mirror, published) -> None:
    first, new = mirror(), mirror(empty=True)
    assert "not filled yet" in curl(f"{new.http}/health") or not in_rotation(new)
    done = in_step(new, [first], published)
    assert done["ready"] and [item["state"] for item in done["pulled"]] == ["fetched"]
    assert in_rotation(new)
    assert subprocess.run(["diff", "-r", first.store / "images", new.store / "images"], check=False).returncode == 0
    assert in_step(new, [first], published)["changed"] is False


def test_the_first_mirror_of_a_new_rack_needs_no_other(mirror, published) -> None:
    first, second = mirror(empty=True), mirror(empty=True)
    second.kill()
    assert in_step(first, [second], published, authority=True)["ready"] and in_rotation(first)
    second.start()
    assert in_step(second, [first], published)["ready"] and in_rotation(second)


def test_a_new_first_mirror_takes_what_the_others_have(mirror, published) -> None:
    replaced, second = mirror(empty=True), mirror()
    done = in_step(replaced, [second], published, authority=True)
    assert done["ready"] and done["switched"] == ["images/test/current"]


def test_every_line_of_the_log_is_json(mirror) -> None:
    served = mirror()
    curl("-A", 'a "quoted" agent \\', f"{served.http}/images/test/current")
    line = json.loads(served.log_lines()[-1])
    assert line["agent"] == 'a "quoted" agent \\' and line["status"] == 200 and line["seconds"] >= 0


def test_a_thousand_nodes_are_served_at_a_time(mirror, published, tmp_path) -> None:
    """Each at an address of its own, with a connection that is open while all the others are."""
    served = mirror(mirror_limit_rate="20k")
    import socket

    path = f"/images/test/{published.digest}/image.raw.zst"
    request = f"GET {path} HTTP/1.1\r\nHost: mirror\r\nRange: bytes=0-65535\r\n\r\n".encode()
    sockets = []
    for number in range(1000):
        address = f"127.60.{number // 200}.{number % 200 + 1}"
        made = socket.create_connection((served.address, 18080), 10, source_address=(address, 0))
        made.sendall(request)
        sockets.append(made)
    heads = [made.recv(4096).partition(b"\r\n")[0] for made in sockets]
    assert heads == [b"HTTP/1.1 206 Partial Content"] * 1000
    for made in sockets:
        made.close()


def test_a_rack_gets_no_more_than_its_share(mirror, published) -> None:
    import concurrent.futures
    import time

    limits = [{"networks": ["127.61.0.0/24"], "rate_mib": 20, "connections": 8}]
    served = mirror(mirror_rack_limits=limits)
    url = f"{served.http}/images/test/{published.digest}/image.raw.zst"

    def fetch(number: int, network: int) -> int:
        source = f"127.{network}.0.{number + 1}"
        return int(curl("--interface", source, "-r", "0-5242879", "-o", "/dev/null", "-w", "%{size_download}", url))

    def rate(network: int) -> float:
        started = time.monotonic()
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            sizes = list(pool.map(lambda number: fetch(number, network), range(8)))
        assert sizes == [5 << 20] * 8
        return sum(sizes) / 2**20 / (time.monotonic() - started)

    assert rate(61) < 24
    assert rate(62) > 40
    assert '"status":503' not in "".join(served.log_lines())


def test_mirror_check_finds_everything_and_tells_it_in_a_table(mirror, published) -> None:
    first, second = mirror(), mirror(empty=True)
    in_step(second, [first], published)
    arguments = {"mirrors": [first.url, second.url], "everything": True, "public_key": published.public_key}
    found = module("mirror_check", arguments)
    assert found["verdict"] == "pass" and len(found["table"]) == 5
    assert [(row["signature"], row["verified"]) for row in found["rows"]] == [("good", True)] * 2
    assert found["mirrors"][0]["certificate_ends"] == ""
    second.kill()
    found = module("mirror_check", arguments)
    assert [problem["code"] for problem in found["problems"]] == ["unreachable"]
