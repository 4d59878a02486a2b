# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How a node leaves the ramdisk: not at all, by reboot, or by kexec into what was written. Private to h200.rack."""

from __future__ import annotations

import glob
import os
import re
import tempfile
import typing as t

from ansible_collections.h200.rack.plugins.module_utils._common.errors import RackError

from . import gpt, tools

# The answer has to leave the machine before its network does.
_GRACE = 1
_SECURE_BOOT = "/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c"
_NO_ROOT = {gpt.EFI_SYSTEM, gpt.BIOS_BOOT, gpt.MICROSOFT_BASIC_DATA}


class BootFiles(t.NamedTuple):
    kernel: str
    initrd: str | None
    cmdline: str


def schedule(how: str, disk: str, table: gpt.Table | None) -> dict[str, t.Any]:
    """Arrange for the reboot or kexec to happen once this process has ended; says which it will be, and why."""
    if how == "none":
        return {"method": "none"}
    if how == "kexec":
        try:
            loaded = load_kexec(disk, table)
        except RackError as exc:
            _after_exit(["systemctl", "reboot"])
            return {"method": "reboot", "reason": exc.msg}
        _after_exit(["kexec", "-e"])
        return {"method": "kexec", **loaded._asdict()}
    _after_exit(["systemctl", "reboot"])
    return {"method": "reboot"}


def _after_exit(command: list[str]) -> None:
    """Run ``command`` after this process has ended and its output is on its way."""
    script = 'while kill -0 "$1" 2>/dev/null; do sleep 0.1; done; sleep "$2"; shift 2; exec "$@"'
    tools.start_detached(["sh", "-c", script, "sh", str(os.getpid()), str(_GRACE), *command])


def secure_boot(path: str = _SECURE_BOOT) -> bool:
    try:
        with open(path, "rb") as handle:
            return handle.read()[-1:] == b"\x01"
    except OSError:
        return False


def load_kexec(disk: str, table: gpt.Table | None) -> BootFiles:
    """Load the written system's kernel. Raises :class:`RackError` when that cannot be done."""
    if secure_boot():
        raise RackError("Secure Boot is on, which refuses kexec of an unsigned chain", code="kexec")
    if table is None:
        raise RackError("the image has no partition table in which to look for a kernel", code="kexec")
    with tempfile.TemporaryDirectory(prefix="h200-rack-root-") as folder:
        for partition in table.partitions:
            if partition.type_guid in _NO_ROOT:
                continue
            device = partition_device(disk, partition.number)
            if not _mount(device, folder):
                continue
            try:
                found = find_boot(folder)
                if found:
                    _load(folder, found)
                    return found
            finally:
                tools.run(["umount", folder], "kexec", "kexec")
    raise RackError("no kernel with a root= was found on the written disk", code="kexec")


def partition_device(disk: str, number: int) -> str:
    """/dev/sda → /dev/sda1, /dev/nvme0n1 → /dev/nvme0n1p1."""
    return f"{disk}p{number}" if disk[-1].isdigit() else f"{disk}{number}"


def _mount(device: str, folder: str) -> bool:
    """Mount read-only without replaying the journal, so that the verified bytes stay as they are."""
    for kind, options in (("ext4", "ro,noload"), ("xfs", "ro,norecovery"), ("btrfs", "ro,nologreplay")):
        command = ["mount", "-t", kind, "-o", f"{options},nodev,nosuid,noexec", device, folder]
        if tools.attempt(command).returncode == 0:
            return True
    return False


def find_boot(root: str) -> BootFiles | None:
    """The kernel that GRUB would boot by default, as its configuration says; paths are below ``root``."""
    for pattern in ("boot/grub/grub.cfg", "boot/grub2/grub.cfg", "grub/grub.cfg", "grub2/grub.cfg"):
        for path in glob.glob(os.path.join(glob.escape(root), pattern)):
            with open(path, encoding="utf-8", errors="replace") as handle:
                found = from_grub(handle.read())
            if found and os.path.exists(below(root, found.kernel)):
                return found
    for path in sorted(glob.glob(os.path.join(glob.escape(root), "boot/loader/entries/*.conf")), reverse=True):
        with open(path, encoding="utf-8", errors="replace") as handle:
            found = from_loader_entry(handle.read())
        if found and os.path.exists(below(root, found.kernel)):
            return found
    return None


def below(root: str, path: str) -> str:
    return os.path.join(root, path.lstrip("/"))


def from_grub(text: str) -> BootFiles | None:
    """The first menu entry's kernel, initrd and arguments."""
    kernel = None
    for line in text.splitlines():
        words = line.split()
        if not words:
            continue
        if re.fullmatch(r"linux(16|efi)?", words[0]) and kernel is None and len(words) > 1:
            arguments = [word for word in words[2:] if "$" not in word]
            if any(word.startswith("root=") for word in arguments):
                kernel = BootFiles(words[1], None, " ".join(arguments))
        elif re.fullmatch(r"initrd(16|efi)?", words[0]) and kernel is not None and len(words) > 1:
            return kernel._replace(initrd=words[-1])
        elif words[0] == "}" and kernel is not None:
            return kernel
    return kernel


def from_loader_entry(text: str) -> BootFiles | None:
    """A Boot Loader Specification entry."""
    fields = dict(line.split(None, 1) for line in text.splitlines() if len(line.split(None, 1)) == 2)
    options = fields.get("options", "").strip()
    if "linux" not in fields or "root=" not in options or "$" in options:
        return None
    return BootFiles(fields["linux"].strip(), fields.get("initrd", "").strip().split(" ")[0] or None, options)


def _load(root: str, found: BootFiles) -> None:
    command = ["kexec", "-l", below(root, found.kernel), f"--command-line={found.cmdline}"]
    if found.initrd:
        command.append(f"--initrd={below(root, found.initrd)}")
    tools.run(command, "the written kernel could not be loaded", "kexec")
