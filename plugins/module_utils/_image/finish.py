# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How a node leaves the ramdisk: not at all, by reboot, or by kexec into what was written. Private to h200.rack.

With ``kexec_load`` the written kernel is only made ready: the caller, who has boot scripts and a BMC to tell first,
starts it by ``kexec -e``.
"""

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
    loaded: dict[str, t.Any] = {}
    if how in ("kexec", "kexec_load"):
        try:
            loaded = load_kexec(disk, table)._asdict()
        except RackError as exc:
            loaded = {"reason": exc.msg}
    if how == "kexec_load":
        return {"method": "none" if "reason" in loaded else "kexec_loaded", **loaded}
    if "kernel" in loaded:
        _after_exit(["kexec", "--exec"])
        return {"method": "kexec", **loaded}
    _after_exit(["systemctl", "reboot"])
    return {"method": "reboot", **loaded}


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
    """The kernel that the boot loader would start by default, as its configuration says; paths are below ``root``."""
    for pattern in ("boot/grub/grub.cfg", "boot/grub2/grub.cfg", "grub/grub.cfg", "grub2/grub.cfg"):
        for path in glob.glob(os.path.join(glob.escape(root), pattern)):
            with open(path, encoding="utf-8", errors="replace") as handle:
                found = from_grub(handle.read())
            if found and _is_there(root, found):
                return found
    entries = [
        path
        for pattern in ("boot/loader/entries/*.conf", "loader/entries/*.conf")
        for path in glob.glob(os.path.join(glob.escape(root), pattern))
    ]
    for path in sorted(entries, key=_by_version, reverse=True):
        with open(path, encoding="utf-8", errors="replace") as handle:
            found = from_loader_entry(handle.read())
        if found and _is_there(root, found):
            return found
    return None


def _by_version(path: str) -> list[tuple[int, str]]:
    """Sorts 5.9 before 5.14; a rescue entry, which has 0 for a version, comes out last."""
    return [(int(word or 0), text) for word, text in re.findall(r"(\d*)(\D*)", os.path.basename(path))]


def _is_there(root: str, found: BootFiles) -> bool:
    return os.path.isfile(below(root, found.kernel)) and (not found.initrd or os.path.isfile(below(root, found.initrd)))


def below(root: str, path: str) -> str:
    """``path`` as it is with ``root`` as the root: links, absolute ones too, lead to nowhere else."""
    done, left, links = [], path.split("/")[::-1], 0
    while left:
        word = left.pop()
        if word == "..":
            done = done[:-1]
        elif word not in ("", "."):
            here = os.path.join(root, *done, word)
            if os.path.islink(here):
                links += 1
                if links > 40:
                    raise RackError(f"{path}: too many links", code="kexec")
                target = os.readlink(here)
                done = [] if target.startswith("/") else done
                left += target.split("/")[::-1]
            else:
                done.append(word)
    return os.path.join(root, *done)


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
    """A Boot Loader Specification entry. What GRUB would put in for a variable is not known here, and left out."""
    fields = dict(line.split(None, 1) for line in text.splitlines() if len(line.split(None, 1)) == 2)
    options = [word for word in fields.get("options", "").split() if "$" not in word]
    if "linux" not in fields or not any(word.startswith("root=") for word in options):
        return None
    initrd = [word for word in fields.get("initrd", "").split() if "$" not in word]
    return BootFiles(fields["linux"].strip(), initrd[0] if initrd else None, " ".join(options))


def _load(root: str, found: BootFiles) -> None:
    # By the file-based system call where the kernel has it, which is also the one that lockdown lets signed kernels by.
    command = ["kexec", "--kexec-syscall-auto", "--load", below(root, found.kernel)]
    command.append(f"--command-line={found.cmdline}")
    if found.initrd:
        command.append(f"--initrd={below(root, found.initrd)}")
    tools.run(command, "the written kernel could not be loaded", "kexec")
