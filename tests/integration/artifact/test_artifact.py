# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a user installs: built, installed without the repository beside it, and used with nothing but what runs."""

from __future__ import annotations

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tarfile
import typing as t

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[3]
BIN = pathlib.Path(sys.executable).parent
RUNS = {"meta", "plugins", "roles", "playbooks"}
SHIPPED = RUNS | {
    "MANIFEST.json",
    "FILES.json",
    "README.md",
    "CHANGELOG.md",
    "LICENSE",
    "changelogs",
    "docs",
    "extensions",
}
PLAYBOOKS = ["preflight", "boot_services", "images", "provision", "status"]
INVENTORY = {
    "rack_nodes": {"hosts": {"gpu001": {"ansible_host": "192.0.2.11"}}},
    "rack_boot_servers": {"hosts": {"boot01": {"ansible_host": "192.0.2.2"}}},
    "rack_mirrors": {"hosts": {"mirror01": {"ansible_host": "192.0.2.3"}}},
    "rack_slurm_controllers": {"hosts": {"slurm01": {"ansible_host": "192.0.2.5"}}},
}


class Installed:
    """The collection in a folder of its own, as ansible-galaxy put it there."""

    def __init__(self, home: pathlib.Path) -> None:
        self.home = home
        self.tree = home / "collections" / "ansible_collections" / "h200" / "rack"
        self.environment = {name: value for name, value in os.environ.items() if not name.startswith("ANSIBLE_")}
        self.environment.update(
            ANSIBLE_HOME=str(home / "ansible"), ANSIBLE_COLLECTIONS_PATH=str(home / "collections"), ANSIBLE_NOCOLOR="1"
        )

    def run(self, program: str, *arguments: str, cwd: t.Optional[pathlib.Path] = None) -> str:
        done = subprocess.run(
            [str(BIN / program), *arguments],
            cwd=cwd or self.home,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def module(self, name: str, **options: object) -> dict[str, t.Any]:
        told = self.run("ansible", "localhost", "-o", "-m", f"h200.rack.{name}", "-a", json.dumps(options))
        return json.loads(told[told.index("{") :])


@pytest.fixture(scope="module")
def artifact(tmp_path_factory: pytest.TempPathFactory) -> tuple[Installed, pathlib.Path]:
    installed = Installed(tmp_path_factory.mktemp("artifact"))
    installed.run("ansible-galaxy", "collection", "build", "--output-path", str(installed.home), cwd=ROOT)
    return installed, next(installed.home.glob("h200-rack-*.tar.gz"))


@pytest.fixture(scope="module")
def installed(artifact: tuple[Installed, pathlib.Path]) -> Installed:
    collection, archive = artifact
    collection.run(
        *("ansible-galaxy", "collection", "install", str(archive), "--no-deps", "--offline"),
        *("--collections-path", str(collection.home / "collections")),
    )
    for entry in collection.tree.iterdir():
        if entry.name not in RUNS:
            shutil.rmtree(entry) if entry.is_dir() else entry.unlink()
    return collection


def test_nothing_of_the_workshop_is_shipped(artifact: tuple[Installed, pathlib.Path]) -> None:
    with tarfile.open(artifact[1]) as archive:
        names = [pathlib.PurePath(name) for name in archive.getnames()]
    assert {name.parts[0] for name in names if name.parts} <= SHIPPED
    assert not [str(name) for name in names if "molecule" in name.parts or "__pycache__" in name.parts]
    assert {name.parts[0] for name in names if name.parts} >= RUNS


@pytest.mark.parametrize("kind", ["module", "filter", "lookup"])
def test_every_plugin_tells_what_it_does(installed: Installed, kind: str) -> None:
    folder = {"module": "modules"}.get(kind, kind)
    names = [f"h200.rack.{file.stem}" for file in sorted((installed.tree / "plugins" / folder).glob("[!_]*.py"))]
    told = json.loads(installed.run("ansible-doc", "--json", "--type", kind, *names))
    assert sorted(told) == names
    for name, plugin in told.items():
        assert plugin["doc"]["filename"].startswith(str(installed.tree)), f"{name} is not the installed one"
        assert plugin["doc"]["short_description"]


def test_every_entry_point_of_every_role_is_described(installed: Installed) -> None:
    told = json.loads(installed.run("ansible-doc", "--json", "--type", "role", "--list", "h200.rack"))
    roles = sorted(folder.name for folder in (installed.tree / "roles").iterdir())
    assert sorted(name.rpartition(".")[2] for name in told) == roles


@pytest.mark.parametrize("name", PLAYBOOKS)
def test_a_playbook_is_found_by_its_name_and_parses(installed: Installed, name: str) -> None:
    inventory = installed.home / "inventory.json"
    inventory.write_text(json.dumps({"all": {"children": INVENTORY}}))
    installed.run("ansible-playbook", "-i", str(inventory), "--syntax-check", f"h200.rack.{name}")


def test_a_module_that_writes_runs(installed: Installed, tmp_path: pathlib.Path) -> None:
    options = {"node": "gpu001", "stage": "declared", "run_id": "r1", "path": str(tmp_path)}
    first, second = (installed.module("node_state", **options) for _run in range(2))
    assert (first["changed"], first["stage"]) == (True, "declared")
    assert second["changed"] is False


def test_a_module_that_judges_runs(installed: Installed) -> None:
    log = (ROOT / "tests" / "unit" / "fixtures" / "nccl" / "h200_1node_8g.txt").read_text()
    told = installed.module("nccl_probe", log_content=log, collective="all_reduce", expect_ranks=8)
    assert told["ranks"] == 8, told
    assert told["busbw"] > 400
