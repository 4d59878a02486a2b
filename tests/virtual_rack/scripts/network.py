# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Make the networks of the virtual rack so, inside its box; tell what was changed, one line each.

The plan comes as JSON: {"bridges": {NAME: [ADDRESS…]}, "containers": {NAME: {BRIDGE: ADDRESS}}}.
A container's network namespace has its name; its interface on a bridge has the bridge's name.
"""

from __future__ import annotations

import json
import pathlib
import subprocess
import sys


def ip(*argv: str, namespace: str | None = None) -> str:
    inside = ["-n", namespace] if namespace else []
    return subprocess.run(["ip", *inside, *argv], check=True, capture_output=True, text=True).stdout


def change(*argv: str, namespace: str | None = None) -> None:
    ip(*argv, namespace=namespace)
    print(namespace or "box", *argv)


def links(namespace: str | None = None) -> dict[str, dict]:
    return {link["ifname"]: link for link in json.loads(ip("-j", "addr", "show", namespace=namespace) or "[]")}


def bring_up(name: str, addresses: list[str], namespace: str | None = None) -> None:
    link = links(namespace)[name]
    present = {f"{a['local']}/{a['prefixlen']}" for a in link["addr_info"]}
    for address in addresses:
        if address not in present:
            change("addr", "add", address, "dev", name, namespace=namespace)
    if "UP" not in link["flags"]:
        change("link", "set", name, "up", namespace=namespace)


def bridge(name: str, addresses: list[str]) -> None:
    if name not in links():
        # No forwarding delay: a node's firmware gives up on DHCP before a port that learns has opened.
        change("link", "add", name, "type", "bridge", "forward_delay", "0", "stp_state", "0", "mcast_snooping", "0")
    quiet_ipv6(name)
    bring_up(name, addresses)


def quiet_ipv6(name: str) -> None:
    # Only a tidy log: nothing in the rack speaks IPv6 yet, and the controller answers no neighbour there.
    path = pathlib.Path(f"/proc/sys/net/ipv6/conf/{name}/disable_ipv6")
    if path.exists() and path.read_text().strip() == "0":
        path.write_text("1")


def container(name: str, attached: dict[str, str]) -> None:
    if not pathlib.Path("/run/netns", name).exists():
        change("netns", "add", name)
    bring_up("lo", [], namespace=name)
    for number, (bridge_name, address) in enumerate(attached.items()):
        outside = f"{name}.{number}"
        if bridge_name not in links(name):
            change("link", "add", outside, "type", "veth", "peer", "name", bridge_name, "netns", name)
        if links()[outside].get("master") != bridge_name:
            change("link", "set", outside, "master", bridge_name)
        bring_up(outside, [])
        bring_up(bridge_name, [address], namespace=name)
    if not ip("route", "show", "default", namespace=name):
        gateway = next(iter(attached.values())).rsplit(".", 1)[0] + ".1"
        change("route", "add", "default", "via", gateway, namespace=name)


def main() -> None:
    plan = json.load(sys.stdin)
    bring_up("lo", [])
    for name, addresses in plan["bridges"].items():
        bridge(name, addresses)
    for name, attached in plan["containers"].items():
        container(name, attached)


if __name__ == "__main__":
    main()
