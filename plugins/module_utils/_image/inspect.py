# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is inside an image, as found in it: distribution, kernel, driver stack. Private to h200.rack.

Read with debugfs from the raw file at the partition's offset: no mount, no loop device. Other file systems than
ext2/3/4 are not looked into, and the manifest then says only what the publisher states.
"""

from __future__ import annotations

import re
import shlex
import typing as t

from ansible_collections.h200.rack.plugins.module_utils._common.errors import InvalidInput

from . import gpt, tools

_HEAD = 1 << 20
_EXT_MAGIC_OFFSET = 1024 + 56
# What is recorded: field, and the Debian or Ubuntu packages that tell its version, first match wins.
_PACKAGES = (
    ("nvidia_driver", r"nvidia-driver(-\d+)?(-server)?(-open)?|nvidia-kernel-(open-)?dkms|nvidia-open(-\d+)?"),
    ("fabric_manager", r"nvidia-fabricmanager(-\d+)?"),
    ("cuda", r"cuda-toolkit-\d+-\d+|cuda-toolkit|nvidia-cuda-toolkit"),
    ("nccl", r"libnccl2"),
    ("ofed", r"doca-ofed|mlnx-ofed-kernel-dkms|mlnx-ofed-kernel-utils|doca-host"),
    ("slurm", r"slurmd|slurm-smd-slurmd"),
    ("cloud_init", r"cloud-init"),
)


def boot_of(head: bytes) -> str:
    """uefi, bios or both: by the partition types, and by boot code in the first sector."""
    table = gpt.parse(head)
    kinds = {partition.type_guid for partition in table.partitions} if table else set()
    bios = any(head[:440]) and (table is None or gpt.BIOS_BOOT in kinds)
    if gpt.EFI_SYSTEM in kinds:
        return "both" if bios else "uefi"
    if bios:
        return "bios"
    raise InvalidInput("boot: the image has neither an EFI system partition nor boot code; say what it boots by")


def partition_offsets(head: bytes) -> list[int]:
    """Byte offsets of what may be a file system: the partitions, or the whole image when it has no table."""
    table = gpt.parse(head)
    if table:
        return [partition.first_lba * table.sector_size for partition in table.partitions]
    if head[510:512] == b"\x55\xaa" and head[_EXT_MAGIC_OFFSET : _EXT_MAGIC_OFFSET + 2] != b"\x53\xef":
        starts = [int.from_bytes(head[446 + 16 * n + 8 : 446 + 16 * n + 12], "little") for n in range(4)]
        return [start * 512 for start in starts if start]
    return [0]


def _debugfs(path: str, offset: int, request: str) -> str:
    return tools.attempt(["debugfs", "-R", request, f"{path}?offset={offset}"]).stdout


def contents(path: str, head: bytes) -> dict[str, str]:
    """What the first file system with an /etc/os-release says about itself."""
    if not tools.available("debugfs"):
        return {}
    for offset in partition_offsets(head):
        with open(path, "rb") as handle:
            handle.seek(offset + _EXT_MAGIC_OFFSET)
            if handle.read(2) != b"\x53\xef":
                continue
        release = _debugfs(path, offset, "cat /usr/lib/os-release") or _debugfs(path, offset, "cat /etc/os-release")
        if release:
            found = os_release_fields(release)
            found.update(dpkg_fields(_debugfs(path, offset, "cat /var/lib/dpkg/status")))
            return found
    return {}


def os_release_fields(text: str) -> dict[str, str]:
    values: dict[str, str] = {}
    for line in text.splitlines():
        key, separator, value = line.partition("=")
        if separator:
            words = shlex.split(value, comments=True)
            values[key.strip()] = words[0] if words else ""
    distribution = " ".join(filter(None, (values.get("ID"), values.get("VERSION_ID"))))
    return {"distribution": distribution} if distribution else {}


def dpkg_packages(status: str) -> t.Iterator[tuple[str, str]]:
    """Name and version of each installed package in a dpkg status file."""
    for paragraph in status.split("\n\n"):
        fields = dict(line.split(": ", 1) for line in paragraph.splitlines() if ": " in line and line[0] != " ")
        if fields.get("Status", "").endswith(" installed") and "Package" in fields:
            yield fields["Package"], fields.get("Version", "")


def dpkg_fields(status: str) -> dict[str, str]:
    found: dict[str, str] = {}
    kernels = []
    for package, version in dpkg_packages(status):
        kernel = re.fullmatch(r"linux-image-(\d.*)", package)
        if kernel:
            kernels.append(kernel.group(1))
        for field, pattern in _PACKAGES:
            if field not in found and re.fullmatch(pattern, package):
                found[field] = version
    if kernels:
        found["kernel"] = ",".join(sorted(kernels))
    return found


def require_same_driver(found: dict[str, str]) -> None:
    """Refuse a driver and a fabric manager of different versions: NVLink would stay down on every node."""
    driver, manager = upstream(found.get("nvidia_driver", "")), upstream(found.get("fabric_manager", ""))
    if driver and manager and driver != manager:
        raise InvalidInput(
            f"source: the image has NVIDIA driver {driver} but fabric manager {manager}; "
            "they must be of one version or NVSwitch systems do not start CUDA"
        )


def upstream(version: str) -> str:
    """The upstream part of a Debian version: 1:570.86.15-0ubuntu1 → 570.86.15."""
    return version.rpartition(":")[2].partition("-")[0]
