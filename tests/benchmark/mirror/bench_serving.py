# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The role's nginx against Debian's default configuration: 64 readers at a time that ask for random chunks.

Both serve the same file from the page cache on loopback to wrk, over HTTP and over HTTPS, in interleaved rounds. Told:
throughput, and the server's CPU time for each GB. Bars: the median of the rounds' ratios, ours to Debian's, is at least
0.95 in throughput and at most 1.05 in CPU for each GB; over HTTPS at most 0.95.
Needs: nginx-light, wrk, openssl.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import typing as t

HERE = pathlib.Path(__file__).resolve()
ROOT = HERE.parents[3]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests/integration/mirror")]
import conftest  # noqa: E402, F401  # pylint: disable=unused-import  # arranges the import path
from mirrors import PORT, TLS_PORT, Ca, Mirror  # noqa: E402

CHUNK = 4 << 20
DIGEST = "0" * 64
FILE = f"images/bench/{DIGEST}/image.raw.zst"

# The main file and the site of Debian's package, without the paths that are the machine's own.
DEBIAN = """\
daemon off;
user root;
worker_processes auto;
pid {root}/nginx.pid;
error_log {root}/error.log;
events {{
    worker_connections 768;
}}
http {{
    client_body_temp_path {root}/tmp-body;
    proxy_temp_path {root}/tmp-proxy;
    fastcgi_temp_path {root}/tmp-fastcgi;
    uwsgi_temp_path {root}/tmp-uwsgi;
    scgi_temp_path {root}/tmp-scgi;
    sendfile on;
    tcp_nopush on;
    types_hash_max_size 2048;
    include /etc/nginx/mime.types;
    default_type application/octet-stream;
    ssl_protocols TLSv1 TLSv1.1 TLSv1.2 TLSv1.3;
    ssl_prefer_server_ciphers on;
    access_log {root}/access.log;
    gzip on;
    server {{
        listen {address}:{port} default_server;
        listen {address}:{tls_port} ssl default_server;
        ssl_certificate {root}/etc/h200-rack/tls/mirror.pem;
        ssl_certificate_key {root}/etc/h200-rack/tls/mirror.key;
        root {store};
        index index.html index.htm;
        server_name _;
        location / {{
            try_files $uri $uri/ =404;
        }}
    }}
}}
"""

LUA = """\
local chunk, chunks = %d, %d
request = function()
    local first = math.random(0, chunks - 1) * chunk
    return wrk.format("GET", nil, {["Range"] = string.format("bytes=%%d-%%d", first, first + chunk - 1)})
end
local threads = {}
setup = function(thread) table.insert(threads, thread) end
init = function() math.randomseed(os.time()) end
done = function(summary, latency, requests)
    io.write(string.format('{"bytes":%%d,"microseconds":%%d,"requests":%%d,"errors":%%d}\\n', summary.bytes,
        summary.duration, summary.requests, summary.errors.status + summary.errors.read + summary.errors.connect
        + summary.errors.write + summary.errors.timeout))
end
"""


class Debian(Mirror):
    """The same server process, with Debian's configuration instead of the role's."""

    def configure(self, **_options: t.Any) -> None:
        text = DEBIAN.format(root=self.folder, store=self.store, address=self.address, port=PORT, tls_port=TLS_PORT)
        (self.folder / "nginx.conf").write_text(text)


def cpu_seconds(mirror: Mirror) -> float:
    """User and system time of master and workers."""
    ticks = 0
    for pid in mirror.processes:
        fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def measure(mirror: Mirror, url: str, script: pathlib.Path, seconds: float) -> dict[str, float]:
    before = cpu_seconds(mirror)
    command = ["wrk", "-t2", "-c64", f"-d{seconds:g}s", "--timeout", "30", "-s", str(script), f"{url}/{FILE}"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    told = json.loads(re.findall(r"^\{.*\}$", done.stdout, re.M)[-1])
    assert told["errors"] == 0, done.stdout
    gigabytes = told["bytes"] / 1e9
    return {
        "MB/s": told["bytes"] / told["microseconds"],
        "CPU s/GB": (cpu_seconds(mirror) - before) / gigabytes,
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=4)
    parser.add_argument("--size-mib", type=int, default=512)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="h200-bench-") as name:
        folder = pathlib.Path(name)
        store = folder / "store"
        (store / FILE).parent.mkdir(parents=True)
        with (store / FILE).open("wb") as handle:
            for _number in range(options.size_mib):
                handle.write(os.urandom(1 << 20))
        script = folder / "range.lua"
        script.write_text(LUA % (CHUNK, options.size_mib * (1 << 20) // CHUNK))
        addresses = ["127.80.0.1", "127.80.0.2"]
        certificate = Ca(folder / "ca").issue("bench", addresses)
        ours = Mirror(folder / "ours", certificate, store, addresses[0], mirror_connections_per_client=1000)
        theirs = Debian(folder / "debian", certificate, store, addresses[1])
        rows: list[dict[str, t.Any]] = []
        try:
            for mirror in (ours, theirs):
                mirror.start()
            for number in range(options.rounds):
                order = (ours, theirs) if number % 2 else (theirs, ours)
                for scheme in ("http", "https"):
                    for mirror in order:
                        url = mirror.http if scheme == "http" else mirror.url
                        figures = measure(mirror, url, script, options.seconds)
                        who = "ours" if mirror is ours else "debian"
                        rows.append({"round": number, "scheme": scheme, "who": who, **figures})
                        print(json.dumps(rows[-1]), flush=True)
        finally:
            ours.kill()
            theirs.kill()
    return judge(rows)


def judge(rows: t.Sequence[dict[str, t.Any]]) -> int:
    missed = 0
    for scheme, bars in (("http", {"MB/s": 0.95, "CPU s/GB": 1.05}), ("https", {"MB/s": 0.95, "CPU s/GB": 0.95})):
        for figure, limit in bars.items():
            by_round = {(row["round"], row["who"]): row[figure] for row in rows if row["scheme"] == scheme}
            numbers = sorted({number for number, _who in by_round})
            ratio = statistics.median(by_round[number, "ours"] / by_round[number, "debian"] for number in numbers)
            medians = {
                who: statistics.median(by_round[number, who] for number in numbers) for who in ("ours", "debian")
            }
            good = ratio >= limit if figure == "MB/s" else ratio <= limit
            missed += not good
            print(
                f"{scheme:5} {figure:8} ours {medians['ours']:.2f}, Debian's {medians['debian']:.2f}, "
                f"ratio {ratio:.3f}, bar {limit}: {'ok' if good else 'MISSED'}"
            )
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
