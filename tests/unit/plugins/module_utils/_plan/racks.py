# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Inventories for the tests of the plan."""

from __future__ import annotations

import copy
import typing as t

KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ1 test"
SUBNETS = [
    {"name": "prov", "cidr": "10.20.0.0/20", "gateway": "10.20.0.1", "dns": ["10.20.0.2"], "role": "provisioning"},
    {"name": "bmc", "cidr": "10.30.0.0/20", "role": "bmc"},
]
PROFILES = {
    "site": {
        "base": "h200_sxm",
        "cpu": {"sockets": 2, "cores_per_socket": 56, "threads_per_core": 2},
        "memory_mib": 2000000,
    }
}


def address(network: int, number: int) -> str:
    return f"10.{network}.{number // 256}.{number % 256}"


class Rack:
    """A sound inventory of ``count`` nodes; tests break it."""

    def __init__(self, count: int = 2) -> None:
        shared = {
            "rack_subnets": SUBNETS,
            "rack_domain": "rack.test",
            "rack_authorized_keys": [KEY],
            "rack_image": "debian12",
            "rack_profile": "site",
            "rack_profiles": PROFILES,
            "rack_bmc_username": "admin",
            "rack_bmc_password": "hunter2",
        }
        names = [f"gpu{number:03d}" for number in range(1, count + 1)]
        self.groups: dict[str, list[str]] = {
            "rack_nodes": names,
            "rack_boot_servers": ["boot01"],
            "rack_mirrors": ["mirror01", "mirror02"],
            "rack_slurm_controllers": ["slurm01"],
        }
        self.hostvars: dict[str, dict[str, t.Any]] = {
            "boot01": {"ansible_host": "10.20.0.2"},
            "mirror01": {"ansible_host": "10.20.0.3"},
            "mirror02": {"ansible_host": "10.20.0.4"},
            "slurm01": {"ansible_host": "10.20.0.5"},
        }
        for number, name in enumerate(names, start=1):
            self.hostvars[name] = {
                **copy.deepcopy(shared),
                "ansible_host": address(20, number + 10),
                "rack_bmc_address": address(30, number + 10),
                "rack_boot_mac": f"52:54:00:01:{number // 256:02x}:{number % 256:02x}",
                "rack_root_disk": {"serial": f"DISK{number}"},
                "rack_serial": f"S{number}",
                "rack_position": number,
            }

    def __getitem__(self, name: str) -> dict[str, t.Any]:
        return self.hostvars[name]
