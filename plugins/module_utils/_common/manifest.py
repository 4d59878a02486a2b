# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The manifests of published images and ramdisks: canonical JSON, parsed strictly. Private to h200.rack.

Its sha256 is the image's digest, so two manifests that mean the same are the same bytes: sorted keys, no spaces,
no dates. A manifest that would not be written again byte for byte is refused, which also refuses double keys.
"""

from __future__ import annotations

import hashlib
import json
import re
import typing as t

from .errors import InvalidInput

FORMAT = "h200.rack.image/1"
RAMDISK_FORMAT = "h200.rack.ramdisk/1"
RAMDISK_FILES = ("vmlinuz", "initrd.img")
WIRE_FILE = "image.raw.zst"
MANIFEST_FILE = "manifest.json"
SIGNATURE_FILE = "manifest.json.sig"
ARCHS = ("x86_64", "aarch64")
BOOTS = ("uefi", "bios", "both")
SECTOR_SIZES = (512, 4096)
MIN_CHUNK = 64 * 1024
MAX_CHUNK = 64 * 1024 * 1024
MAX_RAW = 64 << 40
MAX_MANIFEST = 256 * 1024 * 1024

_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._+-]{0,126}[A-Za-z0-9+])?")
_DIGEST = re.compile(r"[0-9a-f]{64}")
_CONTENT_KEY = re.compile(r"[a-z][a-z0-9_]{0,39}")


class Chunk(t.NamedTuple):
    """One piece of the raw image, and the zstd frame that holds it."""

    raw_offset: int
    raw_length: int
    wire_offset: int
    wire_length: int
    sha256: str
    zero: bool


class Manifest(t.NamedTuple):
    name: str
    version: str
    arch: str
    boot: str
    sector_size: int
    raw_size: int
    raw_sha256: str
    wire_size: int
    wire_sha256: str
    chunk_size: int
    minimum_disk: int
    contents: dict[str, str]
    chunks: tuple[Chunk, ...]


def is_name(value: t.Any) -> bool:
    """Whether ``value`` can name an image or a version: one path component without surprises."""
    return isinstance(value, str) and _NAME.fullmatch(value) is not None


def is_digest(value: t.Any) -> bool:
    return isinstance(value, str) and _DIGEST.fullmatch(value) is not None


def require_name(value: t.Any, what: str) -> str:
    if not is_name(value):
        raise InvalidInput(f"{what}: {value!r} is not a plain name (letters, digits, '.', '_', '+' and '-')")
    return value


def require_digest(value: t.Any, what: str) -> str:
    if not is_digest(value):
        raise InvalidInput(f"{what}: {value!r} is not a sha256 in 64 lower-case hex digits")
    return value


def canonical(value: t.Any) -> bytes:
    """The only way a manifest is written."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False).encode("ascii")


