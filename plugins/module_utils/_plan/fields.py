# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What each variable of a node may be: one small check each, in one table. Private to h200.rack."""

from __future__ import annotations

import dataclasses
import re
import typing as t

from .addresses import parse_address, parse_mac, split_bmc_address

HINTS = ("serial", "wwn", "model", "vendor", "size", "by_path", "hctl", "rotational")
PROTOCOLS = ("redfish", "ipmi")
BOOT_METHODS = ("uefi_http", "uefi_pxe", "bios_pxe")
ARCHES = ("x86_64", "aarch64")
VERIFY = ("none", "sample", "all")
BOOT_ORDERS = ("disk_first", "network_first", "keep")
FINISHES = ("reboot", "kexec")
TRANSPORTS = ("http", "bittorrent")
#: Stages with a deadline, and its seconds: servers of this class spend minutes in POST.
DEADLINES = {"powered": 300, "ramdisk_up": 1800, "written": 3600, "os_up": 1800, "registered": 300}

_IMAGE = re.compile(r"(?P<name>[A-Za-z0-9][A-Za-z0-9._+-]{0,127})(?:@(?:sha256:)?(?P<digest>[0-9a-f]{64}))?\Z")
_CONSOLE = re.compile(r"(tty[A-Za-z]{0,6}\d+|hvc\d+|uart8250,\S+)(,\d+[noe]?[78]?r?)?\Z")
_USER = re.compile(r"[a-z_][a-z0-9_-]{0,31}\Z")
_HOSTNAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\Z")
_RESERVED_ARGS = ("ip", "BOOTIF", "initrd", "rack.node", "rack.action", "console")
_PUBLIC_KEY = re.compile(r"(?:\S+ )?(ssh-|ecdsa-|sk-)\S+ [A-Za-z0-9+/=]+(\s|\Z)")


def choice(*known: str) -> t.Callable[[t.Any], str]:
    def check(value: t.Any) -> str:
        if value not in known:
            raise ValueError(f"{value!r} is none of {', '.join(known)}")
        return str(value)

    return check


def text(value: t.Any) -> str:
    if isinstance(value, (dict, list, tuple, bool)):
        raise ValueError(f"must be a text, not {value!r}")
    if "\n" in str(value).rstrip("\n"):
        raise ValueError("must be one line")
    return str(value).strip()


def address(value: t.Any) -> str:
    return str(parse_address(value))


def bmc_address(value: t.Any) -> str:
    split_bmc_address(value)
    return str(value).strip()


def image(value: t.Any) -> str:
    if not isinstance(value, str) or not _IMAGE.match(value):
        raise ValueError(f"{value!r} is not an image: a name, or name@digest with the 64 digits of its manifest")
    return str(value)


def split_image(value: str) -> tuple[str, str]:
    """Name and digest of an image; the digest is empty when the newest is meant."""
    found = _IMAGE.match(value)
    return (found["name"], found["digest"] or "") if found else (value, "")


def root_disk(value: t.Any) -> dict[str, t.Any]:
    if not isinstance(value, t.Mapping):
        raise ValueError(f"must be a mapping of hints ({', '.join(HINTS)}), not {value!r}")
    if "raid1" in value:
        raise ValueError("raid1: not yet; a mirrored pair cannot be imaged by this version")
    if not value:
        raise ValueError(f"has no hint; without one any disk could be meant ({', '.join(HINTS)})")
    unknown = sorted(str(key) for key in set(value) - set(HINTS))
    if unknown:
        raise ValueError(f"no such hint: {', '.join(unknown)} (known: {', '.join(HINTS)})")
    for key, hint in value.items():
        wanted = bool if key == "rotational" else (str, int)
        if hint in (None, "") or not isinstance(hint, wanted) or (key != "rotational" and isinstance(hint, bool)):
            raise ValueError(f"{key}: {hint!r} says nothing")
    return {str(key): hint for key, hint in value.items()}


def console(value: t.Any) -> list[str]:
    items = [value] if isinstance(value, str) else value
    if not isinstance(items, (list, tuple)) or not items:
        raise ValueError(f"must be a list of consoles like ttyS0,115200n8, not {value!r}")
    for item in items:
        if not isinstance(item, str) or not _CONSOLE.match(item):
            raise ValueError(f"{item!r} is not a console like ttyS0,115200n8")
    return [str(item) for item in items]


def kernel_args(value: t.Any) -> str:
    if not isinstance(value, str):
        raise ValueError(f"must be a text, not {value!r}")
    if re.search(r"[\x00-\x1f]", value):
        raise ValueError("must be one line without control characters")
    taken = sorted({word.partition("=")[0] for word in value.split()} & set(_RESERVED_ARGS))
    if taken:
        raise ValueError(f"{', '.join(taken)}: set by the boot script itself (the console by rack_console)")
    return value.strip()


def user_name(value: t.Any) -> str:
    if not isinstance(value, str) or not _USER.match(value):
        raise ValueError(f"{value!r} is not a user name")
    return str(value)


