# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A virtual machine that runs the built ramdisk, with disks of several kinds, reached by SSH on loopback."""

from __future__ import annotations

import json
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import time
import typing as t
import uuid

from ansible_collections.h200.rack.plugins.module_utils._image import gpt
from ansible_collections.h200.rack.plugins.module_utils._ramdisk import cpio, overlay

ROOT = pathlib.Path(__file__).resolve().parents[3]
RAMDISK = ROOT / ".cache/build/ramdisk/x86_64"
BUSYBOX = ROOT / ".cache/build/ramdisk/x86_64.tree/tree/usr/bin/busybox"
FIRMWARE = pathlib.Path("/usr/share/OVMF/OVMF_CODE_4M.fd")
VARIABLES = pathlib.Path("/usr/share/OVMF/OVMF_VARS_4M.fd")
MIB = 1 << 20
STARTED = "THE WRITTEN SYSTEM HAS STARTED"
INIT = f"""#!/bin/busybox sh
/bin/busybox mount -t proc proc /proc
/bin/busybox echo "{STARTED}: $(/bin/busybox cat /proc/cmdline)" >/dev/console
/bin/busybox poweroff -f
"""


def missing() -> str:
    """What is not there of what such a machine needs, or an empty text."""
    files = [RAMDISK / "vmlinuz", BUSYBOX, FIRMWARE, VARIABLES]
    tools = ["qemu-system-x86_64", "mke2fs", "mkfs.vfat", "mmd", "mcopy", "ssh"]
    gone = [str(path) for path in files if not path.exists()] + [name for name in tools if not shutil.which(name)]
    return ", ".join(gone)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def bootable_image(folder: pathlib.Path) -> bytes:
    """A disk with an EFI system partition, and a root whose kernel says that it was started and turns itself off."""
    tree = folder / "tree"
    (tree / "boot/grub").mkdir(parents=True)
    shutil.copy(RAMDISK / "vmlinuz", tree / "boot/vmlinuz-test")
    (tree / "vmlinuz").symlink_to("/boot/vmlinuz-test")
    entries = cpio.with_parents(
        [
            cpio.regular("bin/busybox", BUSYBOX.read_bytes(), 0o755),
            cpio.regular("init", INIT.encode(), 0o755),
            cpio.directory("proc"),
            cpio.character_device("dev/console", 5, 1),
        ]
    )
    (tree / "boot/initrd.img").write_bytes(cpio.archive(entries))
    (tree / "boot/grub/grub.cfg").write_text(
        "set timeout=0\nlinux /vmlinuz root=LABEL=written ro console=ttyS0 quiet $extra\n"
        "initrd /boot/initrd.img\nboot\n"
    )
    esp, root = folder / "esp", folder / "root"
    subprocess.run(["mkfs.vfat", "-C", esp, "2048"], check=True, capture_output=True)
    subprocess.run(["mmd", "-i", esp, "::/EFI", "::/EFI/BOOT"], check=True)
    (folder / "loader").write_bytes(b"MZ")
    subprocess.run(["mcopy", "-i", esp, folder / "loader", "::/EFI/BOOT/BOOTX64.EFI"], check=True)
    subprocess.run(["mke2fs", "-q", "-t", "ext4", "-d", tree, root, "40M"], check=True)
    per, size = MIB // 512, 46 * MIB
    parts = (
        gpt.Partition(1, gpt.EFI_SYSTEM, uuid.uuid4(), per, 3 * per - 1, "EFI"),
        gpt.Partition(2, gpt.LINUX_FILESYSTEM, uuid.uuid4(), 4 * per, 44 * per - 1, "root"),
    )
    table = gpt.Table(512, uuid.uuid4(), per, 128, 128, parts, (0, 0))
    data = bytearray(size)
    data[510:512] = b"\x55\xaa"
    data[446 + 4], data[446 + 8] = 0xEE, 1
    head, backup, offset = gpt.apply(bytes(data[:MIB]), table, size)
    data[:MIB] = head
    data[offset : offset + len(backup)] = backup
    for part, place in ((esp, MIB), (root, 4 * MIB)):
        content = part.read_bytes()
        data[place : place + len(content)] = content
    return bytes(data)


