# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""systemd, as far as the controller's life is concerned. Private to h200.rack."""

from __future__ import annotations

import typing as t

from .._common.errors import RackError

Run = t.Callable[[t.List[str]], t.Tuple[int, str, str]]  # noqa: UP006 - evaluated at run time, on Python 3.9


class Service:
    def __init__(self, run: Run, name: str) -> None:
        self._run = run
        self.name = name

    def active(self) -> bool:
        return self._run(["systemctl", "is-active", "--quiet", self.name])[0] == 0

    def restart(self) -> None:
        rc, out, err = self._run(["systemctl", "restart", self.name])
        if rc != 0:
            raise RackError(f"systemctl restart {self.name}: {(err or out).strip()}", code="service_failed")

    def stop(self) -> None:
        self._run(["systemctl", "stop", self.name])

    def last_words(self) -> str:
        """What it died of; what systemd says of a death comes after that and does not tell."""
        lines = self.log_tail(40)
        telling = [line for line in lines if "fatal:" in line or "error:" in line] or lines
        return " | ".join(telling[-3:]) or "its journal says nothing"

    def log_tail(self, lines: int = 15) -> list[str]:
        """The journal's last words, for the error that is raised; empty when it cannot be read."""
        rc, out, _err = self._run(
            ["journalctl", "--unit", self.name, "--lines", str(lines), "--no-pager", "--output", "cat"]
        )
        return out.splitlines() if rc == 0 else []
