# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest
from ansible_collections.h200.rack.plugins.module_utils._common.errors import InvalidInput
from ansible_collections.h200.rack.plugins.module_utils._image import disks as d
from hypothesis import given
from hypothesis import strategies as st

GIB = 1 << 30


def row(name: str, **changes) -> dict:
    base = {
        "name": name,
        "kname": name,
        "path": f"/dev/{name}",
        "type": "disk",
        "size": 960 * 10**9,
        "ro": False,
        "rm": False,
        "model": "SAMSUNG MZ1L2960HCJR",
        "serial": f"SER-{name}",
        "wwn": f"eui.{name}",
        "vendor": None,
        "rota": False,
        "hctl": None,
        "tran": "nvme",
        "log-sec": 512,
        "fstype": None,
        "pttype": None,
        "label": None,
        "mountpoints": [None],
    }
    return {**base, **changes}


def found(*rows, **more):
    return d.from_lsblk({"blockdevices": list(rows)}, **more)


def test_one_disk_by_serial() -> None:
    assert d.select(found(row("nvme0n1"), row("nvme1n1")), {"serial": "ser-NVME1N1"}).path == "/dev/nvme1n1"


def test_two_equal_disks_are_never_settled_by_taking_the_first() -> None:
    with pytest.raises(d.NotOneDisk) as caught:
        d.select(found(row("nvme0n1"), row("nvme1n1")), {"model": "SAMSUNG MZ1L2960HCJR"})
    assert "2 disks" in caught.value.msg
    for word in ("SER-nvme0n1", "SER-nvme1n1", "894.1 GiB", "SAMSUNG"):
        assert word in caught.value.msg


def test_no_match_lists_every_disk() -> None:
    with pytest.raises(d.NotOneDisk) as caught:
        d.select(found(row("nvme0n1")), {"serial": "typo"})
    assert "no disk matches serial=typo" in caught.value.msg and "SER-nvme0n1" in caught.value.msg


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"ro": True}, "read-only"),
        ({"rm": True}, "removable"),
        ({"tran": "usb"}, "removable"),
        ({"vendor": "AMI", "model": "Virtual CDROM0"}, "virtual"),
        ({"vendor": "iDRAC", "model": "LCDRIVE"}, "virtual"),
        ({"model": "Virtual HDisk0"}, "virtual"),
        ({"type": "rom"}, "no disk"),
        ({"type": "loop"}, "no disk"),
        ({"size": 0}, "no medium"),
    ],
)
def test_media_that_come_and_go_are_never_candidates(changes, word) -> None:
    disks = found(row("sdz", **changes))
    assert word in disks[0].unfit
    with pytest.raises(d.NotOneDisk):
        d.select(disks, {"serial": "SER-sdz"})


@pytest.mark.parametrize("name", ["zram0", "ram1", "nbd0", "loop3", "sr0"])
def test_devices_that_are_no_disks_are_never_candidates(name) -> None:
    assert found(row(name))[0].unfit


def test_a_virtio_disk_of_a_virtual_machine_is_a_disk() -> None:
    assert not found(row("vda", vendor="0x1af4", model=None, tran="virtio"))[0].unfit


def test_serials_that_lsblk_does_not_know_come_from_sysfs() -> None:
    disks = found(row("vda", serial=None), serials={"vda": "VRACK-GPU001"})
    assert d.select(disks, {"serial": "VRACK-GPU001"}).path == "/dev/vda"


@pytest.mark.parametrize("hint", ["pci-0000:01:00.0-nvme-1", "/dev/disk/by-path/pci-0000:01:00.0-nvme-1"])
def test_by_path(hint) -> None:
    disks = found(row("nvme0n1"), row("nvme1n1"), by_path={"nvme1n1": ["pci-0000:01:00.0-nvme-1"]})
    assert d.select(disks, {"by_path": hint}).path == "/dev/nvme1n1"


@pytest.mark.parametrize(
    ("hint", "fits"),
    [
        ("894", True),
        (894, True),
        (">= 800", True),
        ("<800", False),
        ("!=894", False),
        ("== 894", True),
        (">894", False),
    ],
)
def test_sizes_are_whole_gib(hint, fits) -> None:
    assert d.matches(found(row("nvme0n1"))[0], {"size": hint}) is fits


@pytest.mark.parametrize(("hint", "fits"), [(True, False), ("false", True), (False, True)])
def test_rotational(hint, fits) -> None:
    assert d.matches(found(row("nvme0n1"))[0], {"rotational": hint}) is fits


def test_wwn_with_and_without_prefix() -> None:
    disk = found(row("sda", wwn="0x5000c500a1b2c3d4"))[0]
    assert d.matches(disk, {"wwn": "5000C500A1B2C3D4"}) and d.matches(disk, {"wwn": "0x5000c500a1b2c3d4"})


@pytest.mark.parametrize(
    ("hints", "word"),
    [
        ({}, "no hint"),
        ({"serial": None}, "no hint"),
        ({"raid1": ["a", "b"]}, "not yet"),
        ({"serail": "x"}, "unknown"),
        ({"size": "big"}, "size"),
        ({"size": True}, "size"),
        ({"rotational": "maybe"}, "rotational"),
        ({"path": "/dev/sda", "serial": "x"}, "stands alone"),
    ],
)
def test_hints_that_make_no_sense_are_refused(hints, word) -> None:
    with pytest.raises(InvalidInput, match=word):
        d.select(found(row("nvme0n1")), hints)


def test_a_mounted_partition_holds_the_disk() -> None:
    child = row("sda1", type="part", fstype="ext4", mountpoints=["/"])
    assert found(row("sda", pttype="gpt", children=[child]))[0].in_use == "/dev/sda1 is mounted at /"


def test_a_raid_or_volume_on_the_disk_holds_it() -> None:
    child = row("md0", type="raid1", path="/dev/md0")
    assert "/dev/md0" in found(row("sda", children=[child]))[0].in_use


def test_old_lsblk_says_mountpoint() -> None:
    disk = row("sda", mountpoint="/mnt")
    del disk["mountpoints"]
    assert "/mnt" in found(disk)[0].in_use


def test_what_is_on_the_disk_is_named() -> None:
    child = row("sda1", type="part", fstype="ext4", label="data")
    content = found(row("sda", pttype="gpt", children=[child]))[0].content
    assert content == ("/dev/sda: gpt", "/dev/sda1: ext4 (data)")


@given(
    st.lists(
        st.fixed_dictionaries({"serial": st.sampled_from(["A", "B", ""]), "size": st.sampled_from([0, GIB, 2 * GIB])}),
        max_size=5,
    ),
    st.dictionaries(st.sampled_from(["serial", "size"]), st.sampled_from(["A", "B", "1", ">=1"]), max_size=2),
)
def test_whatever_is_there_a_chosen_disk_is_the_only_fitting_one(rows, hints) -> None:
    disks = found(*(row(f"sd{chr(97 + n)}", **changes) for n, changes in enumerate(rows)))
    try:
        chosen = d.select(disks, hints)
    except (InvalidInput, d.NotOneDisk):
        return
    assert [disk for disk in disks if d.matches(disk, hints) and not disk.unfit] == [chosen]
