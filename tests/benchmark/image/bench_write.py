# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How fast an image gets to a disk: image_write against curl | zstd -d | dd, and then openssl dgst.

Bars (medians of the ratios of interleaved runs):
  image_write, which verifies every chunk, is at least 2 times as fast as the pipe followed by openssl dgst -sha256;
  it takes at most 512 MiB of memory; after a change of 1 % of the chunks it writes at most 3 %.

The image is a real root file system: a copy (hard links) of --tree, /usr by default, in an ext4 file system on a GPT
disk image with at most 10 % of zero chunks. nginx serves it on loopback from the page cache; the target is a new file.
Needs: nginx, curl, zstd, openssl, sgdisk, mke2fs, python3-zstandard.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import pathlib
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import typing as t

HERE = pathlib.Path(__file__).resolve()
ROOT = HERE.parents[3]
sys.path.insert(0, str(ROOT / "tests"))
import conftest  # noqa: E402, F401  # pylint: disable=unused-import  # arranges the import path
from ansible_collections.h200.rack.plugins.module_utils._image import publish  # noqa: E402

GIB = 1 << 30
NGINX = """daemon off; worker_processes 2; pid {folder}/nginx.pid; error_log {folder}/nginx.log;
events {{ worker_connections 512; }}
http {{ access_log off; sendfile on; tcp_nopush on; client_body_temp_path {folder}/t1; proxy_temp_path {folder}/t2;
fastcgi_temp_path {folder}/t3; uwsgi_temp_path {folder}/t4; scgi_temp_path {folder}/t5;
server {{ listen 127.0.0.1:{port}; root {folder}/mirror; }} }}
"""
WRITER = """
import json, sys
sys.path.insert(0, sys.argv[1]); import conftest
from ansible_collections.h200.rack.plugins.module_utils._image import deploy
print(json.dumps(deploy.deploy(deploy.Request(**json.loads(sys.argv[2])))))
"""


def run(*command: str | pathlib.Path, cwd: pathlib.Path | None = None) -> None:
    subprocess.run([str(word) for word in command], check=True, cwd=cwd, stdout=subprocess.DEVNULL)


def build_image(folder: pathlib.Path, tree: pathlib.Path) -> pathlib.Path:
    """A GPT disk with an empty EFI system partition and the tree in ext4."""
    root = folder / "root"
    (root / tree.name).parent.mkdir(parents=True)
    try:
        run("cp", "-al", tree, root / tree.name)
    except subprocess.CalledProcessError:
        shutil.rmtree(root)
        root.mkdir()
        run("cp", "-a", tree, root / tree.name)
    size = int(subprocess.run(["du", "-sB1", root], capture_output=True, text=True, check=True).stdout.split()[0])
    mib = int(size * 1.05) >> 20
    run("mke2fs", "-q", "-t", "ext4", "-m", "0", "-b", "4096", "-d", root, "-F", folder / "root.img", f"{mib}M")
    shutil.rmtree(root)
    disk = folder / "disk.raw"
    with disk.open("wb") as handle:
        handle.truncate((mib + 20) << 20)
    run("sgdisk", "-n1:2048:+16M", "-t1:ef00", "-n2:0:0", "-t2:8300", disk)
    run("dd", f"if={folder / 'root.img'}", f"of={disk}", "bs=1M", "seek=17", "conv=notrunc", "status=none")
    (folder / "root.img").unlink()
    return disk


@contextlib.contextmanager
def nginx(folder: pathlib.Path, port: int) -> t.Iterator[str]:
    config = folder / "nginx.conf"
    config.write_text(NGINX.format(folder=folder, port=port))
    process = subprocess.Popen(["nginx", "-c", str(config)], stderr=subprocess.DEVNULL)
    try:
        for _attempt in range(100):
            if (
                subprocess.run(["curl", "-s", "-o", "/dev/null", f"http://127.0.0.1:{port}/"], check=False).returncode
                == 0
            ):
                break
            time.sleep(0.05)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait()


def new_target(path: pathlib.Path, size: int) -> None:
    path.unlink(missing_ok=True)
    with path.open("wb") as handle:
        handle.truncate(size)


def ours(
    url: str, digest: str, key: str, target: pathlib.Path, verify: str, cpus: str | None = None
) -> tuple[float, dict]:
    request = {
        "mirrors": [url],
        "image": "bench",
        "digest": digest,
        "public_key": key,
        "disk": {"path": str(target)},
        "require_ramdisk": False,
        "allow_overwrite": True,
        "verify": verify,
    }
    command = [sys.executable, "-c", WRITER, str(ROOT / "tests"), json.dumps(request)]
    started = time.monotonic()
    done = subprocess.run(
        ["taskset", "-c", cpus, *command] if cpus else command, capture_output=True, text=True, check=True
    )
    return time.monotonic() - started, json.loads(done.stdout)


def pipe(url: str, digest: str, target: pathlib.Path, digest_after: bool) -> float:
    wire = f"{url}/images/bench/{digest}/image.raw.zst"
    started = time.monotonic()
    script = 'curl -sf "$1" | zstd -dcq | dd of="$2" bs=4M iflag=fullblock oflag=direct conv=notrunc,fsync status=none'
    subprocess.run(["bash", "-o", "pipefail", "-c", script, "pipe", wire, str(target)], check=True)
    if digest_after:
        subprocess.run(["openssl", "dgst", "-sha256", str(target)], check=True, stdout=subprocess.DEVNULL)
    return time.monotonic() - started


