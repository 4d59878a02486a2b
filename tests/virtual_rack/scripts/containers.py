# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Start the containers of the virtual rack, inside its box; tell what was changed, one line each.

The plan comes as JSON: {"root": …, "state": …, "domain": …, "hosts": …,
"containers": {NAME: {"address": …, "bind": {…}}}}.
A container is an overlay over the shared root, so it starts in an instant and what a role changes stays its own.
"""

from __future__ import annotations

import functools
import json
import os
import pathlib
import socket
import subprocess
import sys
import uuid

import daemon

PATIENCE = 300  # seconds for sshd to answer; it takes about five when the machine is idle


def write(path: pathlib.Path, text: str, mode: int = 0o644) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(mode)


def login_key(state: pathlib.Path) -> str:
    """The public part of the key that everybody in the rack logs in with, made with the rack."""
    key = state / "id_ed25519"
    if not key.with_suffix(".pub").exists():
        key.unlink(missing_ok=True)
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "virtual-rack", "-f", key], check=True)
        print("login key")
    return key.with_suffix(".pub").read_text()


def own_files(name: str, upper: pathlib.Path, plan: dict) -> None:
    """What tells this container from the others: laid into its layer before its first start."""
    if (upper / "etc/hostname").exists():
        return
    write(upper / "etc/machine-id", uuid.uuid5(uuid.NAMESPACE_DNS, f"{name}.{plan['domain']}").hex + "\n", 0o444)
    write(upper / "root/.ssh/authorized_keys", login_key(pathlib.Path(plan["state"])), 0o600)
    for directory in ("root", "root/.ssh"):
        (upper / directory).chmod(0o700)
    key = upper / "etc/ssh/ssh_host_ed25519_key"
    key.parent.mkdir(parents=True, exist_ok=True)
    key.unlink(missing_ok=True)
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", name, "-f", key], check=True)
    write(upper / "etc/hostname", name + "\n")


def mount_layers(name: str, plan: dict) -> pathlib.Path:
    base = pathlib.Path(plan["state"], "containers", name)
    merged = base / "root"
    for directory in ("upper", "work", "root"):
        (base / directory).mkdir(parents=True, exist_ok=True)
    own_files(name, base / "upper", plan)
    if not os.path.ismount(merged):
        options = f"lowerdir={plan['root']},upperdir={base}/upper,workdir={base}/work"
        subprocess.run(["mount", "-t", "overlay", "overlay", "-o", options, merged], check=True)
    hosts = merged / "etc/hosts"
    if not hosts.exists() or hosts.read_text() != plan["hosts"]:
        hosts.write_text(plan["hosts"])
        print(name, "hosts")
    return merged


def start(name: str, container: dict, plan: dict) -> None:
    for source in container["bind"].values():
        pathlib.Path(source).mkdir(parents=True, exist_ok=True)
    merged = mount_layers(name, plan)
    group = pathlib.Path("/sys/fs/cgroup", name)
    group.mkdir(exist_ok=True)
    nspawn = [
        "/usr/bin/systemd-nspawn", "--quiet", "--boot", f"--directory={merged}", f"--machine={name}",
        "--register=no", "--keep-unit",   # there is no systemd around it to register with
        f"--network-namespace-path=/run/netns/{name}", "--capability=CAP_NET_ADMIN,CAP_NET_RAW",
        "--resolv-conf=off", "--timezone=off", "--link-journal=no", "--console=pipe",
        *(f"--bind-ro={source}:{target}" for target, source in container["bind"].items()),
    ]  # fmt: skip
    # systemd in the container makes its groups below the one that nspawn runs in, so each needs its own.
    if daemon.start(name, nspawn, f"{plan['state']}/log/{name}.log", cgroup=str(group)):
        print(name, "started")


def sshd_answers(address: str) -> bool:
    try:
        with socket.create_connection((address, 22), timeout=2) as connection:
            return connection.recv(4) == b"SSH-"
    except OSError:
        return False


def publish_host_keys(plan: dict) -> None:
    """known_hosts for the controller: the rack made the keys, so nothing has to be believed on first use."""
    lines = []
    for name, container in plan["containers"].items():
        key = pathlib.Path(plan["state"], "containers", name, "upper/etc/ssh/ssh_host_ed25519_key.pub").read_text()
        lines.append(f"{name},{container['address']} {' '.join(key.split()[:2])}\n")
    known = pathlib.Path(plan["state"], "known_hosts")
    if not known.exists() or known.read_text() != "".join(lines):
        write(known, "".join(lines))
        print("known_hosts")


def main() -> None:
    plan = json.load(sys.stdin)
    # The box has a hosts file of its own, mounted over the machine's: it is written in place.
    own_hosts = pathlib.Path("/etc/hosts")
    if own_hosts.read_text() != plan["hosts"]:
        own_hosts.write_text(plan["hosts"])
        print("box hosts")
    for name, container in plan["containers"].items():
        start(name, container, plan)
    publish_host_keys(plan)
    for name, container in plan["containers"].items():
        log = f"{plan['state']}/log/{name}.log"
        daemon.wait(f"sshd of {name}", functools.partial(sshd_answers, container["address"]), PATIENCE, log)


if __name__ == "__main__":
    main()
