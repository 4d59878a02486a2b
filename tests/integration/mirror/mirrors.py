# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Mirrors as processes: real nginx with the role's own templates, each at a loopback address of its own."""

from __future__ import annotations

import contextlib
import itertools
import os
import pathlib
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import time
import typing as t

import jinja2
import yaml
from ansible.plugins.filter.core import FilterModule
from ansible.plugins.test.core import TestModule
from ansible_collections.h200.rack.plugins.module_utils._mirror import health, step
from ansible_collections.h200.rack.plugins.module_utils._mirror.client import Trust

ROLE = pathlib.Path(__file__).resolve().parents[3] / "roles" / "mirror"
PORT, TLS_PORT = 18080, 18443
_numbers = itertools.count(1)

MAIN = """\
daemon off;
user root;
worker_processes {workers};
worker_rlimit_nofile 65536;
pid {root}/nginx.pid;
error_log {root}/error.log;
events {{ worker_connections {connections}; }}
http {{
    include {mime};
    access_log off;
    client_body_temp_path {root}/tmp-body;
    proxy_temp_path {root}/tmp-proxy;
    fastcgi_temp_path {root}/tmp-fastcgi;
    uwsgi_temp_path {root}/tmp-uwsgi;
    scgi_temp_path {root}/tmp-scgi;
    include {root}/etc/nginx/conf.d/*.conf;
}}
"""


def _environment() -> jinja2.Environment:
    loader = jinja2.FileSystemLoader(ROLE / "templates")
    made = jinja2.Environment(loader=loader, trim_blocks=True, keep_trailing_newline=True)
    made.filters.update(FilterModule().filters())
    made.tests.update(TestModule().tests())
    return made


def wait_for(what: str, ready: t.Callable[[], t.Any], seconds: float = 10) -> t.Any:
    deadline = time.monotonic() + seconds
    while not (value := ready()):
        if time.monotonic() > deadline:
            raise TimeoutError(f"{what}: not within {seconds:g} s")
        time.sleep(0.02)
    return value


