# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""On a real block device: exclusive, past the page cache, zeroed by the kernel; with whole images written to it."""

from __future__ import annotations

import ctypes
import mmap
import os
import pathlib
import subprocess
import typing as t
import uuid

import pytest
from ansible_collections.h200.rack.plugins.module_utils._common.deadline import Deadline
from ansible_collections.h200.rack.plugins.module_utils._common.errors import RackError
from ansible_collections.h200.rack.plugins.module_utils._image import deploy, disks, gpt
from ansible_collections.h200.rack.plugins.module_utils._image.mirrors import Pool
from ansible_collections.h200.rack.plugins.module_utils._image.request import require_fit
from ansible_collections.h200.rack.plugins.module_utils._image.target import DiskError, Target, buffer
from image_testing import MIB, RAW_SIZE, publish_raw

SIZE = 96 * MIB


@pytest.fixture(params=[512])
def loop(request: pytest.FixtureRequest, tmp_path: pathlib.Path) -> t.Iterator[str]:
    """A device over a file full of somebody else's bytes; parametrized by its logical sector size."""
    backing = tmp_path / "backing"
    with backing.open("wb") as handle:
        for _number in range(SIZE // MIB):
            handle.write(b"\xbb" * MIB)
    command = ["losetup", "--show", "--sector-size", str(request.param), "-f", str(backing)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"no loop device can be had: {done.stderr.strip()}")
    device = done.stdout.strip()
    yield device
    subprocess.run(["losetup", "-d", device], check=True)


def test_a_disk_that_somebody_holds_is_not_opened_for_writing(loop) -> None:
    fd = os.open(loop, os.O_RDWR | os.O_EXCL)
    try:
        with pytest.raises(DiskError) as caught:
            Target(loop, writable=True)
        assert caught.value.code == "disk_busy"
    finally:
        os.close(fd)


def test_what_is_written_is_read_back_and_zeroed_ranges_are_zero(loop) -> None:
    with Target(loop, writable=True) as target:
        assert (target.is_block, target.size, target.sector_size) == (True, SIZE, 512)
        view = buffer(MIB)
        view[:] = b"\xaa" * MIB
        target.write(5 * MIB, view)
        target.write(6 * MIB, view)
        target.zero(5 * MIB, MIB)
        target.read(5 * MIB, view)
        assert not any(view)
        target.read(6 * MIB, view)
        assert set(view) == {0xAA}
        with pytest.raises(DiskError):
            target.write(SIZE, view)


def as_disk(device: str, sector_size: int = 512) -> disks.Disk:
    return disks.Disk(device, SIZE, sector_size, "LOOP", "", "", "", "", False, (), "", "", ())


def test_an_image_on_a_block_device_with_seed_and_table(loop, published, mirror) -> None:
    request = deploy.Request(
        (mirror().url,),
        "test",
        {"serial": "LOOP"},
        published.digest,
        published.public_key,
        require_ramdisk=False,
        verify="all",
        seed={"hostname": "gpu001"},
    )
    pool = Pool(request.mirrors, Deadline(60))
    with Target(loop, writable=True) as target:
        job = deploy.Deployment(request, published.digest, published.manifest, as_disk(loop), target, pool)
        done = job.run(check_mode=False)
    result = deploy.leave(request, published.manifest, done)
    assert result["changed"] and result["boot_entry"]["state"] == "none" and result["finish"] == {"method": "none"}
    data = pathlib.Path(loop).read_bytes()
    assert data[34 * 512 : RAW_SIZE] == published.raw[34 * 512 :]
    # What nobody writes anymore was discarded first, and so is gone.
    assert not any(data[RAW_SIZE : SIZE - 8 * MIB])
    table = gpt.parse(data[:MIB])
    assert table is not None and table.partitions[-1].name == "CIDATA"
    with pytest.raises(RackError), Target(loop, writable=True) as target:
        held = as_disk(loop)._replace(content=(f"{loop}: gpt",))
        other = request._replace(seed={"hostname": "gpu002"})
        deploy.Deployment(other, published.digest, published.manifest, held, target, pool).run(check_mode=False)


def request_for(published, mirror, digest: str | None = None) -> deploy.Request:
    return deploy.Request(
        (mirror().url,),
        "test",
        {"serial": "LOOP"},
        digest or published.digest,
        published.public_key,
        require_ramdisk=False,
        verify="all",
    )


@pytest.mark.parametrize("loop", [4096], indirect=True)
def test_a_disk_with_sectors_of_another_size_is_refused(loop, published) -> None:
    """The table of an image for 512 bytes would be found at no place that firmware looks at."""
    with Target(loop, writable=False) as target:
        assert target.sector_size == 4096
    with pytest.raises(RackError, match="has sectors of 4096 bytes, the image is made for 512") as caught:
        require_fit(as_disk(loop, 4096), published.manifest, deploy.Request((), "test", {}))
    assert caught.value.code == "sector_size"
    assert set(pathlib.Path(loop).read_bytes()[:MIB]) == {0xBB}


@pytest.mark.parametrize("loop", [4096], indirect=True)
def test_an_image_for_large_sectors_on_a_disk_that_has_them(loop, published, mirror, tmp_path) -> None:
    per = MIB // 4096
    parts = (gpt.Partition(1, gpt.EFI_SYSTEM, uuid.UUID(int=1), per, 3 * per - 1, "EFI"),)
    raw = bytearray(os.urandom(16 * MIB))
    table = gpt.Table(4096, uuid.UUID(int=3), per, 128, 128, parts, (0, 0))
    head, backup, offset = gpt.apply(bytes(MIB), table, len(raw))
    raw[:MIB] = head
    raw[offset : offset + len(backup)] = backup
    outcome = publish_raw(tmp_path, bytes(raw), pathlib.Path(published.signing_key))
    assert outcome.manifest is not None and outcome.manifest.sector_size == 4096
    request = request_for(published, lambda: mirror(root=tmp_path / "mirror"), outcome.digest)
    request = request._replace(seed={"hostname": "gpu001"})
    require_fit(as_disk(loop, 4096), outcome.manifest, request)
    with Target(loop, writable=True) as target:
        pool = Pool(request.mirrors, Deadline(60))
        job = deploy.Deployment(request, outcome.digest, outcome.manifest, as_disk(loop, 4096), target, pool)
        assert job.run(check_mode=False).result["changed"]
    data = pathlib.Path(loop).read_bytes()
    written = gpt.parse(data[:MIB])
    assert written is not None and written.sector_size == 4096 and written.partitions[-1].name == "CIDATA"
    assert data[-4096:][:8] == b"EFI PART" and data[6 * 4096 : 15 * MIB] == bytes(raw[6 * 4096 : 15 * MIB])


def test_nothing_of_the_image_waits_in_memory_to_be_written(loop, published, mirror) -> None:
    request = request_for(published, mirror)
    with Target(loop, writable=True) as target:
        pool = Pool(request.mirrors, Deadline(60))
        job = deploy.Deployment(request, published.digest, published.manifest, as_disk(loop), target, pool)
        job.run(check_mode=False)
    # A device's pages in the page cache, as mincore sees them: those written past it never were there.
    assert resident(loop) < 4 * MIB


def resident(path: str) -> int:
    """Bytes of the file or device that are in the page cache."""
    libc = ctypes.CDLL(None, use_errno=True)
    fd = os.open(path, os.O_RDONLY)
    try:
        size = os.lseek(fd, 0, os.SEEK_END)
        libc.mmap.restype = ctypes.c_void_p
        address = libc.mmap(None, ctypes.c_size_t(size), mmap.PROT_READ, mmap.MAP_SHARED, fd, ctypes.c_long(0))
        pages = (ctypes.c_ubyte * (size // mmap.PAGESIZE))()
        assert libc.mincore(ctypes.c_void_p(address), ctypes.c_size_t(size), pages) == 0
        libc.munmap(ctypes.c_void_p(address), ctypes.c_size_t(size))
        return sum(page & 1 for page in pages) * mmap.PAGESIZE
    finally:
        os.close(fd)
