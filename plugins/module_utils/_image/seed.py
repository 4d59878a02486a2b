# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The cloud-init seed of one node: a small file system labelled CIDATA at the end of its disk. Private to h200.rack.

cloud-init ignores network-config over HTTP, so the seed travels on the disk. The documents are JSON, which is YAML too.
The host key is made here, in the ramdisk, and its private half goes nowhere else.
"""

from __future__ import annotations

import copy
import hashlib
import json
import os
import tempfile
import typing as t
import uuid

from ansible_collections.h200.rack.plugins.module_utils._common.errors import InvalidInput

from . import tools

SIZE = 4 << 20
PARTITION_NAME = "CIDATA"
_NAMESPACE = uuid.UUID("5a0f1f1e-6a0e-4b0c-9a39-0a5b7f1c8d21")
_OPTIONS = ("hostname", "fqdn", "users", "network_config", "user_data", "manage_etc_hosts", "instance_id")
_PUBLIC_KEY = "host_key.pub"


class Seed(t.NamedTuple):
    """The file system's bytes, and the public host key in it."""

    image: bytes
    public_key: str


def check(options: t.Mapping[str, t.Any]) -> None:
    unknown = sorted(set(options) - set(_OPTIONS))
    if unknown:
        raise InvalidInput(f"seed: unknown entries {', '.join(unknown)}; known are {', '.join(_OPTIONS)}")
    if not options.get("hostname"):
        raise InvalidInput("seed: hostname is missing")
    for key, kind in (("users", list), ("network_config", dict), ("user_data", dict)):
        if options.get(key) is not None and not isinstance(options[key], kind):
            raise InvalidInput(f"seed: {key} is not a {'list' if kind is list else 'mapping'}")


def partition_guid(options: t.Mapping[str, t.Any], digest: str) -> uuid.UUID:
    """The partition's GUID tells which seed it holds, so that a second run finds it without reading it."""
    text = json.dumps({"seed": options, "image": digest}, sort_keys=True, default=str)
    return uuid.uuid5(_NAMESPACE, hashlib.sha256(text.encode("utf-8")).hexdigest())


def documents(options: t.Mapping[str, t.Any], digest: str, private_key: str, public_key: str) -> dict[str, str]:
    """The files of the seed."""
    hostname = str(options["hostname"])
    user_data: dict[str, t.Any] = {
        "hostname": hostname,
        "fqdn": str(options.get("fqdn") or hostname),
        "prefer_fqdn_over_hostname": False,
        "manage_etc_hosts": options.get("manage_etc_hosts", "localhost"),
        "ssh_deletekeys": True,
        "ssh_keys": {"ed25519_private": private_key, "ed25519_public": public_key},
        "ssh_pwauth": False,
    }
    if options.get("users"):
        user_data["users"] = [_user(user) for user in options["users"]]
    user_data = _merged(user_data, options.get("user_data") or {})
    instance = str(options.get("instance_id") or f"{hostname}-{partition_guid(options, digest)}")
    # All of it is on the disk, so cloud-init applies it before the network instead of waiting for that.
    # https://cloudinit.readthedocs.io/en/latest/reference/datasources/nocloud.html
    meta_data = {"dsmode": "local", "instance-id": instance, "local-hostname": hostname}
    files = {
        "user-data": "#cloud-config\n" + json.dumps(user_data, indent=1, sort_keys=True) + "\n",
        "meta-data": json.dumps(meta_data, indent=1, sort_keys=True) + "\n",
        _PUBLIC_KEY: public_key + "\n",
    }
    if options.get("network_config"):
        files["network-config"] = json.dumps(options["network_config"], indent=1, sort_keys=True) + "\n"
    return files


def _user(user: t.Mapping[str, t.Any]) -> dict[str, t.Any]:
    if not isinstance(user, dict) or not user.get("name"):
        raise InvalidInput("seed: users: each needs a name")
    return {"shell": "/bin/bash", "lock_passwd": True, **user}


def _merged(base: dict[str, t.Any], extra: t.Mapping[str, t.Any]) -> dict[str, t.Any]:
    """``extra`` over ``base``: mappings are merged, everything else is replaced."""
    merged = copy.deepcopy(base)
    for key, value in extra.items():
        known = merged.get(key)
        merged[key] = _merged(known, value) if isinstance(known, dict) and isinstance(value, dict) else value
    return merged


def build(options: t.Mapping[str, t.Any], digest: str) -> Seed:
    """Make the host key and the file system, without a mount: the tools write into a file in memory."""
    with tempfile.TemporaryDirectory(prefix="h200-rack-seed-", dir=_memory()) as folder:
        key_path = os.path.join(folder, "key")
        comment = f"root@{options['hostname']}"
        tools.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", comment, "-f", key_path], "seed")
        with open(key_path, encoding="ascii") as handle:
            private_key = handle.read()
        with open(f"{key_path}.pub", encoding="ascii") as handle:
            public_key = handle.read().strip()
        image = os.path.join(folder, "image")
        with open(image, "wb") as handle:
            handle.truncate(SIZE)
        # The host kernel of a ramdisk may be without vfat; mkfs and mtools need none.
        tools.run(["mkfs.vfat", "-n", PARTITION_NAME, image], "seed")
        paths = []
        for name, text in documents(options, digest, private_key, public_key).items():
            paths.append(os.path.join(folder, name))
            with open(paths[-1], "w", encoding="utf-8") as handle:
                handle.write(text)
        tools.run(["mcopy", "-i", image, *paths, "::"], "seed")
        with open(image, "rb") as handle:
            return Seed(handle.read(), public_key)


def public_key_on(disk: str, offset: int) -> str | None:
    """The public host key in the seed at ``offset``, or None when there is none to be read."""
    if not tools.available("mtype"):
        return None
    done = tools.attempt(["mtype", "-i", f"{disk}@@{offset}", f"::{_PUBLIC_KEY}"])
    text = done.stdout.strip()
    return text if done.returncode == 0 and text.startswith("ssh-") else None


def _memory() -> str | None:
    return "/run" if os.access("/run", os.W_OK) else None