class Ca:
    """A CA of the rack, and what it issues."""

    def __init__(self, folder: pathlib.Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self._openssl(
            *("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "3650", "-subj", "/CN=rack CA"),
            *("-addext", "basicConstraints=critical,CA:TRUE", "-addext", "keyUsage=critical,keyCertSign"),
            *("-keyout", "ca.key", "-out", "ca.pem"),
        )
        self.path = folder / "ca.pem"

    def _openssl(self, *arguments: str, prefix: t.Sequence[str] = ()) -> None:
        done = subprocess.run(
            [*prefix, "openssl", *arguments], cwd=self.folder, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr

    def issue(self, name: str, names: t.Sequence[str], shift: str = "") -> tuple[pathlib.Path, pathlib.Path]:
        """A certificate for ``names``; with ``shift`` by a machine whose clock is off by that, in faketime's words."""
        prefix = ("faketime", "-f", shift) if shift else ()
        san = ",".join(f"{'IP' if word[0].isdigit() else 'DNS'}:{word}" for word in names)
        (self.folder / f"{name}.ext").write_text(f"subjectAltName={san}\n")
        key = ("-newkey", "rsa:2048", "-nodes", "-keyout", f"{name}.key")
        self._openssl("req", "-new", *key, "-subj", f"/CN={name}", "-out", f"{name}.csr")
        self._openssl(
            *("x509", "-req", "-in", f"{name}.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial"),
            *("-days", "1", "-extfile", f"{name}.ext", "-out", f"{name}.pem"),
            prefix=prefix,
        )
        return self.folder / f"{name}.pem", self.folder / f"{name}.key"


class Mirror:
    """One nginx. ``options`` are those of the role; ``prefix`` goes before its command line."""

    def __init__(
        self,
        folder: pathlib.Path,
        certificate: tuple[pathlib.Path, pathlib.Path] | None = None,
        store: pathlib.Path | None = None,
        address: str = "",
        **options: t.Any,
    ) -> None:
        self.address = address or f"127.50.{os.getpid() % 250}.{next(_numbers)}"
        self.folder = folder
        self.store = store or folder / "store"
        for part in ("etc/nginx/conf.d", "etc/nginx/h200-rack.d", "etc/h200-rack/tls", "var/log/nginx", "cache"):
            (folder / part).mkdir(parents=True, exist_ok=True)
        for part in ("images", "ramdisk"):
            (self.store / part).mkdir(parents=True, exist_ok=True)
        self._tls = certificate is not None
        if certificate:
            shutil.copy(certificate[0], folder / "etc/h200-rack/tls/mirror.pem")
            shutil.copy(certificate[1], folder / "etc/h200-rack/tls/mirror.key")
        self._prefix: t.Sequence[str] = options.pop("prefix", ())
        self._workers = options.pop("workers", 2)
        self._options = {
            **yaml.safe_load((ROLE / "defaults" / "main.yml").read_text()),
            "mirror_listen": [f"{self.address}:{PORT}"],
            "mirror_tls": self._tls,
            "mirror_tls_listen": [f"{self.address}:{TLS_PORT}"],
            "mirror_tls_key_path": "/etc/h200-rack/tls/mirror.key",
            "mirror_root": str(self.store),
            "mirror_ca_certificate": "",
            "mirror_cache_root": str(folder / "cache"),
            **options,
        }
        if self._options["mirror_ca_certificate"]:
            (folder / "etc/h200-rack/ca.pem").write_text(self._options["mirror_ca_certificate"])
        self._process: subprocess.Popen[bytes] | None = None
        self.configure()

    @property
    def http(self) -> str:
        return f"http://{self.address}:{PORT}"

    @property
    def url(self) -> str:
        return f"https://{self.address}:{TLS_PORT}" if self._tls else self.http

    def configure(self, **options: t.Any) -> None:
        """Write nginx's files, from the role's templates."""
        self._options.update(options)
        cache = bool(self._options["mirror_origins"])
        parts = {
            "conf.d/h200-rack.conf": "server.conf.j2",
            "h200-rack.d/mirror.conf": "cache.conf.j2" if cache else "mirror.conf.j2",
        }
        if cache:
            parts["conf.d/h200-rack-cache.conf"] = "cache_http.conf.j2"
        for name, template in parts.items():
            text = _environment().get_template(template).render(self._options)
            for place in ("/etc/nginx/", "/etc/h200-rack/", "/var/log/nginx/"):
                text = text.replace(place, f"{self.folder}{place}")
            (self.folder / "etc/nginx" / name).write_text(text)
        main = MAIN.format(root=self.folder, mime="/etc/nginx/mime.types", workers=self._workers, connections=16384)
        (self.folder / "nginx.conf").write_text(main)

    def start(self) -> Mirror:
        command = [*self._prefix, "nginx", "-p", str(self.folder), "-c", str(self.folder / "nginx.conf")]
        log = (self.folder / "nginx.log").open("wb")
        self._process = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)
        wait_for(f"nginx of {self.folder}: {(self.folder / 'nginx.log').read_text()}", self._answers)
        return self

    def _answers(self) -> bool:
        assert self._process is not None
        if self._process.poll() is not None:
            raise AssertionError((self.folder / "nginx.log").read_text())
        with contextlib.suppress(OSError), socket.create_connection((self.address, PORT), 1):
            return True
        return False

    def kill(self) -> None:
        """Gone at once, master and workers, in the middle of whatever they send."""
        if self._process is None:
            return
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._process = None

    @property
    def processes(self) -> list[int]:
        """The master and its workers, which share its group."""
        assert self._process is not None
        return [int(path.name) for path in pathlib.Path("/proc").glob("[0-9]*") if self._is_ours(int(path.name))]

    def _is_ours(self, pid: int) -> bool:
        with contextlib.suppress(OSError):
            return self._process is not None and os.getpgid(pid) == self._process.pid
        return False

    def log_lines(self) -> list[str]:
        path = self.folder / "var/log/nginx/h200-rack.json"
        return path.read_text().splitlines() if path.exists() else []

    def sent(self) -> int:
        """Bytes of images that it has sent, by its own log."""
        import json

        return sum(line["bytes"] for line in map(json.loads, self.log_lines()) if "image.raw.zst" in line["uri"])


def in_step(mirror: Mirror, sources: t.Sequence[Mirror], published: t.Any, **options: t.Any) -> dict[str, t.Any]:
    """What the play does: the module mirror_pull with everything, in a process of its own."""
    arguments = {
        "sources": [source.url for source in sources],
        "dest": str(mirror.store),
        "everything": True,
        "public_key": published.public_key,
        "stall_timeout": 1,
        "timeout": 60,
        **options,
    }
    return module("mirror_pull", arguments)


def module(name: str, arguments: dict[str, t.Any], prefix: t.Sequence[str] = ()) -> dict[str, t.Any]:
    """Run a module of the collection as Ansible does; its result, whatever it is."""
    import json

    tests = pathlib.Path(__file__).resolve().parents[2]
    code = (
        "import sys; sys.path.insert(0, sys.argv[1]); import conftest\n"
        "import json, runpy\n"
        "from ansible.module_utils import basic\n"
        "basic._ANSIBLE_ARGS = json.dumps({'ANSIBLE_MODULE_ARGS': json.loads(sys.argv[3])}).encode()\n"
        "basic._ANSIBLE_PROFILE = 'legacy'\n"
        "runpy.run_module('ansible_collections.h200.rack.plugins.modules.' + sys.argv[2], run_name='__main__')\n"
    )
    done = subprocess.run(
        [*prefix, sys.executable, "-c", code, str(tests), name, json.dumps(arguments)],
        capture_output=True,
        text=True,
        check=False,
        timeout=180,
    )
    assert done.stdout.strip(), done.stderr
    return json.loads(done.stdout.strip().splitlines()[-1])


def in_rotation(mirror: Mirror) -> bool:
    """What /health answers."""
    import urllib.error
    import urllib.request

    try:
        with urllib.request.urlopen(f"{mirror.http}/health", timeout=5) as answer:
            return answer.status == 200
    except urllib.error.HTTPError as exc:
        assert exc.code in (502, 503, 504)
        return False


def publish_into(mirror: Mirror) -> None:
    """Bring the mirror that was published on into rotation, as the play does without other mirrors."""
    health.record(str(mirror.store), step.families(step.wants(step.own(str(mirror.store)), None, authority=True)))
    assert health.refresh(str(mirror.store), deep=True) == []


__all__ = ["Ca", "Mirror", "Trust", "in_rotation", "in_step", "module", "publish_into", "ssl", "wait_for"]
