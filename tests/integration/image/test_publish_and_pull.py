# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Publishers and mirrors that are interrupted, full, damaged or two at once never serve anything but whole images."""

from __future__ import annotations

import concurrent.futures
import hashlib
import os
import pathlib
import subprocess
import sys

import pytest
from ansible_collections.h200.rack.plugins.module_utils._common.errors import InvalidInput, RackError
from ansible_collections.h200.rack.plugins.module_utils._image import publish, pull, ramdisk, store
from image_testing import MIB, TESTS, publish_raw, raw_image

PUBLISH = """
import sys
sys.path.insert(0, sys.argv[1]); import conftest
from ansible_collections.h200.rack.plugins.module_utils._common.errors import RackError
from ansible_collections.h200.rack.plugins.module_utils._image import publish
try:
    publish.publish(publish.Request(sys.argv[2], "test", "1", sys.argv[3], chunk_size=1 << 20, level=1))
except RackError as exc:
    print(exc.code)
"""


def entries(root: pathlib.Path) -> set[str]:
    family = root / "images" / "test"
    return {entry.name for entry in family.iterdir()} - {".lock"} if family.exists() else set()


def test_two_publishers_at_once_leave_one_whole_image(tmp_path, published) -> None:
    source = tmp_path / "raw"
    source.write_bytes(published.raw)
    (tmp_path / "mirror").mkdir()
    command = [sys.executable, "-c", PUBLISH, str(TESTS), str(source), str(tmp_path / "mirror")]
    with concurrent.futures.ThreadPoolExecutor() as pool:
        done = list(pool.map(lambda _n: subprocess.run(command, capture_output=True, text=True, check=True), range(2)))
    assert [job.stdout for job in done] == ["", ""]
    digest = store.current(str(tmp_path / "mirror" / "images" / "test"))
    assert entries(tmp_path / "mirror") == {"current", digest}


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to mount a file system")
def test_a_full_mirror_disk_publishes_nothing_and_keeps_what_is_there(tmp_path, published) -> None:
    source = tmp_path / "raw"
    source.write_bytes(published.raw)
    folder = tmp_path / "small"
    folder.mkdir()
    family = f"{folder}/images/test"
    mount = f"mount -t tmpfs -o size=20m none {folder} && mkdir -p {family} && echo old > {family}/x"
    script = f'{mount} && "$@" && ls -A {family}'
    command = [sys.executable, "-c", PUBLISH, str(TESTS), str(source), str(folder)]
    done = subprocess.run(
        ["unshare", "-m", "sh", "-c", script, "sh", *command], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["no_space", ".lock", "x"]


def test_what_is_there_with_other_content_is_one_clear_error_and_stays(tmp_path, published) -> None:
    key = pathlib.Path(published.signing_key)
    digest = publish_raw(tmp_path, published.raw, key).digest
    folder = tmp_path / "mirror" / "images" / "test" / digest
    (folder / "manifest.json").write_bytes(b"{}")
    (tmp_path / "mirror" / "images" / "test" / "current").write_text("0" * 64)
    before = times(tmp_path / "mirror")
    with pytest.raises(RackError, match="is there already with other content") as caught:
        publish_raw(tmp_path, published.raw, key)
    assert caught.value.code == "conflict"
    left = times(tmp_path / "mirror")
    assert left == {**before, str(folder.parent): left[str(folder.parent)]}


def test_publishing_again_changes_nothing(tmp_path, published) -> None:
    key = pathlib.Path(published.signing_key)
    assert publish_raw(tmp_path, published.raw, key).changed
    before = times(tmp_path / "mirror")
    assert not publish_raw(tmp_path, published.raw, key).changed
    assert times(tmp_path / "mirror") == before


def test_an_image_of_before_bittorrent_gets_its_metainfo_where_it_lies(tmp_path, copy_of_mirror, published) -> None:
    """Published again, or pulled again, without anything being compressed or fetched anew."""
    folder = copy_of_mirror / "images" / "test" / published.digest
    source = tmp_path / "raw"
    source.write_bytes(published.raw)
    request = publish.Request(
        str(source), "test", "1", str(copy_of_mirror), chunk_size=MIB, level=1, signing_key=published.signing_key
    )
    for again in (False, True):
        for name in ("image.torrent", "image.infohash"):
            (folder / name).unlink()
        if again:
            pulled = pull.Request((), str(copy_of_mirror), (pull.Wanted("image", "test", published.digest),))
            assert pull.pull(pulled, check_mode=True) and not (folder / "image.torrent").exists()
            pull.pull(pulled)
        else:
            assert publish.publish(request, check_mode=True).changed and not (folder / "image.torrent").exists()
            assert publish.publish(request).changed and not publish.publish(request).changed
        assert same(published.root, copy_of_mirror)


def times(root: pathlib.Path) -> dict[str, int]:
    return {str(path): path.stat().st_mtime_ns for path in root.rglob("*") if path.name != ".lock"}


def test_old_versions_go_but_never_one_that_a_node_uses(tmp_path, published) -> None:
    key = pathlib.Path(published.signing_key)
    digests = []
    for number in range(4):
        raw = bytearray(published.raw)
        raw[5 * MIB] = number
        source = tmp_path / "source"
        source.write_bytes(raw)
        (tmp_path / "mirror").mkdir(exist_ok=True)
        outcome = publish.publish(
            publish.Request(
                str(source),
                "test",
                str(number),
                str(tmp_path / "mirror"),
                chunk_size=MIB,
                level=1,
                signing_key=str(key),
                keep=2,
                protect=tuple(digests[:1]),
            )
        )
        digests.append(outcome.digest)
    assert entries(tmp_path / "mirror") == {"current", digests[0], digests[2], digests[3]}


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"name": "../x"}, "name"),
        ({"version": "a/b"}, "version"),
        ({"chunk_size": 3 << 20}, "chunk_size"),
        ({"chunk_size": 1 << 16}, "chunk_size"),
        ({"source": "/nonexistent"}, "source"),
        ({"dest": "/nonexistent"}, "dest"),
        ({"minimum_disk": 1}, "minimum_disk"),
        ({"protect": ("x",)}, "protect"),
    ],
)
def test_a_bad_request_names_the_option(tmp_path, changes, word) -> None:
    source = tmp_path / "raw"
    source.write_bytes(raw_image())
    with pytest.raises(InvalidInput, match=f"^{word}"):
        publish.publish(
            publish.Request(**{"source": str(source), "name": "a", "version": "1", "dest": str(tmp_path), **changes})
        )


