# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Each way to erase, with stand-ins for the tools that obey, lie, fail or never end. The disk is a file."""

from __future__ import annotations

import json
import os
import pathlib
import typing as t

import pytest
from ansible_collections.h200.rack.plugins.module_utils._image import erasers, wipe

SIZE = 2 << 20
NVME = """#!/bin/sh
echo "nvme $*" >> {log}
case $1 in
  id-ctrl) cat {folder}/id-ctrl ;;
  format) . {folder}/format ;;
  sanitize) . {folder}/sanitize ;;
  sanitize-log) cat {folder}/sanitize-log ;;
esac
"""
HDPARM = """#!/bin/sh
echo "hdparm $*" >> {log}
case "$*" in
  -I*) cat {folder}/identify ;;
  *--security-erase*) . {folder}/erase ;;
  *--sanitize-crypto*) . {folder}/scramble ;;
  *--sanitize-status*) cat {folder}/sanitize-status ;;
esac
"""
GARBAGE = "head -c {size} /dev/urandom > {disk}"
ZEROS = "head -c {size} /dev/zero > {disk}"
NOTHING = ":"
REFUSED = "echo 'NVMe status: INVALID_OPCODE' >&2; exit 1"
SANITIZED = {"sprog": 65535, "sstat": 1}


class Bench:
    """A disk, the tools that it is erased with, and what was asked of them."""

    def __init__(self, folder: pathlib.Path, name: str) -> None:
        self.folder = folder
        self.log = folder / "log"
        self.log.touch()
        self.disk = folder / name
        self.disk.write_bytes(os.urandom(SIZE))
        self.before = self.disk.read_bytes()
        for tool, text in (("nvme", NVME), ("hdparm", HDPARM)):
            path = folder / "bin" / tool
            path.parent.mkdir(exist_ok=True)
            path.write_text(text.format(folder=folder, log=self.log))
            path.chmod(0o755)

    def set(self, **parts: t.Any) -> None:
        """The tools' behaviour: shell for a command, and else what is printed."""
        for name, value in parts.items():
            text = value if isinstance(value, str) else json.dumps(value)
            path = self.folder / name.replace("_", "-")
            path.write_text(text.replace("{size}", str(SIZE)).replace("{disk}", str(self.disk)) + "\n")

    def wipe(self, **changes: t.Any) -> dict[str, t.Any]:
        options = {"confirm": "n", "node": "n", "disk": {"path": str(self.disk)}, "require_ramdisk": False, **changes}
        outcome = wipe.wipe(wipe.Request(**options))
        (result,) = outcome.disks
        assert outcome.failed is (result["verdict"] != "erased")
        return result

    def asked(self) -> list[str]:
        return [line for line in self.log.read_text().splitlines() if " id-ctrl " not in line and " -I " not in line]


@pytest.fixture
def bench(tmp_path, monkeypatch) -> t.Callable[[str], Bench]:
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:{os.environ['PATH']}")
    monkeypatch.setattr(erasers, "_POLL", 0.05)

    def make(transport: str, namespaces: int = 1) -> Bench:
        monkeypatch.setattr(wipe, "_transport", lambda _path: transport)
        monkeypatch.setattr(wipe, "_namespaces", lambda _path: namespaces)
        return Bench(tmp_path, "nvme0n1" if transport == "nvme" else "sda")

    return make


FORMAT = {"oacs": 2, "fna": 4}
SANITIZE = {"oacs": 0, "sanicap": 3}


@pytest.mark.parametrize(
    ("id_ctrl", "method", "how"),
    [
        (FORMAT, "crypto", "nvme format -s 2"),
        (SANITIZE, "crypto", "nvme sanitize -a 4"),
        ({"oacs": 2, "fna": 0}, "user_data", "nvme format -s 1"),
        ({"oacs": 0, "sanicap": 2}, "user_data", "nvme sanitize -a 2"),
    ],
)
def test_an_nvme_disk_is_erased_by_the_best_that_it_offers(bench, id_ctrl, method, how) -> None:
    one = bench("nvme")
    one.set(id_ctrl=id_ctrl, format=GARBAGE, sanitize=ZEROS, sanitize_log={"nvme0": SANITIZED})
    result = one.wipe()
    assert (result["verdict"], result["method"], result["how"], result["tried"]) == ("erased", method, how, [])
    assert one.disk.read_bytes() != one.before


def test_an_erase_that_says_success_and_left_the_data_is_not_believed(bench) -> None:
    one = bench("nvme")
    # -s 2 does nothing, -s 1 works.
    one.set(id_ctrl=FORMAT, format=f'[ "$4" = 2 ] || {ZEROS}')
    result = one.wipe()
    assert (result["verdict"], result["how"]) == ("erased", "nvme format -s 1")
    assert "still there" in result["tried"][0]


