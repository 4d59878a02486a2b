# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Root disk hints: which one disk is meant, and why others are not. Pure functions over what lsblk says.

Private to h200.rack.
"""

from __future__ import annotations

import re
import typing as t

from ansible_collections.h200.rack.plugins.module_utils._common.errors import InvalidInput, RackError

GIB = 1 << 30
HINTS = ("serial", "wwn", "model", "vendor", "size", "by_path", "hctl", "rotational")
# Media that a BMC or a hypervisor's console puts in; none of them is ever a root disk.
_VIRTUAL_MEDIA = re.compile(
    r"virtual (cd|dvd|floppy|media|hdisk|hd|usb|flash|disc)|ami virtual|vmm-|vflash|idrac|lcdrive|ilo|sdcard|"
    r"internal sd|linux file-stor|file-cd gadget|remote(ly)? mount",
    re.IGNORECASE,
)
_NEVER = re.compile(r"(ram|zram|loop|nbd|fd|sr|mtdblock)\d+")
_SIZE = re.compile(r"\s*(==|=|!=|>=|<=|>|<)?\s*(\d+)\s*")
_COMPARE: dict[str, t.Callable[[int, int], bool]] = {
    "=": lambda a, b: a == b,
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    ">=": lambda a, b: a >= b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    "<": lambda a, b: a < b,
}


class NotOneDisk(RackError):
    """The hints match no disk, or several."""

    code = "disk_hint"


class Disk(t.NamedTuple):
    """What is known of one disk. ``content`` are the signatures on it, ``in_use`` says by what it is held."""

    path: str
    size: int
    sector_size: int
    serial: str
    wwn: str
    model: str
    vendor: str
    hctl: str
    rotational: bool
    by_path: tuple[str, ...]
    unfit: str
    in_use: str
    content: tuple[str, ...]

    def describe(self) -> str:
        name = " ".join(filter(None, (self.vendor, self.model))) or "unknown model"
        reason = f" [{self.unfit}]" if self.unfit else ""
        return f"{self.path} serial={self.serial or '?'} {self.size / GIB:.1f} GiB {name}{reason}"

    def summary(self) -> dict[str, t.Any]:
        """What a result says of the disk."""
        keys = ("path", "size", "sector_size", "serial", "wwn", "model", "vendor", "hctl", "rotational")
        return {**{key: getattr(self, key) for key in keys}, "content": list(self.content)}


def _text(row: dict[str, t.Any], key: str) -> str:
    return str(row.get(key) or "").strip()


def from_lsblk(
    tree: dict[str, t.Any],
    serials: t.Mapping[str, str] | None = None,
    by_path: t.Mapping[str, t.Sequence[str]] | None = None,
) -> list[Disk]:
    """The disks in the output of ``lsblk -J -b``; ``serials`` and ``by_path`` complete it by kernel name."""
    disks = []
    for row in tree.get("blockdevices", []):
        name = _text(row, "kname") or _text(row, "name")
        size = int(row.get("size") or 0)
        disks.append(
            Disk(
                path=_text(row, "path") or f"/dev/{name}",
                size=size,
                sector_size=int(row.get("log-sec") or 512),
                serial=_text(row, "serial") or (serials or {}).get(name, ""),
                wwn=_text(row, "wwn"),
                model=_text(row, "model"),
                vendor=_text(row, "vendor"),
                hctl=_text(row, "hctl"),
                rotational=bool(row.get("rota")),
                by_path=tuple((by_path or {}).get(name, ())),
                unfit=_unfit(row, name, size),
                in_use=_in_use(row),
                content=tuple(_content(row)),
            )
        )
    return disks


def _unfit(row: dict[str, t.Any], name: str, size: int) -> str:
    """Why this can never be a root disk, or an empty text."""
    kind = _text(row, "type")
    title = f"{_text(row, 'vendor')} {_text(row, 'model')}"
    reasons = (
        (kind != "disk" or _NEVER.fullmatch(name) is not None, f"no disk but {kind if kind != 'disk' else name}"),
        (size == 0, "no medium"),
        (bool(row.get("ro")), "read-only"),
        (bool(row.get("rm")) or _text(row, "tran") == "usb", "removable"),
        (_VIRTUAL_MEDIA.search(title) is not None, "virtual medium"),
    )
    return next((text for applies, text in reasons if applies), "")


def _walk(row: dict[str, t.Any]) -> t.Iterator[dict[str, t.Any]]:
    yield row
    for child in row.get("children") or []:
        yield from _walk(child)


def _in_use(row: dict[str, t.Any]) -> str:
    """What holds the disk: a mount, swap, or a device built on it."""
    for part in _walk(row):
        mounts = [point for point in part.get("mountpoints") or [part.get("mountpoint")] if point]
        if mounts:
            return f"{_text(part, 'path')} is mounted at {mounts[0]}"
        if part is not row and _text(part, "type") != "part":
            return f"{_text(part, 'path')} ({_text(part, 'type')}) is built on it"
    return ""


def _content(row: dict[str, t.Any]) -> t.Iterator[str]:
    for part in _walk(row):
        kind = _text(part, "fstype") or (_text(part, "pttype") if part is row else "")
        if kind:
            label = _text(part, "label")
            yield f"{_text(part, 'path')}: {kind}" + (f" ({label})" if label else "")
        elif part is not row:
            yield f"{_text(part, 'path')}: partition"


def check_hints(hints: t.Mapping[str, t.Any]) -> None:
    """Raise :class:`InvalidInput` for hints that cannot be understood."""
    if "raid1" in hints:
        raise InvalidInput("disk: raid1 (a mirrored pair) is not yet supported; name one disk")
    unknown = sorted(set(hints) - {*HINTS, "path"})
    if unknown:
        raise InvalidInput(f"disk: unknown hint {', '.join(unknown)}; known are {', '.join(HINTS)} and path")
    given = [key for key, value in hints.items() if value not in (None, "")]
    if not given:
        raise InvalidInput("disk: no hint is given; the disk to write to is never guessed")
    if "path" in given and len(given) > 1:
        raise InvalidInput("disk: path stands alone; other hints cannot be combined with it")
    if hints.get("size") not in (None, ""):
        _parse_size(hints["size"])
    if hints.get("rotational") not in (None, ""):
        _as_bool(hints["rotational"])


def _parse_size(value: t.Any) -> tuple[str, int]:
    match = _SIZE.fullmatch(str(value))
    if isinstance(value, bool) or not match:
        raise InvalidInput(f"disk: size {value!r} is not a number of GiB, optionally after one of {' '.join(_COMPARE)}")
    return match.group(1) or "==", int(match.group(2))


def _as_bool(value: t.Any) -> bool:
    text = str(value).strip().lower()
    if text not in ("true", "false", "yes", "no", "1", "0"):
        raise InvalidInput(f"disk: rotational {value!r} is neither true nor false")
    return text in ("true", "yes", "1")


def _same(hint: t.Any, *values: str) -> bool:
    wanted = str(hint).strip().lower()
    return any(wanted == value.lower() for value in values if value)


def matches(disk: Disk, hints: t.Mapping[str, t.Any]) -> bool:
    """Whether every hint fits the disk."""
    for key, hint in hints.items():
        if hint in (None, ""):
            continue
        if key == "size":
            operator, number = _parse_size(hint)
            fits = _COMPARE[operator](disk.size // GIB, number)
        elif key == "rotational":
            fits = disk.rotational == _as_bool(hint)
        elif key == "by_path":
            fits = str(hint).rpartition("/")[2] in {link.rpartition("/")[2] for link in disk.by_path}
        elif key == "path":
            fits = disk.path == hint
        elif key == "wwn":
            # lsblk writes 0x5000…, eui.… or nvme.…; Ironic's users write them with and without the prefix.
            fits = _same(str(hint).lower().replace("0x", "", 1), disk.wwn.lower().replace("0x", "", 1))
        else:
            fits = _same(hint, getattr(disk, key))
        if not fits:
            return False
    return True


def select(disks: t.Sequence[Disk], hints: t.Mapping[str, t.Any]) -> Disk:
    """The one disk that is meant. Raises with a list of all disks when it is not exactly one."""
    check_hints(hints)
    fitting = [disk for disk in disks if matches(disk, hints)]
    candidates = [disk for disk in fitting if not disk.unfit]
    if len(candidates) == 1:
        return candidates[0]
    wanted = ", ".join(f"{key}={value}" for key, value in sorted(hints.items()) if value not in (None, ""))
    what = "no disk" if not candidates else f"{len(candidates)} disks"
    if fitting and not candidates:
        what = "only a disk that cannot be a root disk"
    raise NotOneDisk(
        f"disk: {what} matches {wanted}; present: " + ("; ".join(disk.describe() for disk in disks) or "none"),
        disks=[{**disk.summary(), "unfit": disk.unfit, "matches": disk in fitting} for disk in disks],
    )
