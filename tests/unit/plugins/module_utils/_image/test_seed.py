# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json

import pytest
from ansible_collections.h200.rack.plugins.module_utils._common.errors import InvalidInput
from ansible_collections.h200.rack.plugins.module_utils._image import seed

OPTIONS = {
    "hostname": "gpu001",
    "fqdn": "gpu001.rack",
    "users": [{"name": "admin", "sudo": "ALL=(ALL) NOPASSWD:ALL", "ssh_authorized_keys": ["ssh-ed25519 AAAA"]}],
    "network_config": {"version": 2, "ethernets": {"a": {"match": {"macaddress": "52:54:00:00:00:01"}}}},
    "user_data": {"timezone": "UTC", "ssh_keys": {"extra": "x"}},
}


def config(options) -> dict:
    text = seed.documents(options, "d" * 64, "PRIVATE", "ssh-ed25519 PUBLIC")["user-data"]
    first, _end, rest = text.partition("\n")
    assert first == "#cloud-config"
    return json.loads(rest)


def test_the_host_key_is_given_and_none_is_made() -> None:
    data = config(OPTIONS)
    assert data["ssh_deletekeys"] is True and "ssh_genkeytypes" not in data
    assert data["ssh_keys"] == {"ed25519_private": "PRIVATE", "ed25519_public": "ssh-ed25519 PUBLIC", "extra": "x"}


def test_users_have_a_shell_and_no_password() -> None:
    assert config(OPTIONS)["users"][0]["shell"] == "/bin/bash" and config(OPTIONS)["users"][0]["lock_passwd"] is True


def test_extra_user_data_wins() -> None:
    assert config({**OPTIONS, "user_data": {"hostname": "other"}})["hostname"] == "other"


def test_network_config_is_passed_on_verbatim() -> None:
    files = seed.documents(OPTIONS, "d" * 64, "", "")
    assert json.loads(files["network-config"]) == OPTIONS["network_config"]
    assert "network-config" not in seed.documents({"hostname": "a"}, "d" * 64, "", "")


def test_another_image_or_seed_is_another_instance() -> None:
    def instance(options, digest):
        return json.loads(seed.documents(options, digest, "", "")["meta-data"])["instance-id"]

    assert instance(OPTIONS, "d" * 64) == instance(dict(OPTIONS), "d" * 64)
    assert instance(OPTIONS, "d" * 64) != instance(OPTIONS, "e" * 64)
    assert instance(OPTIONS, "d" * 64) != instance({**OPTIONS, "fqdn": "x"}, "d" * 64)


@pytest.mark.parametrize(
    "options", [{}, {"hostname": ""}, {"hostname": "a", "user": 1}, {"hostname": "a", "users": {}}]
)
def test_a_bad_seed_is_refused(options) -> None:
    with pytest.raises(InvalidInput):
        seed.check(options)


def test_nothing_in_a_seed_waits_for_the_network() -> None:
    files = seed.documents(OPTIONS, "d" * 64, "", "")
    assert json.loads(files["meta-data"])["dsmode"] == "local"
