# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the built ramdisk carries. Without one there is nothing to look at: the virtual rack's build makes it."""

from __future__ import annotations

import json
import pathlib

import pytest

BUILT = pathlib.Path(__file__).parents[3] / ".cache/build/ramdisk/x86_64"
MODULES = [
    *("mlx5_core", "bnxt_en", "ice", "i40e", "ixgbe", "igb", "tg3", "virtio_net"),
    *("nvme", "ahci", "megaraid_sas", "mpt3sas", "virtio_blk", "md_mod"),
    *("ext4", "xfs", "vfat", "efivarfs", "ipmi_si", "ipmi_devintf"),
]

pytestmark = pytest.mark.skipif(not (BUILT / "contents.json").exists(), reason="no ramdisk is built here")


@pytest.fixture(scope="module")
def contents():
    return json.loads((BUILT / "contents.json").read_text())


@pytest.mark.parametrize("name", MODULES)
def test_a_server_would_be_without_its_network_disk_or_bmc(contents, name):
    assert name in contents["modules"] + contents["builtin"]


def test_no_driver_takes_the_gpus(contents):
    assert not {"nouveau", "nova_core", "nvidia"} & set(contents["modules"] + contents["builtin"])


@pytest.mark.parametrize("part", ["tigon/tg3.bin", "intel/ice/ddp/ice.pkg"])
def test_a_card_would_be_without_the_firmware_that_its_driver_names(contents, part):
    firmware = contents["firmware"]
    if not firmware["present"]:
        pytest.skip("the apt sources of the build had no firmware")
    assert part in firmware["present"]


def test_it_leaves_room_in_two_gibibytes(contents):
    # The archive, its unpacked copy, the kernel, and a gibibyte for what runs there.
    assert 2 * contents["files"]["initrd.img"]["size"] < 600 << 20
