# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Real servers for the BMC modules: sushy-emulator, ipmi_sim, and an sshd to delegate to, all on loopback."""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import time

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[3]
BIN = pathlib.Path(sys.executable).parent
# Where `make rack-build` puts it: with its libvirt driver it is Debian's Python's, not that of .venv.
EMULATOR = ROOT / ".cache" / "venv-sushy" / "bin" / "sushy-emulator"
SECRET = "s3cret-Pass"
SSHD = os.environ.get("H200_RACK_SSHD") or shutil.which("sshd", path="/usr/sbin:/usr/local/sbin")


def free_port(kind=socket.SOCK_STREAM):
    with socket.socket(socket.AF_INET, kind) as sock:
        sock.bind(("127.0.0.1", 0))
        return sock.getsockname()[1]


@contextlib.contextmanager
def process(command, ready, log, **more):
    """Run ``command`` until the block ends; ``ready`` tells when it serves."""
    with log.open("w") as out:
        child = subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, **more)
        try:
            ends = time.monotonic() + 30
            while not ready():
                assert child.poll() is None, log.read_text()
                assert time.monotonic() < ends, f"{command[0]} does not serve: {log.read_text()}"
                time.sleep(0.1)
            yield child
        finally:
            child.send_signal(signal.SIGTERM)
            try:
                child.wait(10)
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()


def accepts(port):
    def ready():
        with socket.socket() as sock:
            return sock.connect_ex(("127.0.0.1", port)) == 0

    return ready


@pytest.fixture
def emulator(tmp_path):
    """sushy-emulator with its fake driver, TLS and a password."""
    if not EMULATOR.exists():
        pytest.skip("no sushy-emulator; `make rack-build` installs it")
    sys.path.insert(0, str(ROOT / "tests"))
    from fake_bmc.server import make_certificates

    make_certificates(tmp_path)
    port = free_port()
    code = "import bcrypt, sys; print(bcrypt.hashpw(sys.argv[1].encode(), bcrypt.gensalt(4)).decode())"
    hashed = subprocess.check_output([EMULATOR.with_name("python"), "-c", code, SECRET], text=True).strip()
    (tmp_path / "htpasswd").write_text(f"admin:{hashed}\n")
    (tmp_path / "emulator.conf").write_text(
        f"SUSHY_EMULATOR_LISTEN_IP = '127.0.0.1'\nSUSHY_EMULATOR_LISTEN_PORT = {port}\n"
        f"SUSHY_EMULATOR_FAKE_DRIVER = True\nSUSHY_EMULATOR_AUTH_FILE = '{tmp_path / 'htpasswd'}'\n"
        f"SUSHY_EMULATOR_SSL_CERT = '{tmp_path / 'bmc.pem'}'\nSUSHY_EMULATOR_SSL_KEY = '{tmp_path / 'bmc.key'}'\n"
        f"SUSHY_EMULATOR_STATE_DIR = '{tmp_path}'\n"
    )
    command = [str(EMULATOR), "--config", str(tmp_path / "emulator.conf")]
    with process(command, accepts(port), tmp_path / "emulator.log"):
        yield {"bmc_host": f"127.0.0.1:{port}", "bmc_password": SECRET, "ca_path": str(tmp_path / "ca.pem")}


CHASSIS = """#!/bin/sh
# What ipmi_sim runs: a chassis made of files.
cd "{folder}" || exit 1
echo "$@" >> calls
shift
action=$1
shift
case $action in
get)
    for name in "$@"; do
        case $name in
        power) echo "power:$(cat power 2>/dev/null || echo 0)" ;;
        boot) echo "boot:$(cat boot 2>/dev/null || echo none)" ;;
        *) echo "$name:0" ;;
        esac
    done
    ;;
set)
    while [ $# -gt 1 ]; do
        [ "$1" = shutdown ] && echo 0 > power
        echo "$2" > "$1"
        shift 2
    done
    ;;
esac
"""


