# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whatever mirrors, manifests, disks and operators do: the disk is right, or it does not boot and that is said."""

from __future__ import annotations

import datetime
import json
import os
import pathlib
import shutil
import signal
import socket
import ssl
import subprocess
import time

import pytest
from ansible_collections.h200.rack.plugins.module_utils._image import gpt
from image_testing import MIB, RAW_SIZE, Write, make_key, publish_raw, raw_image, tamper

WRITERS = 4


def all_right(disks, results) -> None:
    for disk, result in zip(disks, results):
        assert not result.get("failed"), result
        assert disk.is_right()


def write_all(disks, mirrors, **changes):
    writes = [disk.write(mirrors, **changes) for disk in disks]
    return [write.result() for write in writes]


def test_good_mirrors_are_both_used_and_the_disk_is_right(mirror, disk) -> None:
    mirrors, target = [mirror(), mirror()], disk()
    result = target.write(mirrors).result()
    all_right([target], [result])
    assert all(used["bytes"] > 0 for used in result["mirrors_used"])
    assert result["written_bytes"] + result["skipped_bytes"] == RAW_SIZE
    assert result["skipped_bytes"] == 10 * MIB
    assert result["verified_bytes"] == RAW_SIZE - MIB


@pytest.mark.parametrize("fault", ["dies", "stalls", "trickles", "cuts", "busy"])
def test_a_mirror_that_fails_in_the_middle_harms_none_of_four_writers(mirror, disk, fault) -> None:
    mirrors = [mirror(fault, rate=20 << 20), mirror(rate=60 << 20)]
    disks = [disk() for _number in range(WRITERS)]
    all_right(disks, write_all(disks, mirrors))
    if fault == "dies":
        assert mirrors[0].dead


@pytest.mark.parametrize("fault", ["truncated", "corrupt", "html", "html_206", "stale", "no_range"])
def test_a_mirror_with_a_wrong_file_harms_none_of_four_writers(mirror, disk, fault) -> None:
    mirrors = [mirror(fault), mirror()]
    disks = [disk() for _number in range(WRITERS)]
    results = write_all(disks, mirrors)
    all_right(disks, results)
    for result in results:
        assert {used["url"]: used["error"] for used in result["mirrors_used"]}[mirrors[0].url]


@pytest.mark.parametrize("fault", ["truncated", "corrupt", "html", "html_206", "stale", "no_range"])
def test_with_only_wrong_files_nothing_boots_and_the_mirrors_are_named(mirror, disk, fault) -> None:
    mirrors, target = [mirror(fault), mirror(fault)], disk()
    result = target.write(mirrors, timeout=20).result()
    assert result["failed"] and result["code"] == "mirrors"
    assert all(server.url.partition("//")[2] in result["msg"] for server in mirrors)
    assert not target.boots()


