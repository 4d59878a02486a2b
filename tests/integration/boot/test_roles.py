# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The roles dhcp, netboot and mirror on one host with systemd."""

from __future__ import annotations

import subprocess
import time

import pytest
import rack
from lab import BOOT, Lab


def curl(lab: Lab, *arguments: str) -> str:
    return lab.inside("curl", "-sS", "--max-time", "5", *arguments)


@pytest.fixture(scope="module")
def fresh():
    """A host that no role has touched."""
    with Lab() as lab:
        yield lab


def test_check_mode_on_a_fresh_host_passes_and_touches_nothing(fresh):
    play = fresh.play(rack.ROLES, "--check", "--diff")
    assert play.changed
    assert not fresh.path("/srv/h200-rack").exists()
    assert not fresh.path("/etc/dnsmasq.d/h200-rack.conf").exists()


def test_a_second_run_changes_nothing(lab):
    assert lab.play(rack.ROLES).changed == []


def test_a_host_that_cannot_be_right_leaves_the_service_as_it_was(lab):
    before = lab.path("/etc/h200-rack/dhcp-hosts").read_text()
    hosts = [*rack.HOSTS, {"name": "gpu099", "mac": "52:54:00:31:01:0b", "address": "10.99.0.1"}]
    wrong = [{**rack.ROLES[1], "vars": {**rack.ROLES[1]["vars"], "dhcp_hosts": hosts}}]
    play = lab.play(wrong, check=False)
    assert play.status != 0
    assert "host gpu099" in play.failure()
    assert lab.path("/etc/h200-rack/dhcp-hosts").read_text() == before


def test_a_node_more_is_known_without_a_restart(lab):
    def process() -> str:
        return lab.ssh("systemctl", "show", "--property=MainPID", "dnsmasq").strip()

    def reads() -> int:
        return lab.dhcp_log().count("read /etc/h200-rack/dhcp-hosts")

    before, read_before = process(), reads()
    more = [*rack.HOSTS, {"name": "gpu050", "mac": "5254.0031.0150", "address": "10.31.1.50"}]
    play = lab.play([{**rack.ROLES[1], "vars": {**rack.ROLES[1]["vars"], "dhcp_hosts": more}}])
    try:
        assert len(play.changed) == 2, play.changed  # the file, and the handler
        assert "52:54:00:31:01:50,10.31.1.50,gpu050," in lab.path("/etc/h200-rack/dhcp-hosts").read_text()
        assert process() == before
        # systemd says that it is reloaded when dnsmasq has its signal, which may not have read the file yet.
        until = time.monotonic() + 20
        while reads() == read_before and time.monotonic() < until:
            time.sleep(0.2)
        assert reads() > read_before
    finally:
        lab.play([rack.ROLES[1]])


def test_a_configuration_that_dnsmasq_refuses_is_taken_back(lab):
    before = lab.path("/etc/dnsmasq.d/h200-rack.conf").read_text()
    wrong = [{**rack.ROLES[1], "vars": {**rack.ROLES[1]["vars"], "dhcp_dns_port": 99999}}]
    play = lab.play(wrong, check=False)
    assert play.status != 0
    assert "the old one is back" in play.failure()
    assert lab.path("/etc/dnsmasq.d/h200-rack.conf").read_text() == before
    assert lab.ssh("systemctl", "is-active", "dnsmasq").strip() == "active"


def test_a_configuration_that_nginx_refuses_is_taken_back(lab):
    before = lab.path("/etc/nginx/conf.d/h200-rack.conf").read_text()
    wrong = [{**rack.ROLES[2], "vars": {"mirror_limit_rate": "fast"}}]
    play = lab.play(wrong, check=False)
    assert play.status != 0
    assert "limit_rate" in play.failure()
    assert lab.path("/etc/nginx/conf.d/h200-rack.conf").read_text() == before
    assert curl(lab, f"http://{BOOT}/boot/boot.ipxe").startswith("#!ipxe")


def test_the_site_s_own_web_server_goes_on(lab):
    lab.path("/etc/nginx/conf.d/site.conf").write_text(
        'server { listen 80; server_name intranet.test; return 200 "of the site"; }\n'
    )
    try:
        lab.ssh("systemctl", "reload", "nginx")
        assert lab.play(rack.ROLES).changed == []
        assert curl(lab, "-H", "Host: intranet.test", f"http://{BOOT}/") == "of the site"
        assert curl(lab, f"http://{BOOT}/boot/boot.ipxe").startswith("#!ipxe")
    finally:
        lab.path("/etc/nginx/conf.d/site.conf").unlink()
        lab.ssh("systemctl", "reload", "nginx")


def name_of(lab: Lab) -> str:
    """What dnsmasq answers to a question for intranet.test."""
    query = (
        "import socket,struct;s=socket.socket(socket.AF_INET,socket.SOCK_DGRAM);s.settimeout(5);"
        "s.sendto(struct.pack('!6H',7,256,1,0,0,0)+b'\\x08intranet\\x04test\\0\\0\\1\\0\\1',"
        f"('{BOOT}',53));print(socket.inet_ntoa(s.recv(512)[-4:]))"
    )
    return lab.inside("python3", "-c", query).strip()


