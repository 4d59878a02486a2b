# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Write logs in the forms that nccl-tests and launchers print, for tests."""

from __future__ import annotations

import json

GIB = 1 << 30


def clock(us: float) -> str:
    return f"{us:7.2f}" if us < 100 else f"{us:7.1f}" if us < 10000 else f"{us:7.0f}"


def sizes(low: int, high: int, factor: int = 2) -> list[int]:
    out = []
    while low <= high:
        out.append(low)
        low *= factor
    return out


class Run:
    """One healthy run; ``busbw(size)`` gives its speed, everything else can be changed."""

    def __init__(self, nodes=1, gpus=8, low=8, high=16 * GIB, peak=480.0, **changes):
        self.nodes, self.gpus, self.low, self.high, self.peak = nodes, gpus, low, high, peak
        self.collective = changes.get("collective", "all_reduce")
        self.model = changes.get("model", "NVIDIA H200")
        self.types = changes.get("types", ["float"])
        self.cycles = changes.get("cycles", 1)
        self.wrong = changes.get("wrong", "0")
        self.in_place_wrong = changes.get("in_place_wrong", self.wrong)
        self.columns = changes.get("columns", "new")
        self.ranks = changes.get("ranks", nodes * gpus)

    @property
    def factor(self) -> float:
        n = self.ranks
        return {"all_reduce": 2 * (n - 1) / n, "sendrecv": 1.0, "broadcast": 1.0}.get(self.collective, (n - 1) / n)

    def side(self, size: int, wrong: str) -> tuple[str, str, str, str]:
        us = 20 + size * self.factor / self.peak / 1000 * (1 + 4e7 / (size + 1)) if self.peak else 5.0 + size / 4e5
        shown = clock(us)
        alg = size / float(shown) / 1000
        return shown, f"{alg:6.2f}", f"{alg * self.factor:6.2f}", wrong

    def head(self) -> list[str]:
        return [
            "# nccl-tests version 2.17.6 nccl-headers=22705 nccl-library=22705",
            f"# Collective test starting: {self.collective}_perf",
            f"# nThread 1 nGpus 1 minBytes {self.low} maxBytes {self.high} step: 2(factor) warmup iters: 5 iters: 20 "
            f"agg iters: 1 validation: {int(self.wrong != 'N/A')} graph: 0",
            "#",
            "# Using devices",
            *(
                f"#  Rank {rank:2d} Group  0 Pid {7000 + rank:6d} on    r09-n{rank // self.gpus + 1:02d} "
                f"device {rank % self.gpus:2d} [0000:{rank % self.gpus + 16:02x}:00] {self.model}"
                for rank in range(self.ranks)
            ),
        ]

    def titles(self) -> list[str]:
        tail = {
            "stamps": "               timestamp",
            "iters": "",
        }.get(self.columns, "")
        part = "time   algbw   busbw #wrong"
        if self.columns == "iters":
            part += "    i_min    i_max    i_p99    i_cv%"
        if self.columns == "error":
            part = part.replace("#wrong", " error")
        return [
            "#",
            f"#{'':62s}out-of-place{'':23s}in-place",
            f"#       size         count      type   redop    root     {part}     {part}{tail}",
            "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)",
        ]

    def row(self, size: int, dtype: str = "float") -> str:
        text = f"{size:12d}  {size // 4:12d}  {dtype:>8s}"
        if self.columns != "short":
            text += "     sum      -1" if "reduce" in self.collective else "    none      -1"
        for wrong in (self.wrong, self.in_place_wrong):
            time, alg, bus, w = self.side(size, wrong)
            text += f"  {time}  {alg}  {bus}  {w:>5s}"
            if self.columns == "iters":
                text += f"  {time}  {time}  {time}     0.31"
        return text + ("  2026-11-30 12:00:00" if self.columns == "stamps" else "")

    def rows(self) -> list[str]:
        return [
            self.row(size, dtype)
            for dtype in self.types
            for _cycle in range(self.cycles)
            for size in sizes(self.low, self.high)
        ]

    def average(self) -> float:
        values = [float(self.side(size, "0")[2]) for size in sizes(self.low, self.high)]
        return sum(values) / len(values)

    def foot(self) -> list[str]:
        bad = 0 if self.wrong in ("0", "N/A") else 2
        return [
            f"# Out of bounds values : {bad} {'FAILED' if bad else 'OK'}",
            f"# Avg bus bandwidth    : {self.average():g} ",
            "#",
            f"# Collective test concluded: {self.collective}_perf",
            "#",
        ]

    def lines(self) -> list[str]:
        return [*self.head(), *self.titles(), *self.rows(), *self.foot()]

    def text(self) -> str:
        return "\n".join(self.lines()) + "\n"

    def document(self) -> dict:
        results = []
        for size in sizes(self.low, self.high):
            sides = []
            for wrong in (self.wrong, self.in_place_wrong):
                time, alg, bus, _wrong = self.side(size, wrong)
                sides.append(
                    {
                        "time": float(time),
                        "alg_bw": float(alg),
                        "bus_bw": float(bus),
                        "nwrong": None if wrong == "N/A" else float(wrong),
                    }
                )
            results.append(
                {
                    "size": size,
                    "count": size // 4,
                    "type": "float",
                    "redop": "sum",
                    "root": "    -1",
                    "out_of_place": sides[0],
                    "in_place": sides[1],
                    "actual_iterations": 20,
                    "experiment_name": "",
                }
            )
        return {
            "version": 3,
            "start_time": "2026-11-30 12:00:00",
            "args": [f"/opt/nccl-tests/build/{self.collective}_perf", "-J", "out.json"],
            "env": ["PATH=/usr/bin", "SECRET_TOKEN=hunter2"],
            "nccl_version": 22705,
            "config": {
                "nthreads": 1,
                "ngpus": 1,
                "minimum_bytes": self.low,
                "maximum_bytes": self.high,
                "step_factor": 2,
                "validation": 1,
                "devices": [
                    {
                        "rank": rank,
                        "group": 0,
                        "pid": 7000 + rank,
                        "hostname": f"r09-n{rank // self.gpus + 1:02d}",
                        "device": rank % self.gpus,
                        "device_hex": "0000:10:00",
                        "device_info": self.model,
                    }
                    for rank in range(self.ranks)
                ],
            },
            "results": results,
            "out_of_bounds": {"count": 0, "okay": "true"},
            "average_bus_bandwidth": {"bandwidth": self.average(), "okay": "unchecked"},
            "errors": [],
            "end_time": "2026-11-30 12:01:00",
        }

    def json(self) -> str:
        return json.dumps(self.document())
