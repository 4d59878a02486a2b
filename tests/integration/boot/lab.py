# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A provisioning network in one namespace: a boot server in a container with systemd, and QEMU guests beside it.

Everything lies in a namespace, a cgroup and a temporary directory of this process, and goes with them.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import typing as t

REPO = pathlib.Path(__file__).resolve().parents[3]
CACHE = REPO / ".cache" / "build" / "boot"
FIRMWARE = pathlib.Path("/usr/share/OVMF")

BOOT = "10.31.1.2"
MIRRORS = ("10.31.1.3", "10.31.1.4")


# A boot sector that writes to the first serial port:
# xor ax,ax; mov ds,ax; mov si,text; mov dx,0x3f8; next: lodsb; test al,al; jz end; out dx,al; jmp next; end: hlt
BOOT_SECTOR = bytes.fromhex("31c0 8ed8 be537c baf803 ac 84c0 7403 ee ebf8 f4 ebfd") + b"\r\nDISK RUNS\r\n\0"

_numbers = itertools.count(1)

# Emulated machines share the processor with whatever else runs: H200_RACK_PATIENCE=4 on a busy one.
PATIENCE = float(os.environ.get("H200_RACK_PATIENCE", "2"))


def sh(*argv: str | pathlib.Path, **options: t.Any) -> str:
    done = subprocess.run([str(word) for word in argv], capture_output=True, text=True, check=False, **options)
    if done.returncode != 0:
        raise RuntimeError(f"{argv} ended with {done.returncode}: {done.stdout[-4000:]}{done.stderr[-4000:]}")
    return done.stdout


def wait_for(what: str, ready: t.Callable[[], t.Any], seconds: float) -> t.Any:
    deadline = time.monotonic() + seconds
    while True:
        value = ready()
        if value:
            return value
        if time.monotonic() > deadline:
            raise TimeoutError(f"{what}: not within {seconds:g} s")
        time.sleep(0.1)


def unified_cgroup() -> pathlib.Path:
    """Where cgroup version 2 is: a host that still uses version 1 has it beside that."""
    for line in pathlib.Path("/proc/self/mounts").read_text().splitlines():
        _source, target, kind, *_rest = line.split()
        if kind == "cgroup2":
            return pathlib.Path(target)
    raise RuntimeError("no cgroup2 is mounted, and systemd in the container needs it")


def container_root() -> pathlib.Path:
    """The virtual rack's container root, made by its own role when it is not there."""
    recipe = "root-bookworm-????????????"
    found = sorted((REPO / ".cache/vrack").glob(recipe))
    if not found:
        sh(REPO / ".venv/bin/ansible-playbook", REPO / "tests/integration/boot/root.yml", cwd=REPO)
        found = sorted((REPO / ".cache/vrack").glob(recipe))
    # The rack removes the roots of older recipes, and a mounted one must not vanish: hard links cost nothing.
    own = CACHE / found[-1].name
    if not own.exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        sh("cp", "-al", found[-1], f"{own}.new")
        pathlib.Path(f"{own}.new").rename(own)
    return own


