# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Compare what a node is with what it shall be. Pure: facts in, checks out. Private to h200.rack."""

from __future__ import annotations

import re
import typing as t

Facts = t.Mapping[str, t.Any]
PASS, FAIL = "pass", "fail"

# Never in /etc/nccl.conf: these forbid NCCL's better choices, or describe a machine that this is not.
HARMFUL = ("NCCL_ALGO", "NCCL_PROTO", "NCCL_NET_GDR_LEVEL", "NCCL_P2P_LEVEL", "NCCL_TOPO_FILE", "NCCL_IB_DISABLE")


class Check(t.NamedTuple):
    name: str
    measured: t.Any
    expected: t.Any
    verdict: str
    hint: str

    def as_dict(self) -> dict[str, t.Any]:
        return self._asdict()


def judge(facts: Facts, expected: t.Mapping[str, t.Any]) -> list[Check]:
    """``expected`` has the options of node_check; what it does not name is not judged."""
    checks = [check for rule in _RULES for check in rule(facts, expected)]
    return [check for check in checks if check is not None]


def _check(name: str, measured: t.Any, wanted: t.Any, good: bool, hint: str) -> Check:
    return Check(name, measured, wanted, PASS if good else FAIL, "" if good else hint)


def _cloud_init(facts: Facts, expected: Facts) -> t.Iterator[Check]:
    if not expected.get("cloud_init"):
        return
    state = facts["cloud_init"]
    if state["status"] is None:
        return
    told = "; ".join(state["errors"]) or f"status {state['status']}"
    hint = (
        f"cloud-init did not finish cleanly ({told}); `cloud-init status --long` and /var/log/cloud-init.log tell more"
    )
    good = state["status"] in ("done", "disabled") and not state["errors"]
    yield _check("cloud_init", state["status"], "done", good, hint)


def _hostname(facts: Facts, expected: Facts) -> t.Iterator[Check]:
    wanted = expected.get("hostname")
    if wanted:
        is_now = facts["hostname"]
        good = is_now.partition(".")[0] == wanted.partition(".")[0]
        yield _check("hostname", is_now, wanted, good, "slurmd takes its node name from the host name")


def _network(facts: Facts, expected: Facts) -> t.Iterator[Check]:
    config = expected.get("network") or {}
    for kind in ("ethernets", "bonds", "vlans", "bridges"):
        for name, card in (config.get(kind) or {}).items():
            yield from _card(facts, name, card)


def _card(facts: Facts, name: str, card: Facts) -> t.Iterator[Check]:
    mac = str((card.get("match") or {}).get("macaddress") or "").lower()
    wanted_name = card.get("set-name") or (None if card.get("match") else name)
    link = next((item for item in facts["links"] if _is_link(item, mac, wanted_name)), None)
    label = wanted_name or name
    if link is None:
        yield _check(
            f"network.{label}", None, mac or label, False, f"no card with {'MAC ' + mac if mac else 'this name'}"
        )
        return
    if wanted_name:
        good = link["name"] == wanted_name
        yield _check(f"network.{label}.name", link["name"], wanted_name, good, "the card did not get its name")
    wanted = [str(address) for address in card.get("addresses") or [] if not isinstance(address, dict)]
    missing = [address for address in wanted if address not in link["addresses"]]
    if wanted:
        yield _check(
            f"network.{label}.addresses", link["addresses"], wanted, not missing, f"lacks {', '.join(missing)}"
        )
    if card.get("mtu"):
        yield _check(f"network.{label}.mtu", link["mtu"], card["mtu"], link["mtu"] == card["mtu"], "another MTU")
    gates = [str(card[key]) for key in ("gateway4", "gateway6") if card.get(key)]
    gates += [
        str(route["via"]) for route in card.get("routes") or [] if route.get("to") in _DEFAULT and route.get("via")
    ]
    for gate in gates:
        good = gate in facts["gateways"]
        yield _check(f"network.{label}.gateway", facts["gateways"], gate, good, "no default route by this gateway")


_DEFAULT = ("default", "0.0.0.0/0", "::/0")


def _is_link(link: Facts, mac: str, name: str | None) -> bool:
    return str(link["mac"]).lower() == mac if mac else link["name"] == name


def _users(facts: Facts, expected: Facts) -> t.Iterator[Check]:
    wanted = list(expected.get("users") or [])
    if wanted:
        missing = [name for name in wanted if name not in facts["users"]]
        yield _check("users", facts["users"], wanted, not missing, f"there is no account {', '.join(missing)}")


