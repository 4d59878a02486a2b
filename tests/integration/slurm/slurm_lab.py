# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A small cluster of booted containers for the Slurm tests: real systemd, sshd, munge, slurmctld and slurmd.

    slurm_lab.py up [--suite bookworm] [--nodes 3] DIR    make the containers, write DIR/inventory.yml and DIR/run
    slurm_lab.py down DIR                                 end them and remove what was made
    slurm_lab.py connect NET HOST PORT                    ssh's way into the lab (ProxyCommand with ProxyUseFdpass)

Every container has its own network namespace on a bridge inside one more namespace; nothing of the host's
network is touched. SSH gets in by the inventory's ProxyCommand; `DIR/run CMD…` runs CMD inside that namespace.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import typing as t

ROOT = pathlib.Path(__file__).resolve().parents[3]
CACHE = ROOT / ".cache" / "build" / "slurm"
DAEMONS = "systemd,systemd-sysv,dbus,openssh-server,python3,iproute2,procps,slurmctld,slurmd,slurm-client,munge"
PACKAGES = f"{DAEMONS},libpam-systemd,python3-apt,iputils-ping,ca-certificates"
OWN_MIRROR = pathlib.Path(__file__).resolve().parents[2] / "virtual_rack" / "scripts" / "own_mirror"
NETWORK = os.environ.get("LAB_NETWORK", "10.20.9")
GPUS = 8


def sh(*argv: str, check: bool = True, **more: object) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(argv, text=True, capture_output=True, check=False, **more)  # type: ignore[call-overload]
    if check and done.returncode != 0:
        sys.exit(f"{' '.join(argv)}: rc {done.returncode}\n{done.stdout}{done.stderr}")
    return done


def base_root(suite: str, name: str = "root", packages: str = PACKAGES) -> pathlib.Path:
    """A root of ``suite`` with ``packages``, built once."""
    root = CACHE / f"{name}-{suite}"
    if not (root / "usr/bin/munge").exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        part = CACHE / f"{name}-{suite}.part"
        shutil.rmtree(part, ignore_errors=True)
        sh(
            # Mounts of its own: what it cannot unmount goes with it.
            *("unshare", "--mount", "nice", "-n", "10", "mmdebstrap"),
            "--variant=apt",
            f"--include={packages}",
            "--dpkgopt=path-exclude=/usr/share/doc/*",
            "--dpkgopt=path-exclude=/usr/share/man/*",
            suite,
            str(part),
            sh(str(OWN_MIRROR)).stdout.strip(),
        )
        part.rename(root)
    return root


