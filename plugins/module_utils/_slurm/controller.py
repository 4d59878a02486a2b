# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Change a controller's nodes as one transaction: proven before, proven after, undone when it fails.

Private to h200.rack.
"""

from __future__ import annotations

import contextlib
import os
import socket
import typing as t

from .._common import atomic
from .._common.deadline import Deadline
from .._common.errors import InvalidInput, RackError
from . import conf, dynamic, hostlist, plan, reason, registry, render, strategy, trial
from .declared import Declared
from .scontrol import ControllerAway, Scontrol
from .service import Service

LOCK = "/run/lock/h200-rack-slurm.lock"


class Result(t.NamedTuple):
    changed: bool
    action: str
    pushed: bool
    changes: list[str]
    drained: list[str]
    removed: list[str]
    version: str
    files: dict[str, tuple[bytes | None, bytes]]
    warnings: list[str]
    joining: dict[str, str]  # what slurmd of each node that joins by itself is started with


class Controller:
    def __init__(self, scontrol: Scontrol, service: Service, timeout: float, lock: str = LOCK) -> None:
        self.scontrol = scontrol
        self.service = service
        self.timeout = timeout
        self.lock = lock

    def apply(self, wanted: plan.Wanted, run_id: str, how: str, check_mode: bool) -> Result:
        """Make ``wanted`` true. One caller at a time; the others wait for the lock."""
        gate = str(reason.make(run_id, reason.PROVISIONING))
        if check_mode:
            return self._apply(wanted, gate, how, check_mode=True)
        with atomic.locked(self.lock, timeout=self.timeout):
            return self._apply(wanted, gate, how, check_mode=False)

    def _apply(self, wanted: plan.Wanted, gate: str, how: str, check_mode: bool) -> Result:
        version = self.scontrol.version()
        old = registry.load(atomic.read_or_none(os.path.join(wanted.folder, registry.NAME)))
        plan.make(wanted, old, atomic.read_or_none)
        running = self.service.active()
        if running:
            self.scontrol.wait_alive(Deadline(self.timeout))
        known = {node.name: node for node in self.scontrol.nodes()} if running else {}
        wanted = wanted._replace(joining=self._joining(wanted, old, known, running, how))
        made = plan.make(wanted, old, atomic.read_or_none)
        changes = self._with_lost_nodes(made, known, running)
        action = strategy.choose(changes, version, running, "auto" if how == strategy.DYNAMIC else how)
        removed = [name for name in wanted.absent if name in old.nodes]
        self._refuse_early(wanted, made, known, running, removed)
        ungated = [node.name for node in wanted.nodes if self._needs_drain(known.get(node.name))]
        new = [name for name in made.listed if name not in known and name not in old.nodes]
        differing = {
            name: (made.old_files.get(name), content)
            for name, content in made.files.items()
            if made.old_files.get(name) != content
        }
        warnings: list[str] = []
        if not check_mode and action != strategy.NONE:
            warnings = self._prove(wanted, made)
            self._change(wanted, made, gate, new, action)
        moved = _joined(made.nodes) != _joined(old.nodes)
        if not check_mode:
            self._forget([name for name in removed if old.nodes[name].dynamic and name in known])
            if moved:
                _install(wanted.folder, {registry.NAME: registry.dump(_registry(made))})
        drained = sorted({*new, *ungated})
        pushed = action == strategy.RESTART and any(node.registered for node in known.values())
        if not check_mode:
            self._drain(drained, gate)
            pushed = pushed and self._push()
        changed = action != strategy.NONE or bool(ungated) or moved
        given = {node.name for node in wanted.nodes}
        joining = {name: dynamic.slurmd_conf(node) for name, node in _joined(made.nodes).items() if name in given}
        return Result(changed, action, pushed, changes, drained, removed, str(version), differing, warnings, joining)

    def _joining(
        self,
        wanted: plan.Wanted,
        old: registry.Registry,
        known: t.Mapping[str, t.Any],
        running: bool,
        how: str,
    ) -> frozenset[str]:
        """The new nodes that shall make themselves known: all of them or none."""
        new = frozenset(node.name for node in wanted.nodes if node.name not in old.nodes and node.name not in known)
        if not new or how not in (strategy.AUTO, strategy.DYNAMIC):
            return frozenset()
        lacking = dynamic.missing(wanted.slurm_conf, wanted.topology, plan.merge(wanted, old).values())
        lacking += dynamic.named(wanted.partitions, new)
        if how == strategy.DYNAMIC:
            if lacking:
                dynamic.refuse(lacking)
            return new
        if lacking or not running or self.scontrol.version().reconfigure_takes_nodes:
            return frozenset()
        made = plan.make(wanted._replace(joining=new), old, atomic.read_or_none)
        fits = dynamic.fits(self.scontrol.config(), len({*known, *made.nodes}))
        changes = self._with_lost_nodes(made, known, running)
        return new if fits and dynamic.pays(changes, self.scontrol.version()) else frozenset()

    def _forget(self, names: t.Iterable[str]) -> None:
        for name in names:
            self.scontrol.delete_node(name)

    @staticmethod
    def _with_lost_nodes(made: plan.Plan, known: t.Mapping[str, t.Any], running: bool) -> list[str]:
        lost = running and any(name not in known for name in made.listed)
        return ["node_set", *made.changes] if lost and "node_set" not in made.changes else made.changes

    @staticmethod
    def _needs_drain(node: t.Any) -> bool:
        """Known, never seen alive, and free to take jobs the moment its slurmd speaks."""
        return node is not None and node.slurmd_start is None and not node.drained

    def _refuse_early(
        self, wanted: plan.Wanted, made: plan.Plan, known: t.Mapping[str, t.Any], running: bool, removed: list[str]
    ) -> None:
        problems = [
            f"{node.name}: ansible_host: {node.address or node.name} does not resolve on the Slurm controller"
            for node in wanted.nodes
            if not _resolves(node.address or node.name)
        ]
        problems += [
            f"slurm_rack_partitions: the site's slurm.conf has no partition {item.name}"
            for item in made.partitions
            if item.existing and not self._has_partition(wanted.folder, item.name, running)
        ]
        for name in removed:
            node = known.get(name)
            if node is not None and (node.busy or self.scontrol.jobs(name)):
                problems.append(f"{name}: still runs jobs; drain it and wait for them before it is removed")
        if problems:
            raise InvalidInput("; ".join(problems), problems=problems)

    def _has_partition(self, folder: str, name: str, running: bool) -> bool:
        if running:
            return name in self.scontrol.partitions()
        read = conf.read(os.path.join(folder, "slurm.conf"))
        return name in read.names("partitionname")

    def _prove(self, wanted: plan.Wanted, made: plan.Plan) -> list[str]:
        return trial.run(wanted.folder, made.files, self.timeout)

    def _change(self, wanted: plan.Wanted, made: plan.Plan, gate: str, new: list[str], action: str) -> None:
        """Install, act, prove; the old files and the old controller come back when the proof fails."""
        gated = dict(made.files)
        gated[plan.NODES] = render.nodes_conf(
            list(made.listed.values()), made.partitions, dict.fromkeys(new, gate), made.by_feature
        ).encode()
        before = {**made.old_files, registry.NAME: atomic.read_or_none(os.path.join(wanted.folder, registry.NAME))}
        try:
            _install(wanted.folder, gated)
            self._act(action)
            self._check_after(made)
            _install(wanted.folder, {plan.NODES: made.files[plan.NODES]})
            _install(wanted.folder, {registry.NAME: registry.dump(_registry(made))})
        except (RackError, OSError) as exc:
            self._undo(wanted.folder, before, action, exc)

    def _act(self, action: str) -> None:
        if action == strategy.RECONFIGURE:
            self.scontrol.reconfigure()
        else:
            self.service.restart()
        self._alive()

    def _alive(self) -> None:
        deadline = Deadline(self.timeout)
        while True:
            # A controller that reads its configuration and then dies answers for a moment: ask systemd too.
            if not self.service.active():
                raise RackError(f"slurmctld died: {self.service.last_words()}", code="controller_died")
            try:
                self.scontrol.call("show", "config")
                return
            except ControllerAway:
                if not deadline.pause(0.3):
                    raise

    def _check_after(self, made: plan.Plan) -> None:
        deadline = Deadline(self.timeout)
        while True:
            problems = self._problems_after(made)
            if not problems:
                return
            # A reconfigure answers before its last effect is visible.
            if not deadline.pause(0.5) or deadline.elapsed > 10:
                raise RackError("; ".join(problems), code="not_applied", problems=problems)

    def _problems_after(self, made: plan.Plan) -> list[str]:
        known = {node.name: node for node in self.scontrol.nodes()}
        problems = []
        for name, node in made.listed.items():
            if name not in known:
                problems.append(
                    f"{name}: slurmctld started without it; its log tells why (a name that does not resolve?)"
                )
            elif node.gres and node.gres not in known[name].gres.split(","):
                problems.append(f"{name}: slurmctld has Gres={known[name].gres or 'none'}, not {node.gres}")
        there = self.scontrol.partitions()
        for item in made.partitions:
            if item.name not in there:
                problems.append(f"partition {item.name} is not there")
                continue
            members = set(hostlist.expand(there[item.name].get("Nodes", "")))
            lacking = [name for name in item.nodes or made.listed if name not in members]
            if lacking:
                names = hostlist.compress(lacking)
                problems.append(f"partition {item.name} lacks {names}; give it `Nodes={render.NODESET}`")
        return problems

    def _undo(self, folder: str, before: t.Mapping[str, bytes | None], action: str, why: Exception) -> t.NoReturn:
        for name, content in before.items():
            path = os.path.join(folder, name)
            if content is None:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(path)
            else:
                atomic.write_atomic(path, content)
        restored = "its old files are back; it was not running before"
        if action == strategy.START:
            self.service.stop()
        else:
            self.service.restart()
            self.scontrol.wait_alive(Deadline(self.timeout))
            restored = "its old files are back and it runs with them"
        details = getattr(why, "details", {})
        raise RackError(
            f"the change was undone on the Slurm controller ({restored}): {why}",
            code=getattr(why, "code", "error"),
            rolled_back=True,
            **details,
        ) from why

    def _push(self) -> bool:
        """Give nodes that fetch their configuration the new one; a restart of the controller does not.

        Until they have it, jobs that span them and the new nodes fail: "can't find address for host". The set of
        nodes is the running controller's own by now, so this reconfigure is harmless on every version.
        """
        if "enable_configless" not in self.scontrol.config().get("SlurmctldParameters", ""):
            return False
        self.scontrol.reconfigure()
        self._alive()
        return True

    def _drain(self, names: list[str], gate: str) -> None:
        """Set the gate by name too: it then also stands in the controller's saved state."""
        for name in names:
            self.scontrol.update_node(name, "DRAIN", gate)


def _joined(nodes: t.Mapping[str, Declared]) -> dict[str, Declared]:
    """Those that made, or will make, themselves known."""
    return {name: node for name, node in nodes.items() if node.dynamic}


def _registry(made: plan.Plan) -> registry.Registry:
    return registry.Registry(made.nodes, registry.digest(made.files))


def _install(folder: str, files: t.Mapping[str, bytes]) -> None:
    for name, content in files.items():
        atomic.write_atomic(os.path.join(folder, name), content)


def _resolves(name: str) -> bool:
    try:
        socket.getaddrinfo(name, None)
    except OSError:
        return False
    return True
