# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What ipmi_bootdev does. Private to h200.rack."""

from __future__ import annotations

import typing as t

from .._common.deadline import Deadline
from . import boot_flags
from .entry import deadline_of
from .errors import BmcError
from .ipmi import Ipmi, Refusal, Silence
from .open_ipmi import open_ipmi
from .quirks import IPMI_WITHOUT_VALID_BIT

CHASSIS, SET_OPTIONS, GET_OPTIONS = 0x00, 0x08, 0x09
BUSY_PAUSE = 2.0
READ_BACK_SECONDS = 6.0
Words = dict  # {"target", "persistence", "mode"}


def bootdev(params: dict[str, t.Any], check_mode: bool, warnings: list[str], secrets: list[str]) -> dict[str, t.Any]:
    """Set the boot device of the next start, and prove by reading that the BMC kept it."""
    want = boot_flags.wanted(params)
    deadline = deadline_of(params)
    with open_ipmi(params, deadline) as client:
        flags_kept = client.device_id() not in IPMI_WITHOUT_VALID_BIT
        before = _read(client, flags_kept)
        after = before
        changed = boot_flags.mismatch(want, before, flags_kept)
        if changed:
            after = want if check_mode else _write(client, params, want, before, flags_kept, warnings)
        if not flags_kept and params["target"] != "none":
            warnings.append("This BMC reports the boot device without its mode and persistence; they are not proven.")
        return {
            "changed": changed,
            "boot": {"before": before, "after": after},
            "strategy": "boot_flags" if changed else "none",
            "cipher_suite": client.cipher_suite,
            "diff": {"before": before, "after": after},
        }


def _write(
    client: Ipmi, params: dict[str, t.Any], want: Words, before: Words, flags_kept: bool, warnings: list[str]
) -> Words:
    data = boot_flags.encode(params["target"], params["persistence"], params["mode"])
    try:
        # Keep the flags through a POST longer than the 60 s after which a BMC may clear them.
        client.command(CHASSIS, SET_OPTIONS, [3, 0x08])
    except (Refusal, Silence) as exc:
        warnings.append(f"The BMC may drop the boot device if the machine needs over 60 s to use it ({exc}).")
    _set(client, data)
    within = Deadline(min(READ_BACK_SECONDS, client.deadline.remaining))
    while True:
        now = _read(client, flags_kept)
        if not boot_flags.mismatch(want, now, flags_kept):
            return now
        if not within.pause(1.0):
            break
    raise BmcError(
        "not_applied",
        f"The BMC accepted the boot device but reports {_say(now)} instead of {_say(want)}. "
        "If the machine also speaks Redfish, use redfish_boot.",
        changed=now != before,
        boot={"before": before, "after": now},
    )


def _set(client: Ipmi, data: list[int]) -> None:
    while True:
        try:
            client.command(CHASSIS, SET_OPTIONS, data)
            return
        except Silence as exc:
            raise BmcError("timeout", f"Setting the boot device: {exc}.") from exc
        except Refusal as exc:
            if exc.error_class == "busy" and client.deadline.pause(BUSY_PAUSE):
                continue
            raise BmcError(exc.error_class, f"Setting the boot device: {exc}.", completion_code=exc.code) from exc


def _read(client: Ipmi, flags_kept: bool) -> Words:
    try:
        return boot_flags.decode(client.command(CHASSIS, GET_OPTIONS, [5, 0, 0]), flags_kept)
    except Silence as exc:
        raise BmcError("timeout", f"Reading the boot device: {exc}.") from exc
    except Refusal as exc:
        raise BmcError(exc.error_class, f"Reading the boot device: {exc}.", completion_code=exc.code) from exc


def _say(words: Words) -> str:
    return " ".join(value for value in words.values() if value)