class Lab:
    def __init__(self, work: pathlib.Path) -> None:
        self.work = work
        self.state = work / "lab.json"
        self.net = f"sl{os.stat(work).st_ino % 100000}"
        # Not below work: the path of a socket has 107 characters, and Molecule's folders take most of them.
        self.sockets = pathlib.Path(tempfile.gettempdir(), self.net)

    def up(self, suite: str, nodes: int) -> None:
        names = ["slurm01", *(f"gpu{number:03d}" for number in range(1, nodes + 1))]
        hosts = {name: f"{NETWORK}.{5 if name == 'slurm01' else 10 + number}" for number, name in enumerate(names)}
        self.state.write_text(json.dumps({"suite": suite, "hosts": hosts, "pids": {}}))
        key = self.work / "id"
        sh("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key))
        sh("ip", "netns", "add", self.net)
        self._in(self.net, "ip", "link", "set", "lo", "up")
        self._in(self.net, "ip", "link", "add", "br0", "type", "bridge")
        self._in(self.net, "ip", "addr", "add", f"{NETWORK}.1/24", "dev", "br0")
        self._in(self.net, "ip", "link", "set", "br0", "up")
        for name, address in hosts.items():
            self._container(base_root(suite), name, address, hosts, key)
        self._wait_ssh(hosts, key)
        self._write_inventory(hosts, key)

    def _in(self, net: str, *argv: str) -> subprocess.CompletedProcess[str]:
        return sh("ip", "netns", "exec", net, *argv)

    def _container(self, base: pathlib.Path, name: str, address: str, hosts: dict[str, str], key: pathlib.Path) -> None:
        net = f"{self.net}-{name}"
        link = f"v{address.rsplit('.', 1)[1]}"
        sh("ip", "netns", "add", net)
        self._in(self.net, "ip", "link", "add", link, "type", "veth", "peer", "name", "host0", "netns", net)
        self._in(self.net, "ip", "link", "set", link, "master", "br0", "up")
        self._in(net, "ip", "link", "set", "lo", "up")
        self._in(net, "ip", "addr", "add", f"{address}/24", "dev", "host0")
        self._in(net, "ip", "link", "set", "host0", "up")
        top = self.work / name
        if top.exists():
            # Left by a run that was ended while its containers still wrote.
            shutil.rmtree(top)
        for part in ("upper", "work", "root"):
            (top / part).mkdir(parents=True)
        root = top / "root"
        sh(
            "mount",
            "-t",
            "overlay",
            f"slurmlab-{name}",
            "-o",
            f"lowerdir={base},upperdir={top / 'upper'},workdir={top / 'work'}",
            str(root),
        )
        (root / "etc/hostname").write_text(f"{name}\n")
        (root / "etc/hosts").write_text("127.0.0.1 localhost\n" + "".join(f"{a} {n}\n" for n, a in hosts.items()))
        ssh = root / "root/.ssh"
        ssh.mkdir(mode=0o700, exist_ok=True)
        (ssh / "authorized_keys").write_text((key.parent / "id.pub").read_text())
        for unit in (
            "slurmctld",
            "slurmd",
            "munge",
            "systemd-networkd",
            "systemd-networkd-wait-online",
            "apt-daily.timer",
            "apt-daily-upgrade.timer",
        ):
            for link_path in root.glob(f"etc/systemd/system/*.wants/{unit}*"):
                link_path.unlink()
        # A role that makes its own key must not find the one that the package made when the root was built.
        (root / "etc/munge/munge.key").unlink(missing_ok=True)
        (root / "etc/machine-id").write_text("")
        # A login must not wait for systemd-logind, which does not run in every container.
        session = root / "etc/pam.d/common-session"
        lines = session.read_text().splitlines(keepends=True)
        session.write_text("".join(line for line in lines if "pam_systemd" not in line))
        binds = []
        if name != "slurm01":
            devices = top / "dev"
            devices.mkdir()
            for number in range(GPUS):
                (devices / f"nvidia{number}").write_text("")
                binds.append(f"--bind={devices / f'nvidia{number}'}:/dev/nvidia{number}")
        log = (top / "console.log").open("w")
        process = subprocess.Popen(
            [
                "systemd-nspawn",
                "--quiet",
                "--boot",
                "--register=no",
                "--keep-unit",
                "--console=pipe",
                f"--machine={name}",
                f"--network-namespace-path=/run/netns/{net}",
                f"--directory={root}",
                *binds,
            ],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
        state = json.loads(self.state.read_text())
        state["pids"][name] = process.pid
        self.state.write_text(json.dumps(state))

    def _wait_ssh(self, hosts: dict[str, str], key: pathlib.Path) -> None:
        end = time.monotonic() + 90
        for name, address in hosts.items():
            while True:
                done = sh(
                    "ip", "netns", "exec", self.net, "ssh", *self._ssh(key), f"root@{address}", "true", check=False
                )
                if done.returncode == 0:
                    break
                if time.monotonic() > end:
                    sys.exit(
                        f"{name}: no SSH within 90 s\n{done.stderr}\n{(self.work / name / 'console.log').read_text()}"
                    )
                time.sleep(0.3)

    def _ssh(self, key: pathlib.Path) -> list[str]:
        return [
            "-i",
            str(key),
            "-o",
            f"UserKnownHostsFile={self.work}/known_hosts",
            "-o",
            "StrictHostKeyChecking=accept-new",
            "-o",
            "ConnectTimeout=2",
            "-o",
            "LogLevel=ERROR",
        ]

    def _write_inventory(self, hosts: dict[str, str], key: pathlib.Path) -> None:
        way = f"ip netns exec {self.net} {sys.executable} {pathlib.Path(__file__).resolve()} connect {self.net} %h %p"
        ssh = (
            f"-o UserKnownHostsFile={self.work}/known_hosts -o StrictHostKeyChecking=accept-new "
            f"-o ProxyUseFdpass=yes -o ProxyCommand='{way}'"
        )
        nodes = {name: {"ansible_host": address} for name, address in hosts.items() if name != "slurm01"}
        inventory = {
            "all": {
                "vars": {
                    "ansible_user": "root",
                    "ansible_ssh_private_key_file": str(key),
                    "ansible_ssh_common_args": ssh,
                    "ansible_python_interpreter": "/usr/bin/python3",
                    # Another lab has the same addresses; its connections must not be taken.
                    "ansible_control_path_dir": str(self.sockets),
                },
                "children": {
                    "rack_slurm_controllers": {"hosts": {"slurm01": {"ansible_host": hosts["slurm01"]}}},
                    "rack_nodes": {"hosts": nodes},
                },
            }
        }
        (self.work / "inventory.json").write_text(json.dumps(inventory, indent=2))
        run = self.work / "run"
        run.write_text(f'#!/bin/sh\nPATH={ROOT}/.venv/bin:$PATH exec ip netns exec {self.net} "$@"\n')
        run.chmod(0o755)

    def down(self) -> None:
        state = json.loads(self.state.read_text()) if self.state.exists() else {"hosts": {}, "pids": {}}
        _end(state["pids"].values())
        for name in state["hosts"]:
            root = self.work / name / "root"
            if os.path.ismount(root):
                sh("umount", "-l", str(root))
            sh("ip", "netns", "del", f"{self.net}-{name}", check=False)
            shutil.rmtree(self.work / name, ignore_errors=True)
        shutil.rmtree(self.sockets, ignore_errors=True)
        sh("ip", "netns", "del", self.net, check=False)
        for left in ("id", "id.pub", "known_hosts", "inventory.json", "run", "lab.json"):
            (self.work / left).unlink(missing_ok=True)


def _end(pids: t.Collection[int]) -> None:
    """End all nspawns at once and, if they do not go, their process groups; all were started by `up`."""
    left = set(pids)
    for signum in (signal.SIGTERM, signal.SIGKILL):
        for pid in left:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(pid, signum)
        end = time.monotonic() + 10
        while left and time.monotonic() < end:
            left = {pid for pid in left if _lives(pid)}
            time.sleep(0.1)


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def connect(host: str, port: int) -> None:
    """Connect, and hand the socket to the ssh that is behind standard output."""
    with socket.create_connection((host, port), timeout=10) as link, socket.socket(fileno=os.dup(1)) as parent:
        link.settimeout(None)
        socket.send_fds(parent, [b"\0"], [link.fileno()])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    up = commands.add_parser("up")
    up.add_argument("--suite", default="bookworm", choices=("bookworm", "trixie"))
    up.add_argument("--nodes", type=int, default=3)
    up.add_argument("dir", type=pathlib.Path)
    commands.add_parser("down").add_argument("dir", type=pathlib.Path)
    way = commands.add_parser("connect")
    way.add_argument("net")
    way.add_argument("host")
    way.add_argument("port", type=int)
    arguments = parser.parse_args()
    if arguments.command == "connect":
        connect(arguments.host, arguments.port)
        return
    arguments.dir.mkdir(parents=True, exist_ok=True)
    lab = Lab(arguments.dir.resolve())
    if arguments.command == "up":
        lab.down()
        lab.up(arguments.suite, arguments.nodes)
    else:
        lab.down()


if __name__ == "__main__":
    main()
