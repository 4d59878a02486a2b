# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest
from ansible_collections.h200.rack.plugins.module_utils._common.deadline import Deadline
from ansible_collections.h200.rack.plugins.module_utils._common.errors import InvalidInput
from ansible_collections.h200.rack.plugins.module_utils._image.http import MirrorError, Watch, parse_url
from ansible_collections.h200.rack.plugins.module_utils._image.mirrors import NoMirrors, Pool

URLS = ("http://10.0.0.1", "http://10.0.0.2", "http://10.0.0.3")


def pool(seconds: float = 60, urls=URLS) -> Pool:
    return Pool(list(urls), Deadline(seconds))


@pytest.mark.parametrize(
    ("text", "host", "port", "path"),
    [
        ("http://10.0.0.1", "10.0.0.1", 80, ""),
        ("http://[fd00::1]:8080/base/", "fd00::1", 8080, "/base"),
        ("https://mirror01", "mirror01", 443, ""),
    ],
)
def test_urls(text, host, port, path) -> None:
    url = parse_url(text)
    assert (url.host, url.port, url.path) == (host, port, path)


def test_ipv6_stands_in_brackets_in_the_host_header() -> None:
    assert parse_url("http://[fd00::1]:8080").authority == "[fd00::1]:8080"
    assert parse_url("https://[fd00::1]").authority == "[fd00::1]"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "mirror01",
        "ftp://a",
        "http://",
        "http://a:b",
        "http://u:p@a",
        "http://a/?x",
        "http://a b",
        "http://a/\r\nX: y",
    ],
)
def test_what_is_no_plain_url_is_refused(text) -> None:
    with pytest.raises(InvalidInput):
        parse_url(text)


def test_the_least_busy_mirror_is_asked() -> None:
    mirrors = pool()
    taken = [mirrors.take() for _number in range(3)]
    assert len({mirror.text for mirror in taken}) == 3


def test_of_equally_busy_mirrors_the_faster_is_asked() -> None:
    mirrors = pool(urls=URLS[:2])
    slow, fast = mirrors.take(), mirrors.take()
    mirrors.gave(slow, 1000, 1.0)
    mirrors.gave(fast, 9000, 1.0)
    assert mirrors.take() is fast


def test_a_failed_mirror_rests_and_the_others_work() -> None:
    mirrors = pool(urls=URLS[:2])
    bad = mirrors.take()
    mirrors.failed(bad, MirrorError("gone"))
    assert {mirrors.take().text for _number in range(3)} == {url for url in URLS[:2] if url != bad.text}


def test_all_resting_mirrors_are_waited_for() -> None:
    mirrors = pool(urls=URLS[:1])
    only = mirrors.take()
    mirrors.failed(only, MirrorError("gone"))
    assert mirrors.take() is only


def test_a_lasting_error_ends_it_when_no_mirror_is_left() -> None:
    mirrors = pool(urls=URLS[:1])
    mirrors.failed(mirrors.take(), MirrorError("http://10.0.0.1: 404", lasting=True))
    with pytest.raises(NoMirrors, match="404"):
        mirrors.take()


def test_one_corrupt_chunk_is_forgiven_and_the_second_is_not() -> None:
    mirrors = pool(urls=URLS[:2])
    bad = mirrors.take()
    mirrors.gave(bad, 1, 1.0)
    mirrors.corrupted(bad, "wrong")
    assert not bad.excluded
    mirrors.corrupted(bad, "wrong")
    assert {mirrors.take() for _number in range(4)} == {mirror for mirror in mirrors.mirrors if mirror is not bad}


def test_no_time_left_names_what_went_wrong() -> None:
    mirrors = pool(seconds=0)
    with pytest.raises(NoMirrors, match="gave up"):
        mirrors.take()


def test_the_same_mirror_twice_counts_once() -> None:
    assert len(pool(urls=[URLS[0], URLS[0]]).mirrors) == 1


def test_a_trickle_is_a_stall() -> None:
    watch = Watch(patience=0.0)
    with pytest.raises(TimeoutError, match="stalled"):
        watch.saw(0)
    watch.saw(1 << 30)


def test_mirrors_behind_a_cache_are_asked_only_while_it_fails() -> None:
    both = Pool(["http://cache"], Deadline(5), fallback=["http://far", "http://cache"])
    assert [mirror.text for mirror in both.mirrors] == ["http://cache", "http://far"]
    cache = both.take()
    assert cache.text == "http://cache" and both.take() is cache
    both.failed(cache, MirrorError("gone"))
    assert both.take().text == "http://far"
