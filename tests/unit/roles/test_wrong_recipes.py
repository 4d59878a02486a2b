# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Recipes for network boot that are widespread and wrong: each that can be written down as configuration is refused.

Each test is a recipe as it circulates, given to whatever of ours would have to take it: the linter of boot scripts, the
plan of DHCP, the inventory, or the service's own check, which runs before our roles keep a configuration.
"""

from __future__ import annotations

import pathlib
import shutil
import subprocess

import jinja2
import pytest
import yaml
from ansible_collections.h200.rack.plugins.filter.dnsmasq_plan import dnsmasq_plan
from ansible_collections.h200.rack.plugins.module_utils._boot import dhcp
from ansible_collections.h200.rack.plugins.module_utils._boot.builds import BUILDS
from ansible_collections.h200.rack.plugins.module_utils._boot.compose import compose
from ansible_collections.h200.rack.plugins.module_utils._boot.lint import lint
from ansible_collections.h200.rack.plugins.module_utils._common.errors import InvalidInput
from ansible_collections.h200.rack.plugins.module_utils._plan import fields

ROLES = pathlib.Path(__file__).resolve().parents[3] / "roles"
NODE = {
    "name": "gpu001",
    "mac": "52:54:00:00:00:01",
    "action": "deploy",
    "address": "10.0.1.11/24",
    "ramdisk": "ramdisk/x86_64/0",
    "kernel_args": "",
}

needs_nginx = pytest.mark.skipif(not shutil.which("nginx"), reason="nginx is not installed")
needs_dnsmasq = pytest.mark.skipif(not shutil.which("dnsmasq"), reason="dnsmasq is not installed")


def refused(script: str, code: str, build: str = "debian_2019") -> None:
    findings = lint(script, BUILDS[build], build)
    assert code in {finding.code for finding in findings if finding.severity == "error"}, findings


def body(text: str) -> str:
    return f"#!ipxe\n{text}"


def arguments_refused(arguments: str, said: str) -> None:
    """On a node's kernel line, as the inventory gives it."""
    with pytest.raises(InvalidInput, match=said):
        compose({"ipxe_build": "debian_2019", "mirrors": ["http://m"], "nodes": [{**NODE, "kernel_args": arguments}]})


def nginx(tmp_path: pathlib.Path, http: str) -> subprocess.CompletedProcess[str]:
    config = f"pid {tmp_path}/pid; error_log stderr; events {{}} http {{ access_log off; {http} }}"
    (tmp_path / "nginx.conf").write_text(config)
    return subprocess.run(
        ["nginx", "-t", "-p", tmp_path, "-c", tmp_path / "nginx.conf"], capture_output=True, text=True, check=False
    )


def dnsmasq(tmp_path: pathlib.Path, line: str) -> subprocess.CompletedProcess[str]:
    (tmp_path / "conf").write_text(line + "\n")
    return subprocess.run(["dnsmasq", "--test", "-C", tmp_path / "conf"], capture_output=True, text=True, check=False)


def dhcp_configuration(**values) -> str:
    defaults = yaml.safe_load((ROLES / "dhcp/defaults/main.yml").read_text())
    plan = dnsmasq_plan(
        [{"name": "gpu001", "mac": NODE["mac"], "address": "10.0.1.11"}], [{"name": "rack1", "cidr": "10.0.1.0/24"}]
    )
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(ROLES / "dhcp/templates"), trim_blocks=True, undefined=jinja2.StrictUndefined
    )
    given = {"dhcp_plan": plan, "dhcp_boot_server": "10.0.1.2", "dhcp_url": "http://10.0.1.2", **values}
    return environment.get_template("h200-rack-dhcp.conf.j2").render(**{**defaults, **given})


@needs_nginx
@pytest.mark.parametrize("recipe", ["tftp on;", "tftp_preload 1;"])
def test_recipe_01_nginx_serves_tftp(tmp_path, recipe):
    done = nginx(tmp_path, recipe)
    assert done.returncode != 0 and "unknown directive" in done.stderr


@needs_nginx
def test_recipe_02_nginx_speaks_bittorrent(tmp_path):
    assert nginx(tmp_path, "bittorrent on;").returncode != 0


def test_recipe_03_set_debug_net():
    refused(body("set debug net\n"), "set_debug")


def test_recipe_04_a_retry_that_jumps_to_a_label_nobody_wrote():
    refused(body("kernel http://m/vmlinuz || goto retry\n:retry\nsleep 5\ngoto start\n"), "unknown_label")


def test_recipe_05_only_the_last_fetch_is_guarded():
    recipe = "kernel http://m/k initrd=i\ninitrd --name i http://m/i\nimgfetch http://m/x || goto retry\n:retry\n"
    refused(body(recipe), "unguarded_fetch")


def test_recipe_06_the_memory_cache_that_fetches_everything_twice():
    recipe = "kernel http://m/k initrd=i || exit 1\ninitrd http://m/i || exit 1\n"
    refused(body(recipe + "imgfetch http://m/k || exit 1\nimgfetch http://m/i || exit 1\n"), "fetched_twice")


def test_recipe_07_vfio_before_the_gpus_driver():
    arguments_refused("rd.driver.pre=vfio-pci", "VFIO")


def test_recipe_08_a_parameter_that_no_driver_has():
    arguments_refused("nvidia.modprobe=1", "no parameter")


def test_recipe_09_memory_taken_away_for_large_bars():
    arguments_refused("memmap=4G$0x100000000", "firmware setting")


def test_recipe_10_the_gpus_driver_in_the_installer():
    arguments_refused("rd.driver.pre=nvidia", "needs none")


