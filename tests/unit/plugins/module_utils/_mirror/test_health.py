# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys

import pytest
from ansible_collections.h200.rack.plugins.module_utils._mirror import health


def put(root, family, files, **fields):
    described = {name: {"size": len(data), "sha256": hashlib.sha256(data).hexdigest()} for name, data in files.items()}
    if family.startswith("images"):
        (data,) = files.values()
        fields = {"wire_size": len(data), "wire_sha256": described["image.raw.zst"]["sha256"]}
    manifest = json.dumps({"files": described, **fields}).encode()
    digest = hashlib.sha256(manifest).hexdigest()
    folder = root / family / digest
    folder.mkdir(parents=True)
    (folder / "manifest.json").write_bytes(manifest)
    for name, data in files.items():
        (folder / name).write_bytes(data)
    (root / family / "current").write_text(f"{digest}\n")
    return folder


@pytest.fixture
def store(tmp_path):
    image = put(tmp_path, "images/debian12", {"image.raw.zst": b"frames"})
    ramdisk = put(tmp_path, "ramdisk/x86_64", {"vmlinuz": b"kernel", "initrd.img": b"system"})
    overlay = tmp_path / "ramdisk" / "overlay" / f"{hashlib.sha256(b'o').hexdigest()}.cpio"
    overlay.parent.mkdir()
    overlay.write_bytes(b"o")
    health.record(str(tmp_path), ["images/debian12", "ramdisk/x86_64"])
    return tmp_path, image, ramdisk, overlay


def told(root):
    good, bad = root / health.GOOD, root / health.BAD
    assert good.exists() != bad.exists()
    value = json.loads((good if good.exists() else bad).read_text())
    assert value["ready"] is good.exists()
    return value


def test_a_whole_store_is_in_rotation(store):
    root = store[0]
    assert health.refresh(str(root), deep=True) == []
    assert told(root)["current"]["images/debian12"] == store[1].name
    assert told(root)["read_whole"] == told(root)["checked"]


def test_a_new_mirror_is_not_in_rotation_before_it_is_filled(tmp_path):
    (problem,) = health.refresh(str(tmp_path))
    assert "not filled" in problem and told(tmp_path)["ready"] is False
    health.record(str(tmp_path), [])
    assert health.refresh(str(tmp_path)) == [] and told(tmp_path)["ready"] is True


def flip(path):
    state = path.stat()
    data = bytearray(path.read_bytes())
    data[1] ^= 1
    with path.open("r+b") as handle:
        handle.write(data)
    os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns))


def test_a_flipped_byte_is_found_by_reading_and_not_forgotten_by_the_next_quick_look(store):
    root, _image, ramdisk, _overlay = store
    flip(ramdisk / "vmlinuz")
    assert health.refresh(str(root)) == []
    assert "vmlinuz is damaged" in health.refresh(str(root), deep=True)[0]
    assert "vmlinuz is damaged" in health.refresh(str(root))[0] and not told(root)["ready"]
    (ramdisk / "vmlinuz").unlink()
    (ramdisk / "vmlinuz").write_bytes(b"kernel")
    assert health.refresh(str(root)) == [] and told(root)["ready"]


@pytest.mark.parametrize(
    ("damage", "word"),
    [
        (lambda root, image, ramdisk, overlay: (image / "image.raw.zst").unlink(), "is missing"),
        (lambda root, image, ramdisk, overlay: (image / "image.raw.zst").write_bytes(b"fr"), "2 bytes instead of 6"),
        (lambda root, image, ramdisk, overlay: (image / "manifest.json").write_bytes(b"{}"), "digest of its folder"),
        (lambda root, image, ramdisk, overlay: (image / "manifest.json").unlink(), "No such file"),
        (lambda root, image, ramdisk, overlay: overlay.write_bytes(b"x"), "damaged"),
        (lambda root, image, ramdisk, overlay: image.parent.rename(root / "gone"), "has no version"),
        (lambda root, image, ramdisk, overlay: ramdisk.rename(root / "gone"), "is not there"),
        (lambda root, image, ramdisk, overlay: (root / ".in-step.json").write_text("{"), "not filled"),
    ],
)
def test_a_store_that_is_not_whole_leaves_rotation(store, damage, word):
    health.refresh(str(store[0]))
    damage(*store)
    assert word in health.refresh(str(store[0]))[0]
    assert told(store[0])["ready"] is False


def test_what_is_still_on_its_way_is_no_problem(store):
    (store[0] / "images" / "debian12" / ".pull-x").mkdir()
    (store[0] / "images" / "new").mkdir()
    assert health.refresh(str(store[0])) == []


def test_a_store_that_is_not_mounted_is_no_store(tmp_path):
    assert health.refresh(str(tmp_path / "gone")) != []


def test_a_full_disk_takes_a_damaged_store_out_of_rotation_all_the_same(store, monkeypatch):
    root = store[0]
    health.refresh(str(root))

    def full(*_arguments):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(health, "_write", full)
    assert health.refresh(str(root)) == [] and (root / health.GOOD).exists()
    flip(store[2] / "vmlinuz")
    health.refresh(str(root), deep=True)
    assert not (root / health.GOOD).exists()


def test_the_file_runs_by_itself_as_the_timer_runs_it(store):
    command = [sys.executable, "-I", health.__file__, "--deep", str(store[0])]
    assert subprocess.run(command, check=False).returncode == 0
    flip(store[2] / "vmlinuz")
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.returncode == 1 and "vmlinuz is damaged" in done.stderr