def test_the_site_s_own_names_of_the_same_dnsmasq_go_on(lab):
    """Also where it binds its interfaces in the way that ours cannot stand beside."""
    site = lab.path("/etc/dnsmasq.d/site.conf")
    site.write_text("bind-interfaces\nport=53\naddress=/intranet.test/10.31.1.99\n")
    try:
        lab.play(rack.ROLES[:2])
        assert lab.ssh("systemctl", "is-active", "dnsmasq").strip() == "active"
        assert name_of(lab) == "10.31.1.99"
        assert lab.play(rack.ROLES[:2]).changed == []
        assert site.read_text().startswith("bind-interfaces")
    finally:
        site.unlink()
        lab.play(rack.ROLES[:2])


def test_nothing_but_scripts_is_served_of_the_boot_directory(lab):
    for name in (".h200-rack-scripts.json", ".h200-rack.lock", "", "../mirror/"):
        assert curl(lab, "-o", "/dev/null", "-w", "%{http_code}", f"http://{BOOT}/boot/{name}") == "404"


def test_a_range_of_an_image_is_served_plain_and_for_ever(lab):
    url = f"http://{BOOT}/{rack.RAMDISK}/vmlinuz"
    head = curl(lab, "-I", "-H", "Accept-Encoding: gzip", url).lower()
    assert "immutable" in head and "content-encoding" not in head and "content-length" in head
    assert "206" in curl(lab, "-o", "/dev/null", "-w", "%{http_code}", "-r", "100-199", url)
    assert curl(lab, "-o", "/dev/null", "-w", "%{http_code}", "-X", "PUT", url) == "403"


def test_a_mirror_that_was_never_filled_is_out_of_rotation(lab):
    assert curl(lab, "-o", "/dev/null", "-w", "%{http_code}", f"http://{BOOT}/health") == "503"


def test_every_line_of_the_access_log_is_json(lab):
    curl(lab, "-A", 'a "quoted" agent \\', f"http://{BOOT}/{rack.RAMDISK}/vmlinuz", "-o", "/dev/null")
    last = lab.log_lines()[-1]
    assert last["agent"] == 'a "quoted" agent \\' and last["status"] == 200 and last["seconds"] >= 0


def test_a_machine_that_is_not_in_the_plan_gets_no_answer(lab):
    """The role finds the interface by its address, also where nobody names it."""
    assert "dhcp-ignore=tag:prov0,tag:!known" in lab.path("/etc/dnsmasq.d/h200-rack-dhcp.conf").read_text()


def test_a_second_tftp_server_on_the_host_is_refused_before_anything_changes(fresh):
    code = 'import socket,time;s=socket.socket(socket.AF_INET,socket.SOCK_DGRAM);s.bind(("0.0.0.0",69));time.sleep(600)'
    fresh.ssh("systemd-run", "--unit=tftpd", "python3", "-c", f"'{code}'")
    try:
        play = fresh.play(rack.ROLES, check=False)
        assert play.status != 0 and "Another program has UDP port 69" in play.failure()
        assert not fresh.path("/srv/h200-rack").exists()
    finally:
        fresh.ssh("systemctl", "stop", "tftpd")


def test_a_binary_that_nodes_are_to_boot_and_that_is_not_there_is_refused(lab):
    before = lab.path("/etc/dnsmasq.d/h200-rack-tftp.conf").read_text()
    wanted = [{**rack.ROLES[0], "vars": {"netboot_required": ["snponly.efi", "ipxe-arm64.efi"]}}]
    play = lab.play(wanted, check=False)
    assert play.status != 0 and "ipxe-arm64.efi is to be booted" in play.failure()
    assert lab.path("/etc/dnsmasq.d/h200-rack-tftp.conf").read_text() == before


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"mac": "52:54:00:31:01"}, "node gpu002: '52:54:00:31:01' is not a MAC address"),
        ({"mac": rack.MACS["gpu001"].upper().replace(":", "-")}, "is given to gpu001 and gpu002"),
        ({"address": "10.31.1.11/24"}, "address 10.31.1.11 is given to gpu001 and gpu002"),
        ({"address": "10.31.1.12/24", "gateway": "10.31.2.1"}, "gateway 10.31.2.1 lies outside"),
        ({"mirrors": ["10.31.1.3"]}, "mirror '10.31.1.3' is not a URL"),
        ({"kernel_args": "a=${net0/ip}"}, "node gpu002"),
        ({"action": "custom", "template": "raises.j2"}, "node gpu002: the template raises.j2 fails, ZeroDivisionError"),
    ],
)
def test_what_cannot_be_right_is_refused_and_every_script_stays_as_it_was(lab, tmp_path, changes, said):
    (tmp_path / "raises.j2").write_text("#!ipxe\n{{ 1 / 0 }}\n")
    boot = lab.path("/srv/h200-rack/boot")
    before = {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in boot.iterdir()}
    assert len(before) > 2
    wrong = [rack.node("gpu001", "deploy"), {**rack.node("gpu002", "deploy"), **changes}]
    play = rack.render(lab, *wrong, check=False, template_dir=str(tmp_path))
    assert play.status != 0 and said in play.failure()
    assert {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in boot.iterdir()} == before


