# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest
from ansible_collections.h200.rack.plugins.module_utils._boot import mac
from ansible_collections.h200.rack.plugins.module_utils._common.errors import InvalidInput


@pytest.mark.parametrize(
    "text",
    ["52:54:00:AB:cd:0f", "52-54-00-ab-cd-0f", "5254.00ab.cd0f", "525400abcd0f", " 52:54:00:ab:cd:0F\n"],
)
def test_every_usual_notation_becomes_the_same(text):
    assert mac.canonical(text) == "52:54:00:ab:cd:0f"


@pytest.mark.parametrize(
    "text",
    ["", None, "52:54:00:ab:cd", "52:54:00:ab:cd:0g", "52:54-00:ab:cd:0f", "5254.00ab.cd0f.11", "52:54:00:ab:cd:0f:11"],
)
def test_a_wrong_one_names_its_node(text):
    with pytest.raises(InvalidInput, match="node gpu007"):
        mac.canonical(text, "node gpu007")


@pytest.mark.parametrize("text", ["00:00:00:00:00:00", "01:00:5e:00:00:01", "ff:ff:ff:ff:ff:ff"])
def test_an_address_that_no_port_can_have_is_refused(text):
    with pytest.raises(InvalidInput, match="one port"):
        mac.canonical(text)


def test_a_number_that_yaml_made_of_a_mac_is_refused():
    # 52:54:00:00:01:10 without quotes is a number in base 60 to YAML 1.1.
    with pytest.raises(InvalidInput):
        mac.canonical(41009457610)
