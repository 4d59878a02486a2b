# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A published image, the rack's CA, and mirrors that are started as needed."""

from __future__ import annotations

import pathlib
import subprocess
import sys
import typing as t

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
sys.path.insert(1, str(pathlib.Path(__file__).parents[1] / "image"))
import mirrors
from image_testing import Disk, Published, make_key, publish_raw, raw_image


@pytest.fixture(scope="session")
def published(tmp_path_factory: pytest.TempPathFactory) -> Published:
    folder = tmp_path_factory.mktemp("published")
    private, public = make_key(folder, "signing")
    raw = raw_image()
    outcome = publish_raw(folder, raw, private)
    assert outcome.digest and outcome.manifest
    return Published(folder / "mirror", raw, outcome.digest, outcome.manifest, str(public), str(private))


@pytest.fixture(scope="session")
def ca(tmp_path_factory: pytest.TempPathFactory) -> mirrors.Ca:
    return mirrors.Ca(tmp_path_factory.mktemp("ca"))


@pytest.fixture
def mirror(tmp_path: pathlib.Path, published: Published) -> t.Iterator[t.Callable[..., mirrors.Mirror]]:
    """Start a mirror: ``mirror()`` with the image and in rotation, ``mirror(empty=True)`` as a new one."""
    started: list[mirrors.Mirror] = []

    def start(empty: bool = False, **options: t.Any) -> mirrors.Mirror:
        made = mirrors.Mirror(tmp_path / f"mirror{len(started) + 1}", **options)
        started.append(made)
        if not empty:
            subprocess.run(["cp", "-a", f"{published.root}/.", str(made.store)], check=True)
            mirrors.publish_into(made)
        return made.start()

    yield start
    for made in started:
        made.kill()


@pytest.fixture
def disk(tmp_path: pathlib.Path, published: Published) -> t.Callable[..., Disk]:
    numbers = iter(range(100))
    return lambda **options: Disk(tmp_path / f"disk{next(numbers)}", published, **options)