def change_chunks(target: pathlib.Path, manifest: publish.Manifest, share: float) -> int:
    """Overwrite a few bytes in ``share`` of the chunks; returns how many."""
    chunks = [chunk for chunk in manifest.chunks[1:] if not chunk.zero]
    step = max(1, round(1 / share))
    with target.open("r+b") as handle:
        for chunk in chunks[::step]:
            handle.seek(chunk.raw_offset + 4096)
            handle.write(os.urandom(64))
        os.fsync(handle.fileno())
    return len(chunks[::step])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tree", type=pathlib.Path, default=pathlib.Path("/usr"))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--port", type=int, default=18471)
    parser.add_argument("--work", type=pathlib.Path, default=None, help="where to keep image and targets")
    parser.add_argument("--json", type=pathlib.Path, default=None, help="where to write the result")
    options = parser.parse_args()
    with contextlib.ExitStack() as stack:
        if options.work is None:
            folder = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="h200-rack-bench-")))
        else:
            folder = options.work.resolve()
            folder.mkdir(parents=True, exist_ok=True)
        return bench(folder, options)


def bench(folder: pathlib.Path, options: argparse.Namespace) -> int:
    key, public = folder / "key.pem", folder / "pub.pem"
    if not key.exists():
        run("openssl", "genpkey", "-algorithm", "ed25519", "-out", key)
        run("openssl", "pkey", "-in", key, "-pubout", "-out", public)
    disk = folder / "disk.raw"
    if not disk.exists():
        build_image(folder, options.tree)
    (folder / "mirror").mkdir(exist_ok=True)
    started = time.monotonic()
    outcome = publish.publish(
        publish.Request(str(disk), "bench", "1", str(folder / "mirror"), signing_key=str(key), boot="uefi")
    )
    manifest = outcome.manifest
    assert manifest is not None and outcome.digest is not None
    zero = sum(chunk.zero for chunk in manifest.chunks) / len(manifest.chunks)
    print(
        f"published {manifest.raw_size / GIB:.2f} GiB (wire {manifest.wire_size / GIB:.2f}, zero chunks {zero:.1%}) "
        f"in {time.monotonic() - started:.1f} s"
    )
    wire = folder / "mirror" / "images" / "bench" / outcome.digest / "image.raw.zst"
    rows: dict[str, list[float]] = {}
    target = folder / "target.raw"
    with nginx(folder, options.port) as url:
        for number in range(options.rounds):
            run("cat", wire)
            jobs: list[tuple[str, t.Callable[[], float]]] = [
                ("ours", lambda: ours(url, outcome.digest, str(public), target, "sample")[0]),
                ("pipe+dgst", lambda: pipe(url, outcome.digest, target, True)),
                ("ours_all", lambda: ours(url, outcome.digest, str(public), target, "all")[0]),
                ("pipe", lambda: pipe(url, outcome.digest, target, False)),
                ("ours_1cpu", lambda: ours(url, outcome.digest, str(public), target, "sample", "0")[0]),
            ]
            for name, job in jobs if number % 2 == 0 else reversed(jobs):
                new_target(target, manifest.raw_size)
                os.sync()
                rows.setdefault(name, []).append(job())
            print(" ".join(f"{name}={values[-1]:.2f}s" for name, values in rows.items()), flush=True)
        memory = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss >> 10
        new_target(target, manifest.raw_size)
        ours(url, outcome.digest, str(public), target, "none")
        changed = change_chunks(target, manifest, 0.01)
        seconds, again = ours(url, outcome.digest, str(public), target, "sample")
    target.unlink()

    def ratio(slow: str, fast: str) -> float:
        return statistics.median(a / b for a, b in zip(rows[slow], rows[fast]))

    written = again["written_bytes"] / manifest.raw_size
    result = {
        "raw_gib": round(manifest.raw_size / GIB, 2),
        "zero_share": round(zero, 4),
        "cores": os.cpu_count(),
        "median_seconds": {name: round(statistics.median(values), 2) for name, values in rows.items()},
        "ours_vs_pipe_and_dgst": round(ratio("pipe+dgst", "ours"), 2),
        "ours_verify_all_vs_pipe_and_dgst": round(ratio("pipe+dgst", "ours_all"), 2),
        "ours_vs_pipe_without_hash": round(ratio("pipe", "ours"), 2),
        "scaling_1_to_all_cores": round(ratio("ours_1cpu", "ours"), 2),
        "peak_rss_mib": memory,
        "reimage": {"changed_chunks": changed, "written_share": round(written, 4), "seconds": round(seconds, 2)},
    }
    bars = {
        "at least 2 times the pipe with digest": result["ours_vs_pipe_and_dgst"] >= 2,
        "at most 512 MiB": memory <= 512,
        "re-image writes at most 3 %": written <= 0.03,
        "at least 4 GiB, at most 10 % zero chunks": manifest.raw_size >= 4 * GIB and zero <= 0.1,
    }
    result["bars"] = bars
    print(json.dumps(result, indent=2))
    if options.json:
        options.json.write_text(json.dumps(result, indent=2) + "\n")
    return 0 if all(bars.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
