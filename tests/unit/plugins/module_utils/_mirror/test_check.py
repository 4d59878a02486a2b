# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import hashlib
import http.server
import json
import re
import subprocess
import threading
import time

import pytest
import zstandard
from ansible_collections.h200.rack.plugins.module_utils._common.manifest import (
    RAMDISK_FORMAT,
    Chunk,
    Manifest,
    canonical,
    dump,
)
from ansible_collections.h200.rack.plugins.module_utils._mirror import table
from ansible_collections.h200.rack.plugins.module_utils._mirror.check import Request, check, parse_image
from ansible_collections.h200.rack.plugins.module_utils._mirror.client import MirrorProblem, Trust
from ansible_collections.h200.rack.plugins.module_utils._mirror.content import Settings, Wanted
from ansible_collections.h200.rack.plugins.module_utils._mirror.signature import Verifier
from ansible_collections.h200.rack.plugins.module_utils._mirror.unpack import find


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_args):
        pass

    def do_HEAD(self):
        self.do_GET()

    def do_GET(self):
        mirror = self.server.mirror
        mirror.requests.append((self.command, self.path, self.headers.get("Range")))
        data = mirror.html or mirror.answer(self.path.lstrip("/"))
        wanted = re.match(r"bytes=(\d+)-(\d+)", self.headers.get("Range") or "")
        if data is None:
            self.send_response(404)
            body = b""
        elif wanted and mirror.ranges:
            body = data[int(wanted[1]) : int(wanted[2]) + 1]
            self.send_response(206)
            self.send_header("Content-Range", f"bytes {wanted[1]}-{wanted[2]}/{len(data)}")
        else:
            body = data
            self.send_response(200 if self.path != "/health" or mirror.ready else 503)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body)


class Mirror:
    def __init__(self):
        self.files = {}
        self.html = None
        self.ranges = True
        self.ready = True
        self.checked = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        self.requests = []
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.server.mirror = self
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()

    def answer(self, path):
        if path == "health":
            problems = [] if self.ready else ["images/debian12 is damaged"]
            return json.dumps({"ready": self.ready, "problems": problems, "checked": self.checked}).encode()
        if path.endswith("/"):
            below = {name[len(path) :].partition("/") for name in self.files if name.startswith(path)}
            kinds = {name: "directory" if slash else "file" for name, slash, _rest in below}
            return json.dumps([{"name": name, "type": kind} for name, kind in kinds.items()]).encode()
        return self.files.get(path)

    def publish(self, name="debian12", text=b"a"):
        chunks = [(text * 65536)[:65536], b"\0" * 65536, b"c" * 65536]
        frames = [zstandard.compress(chunk) for chunk in chunks]
        entries, raw, wire = [], 0, 0
        for chunk, frame in zip(chunks, frames):
            sha256 = hashlib.sha256(chunk).hexdigest()
            entries.append(Chunk(raw, len(chunk), wire, len(frame), sha256, not any(chunk)))
            raw += len(chunk)
            wire += len(frame)
        manifest = dump(
            Manifest(
                name=name,
                version="1",
                arch="x86_64",
                boot="uefi",
                sector_size=512,
                raw_size=raw,
                raw_sha256=hashlib.sha256(b"".join(chunks)).hexdigest(),
                wire_size=wire,
                wire_sha256=hashlib.sha256(b"".join(frames)).hexdigest(),
                chunk_size=65536,
                minimum_disk=raw,
                contents={},
                chunks=tuple(entries),
            )
        )
        digest = hashlib.sha256(manifest).hexdigest()
        self.wire = f"images/{name}/{digest}/image.raw.zst"
        self.files[self.wire] = b"".join(frames)
        self.files[f"images/{name}/{digest}/manifest.json"] = manifest
        self.files[f"images/{name}/current"] = f"{digest}\n".encode()
        return digest

    def publish_ramdisk(self):
        content = {"vmlinuz": b"abc", "initrd.img": b"abcde"}
        files = {
            name: {"size": len(data), "sha256": hashlib.sha256(data).hexdigest()} for name, data in content.items()
        }
        manifest = canonical({"format": RAMDISK_FORMAT, "files": files, "arch": "x86_64", "version": "1"})
        digest = hashlib.sha256(manifest).hexdigest()
        folder = f"ramdisk/x86_64/{digest}"
        self.files.update(
            {
                f"{folder}/manifest.json": manifest,
                f"{folder}/vmlinuz": b"abc",
                f"{folder}/initrd.img": b"abcde",
                "ramdisk/x86_64/current": digest.encode(),
            }
        )
        return digest


