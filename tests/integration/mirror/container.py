# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The container of the boot tests, under a name that no other part's laboratory has."""

from __future__ import annotations

import importlib.util
import pathlib
import sys

_NAME = "mirror_container_lab"
_spec = importlib.util.spec_from_file_location(_NAME, pathlib.Path(__file__).parents[1] / "boot" / "lab.py")
assert _spec is not None and _spec.loader is not None
_lab = importlib.util.module_from_spec(_spec)
sys.modules[_NAME] = _lab
_spec.loader.exec_module(_lab)

BOOT, REPO, Lab, Play = _lab.BOOT, _lab.REPO, _lab.Lab, _lab.Play
