# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from ansible_collections.h200.rack.plugins.module_utils._image import finish

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


def test_partition_names() -> None:
    assert finish.partition_device("/dev/sda", 2) == "/dev/sda2"
    assert finish.partition_device("/dev/nvme0n1", 2) == "/dev/nvme0n1p2"


def test_the_kernel_of_a_written_root_is_found(tmp_path) -> None:
    (tmp_path / "boot" / "grub").mkdir(parents=True)
    (tmp_path / "boot" / "grub" / "grub.cfg").write_text(GRUB)
    assert finish.find_boot(str(tmp_path)) is None
    (tmp_path / "boot" / "vmlinuz-6.1.0-1-amd64").write_text("")
    assert finish.find_boot(str(tmp_path)).kernel == "/boot/vmlinuz-6.1.0-1-amd64"
