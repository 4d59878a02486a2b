# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The firmware's boot entry for the written disk, by its partition's GUID. Private to h200.rack."""

from __future__ import annotations

import os
import re
import typing as t

from ansible_collections.h200.rack.plugins.module_utils._common.errors import RackError

from . import gpt, tools
from .manifest import Manifest

_EFIVARS = "/sys/firmware/efi/efivars"
_LABEL = "h200.rack"
_ENTRY = re.compile(r"Boot([0-9A-Fa-f]{4})(\*?) (.*)")
_NETWORK = re.compile(r"\bPXE|\bHTTP|\bIPv[46]\b|MAC\(|Uri\(|\bNIC\b|Network", re.IGNORECASE)
_SUFFIX = {"x86_64": "x64", "aarch64": "aa64"}


class Entry(t.NamedTuple):
    """``text`` is the label and, behind a tab, the device path."""

    number: str
    text: str

    @property
    def is_network(self) -> bool:
        return _NETWORK.search(self.text) is not None

    @property
    def is_ours(self) -> bool:
        return self.text.split("\t")[0].strip() == _LABEL

    def starts(self, partition_guid: str, loader: str) -> bool:
        path = self.text.partition("\t")[2].lower()
        return partition_guid in path and loader.lower() in path


def install(disk: str, table: gpt.Table | None, manifest: Manifest, policy: str) -> tuple[dict[str, t.Any], bool]:
    """One entry for the disk's EFI system partition, without our older ones, ordered by ``policy``; whether it changed.

    The firmware's memory wears: what is right already is not written again.
    """
    esp = next((part for part in table.partitions if part.type_guid == gpt.EFI_SYSTEM), None) if table else None
    if esp is None or table is None or manifest.boot == "bios":
        return {"state": "none", "reason": "the image has no EFI system partition"}, False
    if not os.path.isdir(_EFIVARS) or not os.listdir(_EFIVARS):
        reason = "this machine was not booted by EFI, or its variables are not mounted"
        return {"state": "none", "reason": reason}, False
    loader = find_loader(disk, esp.first_lba * table.sector_size, manifest.arch)
    entries, order = parse(_efibootmgr(["--verbose"]))
    ours = [entry for entry in entries if entry.is_ours]
    changed = len(ours) != 1 or not ours[0].starts(str(esp.guid), loader)
    if changed:
        for stale in ours:
            _efibootmgr(["--quiet", "--delete-bootnum", "--bootnum", stale.number])
        command = ["--create-only", "--disk", disk, "--part", str(esp.number), "--loader", loader, "--label", _LABEL]
        _efibootmgr([*command, "--quiet"])
        entries, order = parse(_efibootmgr(["--verbose"]))
        ours = [entry for entry in entries if entry.is_ours]
        if not ours:
            raise RackError("efibootmgr made no boot entry for the disk", code="boot_entry")
    number = ours[0].number
    wanted = ordered(entries, [other for other in order if other != number], number, policy)
    if policy == "keep" and number in order:
        wanted = order
    if wanted != order:
        _efibootmgr(["--quiet", "--bootorder", ",".join(wanted)])
        changed = True
    return {
        "state": "present",
        "number": number,
        "loader": loader,
        "order": wanted,
        "partition_guid": str(esp.guid),
    }, changed


def parse(output: str) -> tuple[list[Entry], list[str]]:
    """Entries and boot order in efibootmgr's output."""
    entries, order = [], []
    for line in output.splitlines():
        match = _ENTRY.fullmatch(line.rstrip())
        if match:
            entries.append(Entry(match.group(1).upper(), match.group(3)))
        elif line.startswith("BootOrder:"):
            order = [word.strip().upper() for word in line.partition(":")[2].split(",") if word.strip()]
    return entries, order


def ordered(entries: t.Sequence[Entry], order: t.Sequence[str], ours: str, policy: str) -> list[str]:
    """The boot order with our entry in it. Network entries keep their order among themselves, so do all others."""
    present = {entry.number: entry for entry in entries}
    others = [number for number in order if number in present and number != ours]
    if policy == "disk_first":
        return [ours, *others]
    if policy == "network_first":
        network = [number for number in others if present[number].is_network]
        return [*network, ours, *(number for number in others if number not in network)]
    return [*others, ours]


def find_loader(disk: str, offset: int, arch: str) -> str:
    """The boot loader on the EFI system partition: a distribution's shim, its GRUB, or the removable-media path."""
    suffix = _SUFFIX[arch]
    fallback = f"\\EFI\\BOOT\\BOOT{suffix.upper()}.EFI"
    if not tools.available("mdir"):
        return fallback
    done = tools.attempt(["mdir", "-i", f"{disk}@@{offset}", "-b", "-/", "::/EFI"])
    files = {line.strip()[2:].replace("/", "\\") for line in done.stdout.splitlines() if line.startswith("::")}
    return choose_loader(files, suffix) or fallback


def choose_loader(files: t.Iterable[str], suffix: str) -> str | None:
    ranked = []
    for path in files:
        base = path.rpartition("\\")[2].lower()
        for rank, name in enumerate((f"shim{suffix}.efi", f"grub{suffix}.efi", f"boot{suffix}.efi")):
            if base == name:
                # A distribution's own folder keeps its own configuration; BOOT is the way of removable media.
                ranked.append((("\\efi\\boot\\" in path.lower()), rank, path))
    return min(ranked)[2] if ranked else None


def _efibootmgr(arguments: list[str]) -> str:
    return tools.run(["efibootmgr", *arguments], f"boot entry ({' '.join(arguments) or 'list'})", "boot_entry")