def test_recipe_12_a_whole_script_in_the_first_line():
    refused("#!ipxe dhcp && kernel http://m/vmlinuz && boot\n", "magic")


def test_recipe_12_an_argument_that_begins_a_comment():
    refused(body("kernel http://m/vmlinuz #quiet || exit 1\n"), "comment_argument")


@pytest.mark.parametrize("recipe", ["if ( x ) { boot }", "function retry() {", "var n = 1", "while true", "curl -O x"])
def test_recipe_13_a_language_that_ipxe_does_not_speak(recipe):
    refused(body(recipe + "\n"), "command")


@pytest.mark.parametrize("recipe", ["dhcp net0", "ifconf -c dhcp net0 || exit 1", "ifopen net0"])
def test_recipe_14_the_first_port_instead_of_the_one_that_booted(recipe):
    refused(body(recipe + "\n"), "fixed_port")


def test_recipe_15_the_binary_of_a_bios_for_everybody():
    with pytest.raises(InvalidInput, match="does not run on this firmware"):
        dhcp.check_binaries({"x86_64": "ipxe/undionly.kpxe"})
    # Every line for firmware says for which.
    boots = [line for line in dhcp_configuration().splitlines() if line.startswith("dhcp-boot=")]
    for line in boots:
        assert "tag:ipxe," in line or any(f"tag:{kind}" in line for kind in ("bios", "efi-", "http-")), line


def test_recipe_16_no_next_server_and_a_public_name_server():
    configuration = dhcp_configuration()
    boots = [line for line in configuration.splitlines() if line.startswith("dhcp-boot=")]
    assert boots and all(line.endswith(",,10.0.1.2") for line in boots)
    assert "8.8.8.8" not in configuration and "1.1.1.1" not in configuration


def test_recipe_17_a_build_that_is_only_said_to_know_https():
    refused(body("kernel https://m/vmlinuz || exit 1\n"), "scheme")


@needs_nginx
def test_recipe_19_ciphers_and_versions_that_ipxe_lacks(tmp_path):
    assert nginx(tmp_path, "ssl_protocols TLSv1.4;").returncode != 0
    assert any("ssl_protocols TLSv1.2 TLSv1.3;" in path.read_text() for path in ROLES.glob("mirror/templates/*.j2"))


@needs_dnsmasq
def test_recipe_20_a_block_size_that_is_no_option_of_dnsmasq(tmp_path):
    assert "bad option" in dnsmasq(tmp_path, "tftp-blksize=1468").stderr
    assert dnsmasq(tmp_path, "tftp-mtu=1500").returncode == 0


@pytest.mark.parametrize("name", ["tcp_window_scaling=1", "net.ipv4.tcp_window_scaling=1"])
def test_recipe_23_a_sysctl_on_the_kernel_s_line(name):
    arguments_refused(name, "sysctl")


@pytest.mark.parametrize("hints", [{"raid0": ["a", "b"]}, {"raid1": ["a", "b"]}, {}])
def test_recipe_37_a_stripe_for_the_system(hints):
    with pytest.raises(ValueError):
        fields.root_disk(hints)


def test_recipe_39_two_tftp_servers_on_one_host():
    """That the role refuses it on a host is seen by the boot tests; here, that it asks before it changes anything."""
    tasks = yaml.safe_load((ROLES / "netboot/tasks/main.yml").read_text())
    names = [task["name"] for task in tasks]
    assert names.index("Nobody but dnsmasq serves TFTP here") < names.index("The iPXE binaries are installed")


# What the peers' own shipped configurations do


@pytest.mark.parametrize("name", ["ipa-insecure=1", "inst.noverifyssl"])
def test_peers_switch_the_checking_of_certificates_off(name):
    arguments_refused(name, "certificates")


@pytest.mark.parametrize("recipe", ["dhcp || reboot", ":e\nsleep 15\nreboot", "chain http://m/x || reboot"])
def test_peers_reboot_for_ever_when_something_fails(recipe):
    refused(body(recipe + "\n"), "reboot_loop")


def test_peers_write_one_bar_and_mean_two():
    refused(body("chain http://m/x | goto boot_failed\n:boot_failed\n"), "operator")


@pytest.mark.parametrize("recipe", ["exit", "exit 0", "chain http://m/x || exit 0"])
def test_peers_leave_uefi_by_a_success_and_land_in_its_menu(recipe):
    refused(body(recipe + "\n"), "exit_0")


def test_leaving_by_what_the_platform_wants_passes():
    assert not lint(body("iseq ${platform} efi && exit 1 || exit 0\n"), BUILDS["debian_2019"], "debian_2019")


def test_peers_fetch_a_kernel_without_a_guard():
    refused(body("kernel http://m/vmlinuz\ninitrd http://m/initrd\nboot\n"), "unguarded_fetch")


def test_peers_use_a_data_source_that_cloud_init_has_dropped():
    arguments_refused("ds=nocloud-net;s=http://m/", "nocloud")


def test_peers_set_a_tag_and_forget_its_boot_file():
    lines = dhcp_configuration().splitlines()
    boots = [line for line in lines if line.startswith("dhcp-boot=")]
    tags = {line.split("set:")[1].split(",")[0] for line in lines if "option:client-arch," in line}
    assert tags and all(any(f"tag:{tag}," in boot for boot in boots) for tag in tags)


@needs_nginx
def test_peers_compress_images_on_the_way():
    assert "gzip off;" in (ROLES / "mirror/templates/server.conf.j2").read_text()
