# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What ``dcgmi diag -j`` says, in the JSON of DCGM 3 and of DCGM 4. Private to h200.rack."""

from __future__ import annotations

import dataclasses
import json
import re
import typing as t

from .checks import Check, failed, not_run, passed

_ROOTS = ("DCGM Diagnostic", "DCGM GPU Diagnostic")
# Persistence mode: a setting, and healthy hardware behind it.
_PERSISTENCE = 29
# DCGM's error_severity: what to do about it.
_SEVERITIES: dict[int, tuple[str, str]] = {
    2: ("DCGM_ISOLATE", "take the GPU out and ask for service"),
    3: ("DCGM_TRIAGE", "of unknown severity: run it again"),
    4: ("DCGM_TRIAGE", "run it again; if it fails again, ask for service"),
    5: ("DCGM_CONFIG", "a configuration error, not bad hardware"),
    6: ("DCGM_RESET", "reset the GPU, then run it again"),
}


@dataclasses.dataclass
class Result:
    """One test on one GPU, or on the machine (``gpu`` None)."""

    test: str
    gpu: t.Optional[int]
    status: str
    warnings: list[dict[str, t.Any]]


@dataclasses.dataclass
class Diagnosis:
    results: list[Result]
    gpus: list[int]
    driver: t.Optional[str] = None
    version: t.Optional[str] = None
    simulated: bool = False


def parse(text: str) -> t.Optional[Diagnosis]:
    """None where there is no DCGM document in ``text``; a banner may precede it. Never raises."""
    document = _document(text)
    if document is None:
        return None
    root = next(document[name] for name in _ROOTS if name in document)
    results = []
    for category in _list(_mapping(root).get("test_categories")):
        for test in _list(_mapping(category).get("tests")):
            results += _results(_mapping(test))
    meta = {**_mapping(root), **_mapping(document.get("metadata"))}
    listed = _entities(document)
    return Diagnosis(
        results,
        listed or sorted({result.gpu for result in results if result.gpu is not None}),
        meta.get("Driver Version Detected"),
        meta.get("version") or meta.get("DCGM Version"),
        bool(meta.get("simulated")),
    )


def judge(diagnosis: Diagnosis, gpus: int, optional: t.Collection[str] = ()) -> list[Check]:
    """A check for every test: it passes when it ran on every GPU and passed. Skipped is not passed."""
    checks = []
    tests = list(dict.fromkeys(result.test for result in diagnosis.results))
    for test in tests:
        results = [result for result in diagnosis.results if result.test == test]
        check = _judge_test(test, results, gpus)
        if check.verdict == "not_run" and test in optional:
            check = passed(check.name, "skipped", "Pass or skipped", "optional, and it did not run")
        checks.append(check)
    if not tests:
        checks.append(not_run("dcgm", "Pass", "DCGM_EMPTY", "the diagnosis names no test"))
    if len(diagnosis.gpus) != gpus:
        checks.append(
            failed("dcgm_gpus", diagnosis.gpus, gpus, "GPU_COUNT", "DCGM saw another number of GPUs than expected")
        )
    return checks


def _judge_test(test: str, results: t.Sequence[Result], gpus: int) -> Check:
    name = f"dcgm_{re.sub(r'[^a-z0-9]+', '_', test.lower()).strip('_')}"
    bad = [result for result in results if result.status in ("fail", "warn")]
    if bad:
        warnings = [warning for result in bad for warning in result.warnings]
        code, hint = _worst(warnings)
        said = [str(warning.get("warning", ""))[:300] for warning in warnings][:8]
        where = sorted({result.gpu for result in bad if result.gpu is not None})
        return failed(name, {"gpus": where, "said": said}, "Pass", code, hint)
    on = {result.gpu for result in results if result.gpu is not None and result.status == "pass"}
    whole = [result for result in results if result.gpu is None and result.status == "pass"]
    if len(on) >= gpus or (whole and not on):
        return passed(name, "Pass", "Pass")
    if not on and not whole:
        return not_run(name, "Pass", "DCGM_SKIPPED", "skipped is not passed")
    missing = sorted(set(range(gpus)) - {gpu for gpu in on if gpu is not None})
    return not_run(name, "Pass", "DCGM_INCOMPLETE", f"it did not pass on GPU {', '.join(map(str, missing))}")


def _worst(warnings: t.Sequence[t.Mapping[str, t.Any]]) -> tuple[str, str]:
    ids = {_int(warning.get("error_id")) for warning in warnings}
    if ids == {_PERSISTENCE}:
        return "PERSISTENCE_OFF", "a configuration error, not bad hardware: enable nvidia-persistenced"
    severities = {_int(warning.get("error_severity")) for warning in warnings}
    for severity in (2, 6, 4, 3, 5):
        if severity in severities:
            return _SEVERITIES[severity]
    return "DCGM_FAILED", "see what it said"


def _results(test: t.Mapping[str, t.Any]) -> list[Result]:
    name = str(test.get("name", ""))
    found = []
    for item in _list(test.get("results")):
        result = _mapping(item)
        status = str(result.get("status", "")).lower()
        warnings = [
            warning if isinstance(warning, dict) else {"warning": str(warning)}
            for warning in _list(result.get("warnings"))
        ]
        if isinstance(result.get("warnings"), str):
            warnings = [{"warning": result["warnings"]}]
        group = result.get("entity_group")
        if group not in (None, "GPU"):
            continue
        for gpu in _gpus_of(result):
            found.append(Result(name, gpu, status, warnings))
    summary = str(_mapping(test.get("test_summary")).get("status", "")).lower()
    if not found and summary:
        found.append(Result(name, None, summary, []))
    return found


def _gpus_of(result: t.Mapping[str, t.Any]) -> list[t.Optional[int]]:
    for key in ("entity_id", "gpu_id"):
        number = _int(result.get(key))
        if number is not None:
            return [number]
    listed = [int(word) for word in re.findall(r"\d+", str(result.get("gpu_ids", "")))]
    return list(listed) or [None]


def _entities(document: t.Mapping[str, t.Any]) -> list[int]:
    found = set()
    for group in _list(document.get("entity_groups")):
        if _mapping(group).get("entity_group") == "GPU":
            for entity in _list(_mapping(group).get("entities")):
                number = _int(_mapping(entity).get("entity_id"))
                if number is not None:
                    found.add(number)
    return sorted(found)


def _document(text: str) -> t.Optional[dict[str, t.Any]]:
    decoder = json.JSONDecoder()
    for match in list(re.finditer(r"\{", text))[:50]:
        try:
            value, _end = decoder.raw_decode(text, match.start())
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict) and any(name in value for name in _ROOTS):
            return value
    return None


def _int(value: t.Any) -> t.Optional[int]:
    if isinstance(value, bool):
        return None
    try:
        return int(value)
    except (TypeError, ValueError):
        return None


def _mapping(value: t.Any) -> dict[str, t.Any]:
    return value if isinstance(value, dict) else {}


def _list(value: t.Any) -> list[t.Any]:
    return value if isinstance(value, list) else []
