# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""On a real block device: exclusive, past the page cache, zeroed by the kernel; with whole images written to it."""

from __future__ import annotations

import os
import pathlib
import subprocess
import typing as t

import pytest
from ansible_collections.h200.rack.plugins.module_utils._common.deadline import Deadline
from ansible_collections.h200.rack.plugins.module_utils._common.errors import RackError
from ansible_collections.h200.rack.plugins.module_utils._image import deploy, disks, gpt
from ansible_collections.h200.rack.plugins.module_utils._image.mirrors import Pool
from ansible_collections.h200.rack.plugins.module_utils._image.target import DiskError, Target, buffer
from image_testing import MIB, RAW_SIZE

SIZE = 96 * MIB


@pytest.fixture
def loop(tmp_path: pathlib.Path) -> t.Iterator[str]:
    backing = tmp_path / "backing"
    with backing.open("wb") as handle:
        handle.truncate(SIZE)
    done = subprocess.run(["losetup", "--show", "-f", str(backing)], capture_output=True, text=True, check=False)
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


def as_disk(device: str) -> disks.Disk:
    return disks.Disk(device, SIZE, 512, "LOOP", "", "", "", "", False, (), "", "", ())


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
    table = gpt.parse(data[:MIB])
    assert table is not None and table.partitions[-1].name == "CIDATA"
    with pytest.raises(RackError), Target(loop, writable=True) as target:
        held = as_disk(loop)._replace(content=(f"{loop}: gpt",))
        other = request._replace(seed={"hostname": "gpu002"})
        deploy.Deployment(other, published.digest, published.manifest, held, target, pool).run(check_mode=False)
