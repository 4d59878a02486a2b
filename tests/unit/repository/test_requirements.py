# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is said in several files about the same thing says the same."""

from __future__ import annotations

import pathlib
import re
import subprocess

import pytest
import yaml

ROOT = pathlib.Path(__file__).resolve().parents[3]
LINE = re.compile(r"^(?P<name>[A-Za-z0-9_.-]+)(?P<limits>[^#]*)")


def requirements(name: str) -> dict[str, str]:
    lines = (ROOT / name).read_text().splitlines()
    found = [LINE.match(line) for line in lines if line and not line.startswith(("#", "-r"))]
    return {match["name"].lower(): match["limits"].strip() for match in found if match}


def version(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split("."))


def floor(limits: str) -> tuple[int, ...]:
    return version(re.findall(r">=([0-9.]+)", limits)[0])


TESTED = requirements("requirements.txt")
FLOORS = requirements("meta/ee-requirements.txt")


def test_an_execution_environment_gets_every_library_that_the_controller_imports():
    assert FLOORS.keys() == TESTED.keys() - {"ansible-core"}


@pytest.mark.parametrize("name", sorted(FLOORS))
def test_what_is_tested_is_allowed_in_an_execution_environment(name):
    tested = version(TESTED[name].removeprefix("=="))
    assert floor(FLOORS[name]) <= tested
    for ceiling in re.findall(r"<([0-9.]+)", FLOORS[name]):
        assert tested < version(ceiling)


def test_ansible_core_that_is_tested_is_one_that_the_collection_takes():
    takes = yaml.safe_load((ROOT / "meta" / "runtime.yml").read_text())["requires_ansible"]
    assert floor(takes) <= version(TESTED["ansible-core"].removeprefix("=="))


def test_everything_is_pinned_so_that_tomorrow_tests_what_today_did():
    pinned = {
        **TESTED,
        **requirements("requirements-dev.txt"),
        **requirements("tests/virtual_rack/requirements-sushy.txt"),
    }
    assert not [name for name, limits in pinned.items() if not re.fullmatch(r"==[0-9.]+", limits)]


def test_the_execution_environment_names_files_that_exist():
    named = yaml.safe_load((ROOT / "meta" / "execution-environment.yml").read_text())["dependencies"]
    for name in named.values():
        assert (ROOT / name).is_file()
    bindep = (ROOT / "meta" / "ee-bindep.txt").read_text()
    assert all(re.fullmatch(r"\S+ \[platform:(rpm|dpkg)\]", line) for line in bindep.splitlines())


def test_the_action_group_holds_every_module_that_talks_to_a_bmc():
    group = yaml.safe_load((ROOT / "meta" / "runtime.yml").read_text())["action_groups"]["bmc"]
    modules = {path.stem for path in (ROOT / "plugins" / "modules").glob("*.py")}
    assert set(group) == {name for name in modules if name.startswith(("redfish_", "ipmi_"))}


def test_nobody_s_packages_come_from_a_host_that_we_chose():
    # Packages are taken from where the build host takes its own; a host named here would be wrong behind a proxy.
    debian = r"deb\.debian\.|security\.debian\.|archive\.ubuntu\."
    hosts = rf"{debian}|pythonhosted\.|pypi\.(org|python)|registry\.npmjs|quay\.io|docker\.io"
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode != 0:
        pytest.skip("not a git checkout")
    named = []
    for name in listed.stdout.split("\0"):
        path = ROOT / name
        if name and path.is_file() and path != pathlib.Path(__file__):
            named += [f"{name}: {match[0]}" for match in re.finditer(hosts, path.read_text(errors="replace"))]
    assert not named
