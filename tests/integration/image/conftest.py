# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A published image, mirrors that misbehave as they are told, and disks."""

from __future__ import annotations

import pathlib
import subprocess
import sys
import typing as t

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from faulty_mirror import FaultyMirror
from image_testing import Disk, Published, make_key, publish_raw, raw_image


@pytest.fixture(scope="session")
def published(tmp_path_factory: pytest.TempPathFactory) -> Published:
    folder = tmp_path_factory.mktemp("published")
    private, public = make_key(folder, "signing")
    raw = raw_image()
    outcome = publish_raw(folder, raw, private)
    assert outcome.digest and outcome.manifest
    return Published(folder / "mirror", raw, outcome.digest, outcome.manifest, str(public), str(private))


@pytest.fixture
def mirror(published: Published) -> t.Iterator[t.Callable[..., FaultyMirror]]:
    """Start a mirror: ``mirror(fault)``; see the class for the faults."""
    started: list[FaultyMirror] = []

    def start(fault: str = "", root: pathlib.Path | None = None, **options: t.Any) -> FaultyMirror:
        started.append(FaultyMirror(root or published.root, fault, **options))
        return started[-1]

    yield start
    for server in started:
        server.stop()


@pytest.fixture
def disk(tmp_path: pathlib.Path, published: Published) -> t.Callable[..., Disk]:
    numbers = iter(range(100))
    return lambda **options: Disk(tmp_path / f"disk{next(numbers)}", published, **options)


@pytest.fixture
def copy_of_mirror(tmp_path: pathlib.Path, published: Published) -> pathlib.Path:
    """A mirror root of its own, to be damaged."""
    root = tmp_path / "mirror"
    subprocess.run(["cp", "-a", str(published.root), str(root)], check=True)
    return root
