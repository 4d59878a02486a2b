# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ed25519 signatures over manifests, by openssl: present in every ramdisk and needing no key files of its own format.

Private to h200.rack.
"""

from __future__ import annotations

import os
import tempfile

from ansible_collections.h200.rack.plugins.module_utils._common.errors import InvalidInput, RackError

from . import tools

SIGNATURE_LENGTH = 64


class SignatureError(RackError):
    """The signature is not that of the given key over the given bytes."""

    code = "signature"


def sign(data: bytes, key_path: str) -> bytes:
    """The signature over ``data`` by the ed25519 private key in the PEM file ``key_path``."""
    with tempfile.TemporaryDirectory(prefix="h200-rack-") as folder:
        message, signature = os.path.join(folder, "m"), os.path.join(folder, "s")
        with open(message, "wb") as handle:
            handle.write(data)
        done = tools.attempt(
            ["openssl", "pkeyutl", "-sign", "-inkey", key_path, "-rawin", "-in", message, "-out", signature]
        )
        if done.returncode:
            raise InvalidInput(f"signing_key: openssl cannot sign with {key_path}: {_last_line(done.stderr)}")
        with open(signature, "rb") as handle:
            made = handle.read()
    if len(made) != SIGNATURE_LENGTH:
        raise InvalidInput(f"signing_key: {key_path} is not an ed25519 key")
    return made


def public_key_pem(given: str) -> str:
    """The PEM text in ``given``, which is that text or the path of a file with it."""
    if "-----BEGIN" in given:
        return given if given.endswith("\n") else given + "\n"
    try:
        with open(given, encoding="ascii") as handle:
            text = handle.read()
    except (OSError, ValueError) as exc:
        raise InvalidInput(f"public_key: {given} cannot be read: {exc}") from exc
    if "-----BEGIN PUBLIC KEY-----" not in text:
        raise InvalidInput(f"public_key: {given} is not a public key in PEM form")
    return text


class Verification:
    """A check that runs beside other work; :meth:`finish` must be called before anything relies on ``data``."""

    def __init__(self, data: bytes, signature: bytes, public_key: str, what: str) -> None:
        self._what = what
        self._length = len(signature)
        self._folder = tempfile.TemporaryDirectory(prefix="h200-rack-")
        paths = {}
        for name, content in (("m", data), ("s", signature), ("k", public_key_pem(public_key).encode("ascii"))):
            paths[name] = os.path.join(self._folder.name, name)
            with open(paths[name], "wb") as handle:
                handle.write(content)
        command = ["openssl", "pkeyutl", "-verify", "-pubin", "-inkey", paths["k"], "-rawin"]
        try:
            self._process = tools.start([*command, "-in", paths["m"], "-sigfile", paths["s"]])
        except BaseException:
            self._folder.cleanup()
            raise

    def finish(self) -> None:
        """Raise :class:`SignatureError` unless the signature is good."""
        output = "\n".join(self._process.communicate())
        self._folder.cleanup()
        if self._process.returncode or self._length != SIGNATURE_LENGTH:
            raise SignatureError(f"{self._what}: bad signature: {_last_line(output) or 'not an ed25519 signature'}")


def verify(data: bytes, signature: bytes, public_key: str, what: str) -> None:
    """Raise :class:`SignatureError` unless ``signature`` over ``data`` was made with the key of ``public_key``."""
    Verification(data, signature, public_key, what).finish()


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1][:200] if lines else ""