@pytest.fixture
def simulator(tmp_path):
    """ipmi_sim with a chassis program; yields the options and the list of its calls."""
    if not shutil.which("ipmi_sim"):
        pytest.skip("ipmi_sim (Debian package openipmi) is not installed")
    port = free_port(socket.SOCK_DGRAM)
    program = tmp_path / "chassis"
    program.write_text(CHASSIS.format(folder=tmp_path))
    program.chmod(0o755)
    (tmp_path / "lan.conf").write_text(
        f'name "bmc"\nset_working_mc 0x20\n  startlan 1\n    addr 127.0.0.1 {port}\n    priv_limit admin\n'
        "    allowed_auths_admin none md2 md5 straight\n    guid a123456789abcdefa123456789abcdef\n  endlan\n"
        f'  chassis_control "{program} 0x20"\n'
        f'  user 2 true "admin" "{SECRET}" admin 10 none md2 md5 straight\n'
    )
    (tmp_path / "bmc.emu").write_text(
        "mc_setbmc 0x20\nmc_add 0x20 0 no-device-sdrs 0x23 9 8 0x9f 0x1291 0xf02 persist_sdr\n"
        "sel_enable 0x20 1000 0x0a\nmc_enable 0x20\n"
    )
    (tmp_path / "state").mkdir()
    command = ["ipmi_sim", "-c", "lan.conf", "-f", "bmc.emu", "-s", "state", "-n"]

    def ready():
        return f":{port:04X} " in pathlib.Path("/proc/net/udp").read_text()

    with process(command, ready, tmp_path / "ipmi_sim.log", cwd=tmp_path):
        calls = tmp_path / "calls"
        calls.write_text("")
        yield {"bmc_host": f"127.0.0.1:{port}", "bmc_password": SECRET}, calls


@pytest.fixture
def jump_host(tmp_path):
    """An sshd of our own; yields the variables of a host behind it."""
    if not SSHD:
        pytest.skip("no sshd (Debian package openssh-server, or H200_RACK_SSHD) to delegate to")
    folder = tmp_path / "ssh"
    folder.mkdir(mode=0o700)
    for name in ("host", "user"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / name)], check=True)
    port = free_port()
    (folder / "sshd_config").write_text(
        f"Port {port}\nListenAddress 127.0.0.1\nHostKey {folder / 'host'}\nPidFile none\nUsePAM no\nStrictModes no\n"
        f"AuthorizedKeysFile {folder / 'user.pub'}\nPermitRootLogin prohibit-password\nSubsystem sftp internal-sftp\n"
    )
    command = [str(SSHD), "-D", "-e", "-f", str(folder / "sshd_config")]
    with process(command, accepts(port), folder / "sshd.log"):
        yield {
            "ansible_host": "127.0.0.1",
            "ansible_port": port,
            "ansible_connection": "ansible.builtin.ssh",
            "ansible_ssh_private_key_file": str(folder / "user"),
            "ansible_ssh_common_args": "-o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null",
            "ansible_python_interpreter": sys.executable,
        }


@pytest.fixture
def play(tmp_path):
    """Run tasks of ours on a host that nothing listens at; returns the result of each."""

    def go(tasks, jump=None, check=False, environment=None):
        # 192.0.2.1 (TEST-NET) is nobody: a task that connects to the inventory host fails.
        hosts = {"node": {"ansible_host": "192.0.2.1", "ansible_connection": "ansible.builtin.ssh"}}
        if jump:
            hosts["jump"] = jump
        (tmp_path / "hosts.json").write_text(json.dumps({"all": {"hosts": hosts}}))
        listed = [{**task, "name": "Ask the BMC", **({"delegate_to": "jump"} if jump else {})} for task in tasks]
        listed = [{**task, "ignore_errors": True} for task in listed]
        (tmp_path / "play.json").write_text(json.dumps([{"hosts": "node", "gather_facts": False, "tasks": listed}]))
        command = [
            str(BIN / "ansible-playbook"),
            "-i",
            str(tmp_path / "hosts.json"),
            str(tmp_path / "play.json"),
            "--diff",
        ]
        results = tmp_path / "results"
        results.write_text("")
        env = {
            **os.environ,
            "ANSIBLE_STDOUT_CALLBACK": "ansible.builtin.default",
            "ANSIBLE_CALLBACK_PLUGINS": str(pathlib.Path(__file__).parent),
            "ANSIBLE_CALLBACKS_ENABLED": "callback",
            "H200_RACK_RESULTS": str(results),
            **(environment or {}),
        }
        env.update(ANSIBLE_CONFIG=str(ROOT / "ansible.cfg"), ANSIBLE_REMOTE_TMP=str(tmp_path / "remote"))
        done = subprocess.run(
            command + (["--check"] if check else []),
            cwd=ROOT,
            env=env,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert SECRET not in done.stdout + done.stderr + results.read_text(), "a secret was printed"
        assert "Traceback" not in done.stdout + done.stderr, done.stdout + done.stderr
        found = [json.loads(line) for line in results.read_text().splitlines()]
        assert len(found) == len(tasks), done.stdout + done.stderr
        return found

    return go
