# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the action plugin of ipxe_render does on the controller. Private to h200.rack."""

from __future__ import annotations

import typing as t

from ansible_collections.h200.rack.plugins.module_utils._common.errors import InvalidInput

from . import builds, lint, nodes, render


class Composed(t.NamedTuple):
    """The scripts for the module, and what the linter has to say about them short of an error."""

    scripts: list[dict[str, t.Any]]
    lint: list[dict[str, t.Any]]


def compose(params: t.Mapping[str, t.Any]) -> Composed:
    """Check, render and lint; anything wrong is refused before a boot server is asked for anything."""
    table = builds.feature_table(params.get("ipxe_builds"))
    build = params["ipxe_build"]
    builds.lookup(table, build)
    scripts: list[render.Script] = []
    if params.get("nodes") is not None:
        parsed = nodes.parse(params["nodes"], params.get("mirrors") or (), build)
        scripts = render.render(parsed, params.get("unknown_action"), params.get("template_dir"), build)
    for own in params.get("scripts") or ():
        node, action = own.get("node") or "", own.get("action") or ""
        scripts.append(render.Script(own["name"], own["content"], node, action, build, bool(own.get("keep"))))
    if not scripts:
        raise InvalidInput("neither nodes nor scripts is given, so there is nothing to write")
    findings = _lint_all(scripts, table)
    errors = [finding for finding in findings if finding["severity"] == lint.ERROR]
    if errors:
        listed = "; ".join(_sentence(finding) for finding in errors[:10])
        more = f"; and {len(errors) - 10} more" if len(errors) > 10 else ""
        raise InvalidInput(f"boot scripts that cannot work: {listed}{more}", code="lint", lint=findings)
    return Composed(
        [{"name": s.name, "content": s.content, "node": s.node, "action": s.action, "keep": s.keep} for s in scripts],
        findings,
    )


def refusals(params: t.Mapping[str, t.Any]) -> list[dict[str, str]]:
    """Which nodes' scripts would be refused, and why, with the code of the linter's first finding."""
    try:
        compose(params)
    except InvalidInput:
        found = [(item, _refusal({**params, "nodes": [item]})) for item in params["nodes"]]
        return [{"node": item["name"], "code": code, "msg": msg} for item, (code, msg) in found if msg]
    return []


def _refusal(params: t.Mapping[str, t.Any]) -> tuple[str, str]:
    try:
        compose(params)
    except InvalidInput as exc:
        errors = [finding for finding in exc.details.get("lint", ()) if finding["severity"] == lint.ERROR]
        return errors[0]["code"] if errors else exc.code, exc.msg
    return "", ""


def _lint_all(scripts: t.Sequence[render.Script], table: t.Mapping[str, builds.Build]) -> list[dict[str, t.Any]]:
    findings = []
    for script in scripts:
        build = builds.lookup(table, script.build)
        for finding in lint.lint(script.content, build, script.build):
            findings.append({"script": script.name, "node": script.node, **finding._asdict()})
    return findings


def _sentence(finding: t.Mapping[str, t.Any]) -> str:
    where = f"node {finding['node']}, " if finding["node"] else ""
    return f"{where}{finding['script']} line {finding['line']}: {finding['message']}"
