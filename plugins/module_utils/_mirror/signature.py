# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a manifest carries the rack's signature, by openssl. Private to h200.rack."""

from __future__ import annotations

import os
import tempfile
import threading
import typing as t

from .client import MirrorProblem

LENGTH = 64
#: The method of this name of a module.
RunCommand = t.Callable[..., tuple[int, str, str]]


def public_key_pem(given: str) -> str:
    """The PEM text in ``given``, which is that text or the path of a file with it. Raises :class:`MirrorProblem`."""
    text = given
    if "-----BEGIN" not in given:
        try:
            with open(given, encoding="ascii") as handle:
                text = handle.read()
        except (OSError, ValueError) as exc:
            raise MirrorProblem(f"public_key: {given} cannot be read: {exc}", code="invalid") from exc
    if "-----BEGIN PUBLIC KEY-----" not in text:
        raise MirrorProblem("public_key is not a public key in PEM form", code="invalid")
    return text.strip() + "\n"


class Verifier:
    """Checks signatures made with one key; each pair of manifest and signature only once."""

    def __init__(self, public_key: str, run_command: RunCommand) -> None:
        self._key = public_key_pem(public_key)
        self._run = run_command
        self._lock = threading.Lock()
        self._known: dict[tuple[bytes, bytes], bool] = {}

    def is_good(self, data: bytes, signature: bytes) -> bool:
        # One at a time: what an AnsibleModule does around a command is not made for threads.
        with self._lock:
            pair = (data, signature)
            if pair not in self._known:
                self._known[pair] = len(signature) == LENGTH and self._ask(data, signature)
            return self._known[pair]

    def _ask(self, data: bytes, signature: bytes) -> bool:
        with tempfile.TemporaryDirectory(prefix="h200-rack-") as folder:
            paths = {name: os.path.join(folder, name) for name in ("data", "signature", "key")}
            for name, content in (("data", data), ("signature", signature), ("key", self._key.encode("ascii"))):
                with open(paths[name], "wb") as handle:
                    handle.write(content)
            command = ["openssl", "pkeyutl", "-verify", "-pubin", "-inkey", paths["key"], "-rawin"]
            status, _out, _err = self._run([*command, "-in", paths["data"], "-sigfile", paths["signature"]])
        return status == 0
