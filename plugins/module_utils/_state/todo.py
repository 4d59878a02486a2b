# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a run does with each node, from the plan, the ledger and what a person named. Private to h200.rack."""

from __future__ import annotations

import typing as t

from .history import resume_point
from .stages import STAGES, index

Plan = t.Mapping[str, t.Any]
State = t.Mapping[str, t.Any]

WRITTEN = index("written")
ACCEPTED = index("accepted")
REGISTERED = index("registered")


def _todo(
    will: str, from_stage: t.Optional[str], reason: str, script: str, digest: str, **more: t.Any
) -> dict[str, t.Any]:
    return {
        "will": will,
        "from_stage": from_stage,
        "reason": reason,
        "script": script,
        "digest": digest,
        "drain": False,
        "allow_overwrite": False,
        "host_keys": [],
        "take_over": "",
        **more,
    }


def _why_image(point: dict[str, t.Any], named: bool) -> str:
    if named:
        return "named in rack_reimage"
    if point["failed"]:
        return f"failed at {point['failed']['stage']} ({point['failed']['code']}) before its image was written"
    if point["reached"]:
        return f"stopped at {point['reached']} before its image was written"
    return "never provisioned"


def _image_note(node: t.Mapping[str, t.Any], written: t.Mapping[str, t.Any], digest: str) -> str:
    """What a person should know about a node whose image is not the one it would get today."""
    if not digest or written.get("digest") in (None, digest):
        return ""
    return (
        f"; it has {written.get('image')}@{str(written['digest'])[:12]}, and {node['image_name']}@{digest[:12]} "
        "is wanted: name it in rack_reimage"
    )


def decide_node(
    node: t.Mapping[str, t.Any], state: State, digest: str, reimage: bool, overwrite: bool
) -> dict[str, t.Any]:
    """What becomes of one node that nobody else holds."""
    point = resume_point(state.get("history") or [])
    place = index(point["reached"])
    evidence = point["evidence"]
    if reimage or place < WRITTEN:
        # Whoever allowed a disk to be overwritten allowed it for the whole way, across interruptions.
        allowed = place < WRITTEN and bool(evidence.get("declared", {}).get("allow_overwrite"))
        return _todo(
            "image",
            STAGES[0],
            _why_image(point, reimage),
            "deploy",
            digest,
            drain=reimage and place >= ACCEPTED,
            allow_overwrite=reimage or overwrite or allowed,
        )
    written = evidence.get("written", {})
    kept = {"digest": str(written.get("digest") or ""), "host_keys": list(written.get("host_keys") or [])}
    note = _image_note(node, written, digest)
    if place == REGISTERED and not point["failed"]:
        return _todo("verify", STAGES[-1], f"registered{note}", "local", **kept)
    failed = point["failed"]
    if failed:
        # A system that did not come up is restarted, as a person would do first.
        next_stage = "local_boot" if failed["stage"] == "os_up" else point["next"] or STAGES[-1]
        return _todo("finish", next_stage, f"failed at {failed['stage']} ({failed['code']}){note}", "local", **kept)
    return _todo("finish", point["next"], f"stopped at {point['reached']}{note}", "local", **kept)


def holder_problem(name: str, state: State, run_id: str, dead: t.Container[str]) -> t.Optional[str]:
    """Why this run may not touch the node; None when it may."""
    if state.get("error"):
        return str(state["error"])
    lease = state.get("lease")
    if not lease or lease["expired"] or lease["run_id"] == run_id or lease["run_id"] in dead:
        return None
    return (
        f"held by {lease['holder']} (run {lease['run_id']}) until {lease['until']}; if that run is dead, "
        f"say so with -e rack_take_over={lease['run_id']}"
    )


def dead_runs(
    states: t.Mapping[str, State], named: t.Iterable[str], is_dead: t.Callable[[str], bool]
) -> frozenset[str]:
    """The runs whose leases mean nothing any more: those a person named, and those that this machine knows as dead."""
    leases = [state["lease"] for state in states.values() if state.get("lease")]
    processes = {lease["run_id"]: lease.get("process") or "" for lease in leases}
    return frozenset(named) | {run for run, process in processes.items() if process and is_dead(process)}


def other_script(state: State, dead: t.Container[str] = ()) -> str:
    """The script of a node that this run leaves alone: what another run that is imaging it needs, else its disk."""
    lease = state.get("lease")
    if lease and lease["run_id"] in dead:
        return "local"
    reached = resume_point(state.get("history") or [])["reached"]
    return "deploy" if lease and not lease["expired"] and -1 < index(reached) < WRITTEN else "local"


def decide(
    plan: Plan,
    states: t.Mapping[str, State],
    digests: t.Mapping[str, str],
    run_id: str = "",
    dead: t.Container[str] = (),
) -> dict[str, t.Any]:
    """By node of this run what is done with it; the script action of every node of the plan; problems.

    The leases of ``dead`` runs hinder nobody.
    """
    nodes: dict[str, t.Any] = {}
    scripts: dict[str, str] = {}
    problems = []
    selected = set(plan["selected"])
    for name, node in plan["nodes"].items():
        state = states.get(name) or {}
        refused = holder_problem(name, state, run_id, dead)
        if name not in selected:
            scripts[name] = other_script(state, dead)
            continue
        if refused:
            nodes[name] = _todo("nothing", None, refused, other_script(state), "")
            problems.append({"node": name, "variable": "rack_ledger_host", "msg": refused})
        else:
            digest = node["image_digest"] or digests.get(node["image_name"]) or ""
            nodes[name] = decide_node(node, state, digest, name in plan["reimage"], name in plan["overwrite"])
            holder = (state.get("lease") or {}).get("run_id", "")
            nodes[name]["take_over"] = holder if holder in dead else ""
        scripts[name] = nodes[name]["script"]
    return {"nodes": nodes, "actions": scripts, "problems": problems}
