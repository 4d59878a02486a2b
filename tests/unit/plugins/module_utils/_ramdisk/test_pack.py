# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest
from ansible_collections.h200.rack.plugins.module_utils._common.errors import InvalidInput
from ansible_collections.h200.rack.plugins.module_utils._ramdisk import bootstrap, manifest, pack


def test_the_last_pattern_decides_so_that_one_file_of_a_folder_can_stay():
    patterns = ["usr/lib/units/*", "!usr/lib/units/reboot.target"]
    assert pack._excluded("usr/lib/units/getty.target", patterns)
    assert not pack._excluded("usr/lib/units/reboot.target", patterns)


def test_an_excluded_folder_goes_with_what_is_in_it(tmp_path):
    (tmp_path / "usr/share/doc").mkdir(parents=True)
    (tmp_path / "usr/share/doc/a").write_text("")
    (tmp_path / "usr/share/b").write_text("")
    assert {entry.path for entry in pack.walk(str(tmp_path), ["usr/share/doc"])} == {"usr", "usr/share", "usr/share/b"}


def test_two_kernels_are_one_too_many(tmp_path):
    (tmp_path / "boot").mkdir()
    (tmp_path / "boot/vmlinuz-6.1").write_text("")
    assert pack.kernel_version(str(tmp_path)) == "6.1"
    (tmp_path / "boot/vmlinuz-6.12").write_text("")
    with pytest.raises(InvalidInput, match="2 kernels"):
        pack.kernel_version(str(tmp_path))


def test_packages_that_were_removed_are_not_listed():
    kept = "Package: a\nStatus: install ok installed\nVersion: 1\n"
    removed = "Package: b\nStatus: deinstall ok config-files\nVersion: 2\n"
    assert manifest.packages(f"{kept}\n{removed}") == ["a=1"]


SYSTEM = bootstrap.System(
    "/d", "trixie", "http://m/debian", "http://m/security", "amd64", ["python3"], "linux-image-amd64"
)


def test_sources_leave_out_what_the_mirror_does_not_have():
    lines = bootstrap.sources(
        SYSTEM, lambda url: "security" not in url and ("non-free" not in url or "updates" not in url)
    )
    assert lines == ["deb http://m/debian trixie main non-free-firmware", "deb http://m/debian trixie-updates main"]


def test_a_mirror_without_the_suite_is_named():
    with pytest.raises(InvalidInput, match="mirror: http://m/debian has no suite trixie"):
        bootstrap.sources(SYSTEM, lambda url: False)


LISTED = """\
trixie-backports http://10.0.0.9/debian/
trixie http://10.0.0.9/debian/
trixie http://10.0.0.8/other/
trixie-security http://10.0.0.9/debian-security/
"""


def test_packages_come_from_where_the_host_takes_its_own():
    assert bootstrap.own_mirrors("trixie", LISTED) == ("http://10.0.0.9/debian", "http://10.0.0.9/debian-security")
    assert bootstrap.own_mirrors("trixie", LISTED.partition("trixie-security")[0])[1] == ""


@pytest.mark.parametrize("codename", ["", "bookworm"])
def test_a_host_without_sources_of_its_release_is_told_to_name_a_mirror(codename):
    with pytest.raises(InvalidInput, match="mirror"):
        bootstrap.own_mirrors(codename, LISTED)