class Lab:
    """The namespace, the container and the guests."""

    def __init__(self) -> None:
        self.name = f"bt{os.getpid()}-{next(_numbers)}"
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="h200-boot-"))
        self.cgroup = unified_cgroup() / self.name
        self.merged = self.dir / "root"
        self._stack = contextlib.ExitStack()
        self._taps = 0
        self._guests: list[Guest] = []

    def __enter__(self) -> Lab:
        try:
            self._stack.callback(shutil.rmtree, self.dir, True)
            self._network()
            self._container()
        except BaseException:
            log = self.dir / "container.log"
            print(log.read_text(errors="replace")[-2000:] if log.exists() else "", file=sys.stderr)
            self._stack.close()
            raise
        return self

    def __exit__(self, *exc: object) -> None:
        self.stop_guests()
        self._stack.close()

    # The network

    def _network(self) -> None:
        sh("ip", "netns", "add", self.name)
        self._stack.callback(sh, "ip", "netns", "del", self.name)
        self.ip("link", "set", "lo", "up")
        self.ip("link", "add", "prov0", "type", "bridge")
        for address in (BOOT, *MIRRORS):
            self.ip("address", "add", f"{address}/24", "dev", "prov0")
        self.ip("link", "set", "prov0", "up")

    def ip(self, *argv: str) -> str:
        return sh("ip", "-n", self.name, *argv)

    def inside(self, *argv: str | pathlib.Path, **options: t.Any) -> str:
        """Run a program in the namespace, where the addresses are."""
        return sh("ip", "netns", "exec", self.name, *argv, **options)

    def tap(self) -> str:
        self._taps += 1
        name = f"tap{self._taps}"
        self.ip("tuntap", "add", name, "mode", "tap")
        self.ip("link", "set", name, "master", "prov0", "up")
        return name

    @contextlib.contextmanager
    def dead(self, address: str) -> t.Iterator[None]:
        """Nobody answers at this address meanwhile, not even with a refusal."""
        self.ip("address", "del", f"{address}/24", "dev", "prov0")
        try:
            yield
        finally:
            self.ip("address", "add", f"{address}/24", "dev", "prov0")

    # The container

    def _container(self) -> None:
        upper, work = self.dir / "upper", self.dir / "work"
        for folder in (upper, work, self.merged):
            folder.mkdir()
        key = self.dir / "key"
        sh("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key)
        (upper / "root/.ssh").mkdir(parents=True)
        shutil.copy(f"{key}.pub", upper / "root/.ssh/authorized_keys")
        (upper / "etc/ssh").mkdir(parents=True)
        sh("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", upper / "etc/ssh/ssh_host_ed25519_key")
        for folder in ("root", "root/.ssh"):
            (upper / folder).chmod(0o700)
        options = f"lowerdir={container_root()},upperdir={upper},workdir={work}"
        sh("mount", "-t", "overlay", "overlay", "-o", options, self.merged)
        self._stack.callback(sh, "umount", "-l", self.merged)
        self.cgroup.mkdir()
        self._stack.callback(self._remove_cgroup)
        log = (self.dir / "container.log").open("wb")
        argv = [
            "systemd-nspawn", "--quiet", "--boot", f"--directory={self.merged}", f"--machine={self.name}",
            "--register=no", "--keep-unit", f"--network-namespace-path=/run/netns/{self.name}",
            "--capability=CAP_NET_ADMIN,CAP_NET_RAW", "--resolv-conf=off", "--timezone=off", "--link-journal=no",
            "--console=pipe",
        ]  # fmt: skip
        # nspawn asks the first process for the root of the groups, so it gets namespaces of its own for both.
        place = "umount -R /sys/fs/cgroup; mount -t cgroup2 cgroup2 /sys/fs/cgroup && mkdir /sys/fs/cgroup/machine"
        join = 'echo $$ >{}/cgroup.procs && exec "$@"'
        enter = ["/bin/sh", "-c", join.format(self.cgroup), "sh"]
        enter += ["unshare", "--mount", "--cgroup", "--pid", "--fork", "--kill-child", "--mount-proc"]
        enter += ["/bin/sh", "-c", f'{place} && /bin/sh -c "$0" "$@"', join.format("/sys/fs/cgroup/machine"), "sh"]
        self._nspawn = subprocess.Popen(
            [*enter, *argv], stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
        )
        self._write_inventory()
        wait_for("sshd of the container", self._sshd, 90)

    def _remove_cgroup(self) -> None:
        (self.cgroup / "cgroup.kill").write_text("1")
        self._nspawn.wait(20)

        def gone() -> bool:
            for path in sorted((p for p in self.cgroup.rglob("*") if p.is_dir()), key=lambda p: -len(p.parts)):
                with contextlib.suppress(OSError):
                    path.rmdir()
            with contextlib.suppress(OSError):
                self.cgroup.rmdir()
            return not self.cgroup.exists()

        wait_for("the end of the container", gone, 20)

    def _sshd(self) -> bool:
        with contextlib.suppress(RuntimeError):
            return self.ssh("true") == ""
        return False

    def _ssh_options(self) -> list[str]:
        return [
            "-i", str(self.dir / "key"), "-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null",
            "-o", "LogLevel=ERROR", "-o", "ConnectTimeout=3",
        ]  # fmt: skip

    def ssh(self, *argv: str) -> str:
        """Run a program in the container."""
        return self.inside("ssh", *self._ssh_options(), f"root@{BOOT}", *argv)

    def path(self, inside: str) -> pathlib.Path:
        """A file of the container, seen from outside."""
        return self.merged / inside.lstrip("/")

    # Ansible

    def _write_inventory(self) -> None:
        host = {
            "ansible_host": BOOT,
            "ansible_user": "root",
            "ansible_python_interpreter": "/usr/bin/python3",
            "ansible_ssh_common_args": " ".join(self._ssh_options()),
        }
        inventory = {"all": {"hosts": {"boot01": host}}}
        (self.dir / "inventory.json").write_text(json.dumps(inventory))

    def play(self, tasks: list[dict[str, t.Any]], *arguments: str, check: bool = True) -> Play:
        """Run tasks against the container; the result of each by its name."""
        playbook = self.dir / "play.json"
        playbook.write_text(json.dumps([{"hosts": "boot01", "gather_facts": False, "tasks": tasks}]))
        environment = {
            **{name: value for name, value in os.environ.items() if name != "PYENV_VERSION"},
            "ANSIBLE_COLLECTIONS_PATH": str(REPO / ".cache/collections"),
            "ANSIBLE_CONFIG": str(REPO / "ansible.cfg"),
            "ANSIBLE_STDOUT_CALLBACK": "ansible.posix.json",
            "ANSIBLE_LOCAL_TEMP": str(self.dir / "ansible"),
            "ANSIBLE_HOME": str(self.dir / "ansible"),
            "ANSIBLE_SSH_CONTROL_PATH_DIR": str(self.dir / "cp"),
        }
        command = [
            "ip", "netns", "exec", self.name, str(REPO / ".venv/bin/ansible-playbook"),
            "-i", str(self.dir / "inventory.json"), *arguments, str(playbook),
        ]  # fmt: skip
        started = time.monotonic()
        done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False, cwd=REPO)
        play = Play(done.stdout, done.stderr, done.returncode, time.monotonic() - started)
        if check and done.returncode != 0:
            raise AssertionError(play.failure())
        return play

    # Guests

    def guest(self, mac: str, **options: t.Any) -> Guest:
        guest = Guest(self, mac, **options)
        self._guests.append(guest)
        return guest

    def stop_guests(self) -> None:
        """A test's machines end with it: the next one reads the same logs, and needs the processor."""
        while self._guests:
            self._guests.pop().stop()

    def disk(self) -> pathlib.Path:
        """A disk that UEFI takes for bootable, and whose boot sector tells a BIOS's console that it runs."""
        disk = self.dir / "disk.img"
        if not disk.exists():
            sh("mformat", "-i", disk, "-C", "-T", "65536", "::")
            for folder in ("::/EFI", "::/EFI/BOOT"):
                sh("mmd", "-i", disk, folder)
            sh("mcopy", "-i", disk, self.path("/usr/lib/ipxe/snponly.efi"), "::/EFI/BOOT/BOOTX64.EFI")
            with disk.open("r+b") as handle:
                handle.seek(62)  # behind what FAT keeps in its first sector, where its first jump leads
                handle.write(BOOT_SECTOR)
        return disk

    def log_lines(self) -> list[dict[str, t.Any]]:
        """What nginx served, oldest first."""
        log = self.path("/var/log/nginx/h200-rack.json")
        return [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []

    def dhcp_log(self) -> str:
        return self.ssh("journalctl", "-u", "dnsmasq", "-o", "short-precise", "--no-pager")


class Play:
    """What ansible-playbook said."""

    def __init__(self, stdout: str, stderr: str, status: int, seconds: float) -> None:
        self.stdout, self.stderr, self.status, self.seconds = stdout, stderr, status, seconds
        try:
            self._json = json.loads(stdout[stdout.index("{") :])
        except ValueError:
            self._json = {"plays": [], "stats": {}}

    def result(self, name: str) -> dict[str, t.Any]:
        for play in self._json["plays"]:
            for task in play["tasks"]:
                if task["task"]["name"].endswith(name) and "boot01" in task["hosts"]:
                    return task["hosts"]["boot01"]
        raise KeyError(name)

    @property
    def changed(self) -> list[str]:
        return [
            task["task"]["name"]
            for play in self._json["plays"]
            for task in play["tasks"]
            if any(host.get("changed") for host in task["hosts"].values())
        ]

    def failure(self) -> str:
        failed = [
            f"{task['task']['name']}: {json.dumps(host, indent=1)[:3000]}"
            for play in self._json["plays"]
            for task in play["tasks"]
            for host in task["hosts"].values()
            if host.get("failed") or host.get("unreachable")
        ]
        return "\n".join(failed) or f"{self.stdout[-3000:]}{self.stderr[-3000:]}"


class Guest:
    """A machine that boots from the network, under TCG; every line of its console has the second it came at."""

    def __init__(
        self,
        lab: Lab,
        mac: str,
        firmware: str = "uefi",
        boot: str = "pxe",
        reboots: bool = False,
        ipv6: bool = False,
    ) -> None:
        self.lab, self.mac, self.ipv6 = lab, mac, ipv6
        self.firmware, self.boot, self.reboots = firmware, boot, reboots
        self.lines: list[tuple[float, str]] = []
        self._process: subprocess.Popen[bytes] | None = None
        self.started = 0.0
        self.started_wall = 0.0

    def start(self) -> Guest:
        tap = self.lab.tap()
        argv = [
            "ip", "netns", "exec", self.lab.name, "nice", "-n", "5", "qemu-system-x86_64",
            "-machine", "q35", "-accel", "tcg,thread=multi", "-cpu", "Nehalem", "-smp", "1", "-m", "1024",
            "-display", "none", "-monitor", "none", "-serial", "stdio", "-nodefaults",
            "-device", "virtio-rng-pci",
            "-netdev", f"tap,id=n0,ifname={tap},script=no,downscript=no",
        ]  # fmt: skip
        if not self.reboots:
            argv.append("-no-reboot")
        if self.firmware == "uefi":
            variables = self.lab.dir / f"vars-{tap}.fd"
            shutil.copy(FIRMWARE / "OVMF_VARS_4M.fd", variables)
            argv += [
                "-drive", f"if=pflash,format=raw,readonly=on,file={FIRMWARE}/OVMF_CODE_4M.fd",
                "-drive", f"if=pflash,format=raw,file={variables}",
                # Without QEMU's own iPXE in the card's ROM, it is the firmware that boots.
                "-device", f"virtio-net-pci,netdev=n0,mac={self.mac},romfile=,bootindex=1",
                # What comes next in the boot order.
                "-drive", f"if=none,id=d0,format=raw,readonly=on,file={self.lab.disk()}",
                "-device", "virtio-blk-pci,drive=d0,bootindex=2,serial=LOCAL",
            ]  # fmt: skip
            if self.boot == "http":
                argv += ["-fw_cfg", "name=opt/org.tianocore/IPv4PXESupport,string=n"]
            if not self.ipv6:  # it has its own place in the boot order, and waits more than a minute there
                argv += ["-fw_cfg", "name=opt/org.tianocore/IPv6PXESupport,string=n"]
        else:
            argv += [
                "-device", f"virtio-net-pci,netdev=n0,mac={self.mac},bootindex=1", "-vga", "std",
                "-drive", f"if=none,id=d0,format=raw,readonly=on,file={self.lab.disk()}",
                "-device", "virtio-blk-pci,drive=d0,bootindex=2",
            ]  # fmt: skip
        self.started, self.started_wall = time.monotonic(), time.time()
        self._process = subprocess.Popen(
            argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True
        )
        threading.Thread(target=self._read, daemon=True).start()
        return self

    def _read(self) -> None:
        assert self._process and self._process.stdout
        for raw in self._process.stdout:
            self.lines.append((time.monotonic() - self.started, raw.decode(errors="replace").rstrip("\r\n")))

    def console(self) -> str:
        return "\n".join(f"{second:7.2f} {line}" for second, line in self.lines)

    def says(self, text: str, seconds: float = 90) -> float:
        """The second at which the console first held ``text``."""

        def found() -> float | None:
            return next((second for second, line in list(self.lines) if text in line), None)

        def ready() -> t.Any:
            second = found()
            if second is None and self._process and self._process.poll() is not None:
                raise AssertionError(f"the guest ended without {text!r}:\n{self.console()[-5000:]}")
            return second

        try:
            return wait_for(f"{text!r} on the console", ready, seconds * PATIENCE)
        except TimeoutError as exc:
            raise AssertionError(f"{exc}\n{self.console()[-5000:]}") from exc

    def ends(self, seconds: float = 120) -> int:
        assert self._process
        return self._process.wait(seconds)

    def stop(self) -> None:
        if self._process and self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()


if __name__ == "__main__":
    with Lab() as lab:
        print(lab.name, lab.dir)
        sys.stdin.readline()
