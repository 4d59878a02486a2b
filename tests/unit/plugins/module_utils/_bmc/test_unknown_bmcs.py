# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""BMCs that nobody described: personalities with parts replaced by junk, and faults at random, from fixed seeds."""

from __future__ import annotations

import copy
import json
import random

import pytest
from ansible_collections.h200.rack.plugins.module_utils._bmc.errors import RETRYABLE
from fake_bmc import PERSONALITIES, Fault

JUNK = [None, 0, "", [], {}, "On", {"@odata.id": 7}, [{"@odata.id": None}], True, 1.5, [[]], {"a": {"b": []}}]
BODIES = [*JUNK, {"error": "x"}, {"error": {"@Message.ExtendedInfo": [None, {"MessageId": 4}]}}]
STATUSES = [None, 200, 202, 400, 401, 403, 404, 405, 409, 412, 428, 429, 500, 503, 504]


def spoil(node, chance):
    """Replace or remove one thing somewhere in ``node``."""
    if isinstance(node, dict) and node:
        key = chance.choice(list(node))
        if isinstance(node[key], (dict, list)) and chance.random() < 0.5:
            spoil(node[key], chance)
        elif chance.random() < 0.8:
            node[key] = chance.choice(JUNK)
        else:
            del node[key]
    elif isinstance(node, list) and node:
        node[chance.randrange(len(node))] = chance.choice(JUNK)


def options(chance):
    name = chance.choice(["redfish_power", "redfish_boot", "redfish_info"])
    if name == "redfish_info":
        return name, {"gather": ["system", "nics", "managers", "firmware"]}
    if name == "redfish_boot":
        return name, {"target": chance.choice(["none", "pxe", "http", "disk", "cd"]), "wait_timeout": 1}
    shutdown = chance.choice(["force", "graceful", "graceful_then_force"])
    state = chance.choice(["on", "off", "restarted", "cycled"])
    return name, {"state": state, "shutdown": shutdown, "graceful_timeout": 1, "wait_timeout": 1}


@pytest.mark.parametrize("seed", range(60))
def test_unknown_bmcs_get_a_classified_result_and_no_second_request(bmc, run, seed):
    chance = random.Random(seed)
    server = bmc(chance.choice(list(PERSONALITIES)), power=chance.choice(["On", "Off", "Paused", "PoweringOn"]))
    real = server._get

    def spoiled(path):
        response = real(path)
        if chance.random() < 0.3 and isinstance(response.body, dict):
            response.body = copy.deepcopy(response.body)
            spoil(response.body, chance)
        return response

    server._get = spoiled
    for _number in range(chance.randrange(3)):
        server.faults.append(
            Fault(
                method=chance.choice(["GET", "POST", "PATCH", "*"]),
                status=chance.choice(STATUSES),
                body=chance.choice(BODIES),
                process=chance.random() < 0.5,
                drop=chance.random() < 0.2,
                after=chance.randrange(6),
                times=chance.randrange(1, 4),
            )
        )
    name, given = options(chance)
    result = run(name, server, timeout=1, **given)
    json.dumps(result)
    assert "broke the client" not in result.get("msg", "")
    assert not result.get("failed") or result["error_class"] in RETRYABLE
    taken = server.log.resets(taken=True)
    assert len(taken) == len(set(taken))