class Guest:
    """The machine, from its start until :meth:`stop`."""

    NODE = "gpu001"
    MAC = "52:54:00:c0:ff:01"

    def __init__(self, folder: pathlib.Path, image_key: str) -> None:
        self.folder = folder
        self.console = folder / "console.log"
        self.port = free_port()
        self.key = folder / "id"
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(self.key)], check=True)
        self.disks = {name: folder / name for name in ("root", "nvme", "sata", "scsi")}
        for path in self.disks.values():
            with path.open("wb") as handle:
                handle.truncate(128 * MIB)
        content = overlay.files(overlay.Overlay([(folder / "id.pub").read_text()], image_public_key=image_key))
        initrd = folder / "initrd"
        data = (RAMDISK / "initrd.img").read_bytes()
        initrd.write_bytes(data + bytes(-len(data) % 512) + overlay.archive(content))
        shutil.copy(VARIABLES, folder / "vars.fd")
        self.process = subprocess.Popen(self._command(initrd), stdin=subprocess.DEVNULL, stderr=subprocess.PIPE)

    def _command(self, initrd: pathlib.Path) -> list[str]:
        def drive(name: str) -> list[str]:
            return ["-drive", f"if=none,id={name},format=raw,cache=unsafe,discard=unmap,file={self.disks[name]}"]

        mac = self.MAC.replace(":", "-")
        arguments = (
            f"ip=10.0.2.15::10.0.2.2:255.255.255.0:{self.NODE}::off BOOTIF=01-{mac} rack.node={self.NODE} "
            "rack.action=deploy console=ttyS0,115200n8 mitigations=off"
        )
        return [
            *("qemu-system-x86_64", "-machine", "q35,accel=tcg", "-cpu", "qemu64", "-smp", "2", "-m", "2048"),
            *("-nodefaults", "-display", "none", "-no-reboot", "-serial", f"file:{self.console}"),
            *("-drive", f"if=pflash,format=raw,readonly=on,file={FIRMWARE}"),
            *("-drive", f"if=pflash,format=raw,file={self.folder / 'vars.fd'}"),
            *("-netdev", f"user,id=net,hostfwd=tcp:127.0.0.1:{self.port}-:22"),
            *("-device", f"virtio-net-pci,netdev=net,mac={self.MAC},romfile="),
            *("-device", "virtio-rng-pci"),
            *(*drive("root"), "-device", "virtio-blk-pci,drive=root,serial=ROOT-0001"),
            *(*drive("nvme"), "-device", "nvme,drive=nvme,serial=NVME-0001"),
            *(*drive("sata"), "-device", "ide-hd,drive=sata,bus=ide.0,serial=SATA-0001"),
            *(*drive("scsi"), "-device", "virtio-scsi-pci,id=scsi0", "-device", "scsi-hd,drive=scsi,serial=SCSI-0001"),
            *("-kernel", str(RAMDISK / "vmlinuz"), "-initrd", str(initrd), "-append", arguments),
        ]

    def wait_for_ssh(self, seconds: float = 300) -> None:
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline and self.process.poll() is None:
            done = subprocess.run([*self.ssh(), "true"], check=False, capture_output=True, text=True)
            if done.returncode == 0:
                return
            time.sleep(1)
        raise AssertionError(f"the ramdisk did not answer: {self.said()[-2000:]}")

    def said(self) -> str:
        return self.console.read_text(errors="replace") if self.console.exists() else ""

    def _options(self) -> list[str]:
        return [
            *("-i", str(self.key), "-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null"),
            *("-o", "ConnectTimeout=5", "-o", "LogLevel=ERROR", "-o", "ControlPath=none"),
        ]

    def ssh(self) -> list[str]:
        return ["ssh", *self._options(), "-p", str(self.port), "root@127.0.0.1"]

    def run(self, *command: str) -> str:
        done = subprocess.run([*self.ssh(), *command], check=False, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def play(self, tasks: list[dict[str, t.Any]]) -> subprocess.CompletedProcess[str]:
        """Run ``tasks`` on the machine, as a play would."""
        play = [{"hosts": "all", "gather_facts": False, "tasks": tasks}]
        path = self.folder / "play.yml"
        path.write_text(json.dumps(play))
        host = {
            "ansible_host": "127.0.0.1",
            "ansible_port": self.port,
            "ansible_user": "root",
            "ansible_ssh_private_key_file": str(self.key),
            "ansible_ssh_common_args": "-o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null",
            "ansible_python_interpreter": "/usr/bin/python3",
        }
        inventory = self.folder / "hosts.json"
        inventory.write_text(json.dumps({"all": {"hosts": {self.NODE: host}}}))
        return subprocess.run(
            [str(pathlib.Path(sys.executable).with_name("ansible-playbook")), "-i", str(inventory), str(path)],
            env={**os.environ, "ANSIBLE_PIPELINING": "1", "ANSIBLE_NOCOLOR": "1"},
            check=False,
            capture_output=True,
            text=True,
            timeout=600,
        )

    def wait_until_off(self, seconds: float = 120) -> None:
        self.process.wait(seconds)

    def stop(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()
