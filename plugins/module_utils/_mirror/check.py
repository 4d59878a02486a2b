# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every mirror against every published digest. Private to h200.rack."""

from __future__ import annotations

import concurrent.futures
import datetime
import email.utils
import json
import typing as t

from . import catalog, manifest
from .client import SYSTEM, Client, MirrorProblem, Trust
from .content import Row, Settings, Wanted, check_one, new_row

_MAX_HEALTH = 1024 * 1024
_OLD = datetime.timedelta(hours=1)
_SILENT = ("unreachable", "tls", "invalid")


def parse_image(text: str) -> Wanted:
    """``name`` or ``name@digest``. Raises :class:`MirrorProblem`."""
    name, _at, digest = text.partition("@")
    digest = digest[len("sha256:") :] if digest.startswith("sha256:") else digest
    if not name or "/" in name or name.startswith(".") or (digest and not manifest.is_digest(digest)):
        raise MirrorProblem(f"{text!r} is not an image: a name, or name@digest", code="invalid")
    return Wanted("image", name, digest)


class Request(t.NamedTuple):
    """What is asked of the mirrors. With ``everything``, also for all that the first of them and they have."""

    mirrors: t.Sequence[str]
    wanted: t.Sequence[Wanted] = ()
    everything: bool = False
    health: bool = True
    parallel: int = 16
    trust: Trust = SYSTEM
    settings: Settings = Settings()


class _Asked(t.NamedTuple):
    """One mirror: its state, and a client while it answers."""

    state: dict[str, t.Any]
    client: t.Optional[Client]
    published: tuple[Wanted, ...] = ()


def _health(client: Client) -> None:
    """Ask what the mirror thinks of its own store. Raises :class:`MirrorProblem`."""
    answer = client.request("GET", "health", _MAX_HEALTH)
    if answer.status not in (200, 503):
        code = "missing" if answer.status == 404 else "http"
        raise MirrorProblem(f"{client.url}/health: HTTP status {answer.status}", code=code)
    try:
        told = json.loads(answer.body)
        ready, problems = told["ready"], told["problems"]
    except (ValueError, KeyError, TypeError) as exc:
        if answer.status == 503:
            raise MirrorProblem(f"{client.url}/health: the store is not there", code="not_ready") from exc
        raise MirrorProblem(f"{client.url}/health is not that of a mirror of this collection", code="health") from exc
    _require_recent(client, str(told.get("checked", "")), answer.headers.get("date", ""))
    if answer.status != 200 or ready is not True:
        said = "; ".join(str(problem) for problem in problems[:3]) or "not filled yet"
        raise MirrorProblem(f"{client.url} is out of rotation: {said}", code="not_ready")


def _require_recent(client: Client, checked: str, date: str) -> None:
    """The mirror must still be looking at its store; both times are those of its own clock."""
    try:
        then = datetime.datetime.strptime(checked, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=datetime.timezone.utc)
        age = email.utils.parsedate_to_datetime(date) - then
    except (ValueError, TypeError):
        return
    if age > _OLD:
        msg = f"{client.url} has not looked at its store since {checked}: is h200-rack-mirror-look.timer running?"
        raise MirrorProblem(msg, code="not_ready")


def _published(client: Client) -> tuple[Wanted, ...]:
    listed = catalog.read(client)
    found = []
    for family in listed.families:
        if family.current:
            found.append(Wanted(family.kind, family.name))
        found += [Wanted(family.kind, family.name, digest) for digest in family.digests if digest != family.current]
    return (*found, *(Wanted("overlay", "overlay", digest) for digest in listed.overlays))


def _ask(url: str, request: Request) -> _Asked:
    state = {"mirror": url, "ready": False, "certificate_ends": "", "code": "ok", "msg": ""}
    client = None
    published: tuple[Wanted, ...] = ()
    try:
        client = Client(url, request.settings.timeout, request.trust)
        if request.health:
            try:
                _health(client)
            finally:
                state["certificate_ends"] = client.certificate_ends
        state["ready"] = True
    except MirrorProblem as exc:
        state.update(code=exc.code, msg=exc.msg)
    except ValueError as exc:
        state.update(code="invalid", msg=f"{url} is not a URL: {exc}")
    if client is not None and request.everything and state["code"] not in _SILENT:
        try:
            published = _published(client)
        except MirrorProblem as exc:
            if state["code"] == "ok":
                state.update(ready=False, code=exc.code, msg=exc.msg)
    return _Asked(state, client, published)


