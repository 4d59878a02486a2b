# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which mirror to ask next: the least busy of those that work, failed ones again after a pause. Private."""

from __future__ import annotations

import os
import threading
import time
import typing as t

from ansible_collections.h200.rack.plugins.module_utils._common.deadline import Deadline
from ansible_collections.h200.rack.plugins.module_utils._common.errors import InvalidInput, RackError

from .http import Connection, MirrorError, Url, Watch, parse_url, tls_context

_FIRST_PAUSE = 0.2
_LONGEST_PAUSE = 5.0
_CORRUPT_LIMIT = 2


class NoMirrors(RackError):
    """No mirror is left that could give what is needed."""

    code = "mirrors"


class Mirror:
    """What is known of one mirror; changed only by its pool."""

    def __init__(self, text: str, fallback: bool = False) -> None:
        self.text = text.rstrip("/")
        self.url: Url = parse_url(text)
        self.fallback = fallback
        self.busy = 0
        self.bytes = 0
        self.seconds = 0.0
        self.failures = 0
        self.corrupt = 0
        self.retry_at = 0.0
        self.excluded = ""
        self.last_error = ""

    @property
    def speed(self) -> float:
        return self.bytes / self.seconds if self.seconds else 0.0


class Pool:
    """The mirrors of one transfer, shared by its threads."""

    def __init__(
        self,
        mirrors: t.Sequence[str],
        deadline: Deadline,
        stall_timeout: float = 5.0,
        ca_path: str | None = None,
        fallback: t.Sequence[str] = (),
    ) -> None:
        if not mirrors:
            raise InvalidInput("mirrors: at least one is needed")
        ranks = {**dict.fromkeys(fallback, True), **dict.fromkeys(mirrors, False)}
        self.mirrors = [Mirror(text, rank) for text, rank in sorted(ranks.items(), key=lambda item: item[1])]
        self.deadline = deadline
        self.stall_timeout = stall_timeout
        self._context = tls_context(ca_path) if any(mirror.url.tls for mirror in self.mirrors) else None
        self._changed = threading.Condition()
        self._stopped = False
        self._local = threading.local()

    def stop(self) -> None:
        """Make every waiting thread give up."""
        with self._changed:
            self._stopped = True
            self._changed.notify_all()

    def check(self) -> None:
        """Raise :class:`NoMirrors` when the work was ended, or its time is over."""
        if self._stopped or self.deadline.expired:
            raise NoMirrors(f"gave up after {self.deadline.elapsed:.0f} s: {self.complaints()}")

    def in_turn(self) -> list[Mirror]:
        """The mirrors that may be used, beginning with another one on each node, so that all are used alike."""
        usable = [mirror for mirror in self.mirrors if not mirror.excluded]
        start = int.from_bytes(os.urandom(2), "little") % max(1, len(usable))
        return usable[start:] + usable[:start]

    def take(self, avoid: t.Collection[Mirror] = ()) -> Mirror:
        """The mirror to ask now; waits for one to come back when all have failed. Prefers those not in ``avoid``."""
        with self._changed:
            while True:
                now = time.monotonic()
                self.check()
                candidates = [mirror for mirror in self.mirrors if not mirror.excluded]
                if not candidates:
                    raise NoMirrors(f"no mirror is left: {self.complaints()}")
                ready = [mirror for mirror in candidates if mirror.retry_at <= now]
                ready = [mirror for mirror in ready if mirror not in avoid] or ready
                if ready:
                    best = min(ready, key=lambda mirror: (mirror.fallback, mirror.busy, -mirror.speed))
                    best.busy += 1
                    return best
                pause = min(mirror.retry_at for mirror in candidates) - now
                self._changed.wait(min(pause, self.deadline.remaining))

    def gave(self, mirror: Mirror, count: int, seconds: float) -> None:
        with self._changed:
            mirror.busy -= 1
            mirror.bytes += count
            mirror.seconds += seconds
            mirror.failures = 0
            self._changed.notify_all()

    def failed(self, mirror: Mirror, error: MirrorError, count: int = 0, seconds: float = 0.0) -> None:
        """Ask ``mirror`` again later, or never when the error is a lasting one."""
        with self._changed:
            mirror.busy -= 1
            mirror.bytes += count
            mirror.seconds += seconds
            mirror.last_error = error.msg
            if error.lasting:
                mirror.excluded = error.msg
            mirror.retry_at = time.monotonic() + min(_FIRST_PAUSE * 2**mirror.failures, _LONGEST_PAUSE)
            mirror.failures = min(mirror.failures + 1, 10)
            self._changed.notify_all()

    def corrupted(self, mirror: Mirror, what: str) -> None:
        """``mirror`` alone gave bytes that do not match the manifest; twice is enough."""
        with self._changed:
            mirror.corrupt += 1
            mirror.last_error = f"{mirror.text}: {what}"
            if mirror.corrupt >= _CORRUPT_LIMIT:
                mirror.excluded = mirror.last_error
            self._changed.notify_all()

    def complaints(self) -> str:
        said = [mirror.excluded or mirror.last_error or f"{mirror.text}: not tried" for mirror in self.mirrors]
        return "; ".join(said)

    def used(self) -> list[dict[str, t.Any]]:
        return [
            {"url": mirror.text, "bytes": mirror.bytes, "error": mirror.excluded or mirror.last_error}
            for mirror in self.mirrors
        ]

    def connection(self, mirror: Mirror) -> Connection:
        """This thread's connection to ``mirror``."""
        kept = self._local.__dict__.setdefault("connections", {})
        if mirror not in kept:
            kept[mirror] = Connection(mirror.url, self.stall_timeout, self._context)
        return kept[mirror]

    def watch(self) -> Watch:
        return Watch(self.stall_timeout)

    def ask_each(self, path: str, limit: int) -> dict[str, bytes]:
        """What each mirror holds at ``path``, asked once; those that do not answer are left out."""
        answers = {}
        for mirror in self.mirrors:
            try:
                answers[mirror.text] = self.connection(mirror).get(path, limit, self.watch())
            except MirrorError as exc:
                mirror.last_error = exc.msg
        return answers

    def get(self, path: str, limit: int, check: t.Callable[[bytes], t.Any] | None = None) -> bytes:
        """The small file at ``path`` from any mirror; ``check`` raises :class:`RackError` for a wrong one."""
        refused: set[Mirror] = set()
        while True:
            mirror = self.take(refused)
            started = time.monotonic()
            try:
                data = self.connection(mirror).get(path, limit, self.watch())
                if check is not None:
                    check(data)
            except MirrorError as exc:
                self.failed(mirror, exc)
                refused.add(mirror)
            except RackError as exc:
                self.failed(mirror, MirrorError(f"{mirror.text}{path}: {exc.msg}", lasting=True))
                refused.add(mirror)
            except BaseException as exc:
                self.failed(mirror, MirrorError(str(exc)))
                raise
            else:
                self.gave(mirror, len(data), time.monotonic() - started)
                return data
