# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The role on a host with systemd: what it makes, what it refuses, and what it leaves alone."""

from __future__ import annotations

import json
import os
import typing as t

import pytest
from container import BOOT, Lab, Play

pytestmark = [pytest.mark.skipif(os.geteuid() != 0, reason="needs root for a container"), pytest.mark.full]
HEALTH = f"http://{BOOT}/health"


def tasks(entry: str = "main", **options: t.Any) -> list[dict[str, t.Any]]:
    role = {"name": "h200.rack.mirror", "tasks_from": entry}
    return [{"name": "mirror", "ansible.builtin.include_role": role, "vars": options}]


@pytest.fixture(scope="module")
def lab() -> t.Iterator[Lab]:
    with Lab() as made:
        yield made


def curl(lab: Lab, *arguments: str) -> str:
    return lab.inside("curl", "-sS", "--max-time", "5", *arguments)


def status(lab: Lab, *arguments: str) -> str:
    return curl(lab, "-o", "/dev/null", "-w", "%{http_code}", *arguments)


def state(lab: Lab) -> dict[str, tuple[int, bytes]]:
    """Everything that the role owns, and what nginx runs with."""
    roots = ("/etc/nginx", "/etc/h200-rack", "/srv/h200-rack/mirror/images")
    files = [path for root in roots for path in lab.path(root).rglob("*") if path.is_file() and not path.is_symlink()]
    return {str(path): (path.stat().st_mode, path.read_bytes()) for path in files}


def test_check_mode_on_a_fresh_host_passes_and_touches_nothing(lab) -> None:
    play = lab.play(tasks(), "--check", "--diff")
    assert play.changed and not lab.path("/srv/h200-rack").exists()


def test_a_new_mirror_is_out_of_rotation_until_it_is_in_step(lab) -> None:
    lab.play(tasks())
    assert status(lab, HEALTH) == "503"
    lab.play(tasks("step", mirror_authority=True))
    assert status(lab, HEALTH) == "200"
    assert lab.play(tasks() + tasks("step", mirror_authority=True)).changed == []


def test_timers_look_at_the_store_and_nginx_takes_many_clients(lab) -> None:
    told = lab.ssh("systemctl", "list-timers", "--all", "--no-legend")
    assert "h200-rack-mirror-look.timer" in told and "h200-rack-mirror-read.timer" in told
    lab.path("/srv/h200-rack/mirror/images/x").mkdir()
    (lab.path("/srv/h200-rack/mirror/images/x") / "current").write_text("0" * 64 + "\n")
    lab.ssh("systemctl", "start", "h200-rack-mirror@quick.service")
    assert status(lab, HEALTH) == "503" and "is not there" in curl(lab, HEALTH)
    (lab.path("/srv/h200-rack/mirror/images/x") / "current").unlink()
    lab.ssh("systemctl", "start", "h200-rack-mirror@deep.service")
    assert status(lab, HEALTH) == "200" and json.loads(curl(lab, HEALTH))["read_whole"]
    assert "worker_connections 16384;" in lab.ssh("nginx", "-T")
    # The newest process of nginx is a worker.
    assert "Max open files            33792" in lab.ssh("cat", "/proc/$(pgrep -n nginx)/limits")


def test_a_root_that_is_a_file_is_one_clear_error(lab) -> None:
    lab.path("/srv/file").write_text("x")
    before = state(lab)
    play = lab.play(tasks(mirror_root="/srv/file"), check=False)
    assert "mirror_root: /srv/file is not a directory; nothing was changed" in play.failure()
    assert state(lab) == before and status(lab, HEALTH) == "200"


# TLS


@pytest.fixture(scope="module")
def good(ca) -> dict[str, t.Any]:
    return {
        "mirror_tls": True,
        "mirror_tls_names": [BOOT, "mirror01.rack.test"],
        "mirror_tls_ca_certificate": ca.path.read_text(),
        "mirror_tls_ca_key": (ca.folder / "ca.key").read_text(),
    }


def own(ca, name: str, names: list[str], key: str = "", shift: str = "") -> dict[str, t.Any]:
    certificate, its_key = ca.issue(name, names, shift)
    return {
        "mirror_tls": True,
        "mirror_tls_names": [BOOT, "mirror01.rack.test"],
        "mirror_tls_certificate": certificate.read_text(),
        "mirror_tls_key": key or its_key.read_text(),
    }


