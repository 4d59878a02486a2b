# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the roles dhcp, netboot and mirror write, held against recipes that circulate and are wrong."""

from __future__ import annotations

import pathlib
import re
import shutil
import subprocess

import jinja2
import pytest
import yaml
from ansible.plugins.filter.core import regex_replace
from ansible_collections.h200.rack.plugins.filter.dnsmasq_plan import dnsmasq_plan
from ansible_collections.h200.rack.plugins.module_utils._boot.builds import BUILDS
from ansible_collections.h200.rack.plugins.module_utils._boot.lint import lint

ROLES = pathlib.Path(__file__).resolve().parents[3] / "roles"
SUBNETS = [
    {"name": "rack1", "cidr": "10.0.1.0/24", "gateway": "10.0.1.1", "dns": ["10.0.0.53"], "ntp": ["10.0.0.123"]},
    {"name": "rack2", "cidr": "10.0.2.0/24", "role": "provisioning", "relay": "10.0.2.1"},
    {"name": "bmc", "cidr": "10.0.9.0/24", "role": "bmc"},
]
HOSTS = [
    {"name": "gpu001", "mac": "52:54:00:00:00:01", "address": "10.0.1.11"},
    {"name": "gpu002", "mac": "52:54:00:00:00:02", "address": "10.0.2.11", "ipxe_binary": "ipxe/ipxe.efi"},
]


def render(role: str, template: str, **values) -> str:
    defaults = yaml.safe_load((ROLES / role / "defaults/main.yml").read_text())
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(ROLES / role / "templates"),
        trim_blocks=True,
        undefined=jinja2.StrictUndefined,
        keep_trailing_newline=True,
    )
    environment.filters["regex_replace"] = regex_replace
    return environment.get_template(template).render(**{**defaults, **values})


@pytest.fixture
def config():
    served = dnsmasq_plan(HOSTS, SUBNETS)
    return render(
        "dhcp",
        "h200-rack-dhcp.conf.j2",
        dhcp_plan=served,
        dhcp_boot_server="10.0.0.2",
        dhcp_url="http://10.0.0.2",
        dhcp_interfaces=["prov0"],
    )


def lines(config: str, name: str) -> list[str]:
    return [line.split("=", 1)[1] for line in config.splitlines() if line.startswith(name + "=")]


def test_no_client_gets_a_binary_without_its_architecture(config):
    """The usual dhcpd.conf gives undionly.kpxe to every non-iPXE; a UEFI host hangs on it."""
    for boot in lines(config, "dhcp-boot"):
        if "tag:ipxe," not in boot:
            assert re.search(r",tag:(bios|(efi|http)-(x86_64|aarch64)),", boot), boot
            assert boot.split(",")[-3].endswith(".kpxe") is ("tag:bios" in boot)


def test_ipxe_gets_a_script_and_never_a_binary(config):
    for boot in lines(config, "dhcp-boot"):
        assert ("tag:!ipxe" in boot) is not ("tag:ipxe," in boot)
    assert "pxe-service" not in config and "pxe-prompt" not in config


def test_both_ways_to_know_ipxe_are_used(config):
    assert "dhcp-match=set:ipxe,175" in config and "dhcp-userclass=set:ipxe,iPXE" in config


def test_arm_is_not_x86(config):
    tags = {}
    for match in lines(config, "dhcp-match"):
        tag, _option, number = (match + ",").split(",")[:3]
        tags.setdefault(tag, set()).add(number)
    assert tags["set:efi-x86_64"] == {"7", "9"} and tags["set:efi-aarch64"] == {"11"}
    assert tags["set:http-x86_64"] == {"16"} and tags["set:http-aarch64"] == {"19"}


def test_a_uefi_http_client_gets_a_url_and_its_vendor_class(config):
    assert "dhcp-option-force=tag:h200-boots,tag:http-client,tag:!ipxe,60,HTTPClient" in config
    urls = [boot for boot in lines(config, "dhcp-boot") if ",tag:http-" in boot]
    assert urls and all("http://10.0.0.2/ipxe/" in boot for boot in urls)


