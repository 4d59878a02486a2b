# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Segments, machines on them and real dnsmasqs with what the role dhcp writes: a network namespace for each."""

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
import typing as t

import jinja2
import yaml
from ansible_collections.h200.rack.plugins.filter.dnsmasq_plan import dnsmasq_plan
from lab import REPO, sh, wait_for

CLIENT = pathlib.Path(__file__).with_name("dhcp_client.py")
Answer = dict[str, t.Any]

_numbers = itertools.count(1)


def text(role: str, template: str, **values: t.Any) -> str:
    """A role's template, rendered as Ansible does."""
    defaults = yaml.safe_load((REPO / "roles" / role / "defaults/main.yml").read_text())
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(REPO / "roles" / role / "templates"),
        trim_blocks=True,
        undefined=jinja2.StrictUndefined,
        keep_trailing_newline=True,
    )
    return environment.get_template(template).render(**{**defaults, **values})


class Network:
    """Bridges and namespaces that go when this does."""

    def __init__(self) -> None:
        self.prefix = f"bd{os.getpid()}-{next(_numbers)}"
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="h200-dhcp-"))
        self._stack = contextlib.ExitStack()
        self._stack.callback(shutil.rmtree, self.dir, True)
        self._links = itertools.count(1)
        self.host("switch")

    def __enter__(self) -> Network:
        return self

    def __exit__(self, *exc: object) -> None:
        self._stack.close()

    def host(self, name: str) -> str:
        """A namespace of its own."""
        full = f"{self.prefix}-{name}"
        sh("ip", "netns", "add", full)
        self._stack.callback(sh, "ip", "netns", "del", full)
        sh("ip", "-n", full, "link", "set", "lo", "up")
        return full

    def segment(self, name: str) -> None:
        sh("ip", "-n", f"{self.prefix}-switch", "link", "add", name, "type", "bridge")
        sh("ip", "-n", f"{self.prefix}-switch", "link", "set", name, "up")

    def plug(self, host: str, segment: str, interface: str, *addresses: str) -> None:
        """A port of the segment for the host's interface."""
        switch, port = f"{self.prefix}-switch", f"p{next(self._links)}"
        sh("ip", "-n", switch, "link", "add", port, "type", "veth", "peer", "name", interface, "netns", host)
        sh("ip", "-n", switch, "link", "set", port, "master", segment, "up")
        for address in addresses:
            sh("ip", "-n", host, "address", "add", address, "dev", interface)
        sh("ip", "-n", host, "link", "set", interface, "up")

    def server(
        self, host: str, hosts: list[dict[str, t.Any]], subnets: list[dict[str, t.Any]], **more: t.Any
    ) -> Server:
        server = Server(self, host, hosts, subnets, **more)
        self._stack.callback(server.stop)
        return server

    def dnsmasq(self, host: str, config: str) -> Dnsmasq:
        """A dnsmasq that is none of ours."""
        running = Dnsmasq(self, host, config)
        self._stack.callback(running.stop)
        return running

    def ask(self, host: str, interface: str, *requests: dict[str, t.Any]) -> list[list[Answer]]:
        done = sh(
            "ip", "netns", "exec", host, sys.executable, CLIENT, interface, input=json.dumps(requests)
        )  # fmt: skip
        return json.loads(done)


class Dnsmasq:
    """A dnsmasq in a namespace, with files of its own."""

    def __init__(self, network: Network, host: str, config: str) -> None:
        self.host = host
        self.dir = pathlib.Path(tempfile.mkdtemp(dir=network.dir))
        self.log = self.dir / "log"
        own = f"pid-file={self.dir}/pid\ndhcp-leasefile={self.dir}/leases\nuser=root\nlog-facility={self.log}\n"
        (self.dir / "conf").write_text(own + config)
        sh("dnsmasq", "--test", "-C", self.dir / "conf")
        self._process = subprocess.Popen(
            ["ip", "netns", "exec", host, "dnsmasq", "--keep-in-foreground", "-C", self.dir / "conf"]
        )
        wait_for("the start of dnsmasq", lambda: "started" in self.said(), 30)

    def said(self) -> str:
        if self._process.poll() is not None:
            raise AssertionError(f"dnsmasq ended: {self.log.read_text() if self.log.exists() else ''}")
        return self.log.read_text() if self.log.exists() else ""

    def reload(self) -> None:
        self._process.send_signal(signal.SIGHUP)

    def stop(self) -> None:
        self._process.terminate()
        self._process.wait(10)


class Server(Dnsmasq):
    """A dnsmasq with the role's files, beside which a site may have its own lines."""

    def __init__(
        self,
        network: Network,
        host: str,
        hosts: list[dict[str, t.Any]],
        subnets: list[dict[str, t.Any]],
        address: str = "10.77.1.2",
        site: str = "",
        **options: t.Any,
    ) -> None:
        self.subnets = subnets
        self.hosts_file = network.dir / f"hosts-{next(_numbers)}"
        self.write(hosts)
        links = json.loads(sh("ip", "-n", host, "-json", "-family", "inet", "address", "show"))
        plan = dnsmasq_plan(hosts, subnets, links=links)
        beside = {"dhcp_site_names": False, "dhcp_site_binds": False}
        config = text("dhcp", "h200-rack.conf.j2", **{**beside, **options}) + text(
            "dhcp",
            "h200-rack-dhcp.conf.j2",
            dhcp_plan=plan,
            dhcp_boot_server=address,
            dhcp_url=f"http://{address}",
            **options,
        )
        super().__init__(network, host, config.replace("/etc/h200-rack/dhcp-hosts", str(self.hosts_file)) + site)

    def write(self, hosts: list[dict[str, t.Any]]) -> None:
        """The hosts file, as the role writes it."""
        self.hosts_file.write_text(dnsmasq_plan(hosts, self.subnets)["hosts_file"])
