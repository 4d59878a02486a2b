# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The virtual rack for tests: plays are run at its controller, and their recap is read."""

from __future__ import annotations

import dataclasses
import json
import os
import pathlib
import re
import subprocess
import typing as t

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[3]
RUN = ROOT / "tests" / "virtual_rack" / "run"
RECAP = re.compile(
    r"^(?P<host>\S+)\s+: ok=(?P<ok>\d+)\s+changed=(?P<changed>\d+)\s+unreachable=(?P<unreachable>\d+)\s+"
    r"failed=(?P<failed>\d+)",
    re.MULTILINE,
)


@dataclasses.dataclass
class Result:
    """What a play did."""

    rc: int
    text: str

    @property
    def changed(self) -> dict[str, int]:
        """Changed tasks by host."""
        return {m["host"]: int(m["changed"]) for m in RECAP.finditer(self.text)}

    @property
    def failed(self) -> set[str]:
        return {m["host"] for m in RECAP.finditer(self.text) if int(m["failed"]) or int(m["unreachable"])}


class Rack:
    """The virtual rack as a person at its controller sees it."""

    def run(self, *command: str, timeout: int = 1500, env: t.Optional[dict[str, str]] = None) -> Result:
        done = subprocess.run(
            [str(RUN), *command],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=timeout,
            env={**os.environ, "ANSIBLE_NOCOLOR": "1", "ANSIBLE_FORCE_COLOR": "0", **(env or {})},
            check=False,
        )
        return Result(done.returncode, done.stdout)

    def play(self, name: str, *options: str, variables: t.Optional[dict[str, t.Any]] = None, **more: t.Any) -> Result:
        extra = ["-e", json.dumps(variables)] if variables else []
        return self.run("ansible-playbook", f"h200.rack.{name}", *extra, *options, **more)

    def on(self, host: str, *command: str) -> str:
        """What a command prints on a host of the rack (raw: no Python is started there)."""
        result = self.run("ansible", host, "-b", "-m", "ansible.builtin.raw", "-a", " ".join(command))
        assert result.rc == 0, result.text
        return result.text

    def in_job(self, node: str, command: str) -> str:
        """What a command prints on a node, which the scheduler reaches as its users do."""
        return self.on("slurm01", f"srun -w {node} sh -c '{command}'")

    def ledger(self) -> dict[str, t.Any]:
        """What is known of each node, on the host that keeps it."""
        text = self.run("ansible", "boot01", "-b", "-o", "-m", "h200.rack.node_state_info").text
        return json.JSONDecoder().raw_decode(text[text.index("{") :])[0]["nodes"]

    def stages(self) -> dict[str, str]:
        """Where each node is."""
        return {name: node["stage"] for name, node in self.ledger().items()}


@pytest.fixture(scope="session")
def rack() -> t.Iterator[Rack]:
    """A rack that is up, with its images published, and gone afterwards unless H200_RACK_KEEP is set."""
    if os.geteuid() != 0:
        pytest.skip("the virtual rack needs root")
    subprocess.run(["make", "rack-down"], cwd=ROOT, check=True)
    subprocess.run(["make", "rack-up"], cwd=ROOT, check=True)
    built = Rack()
    published = built.play("images")
    assert published.rc == 0, published.text
    yield built
    if not os.environ.get("H200_RACK_KEEP"):
        subprocess.run(["make", "rack-down"], cwd=ROOT, check=True)