def test_a_command_that_the_disk_refuses_is_followed_by_the_next_best(bench) -> None:
    one = bench("nvme")
    one.set(id_ctrl=FORMAT, format=REFUSED)
    result = one.wipe()
    assert (result["verdict"], result["method"]) == ("erased", "overwrite")
    assert len(result["tried"]) == 2 and all("INVALID_OPCODE" in text for text in result["tried"])
    assert not any(one.disk.read_bytes())
    # Format without an erase is never tried.
    assert not any("-s 0" in line for line in one.asked())


def test_a_disk_that_refuses_all_that_is_allowed_is_failed(bench) -> None:
    one = bench("nvme")
    one.set(id_ctrl=FORMAT, format=REFUSED)
    result = one.wipe(methods=("crypto", "user_data"))
    assert result["verdict"] == "failed" and one.disk.read_bytes() == one.before


def test_a_sanitize_that_never_ends_is_a_timeout_and_nothing_else_is_done_to_the_disk(bench) -> None:
    one = bench("nvme")
    one.set(id_ctrl=SANITIZE, sanitize=NOTHING, sanitize_log={"sprog": 100, "sstat": 2})
    result = one.wipe(timeout=0.5)
    assert result["verdict"] == "timeout" and "goes on in the disk" in result["tried"][0]
    assert one.disk.read_bytes() == one.before


def test_a_sanitize_that_fails_is_not_erased(bench) -> None:
    one = bench("nvme")
    one.set(id_ctrl={"oacs": 0, "sanicap": 1}, sanitize=NOTHING, sanitize_log={"sprog": 0, "sstat": 3})
    result = one.wipe(methods=("crypto",))
    assert result["verdict"] == "failed" and "says that it failed" in result["tried"][0]


def test_a_command_that_hangs_meets_the_deadline(bench) -> None:
    one = bench("nvme")
    one.set(id_ctrl=FORMAT, format="exec sleep 60")
    result = one.wipe(timeout=0.5, methods=("crypto",))
    assert result["verdict"] != "erased" and result["seconds"] < 30


def test_other_namespaces_keep_a_disk_from_being_formatted(bench) -> None:
    one = bench("nvme", namespaces=2)
    one.set(id_ctrl={"oacs": 2, "fna": 7, "sanicap": 3}, format=ZEROS)
    assert one.wipe()["method"] == "overwrite" and one.asked() == []


IDENTIFY = """
Commands/features:
{scramble}
Security:
        Master password revision code = 65534
                supported
        not        enabled
        not        locked
        {frozen}        frozen
                supported: enhanced erase
Logical Unit WWN Device Identifier: 5002538e
"""
SCRAMBLE = "           *        CRYPTO_SCRAMBLE_EXT command"


def identify(scramble: bool = False, frozen: bool = False) -> str:
    return IDENTIFY.format(scramble=SCRAMBLE if scramble else "", frozen="" if frozen else "not")


def test_a_sata_disk_scrambles_its_key(bench) -> None:
    one = bench("sata")
    one.set(identify=identify(scramble=True), scramble=GARBAGE)
    one.set(sanitize_status="Last Sanitize Operation Completed Without Error")
    result = one.wipe()
    assert (result["verdict"], result["method"], result["how"]) == ("erased", "crypto", "ata crypto scramble")


def test_a_sata_disk_erases_itself_under_a_password_that_is_gone_afterwards(bench) -> None:
    one = bench("sata")
    one.set(identify=identify(), erase=ZEROS)
    result = one.wipe()
    assert (result["verdict"], result["how"]) == ("erased", "ata security erase enhanced")
    assert [line.split()[3] for line in one.asked()] == ["--security-set-pass", "--security-erase-enhanced"]


def test_a_security_erase_that_fails_leaves_no_password_on_the_disk(bench) -> None:
    one = bench("sata")
    one.set(identify=identify(), erase="exit 5")
    result = one.wipe()
    assert result["method"] == "overwrite" and result["verdict"] == "erased" and len(result["tried"]) == 1
    assert one.asked()[-1].split()[3] == "--security-disable"


def test_a_frozen_sata_disk_is_overwritten(bench) -> None:
    one = bench("sata")
    one.set(identify=identify(frozen=True))
    assert one.wipe()["method"] == "overwrite" and one.asked() == []


def test_a_disk_of_another_kind_is_overwritten(bench) -> None:
    one = bench("")
    result = one.wipe()
    assert (result["verdict"], result["method"]) == ("erased", "overwrite") and one.asked() == []
