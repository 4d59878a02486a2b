# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import types
import uuid

import pytest
from ansible_collections.h200.rack.plugins.module_utils._image import efi, gpt

OUTPUT = """BootCurrent: 0003
Timeout: 0 seconds
BootOrder: 0000,0001,0003,0002
Boot0000* UiApp\tFvVol(7cb8bdc9)
Boot0001* debian\tHD(1,GPT,aaaa)/File(\\EFI\\debian\\shimx64.efi)
Boot0002* h200.rack\tHD(1,GPT,bbbb)/File(\\EFI\\debian\\grubx64.efi)
Boot0003* UEFI PXEv4 (MAC:525400000001)\tPciRoot(0x0)/MAC(525400000001,1)/IPv4(0.0.0.0)
"""


def test_entries_and_order_are_read() -> None:
    entries, order = efi.parse(OUTPUT)
    assert order == ["0000", "0001", "0003", "0002"]
    assert [entry.number for entry in entries] == ["0000", "0001", "0002", "0003"]
    assert [entry.number for entry in entries if entry.is_network] == ["0003"]


@pytest.mark.parametrize(
    ("policy", "order"),
    [
        ("network_first", ["0003", "0002", "0000", "0001"]),
        ("disk_first", ["0002", "0000", "0001", "0003"]),
        ("keep", ["0000", "0001", "0003", "0002"]),
    ],
)
def test_the_order_follows_the_policy(policy, order) -> None:
    entries, before = efi.parse(OUTPUT)
    assert efi.ordered(entries, before, "0002", policy) == order


def test_an_order_that_names_vanished_entries_is_cleaned() -> None:
    entries, _order = efi.parse(OUTPUT)
    assert efi.ordered(entries, ["0009", "0000"], "0002", "keep") == ["0000", "0002"]


@pytest.mark.parametrize(
    ("files", "chosen"),
    [
        (["\\EFI\\BOOT\\BOOTX64.EFI"], "\\EFI\\BOOT\\BOOTX64.EFI"),
        (["\\EFI\\BOOT\\BOOTX64.EFI", "\\EFI\\debian\\grubx64.efi"], "\\EFI\\debian\\grubx64.efi"),
        (["\\EFI\\debian\\grubx64.efi", "\\EFI\\debian\\shimx64.efi"], "\\EFI\\debian\\shimx64.efi"),
        (["\\EFI\\x\\mmx64.efi"], None),
        ([], None),
    ],
)
def test_the_loader_of_the_distribution_comes_before_the_removable_path(files, chosen) -> None:
    assert efi.choose_loader(files, "x64") == chosen


class Firmware:
    """Plays efibootmgr over a list of entries; counts what was written."""

    def __init__(self, text: str) -> None:
        self.lines = text.splitlines()
        self.writes = 0

    def __call__(self, arguments: list[str]) -> str:
        if arguments != ["--verbose"]:
            self.writes += 1
        if "--delete-bootnum" in arguments:
            self.lines = [line for line in self.lines if not line.startswith(f"Boot{arguments[-1]}")]
        if "--create-only" in arguments:
            loader = arguments[arguments.index("--loader") + 1]
            self.lines.append(f"Boot0009* h200.rack\tHD(1,GPT,{GUID},0x800,0x8000)/File({loader})")
        if "--bootorder" in arguments:
            self.lines[2] = f"BootOrder: {arguments[-1]}"
        return "\n".join(self.lines) + "\n"


GUID = "c12a7328-0000-4000-8000-000000000001"


def test_a_right_boot_entry_is_not_written_again(monkeypatch, tmp_path) -> None:
    (tmp_path / "x").write_text("")
    firmware = Firmware(OUTPUT)
    monkeypatch.setattr(efi, "_EFIVARS", str(tmp_path))
    monkeypatch.setattr(efi, "_efibootmgr", firmware)
    monkeypatch.setattr(efi, "find_loader", lambda *_arguments: "\\EFI\\debian\\shimx64.efi")
    esp = gpt.Partition(1, gpt.EFI_SYSTEM, uuid.UUID(GUID), 2048, 4095, "esp")
    table = gpt.Table(512, uuid.uuid4(), 34, 128, 128, (esp,), (0, 0))
    manifest = types.SimpleNamespace(boot="uefi", arch="x86_64")
    entry, changed = efi.install("/dev/x", table, manifest, "disk_first")
    assert changed and entry["order"][0] == entry["number"] == "0009" and firmware.writes == 3
    assert efi.install("/dev/x", table, manifest, "disk_first") == (entry, False) and firmware.writes == 3
    entry, changed = efi.install("/dev/x", table, manifest, "network_first")
    assert changed and entry["order"] == ["0003", "0009", "0000", "0001"] and firmware.writes == 4
