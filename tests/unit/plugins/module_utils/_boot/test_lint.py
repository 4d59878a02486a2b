# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The recipes below circulate; each is refused for what it does and not for how it looks."""

from __future__ import annotations

import pytest
from ansible_collections.h200.rack.plugins.module_utils._boot.builds import BUILDS
from ansible_collections.h200.rack.plugins.module_utils._boot.lint import lint


def codes(body, build="debian_2019"):
    return {finding.code for finding in lint("#!ipxe\n" + body, BUILDS[build], build) if finding.severity == "error"}


GOOD = """\
set n:int32 0
:again
imgfree
kernel --name vmlinuz --timeout 20000 http://m1/vmlinuz || kernel --name vmlinuz http://m2/vmlinuz || goto retry
initrd --name initrd.img http://m1/i || initrd --name initrd.img http://m2/i || goto retry
imgargs vmlinuz initrd=initrd.img ds=nocloud;s=http://x/ || goto retry
boot || goto retry
:retry
inc n
iseq ${n} 6 && goto fail ||
sleep ${n}
goto again
:fail
iseq ${platform} efi && exit 1 || exit 0
"""


@pytest.mark.parametrize("build", sorted(BUILDS))
def test_a_right_script_passes(build):
    assert not lint("#!ipxe\n" + GOOD, BUILDS[build], build)


@pytest.mark.parametrize(
    ("code", "body"),
    [
        # The retry jumps to a label that nobody wrote.
        ("unknown_label", "kernel http://m/vmlinuz || goto retry\nboot || exit\n:retry\nsleep 5\ngoto start\n"),
        # Only the last fetch is guarded: a 404 of the kernel ends the script before the retry.
        (
            "unguarded_fetch",
            "kernel http://m/k initrd=i\ninitrd --name i http://m/i\nimgfetch http://m/x || goto r\n:r\n",
        ),
        # The "memory cache": everything is loaded twice and joins the initrd.
        (
            "fetched_twice",
            "kernel http://m/vmlinuz initrd=i || exit\ninitrd http://m/i || exit\n"
            "imgfetch http://m/vmlinuz || exit\nimgfetch http://m/i || exit\nboot\n",
        ),
        ("vfio_early", "kernel http://m/vmlinuz rd.driver.pre=vfio-pci || exit 1\n"),
        ("no_parameter", "kernel http://m/vmlinuz nvidia.modprobe=1 || exit 1\n"),
        ("memmap", "kernel http://m/vmlinuz memmap=4G$0x100000000 || exit 1\n"),
        ("no_parameter", "kernel http://m/vmlinuz tcp_window_scaling=1 || exit 1\n"),
        ("insecure", "kernel http://m/vmlinuz ipa-insecure=1 || exit 1\n"),
        ("nocloud_net", "kernel http://m/vmlinuz ds=nocloud-net;s=http://m/ || exit 1\n"),
        ("set_debug", "set debug net\n"),
        ("fixed_port", "ifconf -c dhcp net0 || exit 1\n"),
        ("waits_for_ipv6", "dhcp netX || exit 1\n"),
        ("waits_for_ipv6", "ifconf netX || exit 1\n"),
        ("operator", "chain http://m/x | goto failed\n:failed\n"),
        ("comment_argument", "kernel http://m/vmlinuz #quiet || exit 1\n"),
        ("initrd_name", "kernel http://m/vmlinuz initrd=agent || exit\ninitrd http://m/agent.img || exit\n"),
        ("initrd_name", "kernel http://m/vmlinuz quiet || exit\ninitrd http://m/agent.img || exit\n"),
        ("duplicate_label", ":a\n:a\n"),
        ("loads_ipxe", "chain http://m/ipxe/snponly.efi || exit 1\n"),
        ("loads_ipxe", "chain tftp://m/undionly.kpxe || exit 1\n"),
        ("line_length", "echo " + "x" * 5000 + "\n"),
        ("command_line", "kernel http://m/vmlinuz " + "x" * 2500 + " || exit 1\n"),
        ("characters", "echo \x1b[2J\n"),
        ("characters", "echo caf\xe9\n"),
        ("secret", "kernel http://m/vmlinuz token=s3cr3t || exit 1\n"),
        ("secret", "chain http://admin:hunter2@m/x || exit 1\n"),
        ("secret", "set x -----BEGIN OPENSSH PRIVATE KEY-----\n"),
        ("command", "poweroff\n"),
        ("command", "imgverify vmlinuz http://m/vmlinuz.sig || exit 1\n"),
        ("command", "ntp 10.0.0.1\n"),
        ("command", "vcreate --tag 7 netX\n"),
        ("command", "tftp http://m/x\n"),
        ("scheme", "kernel https://m/vmlinuz || exit 1\n"),
    ],
)
def test_a_recipe_that_cannot_work_is_refused(code, body):
    assert code in codes(body)


@pytest.mark.parametrize(
    ("build", "body", "fits"),
    [
        ("debian_2025", "poweroff\n", True),
        ("debian_2025", "kernel https://m/vmlinuz || exit 1\n", True),
        ("debian_2025", "ntp 10.0.0.1\n", False),
        ("upstream_2_0", "ntp 10.0.0.1\n", True),
        ("upstream_2_0", "imgtrust --permanent\n", False),
        ("debian_2019", "sha256sum vmlinuz\n", False),
    ],
)
def test_what_a_build_lacks_is_known(build, body, fits):
    assert ("command" not in codes(body, build) and "scheme" not in codes(body, build)) is fits


@pytest.mark.parametrize("first", ["", "#!ipxe echo hello\n", "#! ipxe\n", "#!/bin/sh\n", " #!ipxe\n"])
def test_what_ipxe_does_not_take_for_a_script_is_refused(first):
    assert "magic" in {finding.code for finding in lint(first + "echo x\n", BUILDS["debian_2019"], "debian_2019")}


def test_a_whole_script_in_one_line_is_refused():
    text = "#!ipxe ifconf -c dhcp netX && kernel http://m/vmlinuz && boot"
    assert "magic" in {finding.code for finding in lint(text, BUILDS["debian_2019"], "debian_2019")}


def test_the_line_is_told_also_after_a_continuation():
    text = "#!ipxe\nkernel http://m/a || \\\nkernel http://m/b || exit 1\ngoto nowhere\n"
    findings = lint(text, BUILDS["debian_2019"], "debian_2019")
    assert [(finding.line, finding.code) for finding in findings] == [(4, "unknown_label")]


def test_a_guard_that_stands_in_the_next_line_counts():
    assert not codes("kernel http://m/a || \\\nkernel http://m/b || \\\ngoto out\n:out\nexit 1\n")


def test_labels_and_names_from_settings_are_not_judged():
    assert not codes("goto ${target}\nkernel --name ${k} http://m/k initrd=${i} || exit 1\ninitrd ${i} || exit 1\n")


def test_dos_line_ends_pass():
    text = "#!ipxe\r\nchain http://m/x || exit 1\r\n"
    assert not lint(text, BUILDS["debian_2019"], "debian_2019")
