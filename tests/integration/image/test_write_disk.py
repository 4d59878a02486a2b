# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the disk has to do with it: read-back, progress, the page cache, the moved table, kills at any moment."""

from __future__ import annotations

import hashlib
import json
import os
import random
import shutil
import subprocess
import time
import typing as t

import pytest
from ansible_collections.h200.rack.plugins.module_utils._image import deploy, gpt
from ansible_collections.h200.rack.plugins.module_utils._image.manifest import canonical
from ansible_collections.h200.rack.plugins.module_utils._image.signature import sign
from ansible_collections.h200.rack.plugins.module_utils._image.target import Target
from ansible_collections.h200.rack.plugins.module_utils._image.write import VerifyError
from image_testing import DISK_SIZE, MIB, RAW_SIZE

DATA = 52 * MIB  # of the image, without its zeros and its first chunk
WRITERS = 4


@pytest.mark.parametrize(
    ("verify", "least", "most"), [("none", 0, 0), ("sample", 3 * MIB, 8 * MIB), ("all", DATA, RAW_SIZE)]
)
def test_as_much_is_read_back_as_was_asked_for(mirror, disk, verify, least, most) -> None:
    target = disk()
    result = target.write([mirror()], verify=verify).result()
    assert target.is_right() and least <= result["verified_bytes"] <= most


class ForgetfulTarget(Target):
    """A disk that says that it wrote, and keeps something else in one place."""

    place = 20 * MIB + 4096

    def write(self, offset: int, view: memoryview) -> None:
        super().write(offset, view)
        if offset <= self.place < offset + len(view):
            os.pwrite(self._plain, b"\0" * 512, self.place)


@pytest.mark.parametrize("place", [20 * MIB + 4096, 1024, DISK_SIZE - 512])
def test_a_disk_that_returns_other_bytes_does_not_boot(mirror, disk, monkeypatch, place) -> None:
    """In the image, in the table at the start, in its copy at the end."""
    target = disk()
    monkeypatch.setattr(deploy, "Target", ForgetfulTarget)
    monkeypatch.setattr(ForgetfulTarget, "place", place)
    with pytest.raises(VerifyError, match="other bytes"):
        deploy.deploy(deploy.Request(**target.options([mirror()])))
    assert not target.boots()


STAGES = ("first_chunk", "compare", "prepare", "write", "verify", "finish")


def test_progress_grows_to_the_end(mirror, disk) -> None:
    target = disk()
    write = target.write([mirror(rate=8 * MIB)], verify="all")
    seen: list[dict[str, t.Any]] = []
    while write.process.poll() is None:
        try:
            state = json.loads((target.path.parent / f"{target.path.name}.progress").read_text())
        except FileNotFoundError:
            continue
        if not seen or state != seen[-1]:
            seen.append(state)
        time.sleep(0.1)
    assert write.result()["throughput"] > 0
    done = [state["done_bytes"] for state in seen]
    assert done == sorted(done) and len(set(done)) > 1 and seen[0]["total_bytes"] == RAW_SIZE
    stages = list(dict.fromkeys(state["stage"] for state in seen))
    # A stage may be over between two looks.
    assert stages == [stage for stage in STAGES if stage in stages]
    assert "write" in stages


@pytest.mark.skipif(shutil.which("fincore") is None, reason="fincore is not installed")
def test_nothing_of_the_image_stays_in_the_page_cache(mirror, disk) -> None:
    target = disk()
    kind = subprocess.run(["stat", "-f", "-c", "%T", target.path.parent], capture_output=True, text=True, check=True)
    if kind.stdout.strip() == "tmpfs":
        pytest.skip("a file in memory is nothing but page cache")
    target.write([mirror()]).result()
    command = ["fincore", "--bytes", "--noheadings", "--output", "RES", target.path]
    left = int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    # The first sectors and the table's copy may be there: they were looked at last.
    assert left < 4 * MIB