def _clock(facts: Facts, expected: Facts) -> t.Iterator[Check]:
    if expected.get("time_sync"):
        good = facts["clock"]["synchronized"]
        hint = "the clock is not synchronised; munge refuses credentials when clocks differ by more than 5 minutes"
        yield _check("time_sync", facts["clock"], "synchronised", good, hint)
    if expected.get("time") is not None:
        skew = round(facts["time"] - float(expected["time"]), 1)
        limit = float(expected.get("max_skew") or 60)
        yield _check("clock_skew", skew, f"within {limit:g} s", abs(skew) <= limit, "the clock is off")


def _units(facts: Facts, expected: Facts) -> t.Iterator[Check]:
    for name in expected.get("units") or []:
        unit = facts["units"].get(name) or {"installed": False, "active": False, "enabled": False}
        if not unit["installed"]:
            yield _check(f"unit.{name}", "absent", "running", False, "the image lacks this service")
            continue
        good = unit["active"] and unit["enabled"]
        is_now = "running" if unit["active"] else "stopped"
        hint = "not running" if not unit["active"] else "does not start at boot"
        if not unit["active"] and not may_start(name, unit):
            hint = "it ran in this boot and stopped; a start in place breaks NVLink SHARP: drain and reboot"
        yield _check(f"unit.{name}", is_now if unit["enabled"] else f"{is_now}, disabled", "running", good, hint)


def may_start(name: str, unit: Facts) -> bool:
    """Whether a start puts it right. The fabric manager is started once in a boot and never again."""
    return bool(unit["installed"]) and not (name.startswith("nvidia-fabricmanager") and unit.get("ran"))


def _gpus(facts: Facts, expected: Facts) -> t.Iterator[Check]:
    wanted = expected.get("gpus")
    if wanted:
        hint = f"{facts['gpu_devices']} of {wanted} /dev/nvidia devices; look at lspci, dmesg (Xid) and the driver"
        yield _check("gpu_devices", facts["gpu_devices"], wanted, facts["gpu_devices"] == wanted, hint)
    if wanted and expected.get("open_driver") and facts["open_driver"] is not None:
        hint = "GPUDirect RDMA by dma-buf needs the open kernel modules (package nvidia-open)"
        yield _check("open_driver", facts["open_driver"], True, bool(facts["open_driver"]), hint)


def _memlock(facts: Facts, expected: Facts) -> t.Iterator[Check]:
    if not expected.get("memlock"):
        return
    free: dict[str, bool] = {}
    for line in facts["memlock"]:
        _who, kind, _what, value = line.split()
        for limit in ("soft", "hard") if kind == "-" else (kind,):
            free[limit] = value in ("unlimited", "infinity", "-1")
    good = free.get("soft", False) and free.get("hard", False)
    yield _check("memlock", facts["memlock"], "* - memlock unlimited", good, "RDMA needs unlimited locked memory")


def _nccl(facts: Facts, expected: Facts) -> t.Iterator[Check]:
    content = facts["nccl_conf"]
    names = re.findall(r"^\s*(NCCL_\w+)\s*=", content or "", re.MULTILINE)
    harmful = [name for name in names if name in HARMFUL]
    if content is not None:
        yield _check(
            "nccl_conf.minimal", harmful, [], not harmful, f"/etc/nccl.conf forbids good choices: {', '.join(harmful)}"
        )
    wanted = expected.get("nccl_conf")
    if wanted is not None:
        yield _check("nccl_conf", content, wanted, content == wanted, "/etc/nccl.conf has other content")


def _hosts(facts: Facts, expected: Facts) -> t.Iterator[Check]:
    there = {tuple(line.split("#", 1)[0].split()) for line in facts["hosts"].splitlines()}
    wanted = [line for line in expected.get("hosts") or [] if tuple(line.split()) not in there]
    if expected.get("hosts"):
        yield _check(
            "hosts", len(expected["hosts"]) - len(wanted), len(expected["hosts"]), not wanted, "/etc/hosts lacks lines"
        )


def _pci(facts: Facts, expected: Facts) -> t.Iterator[Check]:
    # In a virtual machine or a container the host decides, and what is seen of it says nothing.
    if not expected.get("acs_off") or facts["virtual"]:
        return
    hint = f"ACS is on at {len(facts['acs'])} bridges: peer-to-peer traffic takes the way through the CPU"
    yield _check("acs", facts["acs"], [], not facts["acs"], hint)
    translating = [kind for kind in facts["iommu_types"] if kind != "identity"]
    hint = (
        "the IOMMU translates DMA between GPUs and NICs: give the image the kernel argument iommu=pt "
        "(os_image_kernel_args), or switch it off in the firmware"
    )
    yield _check("iommu", facts["iommu_types"] or "off", "off or identity", not translating, hint)


_RULES: t.Sequence[t.Callable[[Facts, Facts], t.Iterator[Check]]] = (
    _cloud_init, _hostname, _network, _users, _clock, _units, _gpus, _memlock, _nccl, _hosts, _pci,
)  # fmt: skip