def _rows(asked: _Asked, wanted: t.Sequence[Wanted], settings: Settings) -> list[Row]:
    url, state = asked.state["mirror"], asked.state
    if asked.client is None or state["code"] in _SILENT:
        # It was asked once; time-outs do not add up.
        return [{**new_row(url, item), "code": state["code"], "msg": state["msg"]} for item in wanted]
    rows: list[Row] = []
    done = set()
    try:
        for item in sorted(wanted, key=lambda item: bool(item.digest)):
            if rows and rows[-1]["code"] in _SILENT:
                rows.append({**new_row(url, item), "code": rows[-1]["code"], "msg": rows[-1]["msg"]})
            elif item.digest and (item.kind, item.name, item.digest) in done:
                continue  # it is what the name stands for, and was looked at
            else:
                rows.append(check_one(asked.client, item, settings))
                done.add((item.kind, item.name, rows[-1]["digest"]))
    finally:
        asked.client.close()
    return rows


def _settled(rows: t.Sequence[Row], kind: str, ready: t.Collection[str]) -> tuple[dict[str, str], list[Row]]:
    """The digest that each name stands for on the first mirror in rotation, and the rows that contradict it."""
    digests: dict[str, str] = {}
    named = [row for row in rows if row["kind"] == kind and row["current"]]
    for row in sorted(named, key=lambda row: row["mirror"] not in ready):
        digests.setdefault(row["name"], row["current"])
    apart = [{**row, "code": "out_of_step"} for row in named if row["current"] != digests[row["name"]]]
    return digests, apart


def check(request: Request) -> dict[str, t.Any]:
    """All mirrors at once: ``mirrors``, ``rows``, the ``digests`` and ``ramdisks`` that names stand for, ``problems``.

    What the first mirror that answers has is wanted of all of them; what another one has besides, of that one.
    """
    empty: dict[str, t.Any] = {"mirrors": [], "rows": [], "digests": {}, "ramdisks": {}, "problems": []}
    if not request.mirrors:
        return empty
    with concurrent.futures.ThreadPoolExecutor(min(request.parallel, len(request.mirrors))) as pool:
        asked = list(pool.map(lambda url: _ask(url, request), request.mirrors))
        first = next((item.published for item in asked if item.state["ready"]), ())
        wanted = [list(dict.fromkeys((*request.wanted, *first, *item.published))) for item in asked]
        parts = pool.map(lambda pair: _rows(pair[0], pair[1], request.settings), zip(asked, wanted))
        rows = [row for part in parts for row in part]
    states = [item.state for item in asked]
    ready = [state["mirror"] for state in states if state["ready"]]
    digests, images_apart = _settled(rows, "image", ready)
    ramdisks, ramdisks_apart = _settled(rows, "ramdisk", ready)
    problems = [_problem({**new_row(state["mirror"], Wanted("mirror", "")), **state}) for state in states]
    problems += [_problem(row) for row in rows]
    for row in [*images_apart, *ramdisks_apart]:
        wanted_digest = (digests if row["kind"] == "image" else ramdisks)[row["name"]]
        msg = (
            f"{row['mirror']} says {row['name']} is {row['current'][:12]}, and {wanted_digest[:12]} is published: "
            "bring it in step with h200.rack.boot_services or h200.rack.images"
        )
        problems.append(_problem({**row, "msg": msg}))
    return {
        "mirrors": states,
        "rows": rows,
        "digests": digests,
        "ramdisks": ramdisks,
        "problems": _once([problem for problem in problems if problem["code"] != "ok"]),
    }


def _once(problems: t.Sequence[dict[str, str]]) -> list[dict[str, str]]:
    """A mirror that does not answer at all is told once, not for everything that it should have."""
    silent = {problem["mirror"] for problem in problems if problem["kind"] == "mirror" and problem["code"] in _SILENT}
    return [problem for problem in problems if problem["kind"] == "mirror" or problem["mirror"] not in silent]


def _problem(row: Row) -> dict[str, str]:
    return {key: row[key] for key in ("mirror", "kind", "name", "digest", "code", "msg")}