def test_the_copy_of_the_table_is_at_the_end_of_the_disk(mirror, disk) -> None:
    target = disk(size=DISK_SIZE + 12345 * 512)
    target.write([mirror()]).result()
    with target.path.open("rb") as handle:
        table = gpt.parse(handle.read(MIB))
        handle.seek(-512, os.SEEK_END)
        header = handle.read(512)
    last = target.path.stat().st_size // 512 - 1
    assert table is not None and header[:8] == b"EFI PART"
    # My own address, and that of the other header.
    assert (int.from_bytes(header[24:32], "little"), int.from_bytes(header[32:40], "little")) == (last, 1)
    assert subprocess.run(["sfdisk", "--verify", target.path], capture_output=True, check=False).returncode == 0


def test_four_killed_writers_go_on_where_they_were(mirror, disk) -> None:
    server = mirror(rate=6 * MIB)
    disks = [disk() for _number in range(WRITERS)]
    writes = [target.write([server]) for target in disks]
    deadline = time.monotonic() + 60
    while server.sent < 80 * MIB and time.monotonic() < deadline:
        time.sleep(0.02)
    for write in writes:
        write.process.kill()
        write.process.communicate()
    assert not any(target.boots() for target in disks)
    server.rate = 0
    results = [write.result() for write in [target.write([server]) for target in disks]]
    assert all(target.is_right() for target in disks)
    assert all(result["unchanged_bytes"] > 5 * MIB for result in results)


@pytest.mark.full
@pytest.mark.parametrize("seed", range(8))
def test_whenever_a_writer_is_killed_the_disk_is_right_or_does_not_boot(mirror, disk, seed) -> None:
    source = random.Random(seed)
    server, target = mirror(rate=20 * MIB), disk()
    for _kill in range(4):
        write = target.write([server], seed={"hostname": "gpu001"})
        time.sleep(source.uniform(0.2, 1.6))
        write.process.kill()
        write.process.communicate()
        assert not target.boots() or target.is_right()
    server.rate = 0
    result = target.write([server], seed={"hostname": "gpu001"}, allow_overwrite=True).result()
    assert not result.get("failed"), result
    assert target.is_right()


def change(data: dict[str, t.Any], *path: t.Any, value: t.Any) -> dict[str, t.Any]:
    copy = json.loads(json.dumps(data))
    inner = copy
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    return copy


@pytest.mark.parametrize(
    ("path", "value", "word"),
    [
        (("surprise",), 1, "unknown fields: 'surprise'"),
        (("chunks", 2, "surprise"), 1, "chunk 2: unknown fields"),
        (("chunks", 2, "raw_offset"), MIB, "chunk 2: raw_offset"),
        (("chunks", 2, "wire_offset"), 1, "chunk 2: wire_offset"),
        (("wire_size",), 10 * MIB, "wire_length"),
        (("raw_size",), RAW_SIZE + 512, "minimum_disk"),
        (("name",), "../../etc", "name"),
        (("chunks", 3, "raw_length"), 2 * MIB, "chunk 3: raw_length"),
    ],
)
def test_a_signed_manifest_that_makes_no_sense_stops_before_the_disk_is_touched(
    mirror, disk, copy_of_mirror, published, path, value, word
) -> None:
    folder = copy_of_mirror / "images" / "test"
    good = json.loads((folder / published.digest / "manifest.json").read_bytes())
    data = canonical(change(good, *path, value=value))
    digest = hashlib.sha256(data).hexdigest()
    shutil.copytree(folder / published.digest, folder / digest)
    (folder / digest / "manifest.json").write_bytes(data)
    (folder / digest / "manifest.json.sig").write_bytes(sign(data, published.signing_key))
    target = disk()
    before = target.sha256()
    result = target.write([mirror(root=copy_of_mirror)], digest=digest).result()
    assert result["failed"] and word in result["msg"], result["msg"]
    assert target.sha256() == before