def public_keys(value: t.Any) -> list[str]:
    if not isinstance(value, (list, tuple)) or not value:
        raise ValueError("must be a list of public SSH keys")
    for key in value:
        if "PRIVATE KEY" in str(key):
            raise ValueError("holds a private key; the public one belongs here")
        if not isinstance(key, str) or not _PUBLIC_KEY.match(key):
            raise ValueError(f"{str(key)[:30]!r} is not a public SSH key")
    return [str(key).strip() for key in value]


def users(value: t.Any) -> list[dict[str, t.Any]]:
    if not isinstance(value, (list, tuple)):
        raise ValueError("must be a list of users with name, groups, sudo and ssh_authorized_keys")
    for user in value:
        if not isinstance(user, t.Mapping) or "name" not in user:
            raise ValueError(f"{user!r} is not a user with a name")
        user_name(user["name"])
        if user.get("ssh_authorized_keys"):
            public_keys(user["ssh_authorized_keys"])
    names = [user["name"] for user in value]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(f"named twice: {', '.join(twice)}")
    return [dict(user) for user in value]


def network(value: t.Any) -> dict[str, t.Any]:
    if not isinstance(value, t.Mapping) or value.get("version") != 2:
        raise ValueError("must be a cloud-init network configuration with version: 2 at its top")
    return dict(value)


def number(smallest: int) -> t.Callable[[t.Any], int]:
    def check(value: t.Any) -> int:
        if isinstance(value, (bool, float)) or not re.fullmatch(r"\d+", str(value).strip()) or int(value) < smallest:
            raise ValueError(f"{value!r} is not a whole number of at least {smallest}")
        return int(value)

    return check


def deadlines(value: t.Any) -> dict[str, int]:
    if not isinstance(value, t.Mapping):
        raise ValueError(f"must be a mapping of stages to seconds, not {value!r}")
    unknown = sorted(set(map(str, value)) - set(DEADLINES))
    if unknown:
        raise ValueError(f"no such stage: {', '.join(unknown)} (known: {', '.join(DEADLINES)})")
    given = {}
    for stage, seconds in value.items():
        try:
            given[str(stage)] = number(1)(seconds)
        except ValueError as exc:
            raise ValueError(f"{stage}: {exc}") from exc
    return {**DEADLINES, **given}


def builds(value: t.Any) -> dict[str, t.Any]:
    if not isinstance(value, t.Mapping) or not all(isinstance(build, t.Mapping) for build in value.values()):
        raise ValueError("must be a mapping of iPXE builds, each with base, commands, without and schemes")
    return {str(name): dict(build) for name, build in value.items()}


def hostname(value: str) -> str:
    """The first label of a name, as the host name of a system. Raises ValueError."""
    label = value.partition(".")[0].lower()
    if not _HOSTNAME.match(label) or label.isdigit():
        raise ValueError(f"{value!r} cannot be a host name: letters, digits and hyphens, at most 63")
    return label


@dataclasses.dataclass(frozen=True)
class Field:
    """One variable of a node: what it may be, and what it is when it is not given."""

    variable: str
    check: t.Callable[[t.Any], t.Any]
    required: bool = False
    default: t.Any = None

    @property
    def key(self) -> str:
        """Its name in the plan."""
        if self.variable == "ansible_host":
            return "ip"
        return self.variable[len("rack_") :] if self.variable.startswith("rack_") else self.variable


NODE_FIELDS = (
    Field("ansible_host", address, required=True),
    Field("rack_name", text, default=""),
    Field("rack_domain", text, default=""),
    Field("rack_serial", text, default=""),
    Field("rack_position", text, default=""),
    Field("rack_scalable_unit", text, default=""),
    Field("rack_bmc_address", bmc_address, required=True),
    Field("rack_bmc_protocol", choice(*PROTOCOLS), default="redfish"),
    Field("rack_bmc_system_id", text, default=""),
    Field("rack_bmc_ca_path", text, default=""),
    Field("rack_bmc_mac", parse_mac, default=""),
    Field("rack_boot_mac", parse_mac, required=True),
    Field("rack_boot_method", choice(*BOOT_METHODS), default="uefi_pxe"),
    Field("rack_ipxe_build", text, default="debian_2019"),
    Field("rack_ipxe_builds", builds),
    Field("rack_arch", choice(*ARCHES), default="x86_64"),
    Field("rack_profile", text, required=True),
    Field("rack_kernel_args", kernel_args, default=""),
    Field("rack_console", console, default=()),
    Field("rack_image", image, required=True),
    Field("rack_root_disk", root_disk, required=True),
    Field("rack_os_user", user_name, default=""),
    Field("rack_users", users, default=()),
    Field("rack_authorized_keys", public_keys, required=True),
    Field("rack_network", network),
    Field("rack_verify", choice(*VERIFY), default="sample"),
    Field("rack_boot_order", choice(*BOOT_ORDERS), default="disk_first"),
    Field("rack_finish", choice(*FINISHES), default="reboot"),
    Field("os_image_transport", choice(*TRANSPORTS), default="http"),
    Field("rack_scratch_disk", root_disk),
    Field("rack_deadlines", deadlines, default=DEADLINES),
    Field("rack_lease", number(60), default=7200),
    Field("rack_power_group", number(1), default=8),
    Field("rack_power_interval", number(0), default=2),
    Field("rack_verify_timeout", number(1), default=30),
)
