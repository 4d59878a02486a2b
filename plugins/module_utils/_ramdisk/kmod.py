# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which kernel modules and firmware files a ramdisk gets. Private to h200.rack."""

from __future__ import annotations

import fnmatch
import lzma
import os
import re
import subprocess
import typing as t

from ansible_collections.h200.rack.plugins.module_utils._common.errors import InvalidInput, RackError

_FIRMWARE = re.compile(rb"(?<=\0)firmware=([^\0]+)\0")
_SUFFIX = re.compile(r"\.ko(\.(xz|zst|gz))?$")


def name_of(path: str) -> str:
    """The module's name as lsmod shows it: dashes are underscores, no suffix."""
    return _SUFFIX.sub("", os.path.basename(path)).replace("-", "_")


def is_module(path: str) -> bool:
    return _SUFFIX.search(path) is not None


def parse_dep(text: str) -> dict[str, list[str]]:
    """modules.dep as a mapping from each module's path to the paths that it needs."""
    table = {}
    for line in text.splitlines():
        path, _colon, needs = line.partition(":")
        table[path.strip()] = needs.split()
    return table


def parse_softdep(text: str) -> dict[str, list[str]]:
    """modules.softdep as a mapping from a module's name to the names that it would like to have."""
    table: dict[str, list[str]] = {}
    for line in text.splitlines():
        words = line.split()
        if len(words) > 2 and words[0] == "softdep":
            wanted = [word for word in words[2:] if word not in ("pre:", "post:")]
            table.setdefault(words[1].replace("-", "_"), []).extend(word.replace("-", "_") for word in wanted)
    return table


def select(
    dep: t.Mapping[str, t.Sequence[str]],
    softdep: t.Mapping[str, t.Sequence[str]],
    patterns: t.Iterable[str],
    exclude: t.Iterable[str],
) -> list[str]:
    """The paths to keep: what a pattern names, less what is excluded, plus all that these need.

    A pattern with a slash is matched against the path below kernel/ (``drivers/net/ethernet/intel/*``), any other
    one against the module's name. An exclusion wins over a pattern, and is an error where a kept module needs it.
    """
    by_name = {name_of(path): path for path in dep}
    excluded = _matching(dep, exclude)
    todo = [path for path in _matching(dep, patterns) if path not in excluded]
    kept: set[str] = set()
    while todo:
        path = todo.pop()
        if path in kept:
            continue
        if path in excluded:
            raise InvalidInput(f"the kernel module {name_of(path)} is excluded, and a kept module needs it")
        kept.add(path)
        todo.extend(dep.get(path, ()))
        wished = (by_name.get(name) for name in softdep.get(name_of(path), ()))
        todo.extend(wish for wish in wished if wish is not None and wish not in excluded)
    return sorted(kept)


def _matching(dep: t.Mapping[str, t.Sequence[str]], patterns: t.Iterable[str]) -> set[str]:
    found: set[str] = set()
    for pattern in patterns:
        if "/" in pattern:
            found.update(path for path in dep if fnmatch.fnmatchcase(_below_kernel(path), pattern))
        else:
            found.update(path for path in dep if fnmatch.fnmatchcase(name_of(path), pattern.replace("-", "_")))
    return found


def _below_kernel(path: str) -> str:
    return _SUFFIX.sub("", path[len("kernel/") :] if path.startswith("kernel/") else path)


def missing(required: t.Iterable[str], kept: t.Iterable[str], builtin: str) -> list[str]:
    """The required modules that are neither kept nor built into the kernel (``builtin``: modules.builtin)."""
    have = {name_of(path) for path in kept} | {name_of(line) for line in builtin.split()}
    return sorted(name for name in required if name.replace("-", "_") not in have)


def read_module(path: str) -> bytes:
    """The module's ELF file, unpacked: the kernel reads it faster that way, and the archive packs it again."""
    with open(path, "rb") as handle:
        data = handle.read()
    if path.endswith(".xz"):
        return lzma.decompress(data)
    if path.endswith(".zst"):
        return _filtered("zstd", "-dcq", data=data)
    if path.endswith(".gz"):
        return _filtered("gzip", "-dc", data=data)
    return data


def _filtered(*command: str, data: bytes) -> bytes:
    # run_command of an AnsibleModule is made for text.
    done = subprocess.run(command, input=data, stdout=subprocess.PIPE, check=True)  # pylint: disable=ansible-bad-function
    return done.stdout


def firmware_of(module: bytes) -> list[str]:
    """The firmware files that a module names (what ``modinfo -F firmware`` prints)."""
    return sorted({name.decode("utf-8", "replace") for name in _FIRMWARE.findall(module)})


def find_firmware(names: t.Iterable[str], root: str) -> tuple[dict[str, str], list[str]]:
    """What of the named firmware lies below ``root``: relative path to file or link, and the names not found.

    A link brings along what it leads to. A packed file (.xz, .zst) stands for the name without the suffix.
    """
    present: dict[str, str] = {}
    absent = []
    for name in names:
        hits = [hit for suffix in ("", ".xz", ".zst") for hit in _glob(root, name + suffix)]
        if not hits:
            absent.append(name)
        for hit in hits:
            _follow(root, hit, present)
    return present, sorted(absent)


def _glob(root: str, name: str) -> list[str]:
    if not any(char in name for char in "*?["):
        return [name] if os.path.lexists(os.path.join(root, name)) else []
    folder = os.path.join(root, os.path.dirname(name))
    if not os.path.isdir(folder):
        return []
    found = fnmatch.filter(os.listdir(folder), os.path.basename(name))
    return [os.path.join(os.path.dirname(name), item) for item in sorted(found)]


def _follow(root: str, relative: str, into: dict[str, str]) -> None:
    seen = 0
    while relative not in into:
        full = os.path.join(root, relative)
        into[relative] = full
        if not os.path.islink(full):
            return
        seen += 1
        if seen > 8:
            raise RackError(f"the firmware link {relative} leads nowhere")
        relative = os.path.normpath(os.path.join(os.path.dirname(relative), os.readlink(full)))