@pytest.fixture
def mirrors():
    made = [Mirror(), Mirror()]
    yield made
    for mirror in made:
        mirror.server.shutdown()
        mirror.server.server_close()


def ask(mirrors, *images, ramdisks=(), **settings):
    wanted = [parse_image(image) for image in images] + [Wanted("ramdisk", arch) for arch in ramdisks]
    options = {key: settings.pop(key) for key in ("everything", "health", "trust") if key in settings}
    settings = Settings(**{"timeout": 5, "unpack": find(), **settings})
    return check(Request([mirror.url for mirror in mirrors], wanted, settings=settings, **options))


def codes(result):
    return [problem["code"] for problem in result["problems"]]


def test_mirrors_in_step_have_no_problem(mirrors):
    digests = {mirror.publish() for mirror in mirrors}
    ramdisks = {mirror.publish_ramdisk() for mirror in mirrors}
    result = ask(mirrors, "debian12", ramdisks=["x86_64"], sample=9)
    assert result["problems"] == []
    assert set(result["digests"].values()) == digests
    assert set(result["ramdisks"].values()) == ramdisks
    assert [row["verified"] for row in result["rows"] if row["kind"] == "image"] == [True, True]
    assert result["rows"][0]["throughput"] > 0
    assert (result["rows"][0]["arch"], result["rows"][0]["boot"]) == ("x86_64", "uefi")


def test_zero_chunks_are_not_fetched(mirrors):
    mirrors[0].publish()
    ask(mirrors[:1], "debian12", sample=9)
    assert len([request for request in mirrors[0].requests if request[2]]) == 2


def test_a_flipped_byte_is_found(mirrors):
    mirrors[0].publish()
    data = bytearray(mirrors[0].files[mirrors[0].wire])
    data[-3] ^= 1
    mirrors[0].files[mirrors[0].wire] = bytes(data)
    assert codes(ask(mirrors[:1], "debian12", sample=9)) == ["damaged"]


def test_without_zstd_nothing_is_called_verified(mirrors):
    mirrors[0].publish()
    result = ask(mirrors[:1], "debian12", unpack=None)
    assert result["problems"] == []
    assert result["rows"][0]["verified"] is False


def test_a_manifest_that_its_digest_does_not_name_is_found(mirrors):
    digest = mirrors[0].publish()
    mirrors[0].files[f"images/debian12/{digest}/manifest.json"] += b" "
    assert codes(ask(mirrors[:1], "debian12")) == ["digest"]


def test_a_pinned_digest_needs_no_pointer(mirrors):
    digest = mirrors[0].publish()
    del mirrors[0].files["images/debian12/current"]
    assert codes(ask(mirrors[:1], f"debian12@{digest}")) == []
    assert codes(ask(mirrors[:1], f"debian12@sha256:{digest}")) == []
    assert codes(ask(mirrors[:1], f"debian12@{'0' * 64}")) == ["missing"]


def test_a_half_copied_file_is_found(mirrors):
    mirrors[0].publish()
    mirrors[0].files[mirrors[0].wire] = mirrors[0].files[mirrors[0].wire][:-5]
    assert codes(ask(mirrors[:1], "debian12")) == ["size"]


def test_a_page_of_html_with_status_200_is_no_pointer(mirrors):
    mirrors[0].html = b"<html>It works!</html>"
    assert codes(ask(mirrors[:1], "debian12", health=False)) == ["current"]
    assert codes(ask(mirrors[:1], "debian12")) == ["health", "current"]


def test_a_server_without_ranges_is_found(mirrors):
    mirrors[0].publish()
    mirrors[0].ranges = False
    assert codes(ask(mirrors[:1], "debian12"))[0] in ("http", "too_long")


def test_mirrors_out_of_step_are_named(mirrors):
    mirrors[0].publish()
    mirrors[1].publish(text=b"b")
    result = ask(mirrors, "debian12")
    assert codes(result) == ["out_of_step"]
    assert mirrors[1].url in result["problems"][0]["msg"]


def test_an_image_that_nobody_has_is_missing_on_each(mirrors):
    assert codes(ask(mirrors, "debian12")) == ["missing", "missing"]


def test_a_dead_mirror_is_asked_once_and_does_not_hide_the_other(mirrors):
    mirrors[1].publish()
    mirrors[1].publish(name="other")
    dead = mirrors[0]
    dead.server.shutdown()
    dead.server.server_close()
    result = ask(mirrors, "debian12", "other")
    assert [problem["mirror"] for problem in result["problems"]] == [dead.url]
    assert codes(result) == ["unreachable"]
    assert [row["code"] for row in result["rows"]] == ["unreachable", "unreachable", "ok", "ok"]
    assert set(result["digests"]) == {"debian12", "other"}


