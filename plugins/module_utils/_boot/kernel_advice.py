# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Kernel arguments that circulate in recipes and do harm or nothing. Private to h200.rack."""

from __future__ import annotations

import re
import typing as t

# (pattern of one word, code, severity, what is wrong)
_TABLE: tuple[tuple[str, str, str, str], ...] = (
    (r"rd\.driver\.pre=.*vfio", "vfio_early", "error", "loads VFIO early, which takes the GPUs away from their driver"),
    (r"rd\.driver\.pre=.*nvidia", "driver_early", "error", "wants the GPUs' driver in the ramdisk, which needs none"),
    (r"memmap=.*\$", "memmap", "error", "takes memory away from the kernel; large BARs are a firmware setting"),
    (r"nvidia\.modprobe=", "no_parameter", "error", "nvidia.modprobe is no parameter of any driver"),
    (r"(net\.ipv4\.)?tcp_window_scaling=", "no_parameter", "error", "is a sysctl and no kernel argument"),
    (r"ipa-insecure=1", "insecure", "error", "switches the checking of certificates off"),
    (r"(inst\.)?(nosslverify|noverifyssl)\b", "insecure", "error", "switches the checking of certificates off"),
    (r"ds=nocloud-net\b", "nocloud_net", "error", "is gone from cloud-init, write ds=nocloud;s=URL"),
    (r"mitigations=off$", "mitigations", "warning", "switches the CPU's protections off"),
)


def judge(words: t.Iterable[str]) -> t.Iterator[tuple[str, str, str]]:
    """(code, severity, message) for every word that the table knows."""
    for word in words:
        for pattern, code, severity, message in _TABLE:
            if re.match(pattern, word):
                yield code, severity, f"{word}: {message}"