def test_https_is_verified_against_the_rack_s_ca_and_stays_as_it_is(lab, ca, good) -> None:
    lab.play(tasks(**good))
    for version in ("1.2", "1.3"):
        assert status(lab, "--cacert", str(ca.path), "--tls-max", version, f"https://{BOOT}/health") == "200"
    resolve = f"h200-rack-mirror:443:{BOOT}"
    assert status(lab, "--cacert", str(ca.path), "--resolve", resolve, "https://h200-rack-mirror/health") == "200"
    assert lab.play(tasks(**good)).changed == []


def test_a_certificate_that_ends_soon_or_lacks_a_name_is_issued_anew(lab, good) -> None:
    pem = lab.path("/etc/h200-rack/tls/mirror.pem")
    before = pem.read_text()
    lab.play(tasks(**good, mirror_tls_renew_days=400))
    renewed = pem.read_text()
    assert renewed != before
    lab.play(tasks(**{**good, "mirror_tls_names": [BOOT, "mirror01.rack.test", "other.rack.test"]}))
    assert pem.read_text() != renewed


def refused(lab: Lab, options: dict[str, t.Any], *words: str) -> Play:
    """One clear error; the tree, the files of nginx and what it serves are as before."""
    before = state(lab)
    play = lab.play(tasks(**options), check=False)
    assert play.status != 0
    for word in words:
        assert word in play.failure(), play.failure()
    assert "PRIVATE KEY" not in play.stdout
    assert state(lab) == before
    assert status(lab, "-k", f"https://{BOOT}/health") == "200"
    return play


def test_bad_certificates_are_refused_and_https_goes_on(lab, ca, good) -> None:
    names = [BOOT, "mirror01.rack.test"]
    _certificate, other_key = ca.issue("other", names)
    refused(lab, own(ca, "a", names, key=other_key.read_text()), "mirror_tls_certificate cannot be", "is not its key")
    refused(lab, own(ca, "b", ["elsewhere.test"]), "lacks the names", "mirror01.rack.test")
    refused(lab, own(ca, "c", names, shift="-3d"), "mirror_tls_certificate", "valid from")
    refused(lab, own(ca, "d", names, shift="+2d"), "mirror_tls_certificate", "valid from")
    refused(lab, {**own(ca, "e", names), "mirror_tls_certificate": "nonsense"}, "mirror_tls_certificate cannot be read")
    refused(lab, {**own(ca, "f", names), "mirror_tls_key": "nonsense"}, "mirror_tls_key cannot be read")


def test_a_ca_that_cannot_issue_is_refused(lab, ca, good) -> None:
    _certificate, other_key = ca.issue("other", [BOOT])
    refused(lab, {**good, "mirror_tls_ca_key": other_key.read_text()}, "mirror_tls_ca_key is not its key")
    refused(lab, {**good, "mirror_tls_ca_key": "nonsense"}, "mirror_tls_ca_key cannot be read")
    leaf, key = ca.issue("leaf", [BOOT])
    refused(
        lab,
        {
            **good,
            "mirror_tls_ca_certificate": leaf.read_text(),
            "mirror_tls_ca_key": key.read_text(),
            "mirror_tls_renew_days": 0,
        },
        "not that of a CA",
    )


def test_the_site_s_own_certificate_is_served_also_a_wildcard(lab, ca) -> None:
    lab.play(tasks(**own(ca, "site", [BOOT, "*.rack.test"])))
    resolve = f"mirror01.rack.test:443:{BOOT}"
    assert status(lab, "--cacert", str(ca.path), "--resolve", resolve, "https://mirror01.rack.test/health") == "200"


# The cache


def test_the_same_host_can_become_a_cache_and_a_mirror_again(lab) -> None:
    lab.play(tasks(mirror_origins=["http://10.31.1.3"]))
    assert status(lab, HEALTH) in ("502", "504")
    lab.play(tasks())
    assert status(lab, HEALTH) == "200"
    play = lab.play(tasks(mirror_origins=["http://a", "https://b"]), check=False)
    assert "mirror_origins" in play.failure()
