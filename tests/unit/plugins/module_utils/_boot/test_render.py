# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest
from ansible_collections.h200.rack.plugins.module_utils._boot import compose
from ansible_collections.h200.rack.plugins.module_utils._common.errors import InvalidInput

MIRRORS = ["http://10.0.0.3", "http://10.0.0.4"]


def node(action="deploy", **changes):
    return {
        "name": "gpu001",
        "mac": "52:54:00:00:00:01",
        "action": action,
        "address": "10.0.0.11/24",
        "gateway": "10.0.0.1",
        "ramdisk": "ramdisk/x86_64/abc",
        "overlay": "ramdisk/overlay/def.cpio",
        "console": ["tty0", "ttyS0,115200n8"],
        **changes,
    }


def scripts(*nodes, **options):
    params = {"nodes": list(nodes), "mirrors": MIRRORS, "ipxe_build": "debian_2019", **options}
    return {script["name"]: script for script in compose.compose(params).scripts}


def script(*nodes, **options):
    return scripts(*nodes, **options)["52-54-00-00-00-01.ipxe"]["content"]


def test_every_fetch_has_every_mirror_and_a_way_out():
    text = script(node())
    for name in ("vmlinuz", "initrd.img", "def.cpio"):
        lines = [
            line for line in text.splitlines() if line.endswith(("||", "|| \\", "goto retry")) and f"/{name} " in line
        ]
        assert len(lines) == 2
        assert lines[0].endswith("|| \\") and lines[1].endswith("|| goto retry")


def test_linux_uses_the_port_that_booted():
    text = script(node())
    assert "BOOTIF=01-52-54-00-00-00-01" in text
    assert "ip=10.0.0.11::10.0.0.1:255.255.255.0:gpu001::off" in text
    assert "rack.node=gpu001 rack.action=deploy console=tty0 console=ttyS0,115200n8" in text


def test_a_uefi_kernel_finds_both_initrds_by_their_names():
    text = script(node())
    assert "initrd --name initrd.img" in text and "initrd --name overlay.cpio" in text
    assert "imgargs vmlinuz initrd=initrd.img initrd=overlay.cpio" in text


def test_without_an_overlay_none_is_named():
    assert "overlay" not in script(node(overlay=None))


def test_images_of_an_earlier_round_do_not_join_the_initrd():
    text = script(node())
    assert text.index(":again\nimgfree\n") < text.index("kernel ")


def test_retries_end():
    text = script(node())
    assert "iseq ${rack-round} 20 && goto give_up" in text and "sleep ${rack-round}" in text


@pytest.mark.parametrize("action", ["local", "deploy"])
def test_uefi_goes_on_by_a_failure_and_a_bios_by_a_success(action):
    assert "iseq ${platform} efi && exit 1 || exit 0" in script(node(action))


def test_the_entry_ends_when_a_script_leads_back():
    entry = scripts(node())["boot.ipxe"]["content"]
    assert "isset ${rack-entered} && goto loop ||" in entry


def test_poweroff_is_refused_where_the_binary_has_no_such_command():
    with pytest.raises(InvalidInput, match="node gpu001.*debian_2019 has no command poweroff"):
        script(node("poweroff"))
    assert "poweroff ||" in script(node("poweroff"), ipxe_build="debian_2025")


def test_a_node_may_have_a_binary_of_its_own():
    assert "poweroff" in script(node("poweroff", ipxe_build="debian_2025"))


def test_https_is_refused_where_the_binary_cannot():
    with pytest.raises(InvalidInput, match="cannot fetch https"):
        script(node(), mirrors=["https://mirror01"])
    assert "https://mirror01/" in script(node(), mirrors=["https://mirror01"], ipxe_build="upstream_2_0")


def test_a_site_s_own_build_is_believed():
    own = {"ours": {"base": "debian_2019", "commands": ["poweroff"], "schemes": ["http", "https"]}}
    assert "poweroff" in script(node("poweroff"), ipxe_build="ours", ipxe_builds=own)
    with pytest.raises(InvalidInput, match="ipxe_build 'theirs'"):
        script(node(), ipxe_build="theirs", ipxe_builds=own)


def test_unknown_machines_keep_what_was_decided_when_nothing_is_said():
    assert scripts(node())["unknown.ipxe"]["keep"]
    decided = scripts(node(), unknown_action="shell")["unknown.ipxe"]
    assert not decided["keep"] and "shell ||" in decided["content"]


def test_an_installer_names_its_files_as_they_are_called():
    text = script(
        node(
            "installer",
            kernel="ubuntu/24.04/vmlinuz",
            initrds=["ubuntu/24.04/initrd"],
            kernel_args="autoinstall ds=nocloud;s=http://10.0.0.3/seed/gpu001/ cloud-config-url=/dev/null",
        )
    )
    assert "imgargs vmlinuz initrd=initrd ip=" in text
    assert "autoinstall ds=nocloud;s=http://10.0.0.3/seed/gpu001/ cloud-config-url=/dev/null ||" in text
    assert "rack.action" not in text


def test_a_password_on_the_kernel_s_line_is_refused():
    with pytest.raises(InvalidInput, match="secret"):
        script(node(kernel_args="inst.rootpw=hunter2"))


def test_a_user_s_template_is_rendered_and_linted(tmp_path):
    good = "#!ipxe\n# {{ node.name }}\nchain --timeout 5000 {{ mirrors[0] }}/{{ file }} || exit 1\n"
    (tmp_path / "own.j2").write_text(good)
    text = script(node("custom", template="own.j2", vars={"file": "x.ipxe"}), template_dir=str(tmp_path))
    assert "/x.ipxe || exit 1" in text
    (tmp_path / "own.j2").write_text("#!ipxe\nchain http://x/y\n")
    with pytest.raises(InvalidInput, match="without"):
        script(node("custom", template="own.j2"), template_dir=str(tmp_path))


@pytest.mark.parametrize("source", ["{{ nothing }}", "{{ 1 / 0 }}", "{% if %}", "{{ node.name.x.y }}", "{{ 'a' + 1 }}"])
def test_a_template_that_raises_names_the_node(tmp_path, source):
    (tmp_path / "own.j2").write_text(source)
    with pytest.raises(InvalidInput, match="node gpu001: the template own.j2 fails"):
        script(node("custom", template="own.j2"), template_dir=str(tmp_path))


def test_a_missing_template_names_the_node(tmp_path):
    with pytest.raises(InvalidInput, match="node gpu001: the template own.j2 fails, TemplateNotFound"):
        script(node("custom", template="own.j2"), template_dir=str(tmp_path))


def test_a_command_line_that_the_kernel_would_cut_is_refused():
    with pytest.raises(InvalidInput, match="node gpu001.*2047"):
        script(node(kernel_args="x" * 2000))


def test_the_same_input_gives_the_same_scripts():
    assert scripts(node()) == scripts(node())


def test_nothing_to_do_is_said():
    with pytest.raises(InvalidInput, match="nothing to write"):
        compose.compose({"ipxe_build": "debian_2019"})
