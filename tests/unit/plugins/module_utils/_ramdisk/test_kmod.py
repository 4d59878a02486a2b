# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest
from ansible_collections.h200.rack.plugins.module_utils._common.errors import InvalidInput
from ansible_collections.h200.rack.plugins.module_utils._ramdisk import kmod

DEP = kmod.parse_dep(
    """\
kernel/drivers/net/ethernet/intel/ice/ice.ko.xz: kernel/drivers/gnss/gnss.ko.xz
kernel/drivers/gnss/gnss.ko.xz:
kernel/drivers/net/ethernet/intel/e1000/e1000.ko.xz:
kernel/drivers/gpu/drm/nouveau/nouveau.ko.xz: kernel/drivers/gpu/drm/drm.ko.xz
kernel/drivers/gpu/drm/drm.ko.xz:
kernel/fs/ext4/ext4.ko.xz:
kernel/arch/x86/crypto/crc32c-intel.ko.xz:
"""
)


def names(*patterns, exclude=(), softdep=None):
    return {kmod.name_of(path) for path in kmod.select(DEP, softdep or {}, patterns, exclude)}


def test_a_module_without_what_it_needs_would_not_load():
    assert names("ice") == {"ice", "gnss"}


def test_a_folder_of_drivers_is_kept_whole():
    assert names("drivers/net/ethernet/intel/*") == {"ice", "gnss", "e1000"}


def test_a_dash_in_a_file_name_is_an_underscore_in_a_module_name():
    assert names("crc32c_intel") == names("crc32c-intel") == {"crc32c_intel"}


def test_a_soft_dependency_comes_along_unless_it_is_excluded():
    soft = kmod.parse_softdep("softdep ext4 pre: crc32c-intel\n")
    assert names("ext4", softdep=soft) == {"ext4", "crc32c_intel"}
    assert names("ext4", softdep=soft, exclude=["crc32c_intel"]) == {"ext4"}


def test_an_exclusion_wins_over_a_pattern():
    assert "nouveau" not in names("*", exclude=["nouveau"])


def test_an_exclusion_that_a_kept_module_needs_is_said():
    with pytest.raises(InvalidInput, match="gnss"):
        names("ice", exclude=["gnss"])


def test_a_module_built_into_the_kernel_is_not_missing():
    kept = kmod.select(DEP, {}, ["ice"], [])
    assert kmod.missing(["ice", "efivarfs", "vfat"], kept, "kernel/fs/efivarfs/efivarfs.ko\n") == ["vfat"]


def test_firmware_is_read_from_the_module_itself():
    data = b"\0ELF\0license=GPL\0firmware=tigon/tg3.bin\0firmware=tigon/tg3_tso.bin\0firmware=tigon/tg3.bin\0"
    assert kmod.firmware_of(data) == ["tigon/tg3.bin", "tigon/tg3_tso.bin"]


def test_a_firmware_link_without_its_target_would_be_useless(tmp_path):
    folder = tmp_path / "intel/ice/ddp"
    folder.mkdir(parents=True)
    (folder / "ice-1.3.pkg").write_bytes(b"x")
    (folder / "ice.pkg").symlink_to("ice-1.3.pkg")
    present, absent = kmod.find_firmware(["intel/ice/ddp/ice.pkg", "no/such.bin"], str(tmp_path))
    assert sorted(present) == ["intel/ice/ddp/ice-1.3.pkg", "intel/ice/ddp/ice.pkg"]
    assert absent == ["no/such.bin"]
