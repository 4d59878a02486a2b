# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From checked nodes to the text of their boot scripts. Runs on the controller. Private to h200.rack."""

from __future__ import annotations

import ipaddress
import os
import typing as t

from ansible_collections.h200.rack.plugins.module_utils._common.errors import InvalidInput

from . import kernel_args, mac, rotation, templates
from .nodes import Node

try:
    import jinja2
except ImportError:  # rendering happens on the controller, where ansible-core brings it
    jinja2 = None

# Milliseconds without progress after which a fetch is given up and the next mirror asked.
TIMEOUT_MS = {"script": 5000, "kernel": 10000, "initrd": 20000}
# Rounds through all servers; the pause grows by a second each round (20 rounds: 3 min 10 s of pauses).
ROUNDS = {"entry": 20, "fetch": 20}

ENTRY_SCRIPT = "boot.ipxe"
UNKNOWN_SCRIPT = "unknown.ipxe"


class Script(t.NamedTuple):
    """One file of the boot directory."""

    name: str
    content: str
    node: str = ""
    action: str = ""
    build: str = ""
    keep: bool = False


def render(nodes: t.Sequence[Node], unknown_action: str | None, template_dir: str | None, build: str) -> list[Script]:
    """The script of every node, then the entry script and the one for machines that are not in the plan."""
    renderer = _Renderer(template_dir)
    scripts = [Script(node.script, renderer.node(node), node.name, node.action, node.ipxe_build) for node in nodes]
    unknown = renderer.text(templates.UNKNOWN[unknown_action or "local"])
    return [
        *scripts,
        Script(ENTRY_SCRIPT, renderer.text(templates.ENTRY), action="entry", build=build),
        # A call for a few nodes that says nothing about unknown machines leaves what is decided about them.
        Script(UNKNOWN_SCRIPT, unknown, action="unknown", build=build, keep=unknown_action is None),
    ]


class _Renderer:
    def __init__(self, template_dir: str | None) -> None:
        if jinja2 is None:
            raise InvalidInput("rendering boot scripts needs the Python library jinja2 on the controller")
        options: dict[str, t.Any] = {
            "undefined": jinja2.StrictUndefined,
            "trim_blocks": True,
            "lstrip_blocks": True,
            "keep_trailing_newline": True,
            "autoescape": False,  # scripts, not markup
        }
        self._environment = jinja2.Environment(**options)
        self._own = None
        if template_dir:
            self._own = jinja2.Environment(loader=jinja2.FileSystemLoader(template_dir), **options)
        for environment in filter(None, (self._environment, self._own)):
            environment.globals.update(
                leave=templates.LEAVE, next=templates.NEXT, retry=templates.RETRY, timeout=TIMEOUT_MS, rounds=ROUNDS
            )
        self._compiled: dict[str, t.Any] = {}

    def text(self, source: str, **values: t.Any) -> str:
        if source not in self._compiled:
            self._compiled[source] = self._environment.from_string(source)
        return self._compiled[source].render(**values)

    def node(self, node: Node) -> str:
        values = {"node": node, "mirrors": _mirrors(node)}
        if node.action in templates.ACTIONS and not node.template:
            if node.action in ("deploy", "rescue", "installer"):
                values.update(_linux(node))
            return self.text(templates.ACTIONS[node.action], **values)
        if self._own is None:
            raise InvalidInput(f"node {node.name}: the template {node.template} needs template_dir")
        if node.kernel:
            values.update(_linux(node))
        try:
            return self._own.get_template(node.template).render(**{**node.vars, **values})
        except (jinja2.TemplateError, TypeError, ValueError, ArithmeticError, LookupError, OSError) as exc:
            what = f"{type(exc).__name__}: {exc}"
            raise InvalidInput(f"node {node.name}: the template {node.template} fails, {what}") from exc


def _linux(node: Node) -> dict[str, t.Any]:
    """What it takes to start a Linux: the fetches, each from every mirror in turn, and the command line."""
    if node.action == "installer" or node.kernel:
        wanted = [("kernel", _basename(node.kernel), node.kernel)]
        wanted += [("initrd", _basename(path), path) for path in node.initrds]
    else:
        wanted = [
            ("kernel", "vmlinuz", f"{node.ramdisk}/vmlinuz"),
            ("initrd", "initrd.img", f"{node.ramdisk}/initrd.img"),
        ]
        if node.overlay:
            wanted.append(("initrd", "overlay.cpio", node.overlay))
    fetches = [
        {"verb": verb, "name": name, "timeout": TIMEOUT_MS[verb], "urls": _urls(node, path)}
        for verb, name, path in wanted
    ]
    args = kernel_args.escape(command_line(node, [name for verb, name, path in wanted if verb == "initrd"]))
    return {"fetches": fetches, "args": args, "space": kernel_args.needs_space(args)}


def command_line(node: Node, initrds: t.Sequence[str]) -> str:
    """The kernel arguments of a node; the boot port is named by its MAC, never by an interface name."""
    words = [f"initrd={name}" for name in initrds]
    words += _network(node)
    if node.action in ("deploy", "rescue"):
        words += [f"rack.node={node.name}", f"rack.action={node.action}"]
    words += [f"console={console}" for console in node.console]
    line = " ".join([*words, node.kernel_args.strip(" ")]).strip(" ")
    if len(line) > kernel_args.MAX_COMMAND_LINE:
        raise InvalidInput(
            f"node {node.name}: the kernel's command line has {len(line)} bytes, "
            f"{kernel_args.MAX_COMMAND_LINE} are possible; shorten kernel_args"
        )
    return line


def _network(node: Node) -> list[str]:
    words = []
    if node.address:
        interface = ipaddress.IPv4Interface(node.address)
        words.append(f"ip={interface.ip}::{node.gateway}:{interface.netmask}:{node.hostname}::off")
    return [*words, f"BOOTIF=01-{mac.hyphenated(node.mac)}"]


def _basename(path: str) -> str:
    return os.path.basename(path.rstrip("/"))


def _mirrors(node: Node) -> list[str]:
    """In the order in which the node tries them."""
    return rotation.rotate(node.name, node.mirrors) + rotation.rotate(node.name, node.fallback_mirrors)


def _urls(node: Node, path: str) -> list[str]:
    if "://" in path:
        return [path]
    if not node.mirrors:
        raise InvalidInput(f"node {node.name}: {path} is no URL, and there are no mirrors to fetch it from")
    return [f"{mirror.rstrip('/')}/{path.lstrip('/')}" for mirror in _mirrors(node)]