def test_nonsense_is_refused():
    for text in ("", "a/b", "../x", "a@b"):
        with pytest.raises(MirrorProblem):
            parse_image(text)
    assert check(Request(["ftp://x"], [Wanted("image", "a")]))["problems"][0]["code"] == "invalid"
    assert check(Request(["http://[x"], [Wanted("image", "a")]))["problems"][0]["code"] == "invalid"
    bad = check(Request(["https://x"], [Wanted("image", "a")], trust=Trust(content="no PEM")))
    assert (bad["problems"][0]["code"], bad["problems"][0]["msg"].split()[0]) == ("invalid", "ca_content")


def test_a_mirror_out_of_rotation_does_not_say_what_is_current(mirrors):
    mirrors[0].publish(text=b"old")
    digest = mirrors[1].publish()
    mirrors[0].ready = False
    result = ask(mirrors, "debian12")
    assert codes(result) == ["not_ready", "out_of_step"]
    assert "is damaged" in result["problems"][0]["msg"]
    assert result["digests"] == {"debian12": digest}
    assert [mirror["ready"] for mirror in result["mirrors"]] == [False, True]


def test_a_mirror_that_stopped_looking_at_its_store_is_found(mirrors):
    mirrors[0].publish()
    mirrors[0].checked = "2020-01-01T00:00:00Z"
    result = ask(mirrors[:1], "debian12")
    assert codes(result) == ["not_ready"] and "h200-rack-mirror-look.timer" in result["problems"][0]["msg"]


def test_everything_that_the_first_mirror_has_is_asked_of_all_of_them(mirrors):
    mirrors[0].publish(text=b"old")
    for mirror in mirrors:
        mirror.publish()
        mirror.publish_ramdisk()
    overlay = b"overlay"
    path = f"ramdisk/overlay/{hashlib.sha256(overlay).hexdigest()}.cpio"
    mirrors[0].files[path] = overlay
    mirrors[1].files[path] = b"other"
    result = ask(mirrors, everything=True)
    assert [(row["kind"], row["code"]) for row in result["rows"]] == [
        ("image", "ok"),
        ("ramdisk", "ok"),
        ("image", "ok"),
        ("overlay", "ok"),
        ("image", "ok"),
        ("ramdisk", "ok"),
        ("image", "missing"),
        ("overlay", "damaged"),
    ]
    lines = table.lines(result["mirrors"], result["rows"])
    assert len(lines) == 1 + 2 + 8
    assert lines[1].endswith("in rotation") and "missing: " in lines[-2]


def test_something_else_than_a_listing_is_found(mirrors):
    mirrors[0].files["images/"] = b""
    mirrors[0].answer = lambda path: b'{"ready": true, "problems": []}' if path == "health" else b"<html>"
    assert codes(ask(mirrors[:1], everything=True)) == ["catalog"]


def test_an_unsigned_manifest_and_one_with_another_key_are_found(mirrors, tmp_path):
    def openssl(*arguments):
        subprocess.run(["openssl", *map(str, arguments)], check=True, capture_output=True)

    def run_command(command):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        return done.returncode, done.stdout, done.stderr

    for name in ("good", "other"):
        openssl("genpkey", "-algorithm", "ed25519", "-out", tmp_path / name)
        openssl("pkey", "-in", tmp_path / name, "-pubout", "-out", tmp_path / f"{name}.pub")
    digest = mirrors[0].publish()
    folder = f"images/debian12/{digest}"
    (tmp_path / "m").write_bytes(mirrors[0].files[f"{folder}/manifest.json"])
    openssl("pkeyutl", "-sign", "-inkey", tmp_path / "good", "-rawin", "-in", tmp_path / "m", "-out", tmp_path / "s")

    def code(key):
        result = ask(mirrors[:1], "debian12", verifier=Verifier(str(tmp_path / key), run_command))
        return [row["signature"] for row in result["rows"]] + codes(result)

    assert code("good.pub") == ["", "signature"]
    mirrors[0].files[f"{folder}/manifest.json.sig"] = (tmp_path / "s").read_bytes()
    assert code("good.pub") == ["good"]
    assert code("other.pub") == ["", "signature"]
    with pytest.raises(MirrorProblem, match="public_key"):
        Verifier(str(tmp_path / "good"), run_command)
