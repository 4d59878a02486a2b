# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The plays that mirrors meet, against one host that is boot server and mirror, over HTTPS."""

from __future__ import annotations

import json
import os
import subprocess
import typing as t

import pytest
from container import BOOT, REPO, Lab
from image_testing import raw_image

pytestmark = [pytest.mark.skipif(os.geteuid() != 0, reason="needs root for a container"), pytest.mark.full]


class Rack:
    def __init__(self, lab: Lab, ca: t.Any) -> None:
        self.lab = lab
        self.host = json.loads((lab.dir / "inventory.json").read_text())["all"]["hosts"]["boot01"]
        self.variables = {
            "rack_subnets": [{"name": "prov", "role": "provisioning", "cidr": "10.31.1.0/24"}],
            "rack_authorized_keys": ["ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ1 test"],
            "rack_ca_certificate": ca.path.read_text(),
            "mirror_tls": True,
            "mirror_tls_ca_key": (ca.folder / "ca.key").read_text(),
            "rack_images": [{"name": "test", "version": "1", "source": "/srv/test.raw"}],
            "rack_ramdisks": [{"arch": "x86_64", "source": "/srv/ramdisk"}],
        }
        node = {
            "ansible_host": "10.31.1.11",
            "rack_bmc_address": "127.0.0.1:9",
            "rack_bmc_username": "a",
            "rack_bmc_password": "b",
            "rack_boot_mac": "52:54:00:31:01:0b",
            "rack_profile": "dgx_h200",
            "rack_image": "test",
            "rack_root_disk": {"serial": "x"},
        }
        group = {"hosts": {"boot01": {}}}
        self.inventory = {
            "all": {
                "hosts": {"boot01": self.host},
                "vars": self.variables,
                "children": {
                    "rack_boot_servers": group,
                    "rack_mirrors": group,
                    "rack_nodes": {"hosts": {"gpu001": node}},
                },
            }
        }

    def play(self, name: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        inventory = self.lab.dir / "rack.json"
        inventory.write_text(json.dumps(self.inventory))
        environment = {
            **{key: value for key, value in os.environ.items() if key != "PYENV_VERSION"},
            "ANSIBLE_COLLECTIONS_PATH": str(REPO / ".cache/collections"),
            "ANSIBLE_CONFIG": str(REPO / "ansible.cfg"),
            "ANSIBLE_HOME": str(self.lab.dir / "ansible"),
            "ANSIBLE_SSH_CONTROL_PATH_DIR": str(self.lab.dir / "cp"),
        }
        command = ["ip", "netns", "exec", self.lab.name, str(REPO / ".venv/bin/ansible-playbook"), "-i", str(inventory)]
        return subprocess.run(
            [*command, *arguments, f"h200.rack.{name}"],
            capture_output=True,
            text=True,
            env=environment,
            check=False,
            cwd=self.lab.dir,
        )


@pytest.fixture(scope="module")
def rack(ca) -> t.Iterator[Rack]:
    with Lab() as lab:
        lab.path("/srv/test.raw").write_bytes(raw_image())
        folder = lab.path("/srv/ramdisk")
        folder.mkdir()
        for name in ("vmlinuz", "initrd.img"):
            (folder / name).write_bytes(os.urandom(1 << 20))
        (folder / "contents.json").write_text('{"kernel": "6.1"}')
        yield Rack(lab, ca)


def test_images_are_published_and_the_mirror_is_in_rotation(rack) -> None:
    for name in ("boot_services", "images"):
        done = rack.play(name)
        assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    code = rack.lab.inside("curl", "-sS", "-k", "-o", "/dev/null", "-w", "%{http_code}", f"https://{BOOT}/health")
    assert code == "200"
    again = rack.play("images")
    assert again.returncode == 0 and "changed=0" in again.stdout.rpartition("boot01")[2], again.stdout[-1500:]


def test_mirror_check_tells_a_table_and_json_over_https(rack) -> None:
    report = rack.lab.dir / "mirrors.json"
    done = rack.play("mirror_check", "-e", f"rack_check_report={report}")
    assert done.returncode == 0, done.stdout[-3000:]
    assert "in rotation" in done.stdout and "verified" in done.stdout
    told = json.loads(report.read_text())
    assert {row["kind"] for row in told["rows"]} == {"image", "ramdisk", "overlay"}
    assert {row["signature"] for row in told["rows"] if row["kind"] != "overlay"} == {"good"}
    assert all(row["mirror"].startswith("https://") for row in told["rows"])


def test_status_and_preflight_name_a_damaged_store(rack) -> None:
    (path,) = rack.lab.path("/srv/h200-rack/mirror/images/test").glob("*/image.raw.zst")
    good = path.read_bytes()
    path.write_bytes(good[:-1])
    rack.lab.ssh("systemctl", "start", "h200-rack-mirror@quick.service")
    assert "not_ready" in rack.play("status").stdout
    done = rack.play("preflight", "-e", "rack_preflight_timeout=3", "-e", "rack_preflight_listen=0")
    assert done.returncode != 0 and "boot01: rack_mirrors:" in done.stdout, done.stdout[-3000:]
    assert rack.play("mirror_check").returncode != 0
    path.unlink()
    path.write_bytes(good)
    done = rack.play("images")
    assert done.returncode == 0, done.stdout[-3000:]
    assert "not_ready" not in rack.play("status").stdout


def test_a_certificate_of_another_ca_is_told_with_the_variable(rack, tmp_path) -> None:
    from mirrors import Ca

    rack.variables["rack_ca_certificate"] = Ca(tmp_path / "other").path.read_text()
    done = rack.play("preflight", "-e", "rack_preflight_timeout=3", "-e", "rack_preflight_listen=0")
    assert "boot01: rack_ca_certificate:" in done.stdout, done.stdout[-3000:]
