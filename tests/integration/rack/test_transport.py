# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""With os_image_transport: bittorrent the nodes find each other by the boot servers' tracker."""

from __future__ import annotations

import json

import pytest

pytestmark = pytest.mark.full
LOG = "/var/log/nginx/h200-rack.json"


def test_the_tracker_serves_the_published_images_and_nothing_else(rack):
    bittorrent = {"os_image_transport": "bittorrent"}
    result = rack.play("boot_services", variables=bittorrent)
    assert result.rc == 0, result.text
    known = rack.on("boot01", "cat /etc/opentracker/h200-rack.whitelist")
    served = rack.on("mirror01", "cat /srv/h200-rack/mirror/images/*/*/image.infohash")
    hashes = {word for word in served.split() if len(word) == 40}
    assert hashes and hashes == {word for word in known.split() if len(word) == 40}
    announce = "http://10.20.1.2:6969/announce?info_hash={}&peer_id=-XX0000-000000000000&port=9&left=1&compact=1"
    for info_hash, answer in ((next(iter(hashes)), "5:peers"), ("0" * 40, "not authorized")):
        quoted = "".join(f"%{info_hash[at : at + 2]}" for at in range(0, 40, 2))
        assert answer in rack.on("mirror01", f"curl -s '{announce.format(quoted)}'")
    again = rack.play("boot_services", variables=bittorrent)
    assert again.rc == 0 and not any(again.changed.values()), again.text


def test_nodes_are_imaged_by_bittorrent(rack):
    nodes = ["gpu001", "gpu002"]
    result = rack.play("provision", variables={"os_image_transport": "bittorrent", "rack_reimage": nodes})
    assert result.rc == 0, result.text
    assert rack.stages() == dict.fromkeys(nodes, "registered")
    agents: set[str] = set()
    for mirror in ("mirror01", "mirror02"):
        for line in rack.on(mirror, f"cat {LOG}").splitlines():
            if "image.raw.zst" in line and line.startswith("{"):
                agents.add(json.loads(line)["agent"])
    assert any(agent.startswith("aria2/") for agent in agents)