def test_every_boot_line_names_the_server(config):
    assert all(boot.endswith(",,10.0.0.2") for boot in lines(config, "dhcp-boot"))


def test_nobody_waits_for_a_proxy(config):
    assert "dhcp-option-force=tag:h200-boots,tag:ipxe,encap:175,176,1b" in config


@pytest.mark.parametrize("word", ["dhcp-authoritative", "no-ping", "no-resolv", "domain"])
def test_nothing_is_said_that_holds_for_the_site_s_ranges_or_the_other_server_s_clients(config, word):
    """An authoritative server refuses requests to the server beside it; a range of the site's wants its pings."""
    assert not lines(config, word) and word not in config.splitlines()
    assert all(boot.startswith("tag:h200-boots,") for boot in lines(config, "dhcp-boot"))
    assert all(option.startswith("tag:") for option in lines(config, "dhcp-option"))
    assert lines(config, "dhcp-ignore") == ["tag:prov0,tag:!known"]


def test_no_public_name_server_is_told(config):
    assert "8.8.8.8" not in config
    assert "dhcp-option=tag:net-rack1,option:dns-server,10.0.0.53" in config
    # Without one the server does not name itself either.
    assert "dhcp-option=tag:net-rack2,option:dns-server" in config.splitlines()


def test_each_rack_has_its_own_range_and_a_subnet_without_hosts_none(config):
    assert lines(config, "dhcp-range") == [
        "set:net-rack1,10.0.1.0,static,255.255.255.0,12h",
        "set:net-rack2,10.0.2.0,static,255.255.255.0,12h",
    ]


def test_tftp_has_the_knobs_that_exist():
    config = render("netboot", "h200-rack-tftp.conf.j2")
    assert "tftp-mtu=1500" in config and "tftp-blksize" not in config and "tftp-max=512" in config


@pytest.mark.skipif(not shutil.which("dnsmasq"), reason="dnsmasq is not installed")
def test_dnsmasq_takes_all_three_files_together(config, tmp_path):
    whole = (
        render("dhcp", "h200-rack.conf.j2", dhcp_site_names=False, dhcp_site_binds=False)
        + config
        + render("netboot", "h200-rack-tftp.conf.j2")
    )
    (tmp_path / "all.conf").write_text(whole)
    done = subprocess.run(
        ["dnsmasq", "--test", "-C", tmp_path / "all.conf"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_the_site_s_names_and_its_way_of_binding_stay():
    common = render("dhcp", "h200-rack.conf.j2", dhcp_site_names=True, dhcp_site_binds=True)
    assert "port=" not in common and "bind-" not in common
    alone = render("dhcp", "h200-rack.conf.j2", dhcp_site_names=False, dhcp_site_binds=False).splitlines()
    assert "port=0" in alone and "bind-dynamic" in alone


@pytest.mark.skipif(not shutil.which("dnsmasq"), reason="dnsmasq is not installed")
@pytest.mark.parametrize("recipe", ["tftp-blksize=1468", "dhcp-range=10.0.1.0,static,12 hours"])
def test_dnsmasq_itself_refuses_what_circulates(tmp_path, recipe):
    (tmp_path / "x.conf").write_text(recipe + "\n")
    done = subprocess.run(["dnsmasq", "--test", "-C", tmp_path / "x.conf"], capture_output=True, check=False)
    assert done.returncode != 0


def test_nginx_serves_http_only_and_compresses_nothing():
    server = render("mirror", "server.conf.j2")
    assert "gzip off;" in server and "tftp" not in server
    # iPXE knows nothing newer than TLS 1.2.
    templates = [path.read_text() for path in (ROLES / "mirror/templates").glob("*.j2")]
    assert any(re.search(r"^ *ssl_protocols TLSv1.2 TLSv1.3;", text, re.M) for text in templates)


@pytest.mark.parametrize("build", ["debian_2025", "upstream_2_0"])
def test_the_script_beside_the_binary_passes_the_linter(build):
    text = render("netboot", "autoexec.ipxe.j2")
    assert not lint(text, BUILDS[build], build)
    assert "filename" not in text
