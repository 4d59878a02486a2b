# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The plays as AWX starts them: by ansible-runner, from the project of docs/awx, with the inventory as a file of it."""

from __future__ import annotations

import json
import pathlib
import shutil

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[3]
INVENTORY = ROOT / ".cache" / "vrack" / "inventory"


@pytest.fixture
def job(rack, tmp_path):
    """Run one playbook of the project; returns ansible-runner's events."""
    shutil.copytree(ROOT / "docs" / "awx" / "project", tmp_path / "project")
    shutil.copytree(INVENTORY, tmp_path / "inventory")

    def run(playbook, variables, *options):
        command = ["ansible-runner", "run", str(tmp_path), "--ident", "job", "--quiet", "--playbook", playbook]
        # One shell word each: ansible-runner splits what it hands on.
        words = " ".join([*options, *(f"-e {name}={value}" for name, value in variables.items())])
        result = rack.run(*command, "--cmdline", words, env={"ANSIBLE_FORKS": "8"})
        folder = tmp_path / "artifacts" / "job"
        told = (folder / "stdout").read_text() if (folder / "stdout").exists() else result.text
        events = [json.loads(path.read_text()) for path in sorted((folder / "job_events").glob("*.json"))]
        return result.rc, (folder / "status").read_text(), told, events

    return run


def test_preflight_of_a_sound_rack_passes_as_a_job(job):
    rc, status, told, events = job("preflight.yml", {"rack_limit": "gpu001", "rack_reimage": ""})
    assert (rc, status) == (0, "successful"), told
    stats = next(event["event_data"] for event in events if event["event"] == "playbook_on_stats")
    assert not stats["failures"] and not stats["dark"]


def test_a_refused_provision_is_a_failed_job_that_names_the_variable(job):
    rc, status, told, _events = job("provision.yml", {"rack_reimage": "gpu099"}, "--check")
    assert (rc != 0, status) == (True, "failed")
    assert "gpu099" in told and "rack_reimage" in told