@pytest.mark.skipif(shutil.which("nginx") is None, reason="nginx is not installed")
def test_nginx_killed_in_the_middle_of_four_writes(published, mirror, disk, tmp_path) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    temporary = "".join(
        f"{name}_temp_path {tmp_path}/{name};" for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    config = tmp_path / "nginx.conf"
    config.write_text(
        f"daemon off; master_process off; pid {tmp_path}/pid; error_log {tmp_path}/error; events {{}}\n"
        f"http {{ access_log off; {temporary} limit_rate 2m;\n"
        f"server {{ listen 127.0.0.1:{port}; root {published.root}; }} }}\n"
    )
    nginx = subprocess.Popen(["nginx", "-c", str(config)], stderr=subprocess.DEVNULL)
    try:
        url = f"http://127.0.0.1:{port}"
        deadline = time.monotonic() + 10
        while subprocess.run(["curl", "-so", os.devnull, url], check=False).returncode and time.monotonic() < deadline:
            time.sleep(0.05)
        disks = [disk() for _number in range(WRITERS)]
        mirrors = [url, mirror(rate=10 << 20)]
        writes = [target.write(mirrors) for target in disks]
        progress = pathlib.Path(f"{disks[-1].path}.progress")
        while time.monotonic() < deadline + 20:
            if progress.exists() and json.loads(progress.read_text())["done_bytes"] > 8 * MIB:
                break
            time.sleep(0.02)
        nginx.kill()
        results = [write.result() for write in writes]
    finally:
        nginx.kill()
        nginx.wait()
    all_right(disks, results)
    for result in results:
        used = {used["url"]: used for used in result["mirrors_used"]}[url]
        assert used["bytes"] > 0 and used["error"]


def test_all_mirrors_gone_and_back(mirror, disk) -> None:
    mirrors = [mirror(rate=8 << 20), mirror(rate=8 << 20)]
    disks = [disk() for _number in range(WRITERS)]
    writes = [target.write(mirrors) for target in disks]
    deadline = time.monotonic() + 30
    while sum(server.sent for server in mirrors) < 20 * MIB and time.monotonic() < deadline:
        time.sleep(0.02)
    for server in mirrors:
        server.stop()
    time.sleep(1.5)
    for server in mirrors:
        server.start()
    all_right(disks, [write.result() for write in writes])


def test_all_mirrors_gone_for_good_ends_with_the_time_given(mirror, disk) -> None:
    server, target = mirror("dies"), disk()
    result = target.write([server], timeout=3).result()
    assert result["failed"] and result["code"] == "mirrors" and "gave up" in result["msg"]
    assert not target.boots()


def test_a_killed_writer_leaves_nothing_that_boots_and_the_next_run_goes_on(mirror, disk) -> None:
    server, target = mirror(rate=6 << 20), disk()
    write = target.write([server])
    deadline = time.monotonic() + 30
    while server.sent < 25 * MIB and time.monotonic() < deadline:
        time.sleep(0.02)
    write.process.send_signal(signal.SIGKILL)
    write.process.communicate()
    assert not target.boots()
    server.rate = 0
    result = target.write([server]).result()
    all_right([target], [result])
    assert result["unchanged_bytes"] >= 15 * MIB
    assert result["fetched_bytes"] <= 45 * MIB


def test_a_bad_signature_stops_before_the_disk_is_touched(mirror, disk, copy_of_mirror, published) -> None:
    signature = copy_of_mirror / "images" / "test" / published.digest / "manifest.json.sig"
    signature.write_bytes(bytes([signature.read_bytes()[0] ^ 1]) + signature.read_bytes()[1:])
    target = disk()
    before = target.sha256()
    result = target.write([mirror(root=copy_of_mirror)]).result()
    assert result["code"] == "signature" and target.sha256() == before


def test_a_signature_by_somebody_else_is_a_bad_one(mirror, disk, tmp_path) -> None:
    _private, public = make_key(tmp_path, "other")
    assert disk().write([mirror()], public_key=str(public)).result()["code"] == "signature"


def test_a_manifest_that_is_not_the_digests_is_not_used(mirror, disk, copy_of_mirror, published) -> None:
    path = copy_of_mirror / "images" / "test" / published.digest / "manifest.json"
    path.write_bytes(path.read_bytes().replace(b'"version":"1"', b'"version":"2"'))
    bad, good, target = mirror(root=copy_of_mirror), mirror(), disk()
    assert disk().write([bad]).result()["code"] == "mirrors"
    all_right([target], [target.write([bad, good]).result()])


def test_a_disk_that_is_too_small_is_not_touched(mirror, disk) -> None:
    target = disk(size=RAW_SIZE - MIB)
    before = target.sha256()
    result = target.write([mirror()]).result()
    assert result["code"] == "disk_too_small" and target.sha256() == before


def test_the_seed_needs_room_too(mirror, disk) -> None:
    result = disk(size=RAW_SIZE + MIB).write([mirror()], seed={"hostname": "gpu001"}).result()
    assert result["code"] == "disk_too_small"


def test_a_signed_frame_that_unpacks_to_more_than_it_says_is_refused(mirror, disk, copy_of_mirror, published) -> None:
    chunks = list(published.manifest.chunks)
    first, second = chunks[1], chunks[2]
    chunks[1] = first._replace(wire_length=first.wire_length - 7)
    chunks[2] = second._replace(wire_offset=second.wire_offset - 7, wire_length=second.wire_length + 7)
    digest = tamper(copy_of_mirror, published, published.signing_key, chunks=tuple(chunks))
    target = disk()
    result = target.write([mirror(root=copy_of_mirror)], digest=digest, timeout=10).result()
    assert result["failed"] and not target.boots()


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to mount a file system")
def test_a_disk_that_fails_a_write_does_not_boot_and_says_so(mirror, published, tmp_path) -> None:
    """A sparse file on a full file system: the first writes are taken, later ones fail."""
    folder = tmp_path / "small"
    folder.mkdir()
    server = mirror()
    mount = f"mount -t tmpfs -o size=20m none {folder} && truncate -s 80M {folder}/disk"
    script = f'{mount} && "$@" && head -c 17408 {folder}/disk'
    options = {
        "mirrors": [server.url],
        "image": "test",
        "digest": published.digest,
        "public_key": published.public_key,
        "disk": {"path": f"{folder}/disk"},
        "require_ramdisk": False,
    }
    write = Write(options, prefix=["unshare", "-m", "sh", "-c", script, "sh"])
    output, errors = write.process.communicate(timeout=60)
    assert write.process.returncode == 0, errors
    line, _end, head = output.partition("\n")
    result = json.loads(line)
    assert result["failed"] and result["code"] == "disk_io" and "disk" in result["msg"]
    assert not head.strip("\0")


def test_a_second_run_finds_the_disk_as_it_should_be(mirror, disk) -> None:
    server, target = mirror(), disk()
    seed = {"hostname": "gpu001", "users": [{"name": "admin"}]}
    first = target.write([server], seed=seed).result()
    before = target.sha256()
    second = target.write([server], seed=seed).result()
    assert second["already"] and not second["changed"] and second["written_bytes"] == 0
    assert second["host_keys"] == first["host_keys"] and len(first["host_keys"]) == 1
    assert target.sha256() == before


def test_another_seed_is_not_the_same_disk(mirror, disk) -> None:
    server, target = mirror(), disk()
    target.write([server], seed={"hostname": "gpu001"}).result()
    result = target.write([server], seed={"hostname": "gpu002"}).result()
    assert result["code"] == "foreign_content"
    result = target.write([server], seed={"hostname": "gpu002"}, allow_overwrite=True).result()
    all_right([target], [result])
    assert result["written_bytes"] == MIB


def test_a_foreign_file_system_is_refused_unless_allowed(mirror, disk) -> None:
    server, target = mirror(), disk()
    subprocess.run(["mke2fs", "-q", "-t", "ext4", "-F", "-L", "precious", str(target.path)], check=True)
    before = target.sha256()
    for check_mode in (True, False):
        result = target.write([server], check_mode=check_mode).result()
        assert result["code"] == "foreign_content" and "ext4" in result["msg"]
    assert target.sha256() == before
    all_right([target], [target.write([server], allow_overwrite=True).result()])


def test_check_mode_names_the_disk_and_changes_nothing(mirror, disk) -> None:
    target = disk()
    before = target.sha256()
    result = target.write([mirror()], check_mode=True).result()
    assert result["changed"] and result["disk"]["path"] == str(target.path)
    assert target.sha256() == before


def test_after_a_small_change_only_the_changed_chunks_are_written(mirror, disk) -> None:
    server, target = mirror(), disk()
    target.write([server]).result()
    with target.path.open("r+b") as handle:
        handle.seek(30 * MIB + 5)
        handle.write(b"changed")
        handle.seek(45 * MIB)
        handle.write(b"not zero")
    result = target.write([server], allow_overwrite=True).result()
    all_right([target], [result])
    assert result["written_bytes"] == 2 * MIB
    assert result["unchanged_bytes"] == RAW_SIZE - 3 * MIB


def test_the_seed_is_a_file_system_with_the_documents(mirror, disk) -> None:
    target = disk()
    network = {"version": 2, "ethernets": {"boot": {"addresses": ["10.20.3.11/24"]}}}
    result = target.write([mirror()], seed={"hostname": "gpu001", "network_config": network}).result()
    all_right([target], [result])
    table = gpt.parse(target.path.read_bytes()[:MIB])
    part = table.partitions[-1]
    assert part.name == "CIDATA"

    def read(name: str) -> str:
        place = f"{target.path}@@{part.first_lba * 512}"
        return subprocess.run(["mtype", "-i", place, f"::{name}"], capture_output=True, text=True, check=True).stdout

    assert json.loads(read("network-config")) == network
    user_data = json.loads(read("user-data").partition("\n")[2])
    assert user_data["hostname"] == "gpu001"
    assert user_data["ssh_keys"]["ed25519_public"] == result["host_keys"][0]
    assert "PRIVATE" not in json.dumps(result)


def test_mirrors_that_disagree_about_current_are_reported(mirror, disk, copy_of_mirror) -> None:
    (copy_of_mirror / "images" / "test" / "current").write_text("0" * 64 + "\n")
    result = disk().write([mirror(), mirror(root=copy_of_mirror)], digest=None).result()
    assert result["code"] == "stale"
    result = disk().write([mirror()], digest=None).result()
    assert not result.get("failed")


def test_a_newer_image_replaces_an_older_one_by_difference(mirror, disk, tmp_path, published) -> None:
    server, target = mirror(), disk()
    target.write([server]).result()
    newer = bytearray(raw_image())
    newer[20 * MIB : 20 * MIB + 9] = b"different"
    outcome = publish_raw(tmp_path, bytes(newer), pathlib.Path(published.signing_key), "2")
    other = mirror(root=tmp_path / "mirror")
    result = target.write([other], digest=outcome.digest, allow_overwrite=True).result()
    assert result["written_bytes"] == 2 * MIB
    assert target.path.read_bytes()[34 * 512 : RAW_SIZE] == bytes(newer)[34 * 512 :]


def certificate(folder: pathlib.Path, not_before: datetime.datetime) -> tuple[pathlib.Path, pathlib.Path]:
    """A self-signed certificate for 127.0.0.1 that is valid for a day from then."""
    key, cert = folder / "tls.key", folder / "tls.crt"
    config = folder / "ca.cnf"
    config.write_text(
        f"[ca]\ndefault_ca=x\n[x]\ndatabase={folder}/index\nserial={folder}/serial\nnew_certs_dir={folder}\n"
        "default_md=sha256\npolicy=p\nx509_extensions=e\n[p]\ncommonName=supplied\n"
        "[e]\nsubjectAltName=IP:127.0.0.1\nbasicConstraints=critical,CA:true\n"
    )
    (folder / "index").write_text("")
    (folder / "serial").write_text("01\n")
    request = folder / "req"
    subprocess.run(
        ["openssl", "req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
        + ["-keyout", key, "-out", request, "-subj", "/CN=127.0.0.1"],
        check=True,
        capture_output=True,
    )
    until = not_before + datetime.timedelta(days=1)
    subprocess.run(
        ["openssl", "ca", "-batch", "-config", config, "-selfsign", "-keyfile", key, "-in", request, "-out", cert]
        + ["-startdate", f"{not_before:%Y%m%d%H%M%SZ}", "-enddate", f"{until:%Y%m%d%H%M%SZ}", "-notext"],
        check=True,
        capture_output=True,
    )
    return key, cert


@pytest.mark.parametrize(("hours", "fine"), [(-1, True), (25, False), (-49, False)])
def test_clock_skew_with_tls_is_called_by_its_name(mirror, disk, tmp_path, hours, fine) -> None:
    now = datetime.datetime.now(datetime.timezone.utc)
    key, cert = certificate(tmp_path, now + datetime.timedelta(hours=hours))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    server, target = mirror(tls=context), disk()
    result = target.write([server], ca_path=str(cert), timeout=5).result()
    if fine:
        all_right([target], [result])
    else:
        assert result["code"] == "mirrors" and "clock" in result["msg"]
        assert not target.boots()


def test_a_mirror_that_the_ca_does_not_know_is_not_trusted(mirror, disk, tmp_path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    now = datetime.datetime.now(datetime.timezone.utc) - datetime.timedelta(hours=1)
    key, cert = certificate(tmp_path / "one", now)
    _key, other = certificate(tmp_path / "two", now)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    result = disk().write([mirror(tls=context)], ca_path=str(other), timeout=3).result()
    assert result["code"] == "mirrors"
