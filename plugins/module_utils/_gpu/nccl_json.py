# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""nccl-tests' JSON output (-J, since 2.17.4), without the environment that it dumps. Private to h200.rack."""

from __future__ import annotations

import collections
import json
import math
import re
import typing as t

from .nccl_model import Device, Log, Parameters, Row, Side, Table, Trouble

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"?|[{}\[\],]', re.S)
_CLOSED_BY = {"{": "}", "[": "]"}
_DEEPEST = 32


def looks_like_json(text: str) -> bool:
    return text.lstrip()[:1] == "{"


def parse(text: str) -> Log:
    """Never raises. A run without an end time crashed: its table has not ended."""
    log = Log(empty=not text.strip())
    document, whole = _load(text)
    if document is None:
        return log
    # A crashed run's file is cut, so its environment can only be dropped as text, before anything else is done.
    document.pop("env", None)
    results = document.get("results")
    config = _mapping(document.get("config"))
    if not isinstance(results, list) and not config:
        return log
    table = Table(columns=["size"], parameters=_parameters(config), ended=whole and bool(document.get("end_time")))
    table.devices = [_device(item) for item in _list(config.get("devices")) if isinstance(item, dict)]
    if table.parameters is not None and table.devices:
        table.ranks_stated = len(table.devices) * table.parameters.gpus * table.parameters.threads
    table.collective = _collective(_list(document.get("args")))
    rows = [_row(item) for item in _list(results) if isinstance(item, dict)]
    table.rows = [row for row in rows if row is not None]
    table.broken = [(None, False) for row in rows if row is None]
    bounds = _mapping(document.get("out_of_bounds"))
    count = _number(bounds.get("count"))
    if count is not None:
        table.out_of_bounds = int(count)
        table.bounds_ok = count == 0 and _true(bounds.get("okay"))
    average = _mapping(document.get("average_bus_bandwidth"))
    table.average = _number(average.get("bandwidth"))
    table.average_ok = {"true": True, "false": False}.get(str(average.get("okay")).lower())
    log.nccl_version = _version(document.get("nccl_version"))
    log.troubles = [Trouble("NCCL_ERROR", str(text)[:300]) for text in _list(document.get("errors")) if text]
    log.tables.append(table)
    return log


def _load(text: str) -> tuple[t.Optional[dict[str, t.Any]], bool]:
    """The document, or as much of it as a crash left (open strings, lists and mappings closed), and if it is whole."""
    try:
        document, whole = json.loads(text), True
    except (ValueError, RecursionError):
        document, whole = _mended(text), False
    return (document if isinstance(document, dict) else None), whole


def _mended(text: str) -> t.Any:
    """Cut back to the last place that can be closed. Per-iteration times make such files megabytes: one pass."""
    cut = re.sub(r'"env"\s*:\s*\[.*?\](?=\s*[,}])', '"env":[]', text, flags=re.S).rstrip()
    stack: list[str] = []
    # Where to cut, and what closes it there.
    places: collections.deque[tuple[int, str]] = collections.deque(maxlen=16)
    end = ""
    for token in _TOKEN.finditer(cut):
        mark = token.group()
        if mark[0] == '"':
            end = "" if len(mark) > 1 and mark.endswith('"') else '"'
        elif mark in _CLOSED_BY:
            stack.append(_CLOSED_BY[mark])
            if len(stack) > _DEEPEST:
                return None
            places.append((token.end(), "".join(reversed(stack))))
        elif mark == ",":
            places.append((token.start(), "".join(reversed(stack))))
        elif stack:
            stack.pop()
    places.append((len(cut), end + "".join(reversed(stack))))
    for at, closing in reversed(places):
        try:
            return json.loads(cut[:at] + closing)
        except (ValueError, RecursionError):
            continue
    return None


def _parameters(config: t.Mapping[str, t.Any]) -> t.Optional[Parameters]:
    low, high = _number(config.get("minimum_bytes")), _number(config.get("maximum_bytes"))
    if low is None or high is None:
        return None
    factor, step = _number(config.get("step_factor")), _number(config.get("step_bytes"))
    validation = _number(config.get("validation"))
    return Parameters(
        int(low),
        int(high),
        int(factor if factor is not None else step or 0),
        factor is not None,
        int(_number(config.get("ngpus")) or 1),
        int(_number(config.get("nthreads")) or 1),
        None if validation is None else validation > 0,
    )


def _device(item: t.Mapping[str, t.Any]) -> Device:
    number, rank = _number(item.get("device")), _number(item.get("rank"))
    return Device(
        -1 if rank is None else int(rank),
        str(item.get("hostname", "")),
        str(item.get("device_info", "")).strip(),
        None if number is None else int(number),
    )


def _row(item: t.Mapping[str, t.Any]) -> t.Optional[Row]:
    size, count, root = (_number(item.get(key)) for key in ("size", "count", "root"))
    sides = []
    for key in ("out_of_place", "in_place"):
        value = item.get(key)
        side = _side(value) if isinstance(value, dict) else None
        if isinstance(value, dict) and side is None:
            return None
        sides.append(side)
    if size is None or sides == [None, None]:
        return None
    return Row(
        int(size),
        None if count is None else int(count),
        str(item.get("type", "")),
        str(item["redop"]) if "redop" in item else None,
        None if root is None else int(root),
        sides[0],
        sides[1],
    )


def _side(value: t.Mapping[str, t.Any]) -> t.Optional[Side]:
    time, algbw, busbw = (_number(value.get(key)) for key in ("time", "alg_bw", "bus_bw"))
    time = _number(value.get("cpu_time")) if time is None else time
    if time is None or algbw is None or busbw is None:
        return None
    return Side(time, algbw, busbw, _number(value.get("nwrong")))


def _collective(args: t.Sequence[t.Any]) -> t.Optional[str]:
    found = re.search(r"(\w+?)_perf", str(args[0])) if args else None
    return found.group(1) if found else None


def _version(value: t.Any) -> t.Optional[str]:
    code = _number(value)
    if code is None:
        return None
    number = int(code)
    return f"{number // 10000}.{number // 100 % 100}.{number % 100}"


def _number(value: t.Any) -> t.Optional[float]:
    """Numbers stand as numbers or as strings, NaN as "nan"."""
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def _true(value: t.Any) -> bool:
    return str(value).lower() == "true"


def _mapping(value: t.Any) -> dict[str, t.Any]:
    return value if isinstance(value, dict) else {}


def _list(value: t.Any) -> list[t.Any]:
    return value if isinstance(value, list) else []
