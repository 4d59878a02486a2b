# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The ways a disk can erase itself, as it says that it supports them. Private to h200.rack.

What a disk offers is asked of the disk, never assumed: a command that it lacks must not look like an erased disk.
"""

from __future__ import annotations

import json
import re
import typing as t

from ansible_collections.h200.rack.plugins.module_utils._common.deadline import Deadline
from ansible_collections.h200.rack.plugins.module_utils._common.errors import RackError

from . import tools

_POLL = 2.0
_SANITIZE_DONE = {1: True, 2: None, 3: False, 4: True}  # Sanitize Status, bits 2:0: None is in progress
# The password exists between two commands only: security erase needs one to be set, and clears it.
_ATA_PASSWORD = "h200rack"


class Eraser(t.NamedTuple):
    """One way to erase one disk: ``method`` crypto or user_data, and what to run."""

    method: str
    how: str
    commands: tuple[tuple[str, ...], ...]
    status: tuple[str, ...] | None = None
    undo: tuple[str, ...] | None = None


def nvme_erasers(path: str, id_ctrl: t.Mapping[str, t.Any], namespaces: int) -> list[Eraser]:
    """By the Identify Controller data: OACS bit 1 Format, FNA bit 2 crypto erase in it, SANICAP bits 0 and 1."""
    oacs, fna, sanicap = (int(id_ctrl.get(key) or 0) for key in ("oacs", "fna", "sanicap"))
    controller = re.sub(r"n\d+$", "", path)
    log = ("nvme", "sanitize-log", controller, "-o", "json")
    found = []
    # Format may, and sanitize always does, concern all namespaces of the controller: only where there is but one.
    alone = namespaces == 1
    formats = oacs & 2 and (alone or not fna & 3)
    if formats and fna & 4:
        found.append(Eraser("crypto", "nvme format -s 2", (("nvme", "format", path, "-s", "2", "--force"),)))
    if sanicap & 1 and alone:
        found.append(Eraser("crypto", "nvme sanitize -a 4", (("nvme", "sanitize", controller, "-a", "4"),), log))
    if formats:
        found.append(Eraser("user_data", "nvme format -s 1", (("nvme", "format", path, "-s", "1", "--force"),)))
    if sanicap & 2 and alone:
        found.append(Eraser("user_data", "nvme sanitize -a 2", (("nvme", "sanitize", controller, "-a", "2"),), log))
    return found


def ata_erasers(path: str, identify: str) -> list[Eraser]:
    """By the text of ``hdparm -I``. A frozen disk (most BIOSes freeze them) refuses security erase."""
    found = []
    if re.search(r"^\s+\*\s+CRYPTO_SCRAMBLE_EXT command", identify, re.MULTILINE):
        command = ("hdparm", "--yes-i-know-what-i-am-doing", "--sanitize-crypto-scramble", path)
        found.append(Eraser("crypto", "ata crypto scramble", (command,), ("hdparm", "--sanitize-status", path)))
    security = identify.partition("\nSecurity:")[2]
    supported = re.search(r"^\s+supported\s*$", security, re.MULTILINE)
    free = all(re.search(rf"^\s+not\s+{word}\s*$", security, re.MULTILINE) for word in ("frozen", "locked", "enabled"))
    if supported and free:
        kind = "--security-erase"
        if re.search(r"^\s+supported: enhanced erase", security, re.MULTILINE):
            kind = "--security-erase-enhanced"
        user = ("--user-master", "u")
        commands = (
            ("hdparm", *user, "--security-set-pass", _ATA_PASSWORD, path),
            ("hdparm", *user, kind, _ATA_PASSWORD, path),
        )
        # A disk must not stay locked by a password after an erase that failed.
        undo = ("hdparm", *user, "--security-disable", _ATA_PASSWORD, path)
        found.append(Eraser("user_data", f"ata {kind[2:].replace('-', ' ')}", commands, undo=undo))
    return found


def offered(path: str, transport: str, namespaces: int) -> list[Eraser]:
    """What this disk offers, best first."""
    if transport == "nvme":
        text = tools.run(["nvme", "id-ctrl", path, "-o", "json"], path, timeout=30)
        return nvme_erasers(path, json.loads(text), namespaces)
    if transport in ("sata", "ata"):
        return ata_erasers(path, tools.run(["hdparm", "-I", path], path, timeout=30))
    return []


def erase(eraser: Eraser, deadline: Deadline) -> None:
    """Run the eraser to its end. Raises when the disk refuses, fails, or is not done in time."""
    try:
        for command in eraser.commands:
            deadline.check(eraser.how)
            tools.run(command, eraser.how, code="erase", timeout=deadline.remaining)
    except RackError:
        if eraser.undo is not None:
            tools.attempt(eraser.undo, timeout=30)
        raise
    while eraser.status is not None:
        text = tools.run(eraser.status, eraser.how, code="erase", timeout=max(1.0, deadline.remaining))
        done = nvme_sanitize_done(text) if eraser.status[0] == "nvme" else ata_sanitize_done(text)
        if done:
            return
        if done is False:
            raise RackError(f"{eraser.how}: the disk says that it failed", code="erase")
        if not deadline.pause(_POLL):
            deadline.check(f"{eraser.how} (it goes on in the disk)")


def nvme_sanitize_done(text: str) -> bool | None:
    """True, False, or None while it goes on, by the sanitize log page in nvme-cli's JSON of any release."""
    value = json.loads(text)
    if "sstat" not in value and len(value) == 1:
        value = next(iter(value.values()))
    status = value.get("sstat", 0)
    number = int(status.get("status", 0)) if isinstance(status, dict) else int(status)
    return _SANITIZE_DONE.get(number & 7)


def ata_sanitize_done(text: str) -> bool | None:
    if "SD2 Sanitize operation In Process" in text:
        return None
    return "Last Sanitize Operation Completed Without Error" in text
