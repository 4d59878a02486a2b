# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""GUID partition tables as bytes: read, moved to the end of a larger disk, extended. Private to h200.rack.

The table of the written disk is computed before anything is written, so the first sectors can go to the disk last
and already hold the final table; no tool has to correct the disk afterwards.
"""

from __future__ import annotations

import struct
import typing as t
import uuid
import zlib

from ansible_collections.h200.rack.plugins.module_utils._common.errors import InvalidInput

EFI_SYSTEM = uuid.UUID("c12a7328-f81f-11d2-ba4b-00a0c93ec93b")
BIOS_BOOT = uuid.UUID("21686148-6449-6e6f-744e-656564454649")
LINUX_FILESYSTEM = uuid.UUID("0fc63daf-8483-4772-8e79-3d69d8477de4")
MICROSOFT_BASIC_DATA = uuid.UUID("ebd0a0a2-b9e5-4433-87c0-68b6b72699c7")

_HEADER = struct.Struct("<8sIIIIQQQQ16sQIII")
_ENTRY = struct.Struct("<16s16sQQQ72s")
_SIGNATURE = b"EFI PART"
_REVISION = 0x10000
_MAX_ENTRIES = 1024


class Partition(t.NamedTuple):
    number: int
    type_guid: uuid.UUID
    guid: uuid.UUID
    first_lba: int
    last_lba: int
    name: str


class Table(t.NamedTuple):
    sector_size: int
    disk_guid: uuid.UUID
    first_usable: int
    entry_size: int
    entry_count: int
    partitions: tuple[Partition, ...]
    attributes: tuple[int, ...]


def detect_sector_size(head: bytes) -> int | None:
    """The sector size that the table at the start of a disk was made for, or None when there is no table."""
    for size in (512, 4096):
        if head[size : size + 8] == _SIGNATURE:
            return size
    return None


def parse(head: bytes) -> Table | None:
    """The table in the first bytes of a disk, None when there is none. Raises when there is a broken one."""
    sector = detect_sector_size(head)
    if sector is None:
        return None
    fields = _HEADER.unpack_from(head, sector)
    header_size, header_crc = fields[2], fields[3]
    entries_lba, count, size, entries_crc = fields[10], fields[11], fields[12], fields[13]
    start, length = entries_lba * sector, count * size
    if header_size < _HEADER.size or header_size > sector or count > _MAX_ENTRIES or size < 128 or size % 8:
        raise InvalidInput("the partition table has a header that makes no sense")
    header = head[sector : sector + header_size]
    if zlib.crc32(header[:16] + bytes(4) + header[20:]) != header_crc:
        raise InvalidInput("the partition table's header has a wrong checksum")
    if start + length > len(head):
        raise InvalidInput("the partition table does not end where the first sectors do")
    raw = head[start : start + length]
    if zlib.crc32(raw) != entries_crc:
        raise InvalidInput("the partition table's entries have a wrong checksum")
    partitions, attributes = [], []
    for index in range(count):
        kind, guid, first, last, flags, name = _ENTRY.unpack_from(raw, index * size)
        if kind != bytes(16):
            text = name.decode("utf-16-le", "replace").rstrip("\0")
            partitions.append(
                Partition(index + 1, uuid.UUID(bytes_le=kind), uuid.UUID(bytes_le=guid), first, last, text)
            )
            attributes.append(flags)
    return Table(sector, uuid.UUID(bytes_le=fields[9]), fields[7], size, count, tuple(partitions), tuple(attributes))


def reserved_sectors(table: Table) -> int:
    """Sectors that the copy at the end of the disk takes: the entries and the header."""
    return -(-table.entry_size * table.entry_count // table.sector_size) + 1


def add_at_end(table: Table, disk_size: int, size: int, name: str, guid: uuid.UUID, align: int = 1 << 20) -> Table:
    """The table with one more partition of ``size`` bytes that ends where the disk's usable space does."""
    sector = table.sector_size
    last_usable = disk_size // sector - reserved_sectors(table) - 1
    first = ((last_usable + 1) * sector - size) // align * align // sector
    last = first + size // sector - 1
    end = max((partition.last_lba for partition in table.partitions), default=table.first_usable - 1)
    if first <= end:
        raise InvalidInput(f"no room for the partition {name} of {size} bytes behind the image's last partition")
    used = {partition.number for partition in table.partitions}
    number = next((n for n in range(1, table.entry_count + 1) if n not in used), None)
    if number is None:
        raise InvalidInput("the partition table has no free entry")
    added = Partition(number, MICROSOFT_BASIC_DATA, guid, first, last, name)
    return table._replace(partitions=(*table.partitions, added), attributes=(*table.attributes, 0))


def build(table: Table, disk_size: int) -> tuple[bytes, bytes, int]:
    """The header and entries for the start of the disk (from sector 1), those for its end, and the latter's offset."""
    sector = table.sector_size
    sectors = disk_size // sector
    entries = bytearray(table.entry_size * table.entry_count)
    for partition, flags in zip(table.partitions, table.attributes):
        _ENTRY.pack_into(
            entries,
            (partition.number - 1) * table.entry_size,
            partition.type_guid.bytes_le,
            partition.guid.bytes_le,
            partition.first_lba,
            partition.last_lba,
            flags,
            partition.name.encode("utf-16-le")[:72],
        )
    entry_sectors = reserved_sectors(table) - 1
    padded = bytes(entries).ljust(entry_sectors * sector, b"\0")
    backup_lba = sectors - 1
    last_usable = sectors - reserved_sectors(table) - 1

    def header(here: int, there: int, entries_lba: int) -> bytes:
        def packed(crc: int) -> bytes:
            return _HEADER.pack(
                _SIGNATURE,
                _REVISION,
                _HEADER.size,
                crc,
                0,
                here,
                there,
                table.first_usable,
                last_usable,
                table.disk_guid.bytes_le,
                entries_lba,
                table.entry_count,
                table.entry_size,
                zlib.crc32(entries),
            )

        return packed(zlib.crc32(packed(0))).ljust(sector, b"\0")

    primary = header(1, backup_lba, 2) + padded
    backup = padded + header(backup_lba, 1, backup_lba - entry_sectors)
    return primary, backup, (backup_lba - entry_sectors) * sector


def apply(head: bytes, table: Table, disk_size: int) -> tuple[bytes, bytes, int]:
    """``head`` with the table put in and its protective MBR as large as the disk; then the copy and its offset."""
    sector = table.sector_size
    primary, backup, offset = build(table, disk_size)
    changed = bytearray(head)
    if len(head) < sector + len(primary) or table.first_usable * sector < sector + len(primary):
        raise InvalidInput("the image's first partition begins within its partition table")
    changed[sector : sector + len(primary)] = primary
    for index in range(4):
        at = 446 + 16 * index
        if changed[at + 4] == 0xEE:
            start = struct.unpack_from("<I", changed, at + 8)[0]
            struct.pack_into("<I", changed, at + 12, min(disk_size // sector - start, 0xFFFFFFFF))
    return bytes(changed), backup, offset
