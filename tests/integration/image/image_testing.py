# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the tests of images share: a disk image, how it is published, and writers as processes of their own."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import pathlib
import random
import subprocess
import sys
import typing as t
import uuid

from ansible_collections.h200.rack.plugins.module_utils._image import gpt, publish
from ansible_collections.h200.rack.plugins.module_utils._image.manifest import Manifest, dump, parse
from faulty_mirror import FaultyMirror

TESTS = pathlib.Path(__file__).resolve().parents[2]
MIB = 1 << 20
RAW_SIZE = 64 * MIB
DISK_SIZE = 80 * MIB
RUNNER = """
import json, sys
sys.path.insert(0, sys.argv[1]); import conftest
from ansible_collections.h200.rack.plugins.module_utils._common.errors import RackError
from ansible_collections.h200.rack.plugins.module_utils._image import deploy
request = json.loads(sys.argv[2])
try:
    print(json.dumps(deploy.deploy(deploy.Request(**request["options"]), request["check_mode"])))
except RackError as exc:
    print(json.dumps({"failed": True, **exc.as_result()}))
"""


def raw_image(seed: int = 1) -> bytes:
    """A disk with a partition table, data that does not compress, and a stretch of zeros."""
    source = random.Random(seed)
    data = bytearray(RAW_SIZE)
    data[510:512] = b"\x55\xaa"
    data[446 + 4], data[446 + 8] = 0xEE, 1
    ids = [uuid.UUID(int=source.getrandbits(128), version=4) for _number in range(3)]
    per = MIB // 512
    parts = (
        gpt.Partition(1, gpt.EFI_SYSTEM, ids[0], per, 3 * per - 1, "EFI"),
        gpt.Partition(2, gpt.LINUX_FILESYSTEM, ids[1], 3 * per, 63 * per - 1, "root"),
    )
    table = gpt.Table(512, ids[2], per, 128, 128, parts, (0, 0))
    head, backup, offset = gpt.apply(bytes(data[:MIB]), table, RAW_SIZE)
    data[:MIB] = head
    data[offset : offset + len(backup)] = backup
    data[MIB : 40 * MIB] = source.randbytes(39 * MIB)
    data[50 * MIB : 63 * MIB] = source.randbytes(13 * MIB)
    return bytes(data)


@dataclasses.dataclass
class Published:
    root: pathlib.Path
    raw: bytes
    digest: str
    manifest: Manifest
    public_key: str
    signing_key: str


def publish_raw(folder: pathlib.Path, raw: bytes, key: pathlib.Path, version: str = "1") -> publish.Outcome:
    source = folder / "source.raw"
    source.write_bytes(raw)
    (folder / "mirror").mkdir(exist_ok=True)
    return publish.publish(
        publish.Request(
            str(source), "test", version, str(folder / "mirror"), chunk_size=MIB, level=1, signing_key=str(key)
        )
    )


def make_key(folder: pathlib.Path, name: str) -> tuple[pathlib.Path, pathlib.Path]:
    private, public = folder / f"{name}.pem", folder / f"{name}.pub"
    subprocess.run(["openssl", "genpkey", "-algorithm", "ed25519", "-out", private], check=True, capture_output=True)
    subprocess.run(["openssl", "pkey", "-in", private, "-pubout", "-out", public], check=True, capture_output=True)
    return private, public


class Write:
    """One writer, running."""

    def __init__(self, options: dict[str, t.Any], check_mode: bool = False, prefix: t.Sequence[str] = ()) -> None:
        request = json.dumps({"options": options, "check_mode": check_mode})
        self.process = subprocess.Popen(
            [*prefix, sys.executable, "-c", RUNNER, str(TESTS), request],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def result(self) -> dict[str, t.Any]:
        output, errors = self.process.communicate(timeout=300)
        assert self.process.returncode == 0, errors
        return json.loads(output)


class Disk:
    """A file that plays a node's disk."""

    def __init__(self, path: pathlib.Path, published: Published, size: int = DISK_SIZE) -> None:
        self.path = path
        self._published = published
        with path.open("wb") as handle:
            handle.truncate(size)

    def options(self, mirrors: t.Sequence[FaultyMirror | str], **changes: t.Any) -> dict[str, t.Any]:
        options = {
            "mirrors": [mirror if isinstance(mirror, str) else mirror.url for mirror in mirrors],
            "image": "test",
            "digest": self._published.digest,
            "public_key": self._published.public_key,
            "disk": {"path": str(self.path)},
            "require_ramdisk": False,
            "verify": "all",
            "stall_timeout": 1,
            "timeout": 240,
            "progress_path": f"{self.path}.progress",
        }
        return {**options, **changes}

    def write(self, mirrors: t.Sequence[FaultyMirror | str], check_mode: bool = False, **changes: t.Any) -> Write:
        return Write(self.options(mirrors, **changes), check_mode)

    def is_right(self) -> bool:
        """Every byte of the image, but for the table's header that moved with the disk's end, and a good table."""
        data, raw = self.path.read_bytes(), self._published.raw
        table = gpt.parse(data[:MIB])
        want = gpt.parse(raw[:MIB])
        assert table is not None and want is not None
        skip = 34 * 512
        same_table = table.disk_guid == want.disk_guid and table.partitions[:2] == want.partitions
        backup = data[-512:]
        return same_table and data[skip:RAW_SIZE] == raw[skip:] and backup[:8] == b"EFI PART"

    def boots(self) -> bool:
        """Whether firmware would find anything to boot: there is a partition table or boot code."""
        with self.path.open("rb") as handle:
            return any(handle.read(34 * 512))

    def sha256(self) -> str:
        return hashlib.sha256(self.path.read_bytes()).hexdigest()


def tamper(root: pathlib.Path, published: Published, key: str, **changes: t.Any) -> str:
    """Publish, with a good signature, a manifest that was changed; returns its digest."""
    from ansible_collections.h200.rack.plugins.module_utils._image.signature import sign

    old = root / "images" / "test" / published.digest
    data = dump(parse((old / "manifest.json").read_bytes())._replace(**changes))
    digest = hashlib.sha256(data).hexdigest()
    new = old.parent / digest
    new.mkdir()
    (new / "manifest.json").write_bytes(data)
    (new / "manifest.json.sig").write_bytes(sign(data, key))
    os.link(old / "image.raw.zst", new / "image.raw.zst")
    return digest