@pytest.mark.parametrize("kind", ["qcow2", "vmdk"])
def test_other_formats_become_the_same_image(tmp_path, published, kind) -> None:
    raw = tmp_path / "raw"
    raw.write_bytes(published.raw)
    subprocess.run(["qemu-img", "convert", "-O", kind, str(raw), str(tmp_path / "converted")], check=True)
    (tmp_path / "mirror").mkdir()
    outcome = publish.publish(
        publish.Request(str(tmp_path / "converted"), "test", "1", str(tmp_path / "mirror"), chunk_size=MIB, level=1)
    )
    assert outcome.digest == published.digest


def request(dest: pathlib.Path, published, *mirrors, **changes) -> pull.Request:
    options = {
        "sources": tuple(server.url for server in mirrors),
        "dest": str(dest),
        "wanted": (pull.Wanted("image", "test", None),),
        "public_key": published.public_key,
        "stall_timeout": 1,
        "timeout": 30,
    }
    return pull.Request(**{**options, **changes})


def same(one: pathlib.Path, other: pathlib.Path) -> bool:
    return subprocess.run(["diff", "-r", str(one), str(other)], check=False, capture_output=True).returncode == 0


@pytest.mark.parametrize("fault", ["", "dies", "stalls", "corrupt", "html", "truncated", "cuts"])
def test_a_mirror_fills_itself_whatever_one_of_its_sources_does(tmp_path, published, mirror, fault) -> None:
    outcome = pull.pull(request(tmp_path, published, mirror(fault), mirror()))
    assert outcome.changed and outcome.items[0].state == "fetched"
    assert same(published.root, tmp_path)
    assert not pull.pull(request(tmp_path, published, mirror())).changed


def test_nothing_incomplete_gets_a_digest_as_its_name(tmp_path, published, mirror) -> None:
    with pytest.raises(RackError):
        pull.pull(request(tmp_path, published, mirror("dies"), timeout=5))
    assert {name for name in entries(tmp_path) if not name.startswith(".")} == set()
    outcome = pull.pull(request(tmp_path, published, mirror()))
    assert outcome.items[0].fetched_bytes < published.manifest.wire_size
    assert same(published.root, tmp_path)


def test_a_flipped_byte_is_found_and_only_its_chunk_is_fetched(copy_of_mirror, published, mirror) -> None:
    path = copy_of_mirror / "images" / "test" / published.digest / "image.raw.zst"
    with path.open("r+b") as handle:
        handle.seek(10 * MIB)
        byte = handle.read(1)
        handle.seek(10 * MIB)
        handle.write(bytes([byte[0] ^ 1]))
    assert not pull.pull(request(copy_of_mirror, published, mirror())).changed
    outcome = pull.pull(request(copy_of_mirror, published, mirror(), recheck=True))
    assert outcome.items[0].state == "repaired" and outcome.items[0].fetched_bytes < 2 * MIB
    assert same(published.root, copy_of_mirror)


def test_check_mode_says_what_is_missing(tmp_path, published, mirror) -> None:
    outcome = pull.pull(request(tmp_path, published, mirror()), check_mode=True)
    assert outcome.changed and outcome.items[0].state == "missing" and not list(tmp_path.iterdir())


def test_a_bad_signature_is_not_taken_over(tmp_path, copy_of_mirror, published, mirror) -> None:
    signature = copy_of_mirror / "images" / "test" / published.digest / "manifest.json.sig"
    signature.write_bytes(bytes(64))
    destination = tmp_path / "new"
    destination.mkdir()
    with pytest.raises(RackError) as caught:
        pull.pull(request(destination, published, mirror(root=copy_of_mirror)))
    assert caught.value.code == "signature"
    assert store.current(str(destination / "images" / "test")) is None


def test_ramdisks_and_overlays_travel_too(tmp_path, published, mirror) -> None:
    (tmp_path / "k").write_bytes(os.urandom(100_000))
    (tmp_path / "i").write_bytes(os.urandom(9 * MIB))
    root, copy = tmp_path / "root", tmp_path / "copy"
    root.mkdir()
    copy.mkdir()
    made = ramdisk.publish(
        ramdisk.Request(str(tmp_path / "k"), str(tmp_path / "i"), str(root), signing_key=published.signing_key)
    )
    overlay = os.urandom(5000)
    digest = hashlib.sha256(overlay).hexdigest()
    (root / "ramdisk" / "overlay").mkdir()
    (root / "ramdisk" / "overlay" / f"{digest}.cpio").write_bytes(overlay)
    wanted = (pull.Wanted("ramdisk", "x86_64", None), pull.Wanted("overlay", "overlay", digest))
    outcome = pull.pull(request(copy, published, mirror(root=root), wanted=wanted))
    assert [item.digest for item in outcome.items] == [made.digest, digest]
    assert same(root, copy)