def test_a_mac_in_any_of_the_usual_notations_makes_the_script_that_ipxe_asks_for(lab):
    def bare(mac: str) -> str:
        return mac.replace(":", "")

    notations = [
        str.upper,
        lambda mac: mac.replace(":", "-"),
        bare,
        lambda mac: ".".join(bare(mac)[at : at + 4] for at in (0, 4, 8)),
    ]
    nodes = [rack.node(name, "local", mac=write(rack.MACS[name])) for name, write in zip(rack.MACS, notations)]
    scripts = rack.render(lab, *nodes).result("The scripts are there")["scripts"]
    wanted = [f"/srv/h200-rack/boot/{rack.MACS[node['name']].replace(':', '-')}.ipxe" for node in nodes]
    assert [script["path"] for script in scripts[: len(nodes)]] == wanted


def test_check_mode_shows_the_scripts_and_writes_none(lab):
    rack.render(lab, rack.node("gpu001", "local"))
    script = lab.path(f"/srv/h200-rack/boot/{rack.MACS['gpu001'].replace(':', '-')}.ipxe")
    before = script.read_text()
    arguments = {"nodes": [rack.node("gpu001", "deploy")], "mirrors": [f"http://{BOOT}"]}
    play = lab.play([{"name": "The scripts", "h200.rack.ipxe_render": arguments}], "--check", "--diff")
    result = play.result("The scripts")
    assert result["changed"] and "kernel --name vmlinuz" in result["diff"][0]["after"]
    assert script.read_text() == before


def test_the_first_stage_is_served_by_http_and_by_tftp_and_autoexec_beside_it(lab):
    for name in ("snponly.efi", "undionly.kpxe", "autoexec.ipxe"):
        served = lab.path(f"/srv/h200-rack/tftp/ipxe/{name}").read_bytes()
        assert len(served) > 100
        # UEFI asks for the size first.
        head = curl(lab, "-I", f"http://{BOOT}/ipxe/{name}").lower()
        assert f"content-length: {len(served)}" in head and "200" in head.splitlines()[0]
        got = lab.dir / name
        curl(lab, "-o", str(got), f"tftp://{BOOT}/ipxe/{name}")
        assert got.read_bytes() == served


# TLS


@pytest.fixture(scope="module")
def ca(tmp_path_factory):
    place = tmp_path_factory.mktemp("ca")
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "3650", "-subj", "/CN=rack CA",
         "-addext", "basicConstraints=critical,CA:TRUE", "-addext", "keyUsage=critical,keyCertSign",
         "-keyout", place / "key.pem", "-out", place / "ca.pem"],
        check=True, capture_output=True,
    )  # fmt: skip
    return place


def tls_role(ca, **more):
    options = {
        "mirror_tls": True,
        "mirror_tls_names": [BOOT, "mirror01.rack.test"],
        "mirror_tls_ca_certificate": (ca / "ca.pem").read_text(),
        "mirror_tls_ca_key": (ca / "key.pem").read_text(),
        **more,
    }
    return [{**rack.ROLES[2], "vars": options}]


def test_https_is_verified_against_the_rack_s_ca_and_stays_as_it_is(lab, ca):
    lab.play(tls_role(ca))
    url = f"https://{BOOT}/{rack.RAMDISK}/vmlinuz"
    for version in ("1.2", "1.3"):
        code = curl(lab, "--cacert", str(ca / "ca.pem"), "--tls-max", version, "-I", "-w", "%{http_code}", url)
        assert code.endswith("200")
    assert lab.play(tls_role(ca)).changed == []


def test_a_certificate_that_ends_soon_is_renewed(lab, ca):
    before = lab.path("/etc/h200-rack/tls/mirror.pem").read_text()
    lab.play(tls_role(ca, mirror_tls_renew_days=400))
    assert lab.path("/etc/h200-rack/tls/mirror.pem").read_text() != before


def test_a_certificate_that_does_not_fit_its_key_is_refused_and_https_goes_on(lab, ca):
    own = {
        "mirror_tls_certificate": (ca / "ca.pem").read_text(),
        "mirror_tls_key": lab.path("/etc/h200-rack/tls/mirror.key").read_text(),
    }
    play = lab.play(tls_role(ca, **own), check=False)
    assert play.status != 0
    assert "mirror_tls_key is not its key" in play.failure() and "lacks the names" in play.failure()
    assert "PRIVATE KEY" not in play.stdout
    curl(lab, "--cacert", str(ca / "ca.pem"), "-I", f"https://{BOOT}/health")
