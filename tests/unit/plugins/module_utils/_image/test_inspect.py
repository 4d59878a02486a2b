# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest
from ansible_collections.h200.rack.plugins.module_utils._common.errors import InvalidInput
from ansible_collections.h200.rack.plugins.module_utils._image import inspect

STATUS = """Package: nvidia-driver-570-server
Status: install ok installed
Version: 570.86.15-0ubuntu1

Package: nvidia-fabricmanager-570
Status: install ok installed
Version: 1:570.86.15-1
Description: x
 Status: a continued line

Package: linux-image-6.8.0-50-generic
Status: install ok installed
Version: 6.8.0-50.51

Package: libnccl2
Status: deinstall ok config-files
Version: 2.20
"""


def test_installed_packages_are_found_and_removed_ones_are_not() -> None:
    found = inspect.dpkg_fields(STATUS)
    assert found["kernel"] == "6.8.0-50-generic" and "nccl" not in found
    inspect.require_same_driver(found)


def test_a_fabric_manager_of_another_version_is_refused() -> None:
    with pytest.raises(InvalidInput, match="570.86.15 but fabric manager 570.124.06"):
        inspect.require_same_driver({"nvidia_driver": "570.86.15-0ubuntu1", "fabric_manager": "570.124.06-1"})


def test_distribution() -> None:
    assert inspect.os_release_fields('ID=debian\nVERSION_ID="12"\n# x\n') == {"distribution": "debian 12"}


def test_an_image_that_boots_by_nothing_is_refused() -> None:
    with pytest.raises(InvalidInput, match="boot"):
        inspect.boot_of(bytes(1 << 20))


def test_boot_code_in_the_first_sector_is_bios() -> None:
    assert inspect.boot_of(b"\xeb" + bytes((1 << 20) - 1)) == "bios"
