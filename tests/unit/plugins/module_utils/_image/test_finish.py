# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import uuid

import pytest
from ansible_collections.h200.rack.plugins.module_utils._common.errors import RackError
from ansible_collections.h200.rack.plugins.module_utils._image import finish, gpt

GRUB = """
set default="0"
menuentry 'Debian GNU/Linux' --class debian {
        search --no-floppy --fs-uuid --set=root 1234
        echo    'Loading Linux'
        linux   /boot/vmlinuz-6.1.0-1-amd64 root=UUID=1234 ro console=ttyS0 $extra
        initrd  /boot/initrd.img-6.1.0-1-amd64
}
menuentry 'older' {
        linux   /boot/vmlinuz-5.10 root=UUID=1234 ro
        initrd  /boot/initrd.img-5.10
}
"""


def test_the_first_grub_entry_is_what_would_boot() -> None:
    found = finish.from_grub(GRUB)
    assert found == finish.BootFiles(
        "/boot/vmlinuz-6.1.0-1-amd64", "/boot/initrd.img-6.1.0-1-amd64", "root=UUID=1234 ro console=ttyS0"
    )


def test_a_kernel_without_root_is_not_taken() -> None:
    assert finish.from_grub("menuentry x {\n linux /boot/memtest\n}\n") is None


def test_an_entry_without_initrd_does_not_borrow_the_next_ones() -> None:
    text = "linux /k root=/dev/sda1\n}\nlinux /k2 root=/dev/sda1\ninitrd /i2\n"
    assert finish.from_grub(text) == finish.BootFiles("/k", None, "root=/dev/sda1")


def test_boot_loader_specification() -> None:
    text = "title x\nlinux /boot/vmlinuz-5.14\ninitrd /boot/initramfs-5.14.img\noptions root=UUID=9 ro\n"
    assert finish.from_loader_entry(text) == finish.BootFiles(
        "/boot/vmlinuz-5.14", "/boot/initramfs-5.14.img", "root=UUID=9 ro"
    )
    assert finish.from_loader_entry("linux /x\noptions $kernelopts\n") is None
    text = "linux /k\ninitrd /i $tuned_initrd\noptions root=UUID=9 ro $tuned_params\n"
    assert finish.from_loader_entry(text) == finish.BootFiles("/k", "/i", "root=UUID=9 ro")


def test_partition_names() -> None:
    assert finish.partition_device("/dev/sda", 2) == "/dev/sda2"
    assert finish.partition_device("/dev/nvme0n1", 2) == "/dev/nvme0n1p2"


def test_the_kernel_of_a_written_root_is_found(tmp_path) -> None:
    (tmp_path / "boot" / "grub").mkdir(parents=True)
    (tmp_path / "boot" / "grub" / "grub.cfg").write_text(GRUB)
    assert finish.find_boot(str(tmp_path)) is None
    (tmp_path / "boot" / "vmlinuz-6.1.0-1-amd64").write_text("")
    assert finish.find_boot(str(tmp_path)) is None, "its initrd is missing"
    (tmp_path / "boot" / "initrd.img-6.1.0-1-amd64").write_text("")
    assert finish.find_boot(str(tmp_path)).kernel == "/boot/vmlinuz-6.1.0-1-amd64"


@pytest.mark.parametrize("folder", ["boot/loader/entries", "loader/entries"])
def test_the_newest_entry_is_started_and_never_the_rescue_one(tmp_path, folder) -> None:
    entries = tmp_path / folder
    entries.mkdir(parents=True)
    for version in ("0-rescue", "5.9.0-1", "5.14.0-3"):
        (entries / f"abc-{version}.conf").write_text(f"linux /k-{version}\noptions root=UUID=9\n")
        (tmp_path / f"k-{version}").write_text("")
    assert finish.find_boot(str(tmp_path)).kernel == "/k-5.14.0-3"


def test_links_on_the_written_disk_lead_to_files_on_the_written_disk(tmp_path) -> None:
    root = tmp_path / "root"
    (root / "boot").mkdir(parents=True)
    (root / "vmlinuz").symlink_to("boot/k")
    (root / "absolute").symlink_to("/boot/k")
    (root / "outside").symlink_to("../../../etc/passwd")
    (root / "loop").symlink_to("loop")
    for name in ("vmlinuz", "absolute"):
        assert finish.below(str(root), f"/{name}") == str(root / "boot" / "k")
    assert finish.below(str(root), "/outside") == str(root / "etc" / "passwd")
    with pytest.raises(RackError, match="links"):
        finish.below(str(root), "/loop")


@pytest.fixture
def leaving(monkeypatch):
    """What would be run after the module has ended."""
    commands = []
    monkeypatch.setattr(finish, "_after_exit", commands.append)
    return commands


FOUND = finish.BootFiles("/k", "/i", "root=UUID=9")


@pytest.mark.parametrize(
    ("how", "method", "command"),
    [
        ("none", "none", []),
        ("reboot", "reboot", [["systemctl", "reboot"]]),
        ("kexec", "kexec", [["kexec", "--exec"]]),
        ("kexec_load", "kexec_loaded", []),
    ],
)
def test_the_ways_to_leave(monkeypatch, leaving, how, method, command) -> None:
    monkeypatch.setattr(finish, "load_kexec", lambda *_arguments: FOUND)
    left = finish.schedule(how, "/dev/x", None)
    assert left["method"] == method and leaving == command
    assert ("kernel" in left) == ("kexec" in method)


@pytest.mark.parametrize(("how", "method", "commands"), [("kexec", "reboot", 1), ("kexec_load", "none", 0)])
def test_where_kexec_is_refused_it_reboots_and_says_why(monkeypatch, leaving, how, method, commands) -> None:
    monkeypatch.setattr(finish, "secure_boot", lambda: True)
    left = finish.schedule(how, "/dev/x", None)
    assert left["method"] == method and "Secure Boot" in left["reason"] and len(leaving) == commands
    monkeypatch.setattr(finish, "secure_boot", lambda: False)
    assert "no partition table" in finish.schedule(how, "/dev/x", None)["reason"]


def test_a_disk_without_a_kernel_is_not_kexeced(monkeypatch, leaving) -> None:
    monkeypatch.setattr(finish, "secure_boot", lambda: False)
    monkeypatch.setattr(finish, "_mount", lambda *_arguments: False)
    part = gpt.Partition(1, gpt.LINUX_FILESYSTEM, uuid.uuid4(), 2048, 4095, "root")
    table = gpt.Table(512, uuid.uuid4(), 34, 128, 128, (part,), (0, 0))
    assert "no kernel" in finish.schedule("kexec", "/dev/x", table)["reason"]
    assert leaving == [["systemctl", "reboot"]]


@pytest.mark.parametrize(("content", "on"), [(b"\x06\0\0\0\x01", True), (b"\x06\0\0\0\0", False), (None, False)])
def test_secure_boot_is_read_from_the_firmware(tmp_path, content, on) -> None:
    path = tmp_path / "SecureBoot"
    if content is not None:
        path.write_bytes(content)
    assert finish.secure_boot(str(path)) is on
