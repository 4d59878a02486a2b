# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the role os_image builds and publishes: a site's own builder, what is found in an image, what is refused."""

from __future__ import annotations

import json
import os
import pathlib
import shutil
import subprocess
import sys
import typing as t
import uuid

import pytest
from ansible_collections.h200.rack.plugins.module_utils._common.errors import InvalidInput
from ansible_collections.h200.rack.plugins.module_utils._image import gpt, inspect, publish, store
from image_testing import MIB, TESTS

BUILT = TESTS.parent / ".cache/build/os_image/debian12.raw"
STACK = {
    "linux-image-6.8.0-50-generic": "6.8.0-50.51",
    "nvidia-driver-570-server-open": "570.86.15-0ubuntu1",
    "nvidia-fabricmanager-570": "570.86.15-1",
    "cuda-toolkit-12-8": "12.8.1-1",
    "libnccl2": "2.25.1-1+cuda12.8",
    "doca-ofed": "2.10.0",
    "slurmd": "24.11.1",
}


def image_of(folder: pathlib.Path, packages: dict[str, str]) -> pathlib.Path:
    """A disk with an EFI system partition and a root that says that these packages are installed."""
    tree = folder / "tree"
    shutil.rmtree(tree, ignore_errors=True)
    (tree / "usr/lib").mkdir(parents=True)
    (tree / "usr/lib/os-release").write_text('ID=ubuntu\nVERSION_ID="24.04"\n')
    (tree / "var/lib/dpkg").mkdir(parents=True)
    status = (
        f"Package: {name}\nStatus: install ok installed\nVersion: {version}\n" for name, version in packages.items()
    )
    (tree / "var/lib/dpkg/status").write_text("\n".join(status))
    root, disk = folder / "root", folder / "disk.raw"
    root.unlink(missing_ok=True)
    subprocess.run(["mke2fs", "-q", "-t", "ext4", "-d", tree, root, "12M"], check=True, capture_output=True)
    per, size = MIB // 512, 16 * MIB
    parts = (
        gpt.Partition(1, gpt.EFI_SYSTEM, uuid.UUID(int=1), per, 2 * per - 1, "EFI"),
        gpt.Partition(2, gpt.LINUX_FILESYSTEM, uuid.UUID(int=2), 2 * per, 14 * per - 1, "root"),
    )
    data = bytearray(size)
    table = gpt.Table(512, uuid.UUID(int=3), per, 128, 128, parts, (0, 0))
    head, backup, offset = gpt.apply(bytes(data[:MIB]), table, size)
    data[:MIB] = head
    data[offset : offset + len(backup)] = backup
    content = root.read_bytes()
    data[2 * MIB : 2 * MIB + len(content)] = content
    disk.write_bytes(data)
    return disk


def publish_image(folder: pathlib.Path, packages: dict[str, str]) -> publish.Outcome:
    (folder / "mirror").mkdir(exist_ok=True)
    source = image_of(folder, packages)
    return publish.publish(publish.Request(str(source), "gpu", "1", str(folder / "mirror"), chunk_size=MIB, level=1))


def test_the_manifest_says_what_was_found_in_the_image(tmp_path) -> None:
    manifest = publish_image(tmp_path, STACK).manifest
    assert manifest is not None and manifest.boot == "uefi"
    assert manifest.contents == {
        "distribution": "ubuntu 24.04",
        "kernel": "6.8.0-50-generic",
        "nvidia_driver": "570.86.15-0ubuntu1",
        "fabric_manager": "570.86.15-1",
        "cuda": "12.8.1-1",
        "nccl": "2.25.1-1+cuda12.8",
        "ofed": "2.10.0",
        "slurm": "24.11.1",
    }


def test_a_gpu_image_whose_fabric_manager_is_of_another_version_is_not_published(tmp_path) -> None:
    with pytest.raises(InvalidInput, match="driver 570.86.15 but fabric manager 570.124.06"):
        publish_image(tmp_path, {**STACK, "nvidia-fabricmanager-570": "570.124.06-1"})
    assert store.current(str(tmp_path / "mirror/images/gpu")) is None
    assert not list((tmp_path / "mirror").rglob("image.raw.zst"))


@pytest.mark.skipif(not BUILT.exists(), reason="no image is built here")
def test_what_mmdebstrap_built_says_what_it_is() -> None:
    with BUILT.open("rb") as handle:
        head = handle.read(MIB)
    found = inspect.contents(str(BUILT), head)
    assert found["distribution"].startswith("debian ") and found["kernel"] and found["cloud_init"]
    assert inspect.boot_of(head) == "uefi"


BUILDER = """
import json, pathlib, shutil, sys
source, spec, output = sys.argv[1:]
wanted = json.loads(pathlib.Path(spec).read_text())
shutil.copy(source, output)
with open(source + ".calls", "a") as calls:
    calls.write(wanted["name"] + " " + wanted["version"] + "\\n")
"""


@pytest.mark.full
@pytest.mark.skipif(os.geteuid() != 0, reason="the role runs as root")
@pytest.mark.skipif(shutil.which("apt-get") is None, reason="the role asks for Debian's packages here")
def test_a_sites_own_builder_is_called_once_and_what_it_made_is_published(tmp_path) -> None:
    source = image_of(tmp_path, STACK)
    (tmp_path / "builder.py").write_text(BUILDER)
    (tmp_path / "mirror").mkdir()
    variables = {
        "os_image_name": "site",
        "os_image_version": "7",
        "os_image_hook": [sys.executable, str(tmp_path / "builder.py"), str(source)],
        "os_image_build_dir": str(tmp_path / "build"),
        "os_image_mirror_root": str(tmp_path / "mirror"),
        "os_image_signing_key": str(tmp_path / "keys/image.key"),
        "ansible_python_interpreter": "/usr/bin/python3",
    }
    assert play(tmp_path, variables) > 0
    family = tmp_path / "mirror/images/site"
    digest = store.current(str(family))
    assert digest is not None
    assert {path.name for path in (family / digest).iterdir()} == {
        *("image.raw.zst", "manifest.json", "manifest.json.sig", "image.torrent", "image.infohash")
    }
    assert json.loads((family / digest / "manifest.json").read_text())["contents"]["nccl"] == "2.25.1-1+cuda12.8"
    assert play(tmp_path, variables) == 0, "a second run changes something"
    assert play(tmp_path, {**variables, "os_image_version": "8"}) > 0
    assert (tmp_path / "disk.raw.calls").read_text() == "site 7\nsite 8\n"
    assert len([path for path in family.iterdir() if len(path.name) == 64]) == 2


def play(folder: pathlib.Path, variables: dict[str, t.Any]) -> int:
    """Run the role here; returns how many tasks changed something."""
    path = folder / "play.yml"
    path.write_text(
        json.dumps(
            [{"hosts": "localhost", "connection": "local", "gather_facts": False, "roles": ["h200.rack.os_image"]}]
        )
    )
    done = subprocess.run(
        [str(pathlib.Path(sys.executable).with_name("ansible-playbook")), "-i", "localhost,", str(path)]
        + ["-e", json.dumps(variables)],
        env={**os.environ, "ANSIBLE_NOCOLOR": "1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    recap = next(line for line in done.stdout.splitlines() if line.startswith("localhost") and "changed=" in line)
    return int(recap.partition("changed=")[2].split()[0])
