# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
import os

import pytest
from ansible_collections.h200.rack.plugins.module_utils._common.deadline import Deadline
from ansible_collections.h200.rack.plugins.module_utils._common.errors import DeadlineExceeded, InvalidInput, RackError
from ansible_collections.h200.rack.plugins.module_utils._image import erasers, wipe

IDENTIFY = """
ATA device, with non-removable media
Commands/features:
           *        CRYPTO_SCRAMBLE_EXT command
           *        SANITIZE feature set
Security:
        Master password revision code = 65534
                supported
        not        enabled
        not        locked
        {frozen}        frozen
        not        expired: security count
                supported: enhanced erase
Logical Unit WWN Device Identifier: 5002538e
"""


def ways(**id_ctrl):
    namespaces = id_ctrl.pop("namespaces", 1)
    return [eraser.how for eraser in erasers.nvme_erasers("/dev/nvme0n1", id_ctrl, namespaces)]


def test_crypto_erase_only_where_the_disk_offers_it() -> None:
    assert ways(oacs=0x1F, fna=0x4) == ["nvme format -s 2", "nvme format -s 1"]
    assert ways(oacs=0x1F, fna=0x0) == ["nvme format -s 1"]
    assert ways(oacs=0, fna=0x4) == []
    assert ways(oacs=0, sanicap=0x3) == ["nvme sanitize -a 4", "nvme sanitize -a 2"]


def test_other_namespaces_of_a_controller_are_not_erased_along() -> None:
    assert ways(oacs=0x2, fna=0x7, sanicap=0x3, namespaces=2) == []
    assert ways(oacs=0x2, fna=0x4, sanicap=0x3, namespaces=2) == ["nvme format -s 2", "nvme format -s 1"]


def test_format_without_erase_is_never_a_way_to_erase() -> None:
    for fna in range(8):
        for eraser in erasers.nvme_erasers("/dev/nvme0n1", {"oacs": 0xFF, "fna": fna, "sanicap": 7}, 1):
            assert not {"0"} & set(eraser.commands[0])


def test_a_frozen_ata_disk_offers_no_security_erase() -> None:
    free = [eraser.how for eraser in erasers.ata_erasers("/dev/sda", IDENTIFY.format(frozen="not"))]
    assert free == ["ata crypto scramble", "ata security erase enhanced"]
    frozen = [eraser.how for eraser in erasers.ata_erasers("/dev/sda", IDENTIFY.format(frozen=""))]
    assert frozen == ["ata crypto scramble"]


@pytest.mark.parametrize(("status", "done"), [(0x101, True), (0x2, None), (0x103, False), (4, True), (0, None)])
def test_sanitize_status(status, done) -> None:
    assert erasers.nvme_sanitize_done(json.dumps({"sprog": 1, "sstat": status})) is done
    assert erasers.nvme_sanitize_done(json.dumps({"nvme0": {"sprog": 1, "sstat": {"status": status}}})) is done


def request(path, **changes) -> wipe.Request:
    options = {"confirm": "gpu001", "node": "gpu001", "disk": {"path": str(path)}, "require_ramdisk": False}
    return wipe.Request(**{**options, **changes})


@pytest.fixture
def disk(tmp_path):
    path = tmp_path / "disk"
    path.write_bytes(os.urandom(9 << 20))
    return path


def test_nothing_is_erased_without_the_nodes_name(disk) -> None:
    before = disk.read_bytes()
    with pytest.raises(InvalidInput, match="confirm"):
        wipe.wipe(request(disk, confirm="yes"))
    assert disk.read_bytes() == before


def test_an_overwritten_disk_is_zeros_and_erased(disk) -> None:
    outcome = wipe.wipe(request(disk))
    assert [row["verdict"] for row in outcome.disks] == ["erased"] and not outcome.failed
    assert outcome.disks[0]["method"] == "overwrite"
    assert not any(disk.read_bytes())


def test_a_method_the_disk_lacks_is_unsupported_and_not_erased(disk) -> None:
    outcome = wipe.wipe(request(disk, methods=("crypto",)))
    assert outcome.failed and outcome.disks[0]["verdict"] == "unsupported"


def test_check_mode_erases_nothing(disk) -> None:
    before = disk.read_bytes()
    outcome = wipe.wipe(request(disk), check_mode=True)
    assert outcome.disks[0]["verdict"] == "would_erase" and disk.read_bytes() == before


def test_too_little_time_is_a_timeout_and_not_erased(disk) -> None:
    outcome = wipe.wipe(request(disk, timeout=0))
    assert outcome.failed and outcome.disks[0]["verdict"] == "timeout"


def test_a_command_that_erases_nothing_does_not_count(disk) -> None:
    from ansible_collections.h200.rack.plugins.module_utils._image import probe

    with pytest.raises(RackError, match="still there"):
        wipe._proven(probe.file_as_disk(str(disk)), "crypto", lambda: None)


def test_an_eraser_that_never_ends_meets_its_deadline(tmp_path) -> None:
    eraser = erasers.Eraser("crypto", "x", (), ("nvme", "sanitize-log"))
    fake = tmp_path / "nvme"
    fake.write_text("#!/bin/sh\necho '{\"sstat\": 2}'\n")
    fake.chmod(0o755)
    clock = iter(range(0, 1000, 3))
    deadline = Deadline(10, clock=lambda: next(clock), sleep=lambda _seconds: None)
    path = os.environ["PATH"]
    os.environ["PATH"] = f"{tmp_path}:{path}"
    try:
        with pytest.raises(DeadlineExceeded):
            erasers.erase(eraser, deadline)
    finally:
        os.environ["PATH"] = path
