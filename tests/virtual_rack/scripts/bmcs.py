# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Start the BMCs of the virtual rack's nodes, inside the box; tell what was changed, one line each.

The plan comes as JSON: {"state": …, "sushy_venv": …, "ipmi_emu": …, "domain": …, "username": …,
"bmcs": {NODE: {"protocol": …, "address": …, "password": …}}}.
"""

from __future__ import annotations

import functools
import json
import pathlib
import socket
import subprocess
import sys

import daemon

LIFETIME = "3650"  # days; the rack, and its CA with it, seldom gets older than one


def openssl(*argv: str) -> None:
    subprocess.run(["openssl", *argv], check=True, capture_output=True)


def authority(state: pathlib.Path) -> None:
    """The rack's own certificate authority, which clients are to trust."""
    if (state / "ca.pem").exists():
        return
    openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", LIFETIME,
            "-subj", "/CN=Virtual rack CA", "-addext", "keyUsage=critical,keyCertSign,cRLSign",
            "-keyout", str(state / "ca.key"), "-out", str(state / "ca.new"))  # fmt: skip
    (state / "ca.new").replace(state / "ca.pem")
    print("ca.pem")


def certificate(name: str, bmc: dict, home: pathlib.Path, plan: dict) -> None:
    if (home / "cert.pem").exists():
        return
    full = f"{name}-bmc.{plan['domain']}"
    openssl("req", "-x509", "-CA", f"{plan['state']}/ca.pem", "-CAkey", f"{plan['state']}/ca.key",
            "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", LIFETIME,
            "-subj", f"/CN={full}", "-addext", f"subjectAltName=IP:{bmc['address']},DNS:{full},DNS:{name}-bmc",
            "-addext", "basicConstraints=critical,CA:FALSE", "-addext", "extendedKeyUsage=serverAuth",
            "-keyout", str(home / "key.pem"), "-out", str(home / "cert.new"))  # fmt: skip
    (home / "cert.new").replace(home / "cert.pem")


def htpasswd(bmc: dict, home: pathlib.Path, plan: dict) -> None:
    if (home / "htpasswd").exists():
        return
    # The emulator asks bcrypt for every request: four rounds, or half of the rack's time would go there.
    code = "import bcrypt,sys; print(bcrypt.hashpw(sys.stdin.read().encode(), bcrypt.gensalt(4)).decode())"
    hashed = subprocess.run([f"{plan['sushy_venv']}/bin/python", "-c", code], input=bmc["password"],
                            capture_output=True, text=True, check=True).stdout.strip()  # fmt: skip
    (home / "htpasswd").write_text(f"{plan['username']}:{hashed}\n")


def redfish(name: str, bmc: dict, home: pathlib.Path, plan: dict, log: str) -> bool:
    certificate(name, bmc, home, plan)
    htpasswd(bmc, home, plan)
    emulator = f"{plan['sushy_venv']}/bin/sushy-emulator"
    python = str(pathlib.Path(plan["sushy_venv"], "bin/python").resolve())
    started = daemon.start(f"{name}-bmc", [emulator, "--config", f"{home}.conf"], log, executable=python,
                           environment={"TMPDIR": str(home / "state"), "PYTHONUNBUFFERED": "1"})  # fmt: skip
    daemon.wait(f"the Redfish BMC of {name}", functools.partial(accepts, bmc["address"], 443), 60, log)
    return started


def ipmi(name: str, bmc: dict, home: pathlib.Path, plan: dict, log: str) -> bool:
    command = ["/usr/bin/ipmi_sim", "--config-file", f"{home}.conf", "--command-file", plan["ipmi_emu"]]
    started = daemon.start(f"{name}-bmc", [*command, "--state-dir", str(home / "state"), "--nostdio"], log)
    daemon.wait(f"the IPMI BMC of {name}", functools.partial(pongs, bmc["address"]), 30, log)
    return started


def accepts(address: str, port: int) -> bool:
    try:
        socket.create_connection((address, port), timeout=2).close()
    except OSError:
        return False
    return True


def pongs(address: str) -> bool:
    """An RMCP presence ping answered by a pong."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp:
        udp.settimeout(0.3)
        udp.connect((address, 623))
        try:
            udp.send(bytes.fromhex("0600ff06 000011be 80010000".replace(" ", "")))
            return len(udp.recv(100)) >= 12
        except OSError:
            return False


def main() -> None:
    plan = json.load(sys.stdin)
    state = pathlib.Path(plan["state"])
    authority(state)
    for name, bmc in plan["bmcs"].items():
        home = state / "bmcs" / name
        (home / "state").mkdir(parents=True, exist_ok=True)
        start = redfish if bmc["protocol"] == "redfish" else ipmi
        if start(name, bmc, home, plan, f"{state}/log/{name}-bmc.log"):
            print(name, bmc["protocol"], "started")


if __name__ == "__main__":
    main()