def digest_of(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def dump(manifest: Manifest) -> bytes:
    """The bytes of ``manifest.json``."""
    value = manifest._asdict()
    value["format"] = FORMAT
    value["chunks"] = [chunk._asdict() for chunk in manifest.chunks]
    return canonical(value)


def load_canonical(data: bytes, what: str) -> dict[str, t.Any]:
    """The JSON object in ``data``; anything but canonical JSON is refused."""
    if len(data) > MAX_MANIFEST:
        raise InvalidInput(f"{what} is larger than {MAX_MANIFEST} bytes")
    try:
        value = json.loads(data)
        same = isinstance(value, dict) and canonical(value) == data
    except (ValueError, RecursionError) as exc:
        raise InvalidInput(f"{what} is not JSON: {str(exc)[:120]}") from exc
    if not same:
        raise InvalidInput(f"{what} is not a JSON object in canonical form")
    return value


def parse(data: bytes, what: str = MANIFEST_FILE) -> Manifest:
    """The manifest in ``data``, every field and every sum checked. Raises :class:`InvalidInput`."""
    value = load_canonical(data, what)
    _require_keys(value, {"format", *Manifest._fields}, what)
    if value.pop("format") != FORMAT:
        raise InvalidInput(f"{what} has another format than {FORMAT}")
    for key in ("name", "version"):
        require_name(value[key], f"{what}: {key}")
    for key in ("raw_sha256", "wire_sha256"):
        require_digest(value[key], f"{what}: {key}")
    for key, allowed in (("arch", ARCHS), ("boot", BOOTS), ("sector_size", SECTOR_SIZES)):
        if type(value[key]) is not type(allowed[0]) or value[key] not in allowed:
            raise InvalidInput(f"{what}: {key} {value[key]!r} is none of {', '.join(map(str, allowed))}")
    raw_size = _integer(value, "raw_size", 1, MAX_RAW, what)
    _integer(value, "wire_size", 1, MAX_RAW, what)
    _integer(value, "minimum_disk", raw_size, MAX_RAW, what)
    chunk_size = _integer(value, "chunk_size", MIN_CHUNK, MAX_CHUNK, what)
    if chunk_size & (chunk_size - 1):
        raise InvalidInput(f"{what}: chunk_size {chunk_size} is no power of two")
    if raw_size % value["sector_size"]:
        raise InvalidInput(f"{what}: raw_size {raw_size} is no multiple of the sector size {value['sector_size']}")
    _check_contents(value["contents"], what)
    value["chunks"] = _parse_chunks(value, what)
    return Manifest(**value)


def _require_keys(value: t.Any, keys: set[str], what: str) -> None:
    if not isinstance(value, dict):
        raise InvalidInput(f"{what}: an object was expected, not {type(value).__name__}")
    if value.keys() != keys:
        unknown = ", ".join(sorted(map(repr, value.keys() - keys))[:5])
        missing = ", ".join(sorted(keys - value.keys())[:5])
        raise InvalidInput(f"{what}: unknown fields: {unknown or 'none'}; missing fields: {missing or 'none'}")


def _integer(value: dict[str, t.Any], key: str, low: int, high: int, what: str) -> int:
    number = value[key]
    # True and False are integers to Python, and nothing of the kind here.
    if isinstance(number, bool) or not isinstance(number, int) or not low <= number <= high:
        raise InvalidInput(f"{what}: {key} {number!r} is not an integer from {low} to {high}")
    return number


def _check_contents(contents: t.Any, what: str) -> None:
    if not isinstance(contents, dict) or len(contents) > 64:
        raise InvalidInput(f"{what}: contents is not an object of at most 64 entries")
    for key, text in contents.items():
        if not _CONTENT_KEY.fullmatch(key) or not isinstance(text, str) or len(text) > 256:
            raise InvalidInput(f"{what}: contents: {key!r} is not a short word with a short text")


def wire_bound(raw_length: int) -> int:
    """More than zstd ever makes of ``raw_length`` bytes (ZSTD_COMPRESSBOUND and some)."""
    return raw_length + (raw_length >> 8) + 1024


def zero_sha256(length: int) -> str:
    return hashlib.sha256(bytes(length)).hexdigest()


def _parse_chunks(value: dict[str, t.Any], what: str) -> tuple[Chunk, ...]:
    """The chunks, which must cover the raw image and the wire file without a gap or an overlap."""
    rows = value["chunks"]
    chunk_size, raw_size, wire_size = value["chunk_size"], value["raw_size"], value["wire_size"]
    if not isinstance(rows, list) or len(rows) != -(-raw_size // chunk_size):
        raise InvalidInput(f"{what}: {raw_size} bytes are not {-(-raw_size // chunk_size)} chunks of {chunk_size}")
    keys = set(Chunk._fields)
    zeros: dict[int, str] = {}
    raw = wire = 0
    chunks = []
    for index, row in enumerate(rows):
        where = f"{what}: chunk {index}"
        _require_keys(row, keys, where)
        length = min(chunk_size, raw_size - raw)
        _integer(row, "raw_offset", raw, raw, where)
        _integer(row, "raw_length", length, length, where)
        _integer(row, "wire_offset", wire, wire, where)
        _integer(row, "wire_length", 1, min(wire_bound(length), wire_size - wire), where)
        if not is_digest(row["sha256"]) or not isinstance(row["zero"], bool):
            raise InvalidInput(f"{where}: sha256 or zero is not what its name says")
        if row["zero"]:
            if length not in zeros:
                zeros[length] = zero_sha256(length)
            if row["sha256"] != zeros[length]:
                raise InvalidInput(f"{where}: called zero, but its sha256 is not that of zeros")
        chunks.append(Chunk(**row))
        raw += length
        wire += row["wire_length"]
    if wire != wire_size:
        raise InvalidInput(f"{what}: the chunks end at {wire}, the file at {wire_size}")
    return tuple(chunks)


def parse_ramdisk(data: bytes, what: str = MANIFEST_FILE) -> dict[str, t.Any]:
    """The ramdisk manifest in ``data``. Raises :class:`InvalidInput`."""
    value = load_canonical(data, what)
    if value.keys() != {"format", "arch", "version", "files"} or value["format"] != RAMDISK_FORMAT:
        raise InvalidInput(f"{what} is no ramdisk manifest of format {RAMDISK_FORMAT}")
    require_name(value["version"], f"{what}: version")
    if (
        value["arch"] not in ARCHS
        or not isinstance(value["files"], dict)
        or value["files"].keys() != set(RAMDISK_FILES)
    ):
        raise InvalidInput(f"{what}: unknown architecture or files")
    for name, fields in value["files"].items():
        good = isinstance(fields, dict) and fields.keys() == {"size", "sha256"} and is_digest(fields["sha256"])
        if not good or isinstance(fields["size"], bool) or not isinstance(fields["size"], int) or fields["size"] < 1:
            raise InvalidInput(f"{what}: {name}: size or sha256 is wrong")
    return value
