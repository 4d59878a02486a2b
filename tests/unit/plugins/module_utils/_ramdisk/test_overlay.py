# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest
from ansible_collections.h200.rack.plugins.module_utils._common.errors import InvalidInput
from ansible_collections.h200.rack.plugins.module_utils._ramdisk import overlay

KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ0Zs0mQ3wq3pYq2u2Xq0X6cY0u0sQO1zvT2l0r9pQwE admin@site"
CERTIFICATE = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n"


def test_a_second_run_changes_nothing_and_names_the_same_file(tmp_path):
    wanted = overlay.Overlay([KEY], ["http://10.20.1.3"])
    first = overlay.publish(wanted, str(tmp_path))
    second = overlay.publish(wanted, str(tmp_path))
    assert (first.changed, second.changed) == (True, False)
    assert first.path == second.path == f"ramdisk/overlay/{first.digest}.cpio"
    assert (tmp_path / first.path).is_file()


def test_check_mode_touches_nothing(tmp_path):
    assert overlay.publish(overlay.Overlay([KEY]), str(tmp_path), check_mode=True).changed
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"authorized_keys": []}, "authorized_keys"),
        ({"authorized_keys": ["-----BEGIN OPENSSH PRIVATE KEY-----"]}, "authorized_keys"),
        ({"authorized_keys": [f"{KEY}\n{KEY}"]}, "authorized_keys"),
        ({"mirrors": ["ftp://10.0.0.1"]}, "mirrors"),
        ({"mirrors": ["http://me:secret@10.0.0.1"]}, "mirrors"),
        ({"ca": "-----BEGIN PRIVATE KEY-----\n"}, "ca"),
        ({"ca": "not PEM"}, "ca"),
        ({"image_public_key": "-----BEGIN PRIVATE KEY-----\n"}, "image_public_key"),
    ],
)
def test_a_secret_or_a_wrong_value_is_refused_and_never_repeated(options, named):
    with pytest.raises(InvalidInput) as caught:
        overlay.files(overlay.Overlay(**{"authorized_keys": [KEY], **options}))
    assert caught.value.msg.startswith(f"{named}:")
    assert "secret" not in caught.value.msg


def test_files_are_where_the_ramdisk_looks_for_them():
    content = overlay.files(overlay.Overlay([KEY], ["http://10.20.1.3"], CERTIFICATE))
    assert sorted(content) == ["authorized_keys", "ca.pem", "mirrors.json"]
    assert b"etc/h200-rack/authorized_keys\0" in overlay.archive(content)
