# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What an iPXE binary can do, by build. Private to h200.rack."""

from __future__ import annotations

import typing as t

from ansible_collections.h200.rack.plugins.module_utils._common.errors import InvalidInput

# The commands that every build of the last ten years has in its default configuration.
_NAMES = """
autoboot boot chain choose clear config cpuid dhcp echo exit goto help ifclose ifconf ifopen ifstat imgargs imgexec
imgfetch imgfree imgload imgselect imgstat inc initrd iseq isset item kernel login menu module prompt pxebs read
reboot route sanboot sanhook sanunhook set shell show sleep sync
"""
_BASE = frozenset(_NAMES.split())


class Build(t.NamedTuple):
    """The commands and URL schemes of a build, and where the table comes from."""

    commands: frozenset[str]
    schemes: frozenset[str]
    source: str


BUILDS: dict[str, Build] = {
    "debian_2019": Build(
        _BASE,
        frozenset({"http", "tftp", "nfs"}),
        "Debian 11 and 12, package ipxe 1.0.0+git-20190125: names in snponly.efi",
    ),
    "debian_2025": Build(
        _BASE | {"certfree", "certstat", "certstore", "iflinkwait", "ping", "poweroff", "shim", "vcreate", "vdestroy"},
        frozenset({"http", "https", "tftp", "nfs", "ftp"}),
        "Debian 13, package ipxe 1.21.1+git20250501: names in snponly.efi",
    ),
    "upstream_2_0": Build(
        _BASE
        | {"certfree", "certstat", "certstore", "fdt", "iflinkwait", "imgdecrypt", "imgextract", "imgmem", "md5sum"}
        | {"nslookup", "ntp", "param", "params", "ping", "poweroff", "sha1sum", "sha256sum", "sha512sum", "shim"}
        | {"usb", "vcreate", "vdestroy"},
        frozenset({"http", "https", "tftp", "file"}),
        "iPXE 2.0.0, default configuration for UEFI; imgtrust and imgverify are not in it",
    ),
}


def feature_table(user_builds: t.Mapping[str, t.Mapping[str, t.Any]] | None) -> dict[str, Build]:
    """The known builds and the user's own: ``{name: {base, commands, without, schemes}}``."""
    table = dict(BUILDS)
    for name, entry in (user_builds or {}).items():
        unknown = set(entry) - {"base", "commands", "without", "schemes"}
        if unknown:
            raise InvalidInput(f"ipxe_builds: {name} has the unknown key {sorted(unknown)[0]}")
        base = entry.get("base", "debian_2019")
        if base not in table:
            raise InvalidInput(f"ipxe_builds: {name} is based on {base!r}, which is none of {', '.join(sorted(table))}")
        table[name] = Build(
            (table[base].commands | frozenset(entry.get("commands") or ())) - frozenset(entry.get("without") or ()),
            frozenset(entry["schemes"]) if entry.get("schemes") else table[base].schemes,
            "given by the user",
        )
    return table


def lookup(table: t.Mapping[str, Build], name: str) -> Build:
    """The build ``name``; an unknown one is refused."""
    if name not in table:
        known = ", ".join(sorted(table))
        raise InvalidInput(f"ipxe_build {name!r} is none of {known}; describe it in ipxe_builds", code="build")
    return table[name]
