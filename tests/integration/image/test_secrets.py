# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a seed holds is on the disk, and nowhere else."""

from __future__ import annotations

import json
import typing as t

import pytest
from ansible.module_utils import basic
from ansible.module_utils.testing import patch_module_args
from ansible_collections.h200.rack.plugins.modules import image_write

SECRET = "correct horse battery staple"
# What the controller passes with -vvv --diff.
INTERNAL = {"_ansible_diff": True, "_ansible_verbosity": 3, "_ansible_inject_invocation": True}
SEED = {
    "hostname": "gpu001",
    "users": [{"name": "admin", "hashed_passwd": f"hash of {SECRET}"}],
    "network_config": {"version": 2, "ethernets": {"eth0": {"auth": {"password": f"wired {SECRET}"}}}},
    # Ordinary values, which must not be blotted out of the result for being here.
    "user_data": {"chpasswd": {"list": f"root:{SECRET}"}, "bootcmd": ["test", 512, "true", "e"]},
}


@pytest.fixture
def run(monkeypatch, capsys, disk, mirror) -> t.Callable[..., tuple[dict[str, t.Any], str]]:
    """Run the module; its result, and everything that it has said or logged."""
    logged: list[str] = []
    monkeypatch.setattr(
        basic.AnsibleModule, "log", lambda _self, msg, log_args=None: logged.append(f"{msg} {log_args}")
    )

    def call(**changes: t.Any) -> tuple[dict[str, t.Any], str]:
        options = {**disk().options([mirror()]), "seed": SEED, **changes}
        with patch_module_args({**options, **INTERNAL}), pytest.raises(SystemExit):
            image_write.main()
        output = capsys.readouterr().out
        return json.loads(output), output + "".join(logged)

    return call


def test_a_secret_in_the_seed_is_in_no_result_diff_or_log(run, published) -> None:
    result, said = run()
    assert result["changed"] and SECRET not in said and "gpu001" in result["host_keys"][0]
    assert result["disk"]["sector_size"] == 512 and result["digest"] == published.digest
    assert result["invocation"]["module_args"]["seed"] == "VALUE_SPECIFIED_IN_NO_LOG_PARAMETER"
    assert result["diff"]["after"] == f"image {published.digest}\n"


@pytest.mark.parametrize("changes", [{"disk": {"raid1": [1]}}, {"digest": "x"}, {"seed": {**SEED, "hostname": ""}}])
def test_nor_in_the_message_of_a_failure(run, changes) -> None:
    result, said = run(**changes)
    assert result["failed"] and SECRET not in said and "*****" not in result["msg"]


def test_nor_when_an_option_is_wrong(run) -> None:
    result, said = run(seed={**SEED, "unknown": SECRET})
    assert result["failed"] and SECRET not in said
