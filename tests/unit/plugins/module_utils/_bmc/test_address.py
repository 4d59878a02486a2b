# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest
from ansible_collections.h200.rack.plugins.module_utils._bmc.address import parse_ipmi, parse_redfish
from fake_bmc import PERSONALITIES, Bmc, Fleet


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ("bmc01", "https://bmc01"),
        ("bmc01.example.com:8443", "https://bmc01.example.com:8443"),
        ("10.0.0.1", "https://10.0.0.1"),
        ("fd00::1", "https://[fd00::1]"),
        ("[fd00::1]", "https://[fd00::1]"),
        ("[fd00::1]:8443", "https://[fd00::1]:8443"),
        ("https://bmc01/", "https://bmc01"),
        ("http://bmc01", "http://bmc01"),
        ("http://bmc01:8000/redfish/v1/", "http://bmc01:8000"),
        ("https://[fd00::1]:443", "https://[fd00::1]"),
        (" bmc01 ", "https://bmc01"),
    ],
)
def test_every_way_to_write_an_address(text, url):
    assert parse_redfish(text).url == url


@pytest.mark.parametrize(
    ("text", "port", "host", "used"),
    [
        ("bmc01", None, "bmc01", 623),
        ("bmc01:9623", None, "bmc01", 9623),
        ("bmc01:9623", 7, "bmc01", 7),
        ("fd00::1", None, "fd00::1", 623),
        ("[fd00::1]:9", None, "fd00::1", 9),
    ],
)
def test_the_port_of_ipmi(text, port, host, used):
    address = parse_ipmi(text, port)
    assert (address.host, address.port) == (host, used)


def test_a_bmc_is_reached_over_ipv6(run):
    with Fleet([Bmc(PERSONALITIES["plain"])], host="::1") as fleet:
        assert fleet.bmcs[0].url.startswith("http://[::1]:")
        assert run("redfish_power", fleet.bmcs[0], state="on")["power_state"] == "On"
