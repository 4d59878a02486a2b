# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import shutil
import subprocess
import uuid

import pytest
from ansible_collections.h200.rack.plugins.module_utils._common.errors import InvalidInput
from ansible_collections.h200.rack.plugins.module_utils._image import gpt

MIB = 1 << 20
GUID = uuid.UUID("11111111-2222-3333-4444-555555555555")


def table(sector: int = 512) -> gpt.Table:
    per = MIB // sector
    parts = (
        gpt.Partition(1, gpt.EFI_SYSTEM, uuid.uuid4(), per, 17 * per - 1, "EFI system"),
        gpt.Partition(3, gpt.LINUX_FILESYSTEM, uuid.uuid4(), 17 * per, 60 * per - 1, "root"),
    )
    return gpt.Table(sector, uuid.uuid4(), per, 128, 128, parts, (0, 4))


def disk(size: int = 64 * MIB, sector: int = 512) -> bytearray:
    data = bytearray(size)
    data[510:512] = b"\x55\xaa"
    data[446 + 4] = 0xEE
    data[446 + 8] = 1
    head, backup, offset = gpt.apply(bytes(data[:MIB]), table(sector), size)
    data[:MIB] = head
    data[offset : offset + len(backup)] = backup
    return data


@pytest.mark.parametrize("sector", [512, 4096])
def test_a_built_table_is_parsed_as_it_was(sector) -> None:
    parsed = gpt.parse(bytes(disk(sector=sector)[:MIB]))
    assert parsed is not None and parsed.sector_size == sector
    assert [(p.number, p.name) for p in parsed.partitions] == [(1, "EFI system"), (3, "root")]
    assert parsed.attributes == (0, 4)


def test_the_seed_gets_a_free_number_and_the_end_of_the_disk() -> None:
    size = 200 * MIB
    extended = gpt.add_at_end(table(), size, 4 * MIB, "CIDATA", GUID)
    seed = extended.partitions[-1]
    assert (seed.number, seed.guid) == (2, GUID)
    assert seed.first_lba * 512 % MIB == 0
    assert (seed.last_lba + 1) * 512 <= size - 33 * 512


def test_a_seed_that_would_overlap_the_image_is_refused() -> None:
    with pytest.raises(InvalidInput, match="no room"):
        gpt.add_at_end(table(), 62 * MIB, 4 * MIB, "CIDATA", GUID)


@pytest.mark.skipif(shutil.which("sgdisk") is None, reason="sgdisk is not installed")
def test_sgdisk_finds_no_fault_with_a_table_moved_to_a_larger_disk(tmp_path) -> None:
    size = 100 * MIB
    data = disk()
    parsed = gpt.parse(bytes(data[:MIB]))
    head, backup, offset = gpt.apply(bytes(data[:MIB]), gpt.add_at_end(parsed, size, 4 * MIB, "CIDATA", GUID), size)
    path = tmp_path / "disk"
    with path.open("wb") as handle:
        handle.truncate(size)
        handle.write(head)
        handle.seek(offset)
        handle.write(backup)
    said = subprocess.run(["sgdisk", "-v", str(path)], capture_output=True, text=True, check=True).stdout
    assert "No problems found" in said
    assert "CIDATA" in subprocess.run(["sgdisk", "-p", str(path)], capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize("position", [512 + 8, 512 + 16, 512 + 80, 1024 + 40])
def test_a_damaged_table_is_refused_and_not_repaired(position) -> None:
    data = disk()
    data[position] ^= 0xFF
    with pytest.raises(InvalidInput):
        gpt.parse(bytes(data[:MIB]))


def test_no_table_is_none() -> None:
    assert gpt.parse(bytes(MIB)) is None
