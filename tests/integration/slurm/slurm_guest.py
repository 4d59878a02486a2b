# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One virtual machine with a kernel of its own, for what containers cannot show: cgroups that constrain devices.

It has Debian 12's Slurm and the device nodes of the simulated GPUs. SSH gets in by a port of the loopback interface;
nothing gets out.
"""

from __future__ import annotations

import json
import pathlib
import shutil
import socket
import subprocess
import time

from slurm_lab import DAEMONS, ROOT, base_root, sh

ADDRESS, NAME = "10.0.2.15", "gpu001"
DEVICES = ROOT / "tests/virtual_rack/simgpu/tree/usr/lib/tmpfiles.d/simgpu.conf"
ACCELERATOR = ROOT / "tests/virtual_rack/scripts/accelerator"
NETWORK = f"[Match]\nName=en*\n[Network]\nAddress={ADDRESS}/24\n"


class Guest:
    def __init__(self, work: pathlib.Path) -> None:
        self.work = work
        self.process: subprocess.Popen[bytes] | None = None
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = int(probe.getsockname()[1])

    def up(self, seconds: float) -> None:
        base = base_root("bookworm", "guest", f"{DAEMONS},kmod,udev,linux-image-amd64,initramfs-tools")
        sh("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(self.work / "id"))
        disk = self._disk(base)
        kernel, initrd = (next((base / "boot").glob(pattern)) for pattern in ("vmlinuz-*", "initrd.img-*"))
        kvm = sh(str(ACCELERATOR)).stdout.strip() == "kvm"
        argv = ["qemu-system-x86_64", "-machine", "q35", "-accel", "kvm" if kvm else "tcg,thread=multi"]
        # The TCG's own model: the costs of protecting real processors would double the time of everything.
        argv += ["-cpu", "host" if kvm else "qemu64", "-smp", "2", "-m", "1536", "-nodefaults", "-display", "none"]
        argv += ["-serial", f"file:{self.work / 'console'}", "-kernel", str(kernel), "-initrd", str(initrd)]
        argv += ["-append", "root=/dev/vda rw console=ttyS0 mitigations=off quiet"]
        argv += ["-drive", f"file={disk},if=virtio,format=raw,cache=unsafe", "-device", "virtio-rng-pci"]
        argv += ["-nic", f"user,model=virtio-net-pci,restrict=on,hostfwd=tcp:127.0.0.1:{self.port}-{ADDRESS}:22"]
        self.process = subprocess.Popen(argv, stdin=subprocess.DEVNULL)
        self._wait(seconds)

    def _disk(self, base: pathlib.Path) -> pathlib.Path:
        """A file system of ``base`` with what makes it this machine."""
        for part in ("upper", "work", "root"):
            (self.work / part).mkdir()
        root, disk = self.work / "root", self.work / "disk"
        layers = f"lowerdir={base},upperdir={self.work / 'upper'},workdir={self.work / 'work'}"
        sh("mount", "-t", "overlay", "slurm-guest", "-o", layers, str(root))
        try:
            self._settle(root)
            sh("mkfs.ext4", "-q", "-F", "-d", str(root), str(disk), "2G")
        finally:
            sh("umount", str(root))
        return disk

    def _settle(self, root: pathlib.Path) -> None:
        (root / "etc/hostname").write_text(f"{NAME}\n")
        (root / "etc/hosts").write_text(f"127.0.0.1 localhost\n{ADDRESS} {NAME}\n")
        (root / "etc/machine-id").write_text("")
        (root / "etc/systemd/network").mkdir(parents=True, exist_ok=True)
        (root / "etc/systemd/network/10-any.network").write_text(NETWORK)
        shutil.copy(DEVICES, root / "usr/lib/tmpfiles.d")
        wants = root / "etc/systemd/system/multi-user.target.wants"
        for unit in ("slurmctld", "slurmd", "munge"):
            (wants / f"{unit}.service").unlink(missing_ok=True)
        (wants / "systemd-networkd.service").symlink_to("/lib/systemd/system/systemd-networkd.service")
        (root / "etc/munge/munge.key").unlink(missing_ok=True)
        keys = root / "root/.ssh"
        keys.mkdir(mode=0o700, exist_ok=True)
        (keys / "authorized_keys").write_text((self.work / "id.pub").read_text())

    def _wait(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        while self.run("true", check=False).returncode != 0:
            if time.monotonic() > end or self.process is None or self.process.poll() is not None:
                raise TimeoutError(f"no SSH: {(self.work / 'console').read_text(errors='replace')[-4000:]}")
            time.sleep(1)

    @property
    def ssh_args(self) -> str:
        known = f"-o UserKnownHostsFile={self.work}/known_hosts -o StrictHostKeyChecking=accept-new"
        return f"{known} -o ConnectTimeout=10 -o LogLevel=ERROR -o ControlMaster=no"

    def run(self, command: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        way = ["ssh", "-i", str(self.work / "id"), "-p", str(self.port), *self.ssh_args.split(), "root@127.0.0.1"]
        return sh(*way, command, check=check)

    def inventory(self) -> pathlib.Path:
        host = {
            "ansible_host": "127.0.0.1",
            "ansible_port": self.port,
            "ansible_user": "root",
            "ansible_ssh_private_key_file": str(self.work / "id"),
            "ansible_ssh_common_args": self.ssh_args,
            "ansible_python_interpreter": "/usr/bin/python3",
        }
        groups = {"rack_slurm_controllers": {"hosts": {NAME: {}}}, "rack_nodes": {"hosts": {NAME: {}}}}
        path = self.work / "inventory.json"
        path.write_text(json.dumps({"all": {"hosts": {NAME: host}, "children": groups}}))
        return path

    def down(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
        for big in ("disk", "upper", "work"):
            path = self.work / big
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)
