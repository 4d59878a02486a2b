# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A rack's cache: the origin sends an image once, whatever the rack's nodes and the origins do."""

from __future__ import annotations

import json
import os
import subprocess

from image_testing import MIB
from mirrors import in_rotation, module
from test_faults import HTML, flip, right, urls


def cache_of(mirror, *origins, **options):
    return mirror(empty=True, mirror_origins=urls(*origins), mirror_cache_size="1g", **options)


def test_four_nodes_at_a_time_cost_the_origins_one_image(mirror, disk, published) -> None:
    origins = [mirror(), mirror()]
    cache = cache_of(mirror, *origins)
    assert in_rotation(cache)
    nodes = [disk() for _number in range(4)]
    writing = [node.write([cache.url]) for node in nodes]
    assert all(right(node, write.result()) for node, write in zip(nodes, writing))
    sent = sum(origin.sent() for origin in origins)
    assert sent < 1.15 * published.manifest.wire_size + 4 * MIB
    assert cache.sent() > 3.5 * published.manifest.wire_size
    states = {json.loads(line)["cache"] for line in cache.log_lines()}
    assert {"HIT", "MISS"} <= states


def test_what_is_cached_is_served_while_no_origin_answers(mirror, disk) -> None:
    origin = mirror()
    cache = cache_of(mirror, origin)
    first, second = disk(), disk()
    assert right(first, first.write([cache.url]).result())
    origin.kill()
    assert right(second, second.write([cache.url]).result())
    assert not in_rotation(cache), "what nobody asked for yet cannot be had"


def test_an_origin_that_dies_or_lacks_the_image_is_stood_in_for_by_the_other(mirror, disk, published) -> None:
    dead, lacking, good = mirror(), mirror(empty=True), mirror()
    cache = cache_of(mirror, dead, lacking, good)
    dead.kill()
    node = disk()
    assert right(node, node.write([cache.url]).result())


def test_a_page_of_html_is_not_kept(mirror, disk, published) -> None:
    origin = mirror()
    cache = cache_of(mirror, origin)
    conf = origin.folder / "etc/nginx/h200-rack.d/mirror.conf"
    good = conf.read_text()
    conf.write_text(HTML)
    origin.kill()
    origin.start()
    url = f"{cache.http}/images/test/{published.digest}/manifest.json"
    assert "It works" in subprocess.run(["curl", "-sS", url], capture_output=True, text=True, check=False).stdout
    conf.write_text(good)
    origin.kill()
    origin.start()
    node = disk()
    assert right(node, node.write([cache.url]).result())


def test_a_chunk_that_an_origin_damaged_comes_from_a_mirror_that_has_it_right(mirror, disk, published) -> None:
    bad, good = mirror(), mirror()
    flip(bad, published)
    cache = cache_of(mirror, bad)
    node = disk()
    assert right(node, node.write(urls(cache, good)).result())


def test_origins_are_checked_against_the_rack_s_ca(mirror, disk, ca, published) -> None:
    address, other = (f"127.75.{os.getpid() % 250}.{number}" for number in (1, 2))
    origin = mirror(address=address, certificate=ca.issue("origin", [address, "h200-rack-mirror"]))
    stranger = mirror(address=other, certificate=ca.issue("stranger", [other]))
    caches = [cache_of(mirror, made, mirror_ca_certificate=ca.path.read_text()) for made in (origin, stranger)]
    status = ["curl", "-sS", "-o", "/dev/null", "-w", "%{http_code}"]
    codes = [
        subprocess.run([*status, f"{cache.http}/health"], capture_output=True, text=True, check=False).stdout
        for cache in caches
    ]
    assert codes == ["200", "502"]
    node = disk()
    assert right(node, node.write([caches[0].url]).result())


def test_mirror_check_asks_a_cache_like_any_mirror(mirror, published) -> None:
    origin = mirror()
    cache = cache_of(mirror, origin)
    arguments = {"mirrors": urls(origin, cache), "everything": True, "public_key": published.public_key, "sample": 8}
    found = module("mirror_check", arguments)
    assert found["problems"] == [] and [row["verified"] for row in found["rows"]] == [True, True]
