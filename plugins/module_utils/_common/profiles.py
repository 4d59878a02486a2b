# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a server model must consist of: the expectation that every node is compared with. Private to h200.rack.

A profile is never learned from a node. ``None`` stands for "this profile does not say", and what is not said is
not compared. A site adds what its build has (CPUs, memory, the names of the NICs) in a profile of its own that
names one of these as ``base``.

Where the figures come from (``gbs`` are gigabytes, ``gbps`` gigabits per second):

* 143771 MiB and 700 W of an H200 SXM: ``nvidia-smi`` of H200 nodes of three clouds and one owner.
* 18 NVLinks of 26.562 GB/s per direction: ``nvidia-smi nvlink --status`` of healthy HGX H100 and H200 boards; a
  broken link shows another figure (1.0, 1.562) or none.
* H200 NVL: the product brief of the PCIe card (600 W, Gen5 x16, bridges of 2 or 4 cards and no NVSwitch, so no
  fabric manager). Whether bridges are fitted is the site's, so ``nvlinks`` is not said.
* 8 NICs of 400 Gb/s: HGX H100/H200 enterprise reference architecture, one per GPU. Sites with Spectrum-X or other
  RoCE set ``link_layer: Ethernet``.
* DGX H200: user guide (2 Intel Xeon Platinum 8480C of 56 cores, 2 TiB); mlx5_1, 2, 7 and 8 are the storage and
  in-band ports of the two dual-port cards, which leaves these eight names for the compute fabric.
* ``nccl``: measured bus bandwidths of healthy nodes. 480 GB/s is what one NVLink SHARP all-reduce reaches on eight
  GPUs (476 to 483 at 8 to 16 GiB on H100 and H200); 431 is the floor that Azure's node health checks ship for
  ND H200 v5; 365 is what a ring over the same links reaches (365 to 370), and so what is left when NVLS is missing.
"""

from __future__ import annotations

import copy
import typing as t

from .errors import InvalidInput

Profile = dict[str, t.Any]

_HGX_NCCL: Profile = {
    "nvls_gbs": 480.0,  # one node, all_reduce through the NVSwitches
    "nvls_floor_gbs": 431.0,
    "nvls_warn_gbs": 450.0,
    "nvlink_ring_gbs": 365.0,  # one node, ring, and every collective that NVLS does not speed up
    "min_utilization": 0.85,  # of any other reference
}

_H200_SXM: Profile = {
    "gpu": {
        "count": 8,
        "model": "NVIDIA H200",
        "gres_type": "h200",
        "memory_mib": 143771,
        "power_limit_w": 700,
        "nvlinks": 18,
        "nvlink_gbs": 26.562,
        "fabric_manager": True,
        "pcie_gen": 5,
        "pcie_width": 16,
    },
    "nics": {"compute": 8, "rate_gbps": 400, "link_layer": "InfiniBand"},
    "cpu": {"sockets": None, "cores_per_socket": None, "threads_per_core": None},
    "memory_mib": None,
    "console": ["tty0", "ttyS0,115200n8"],
    "boot": {"ipxe_binary": "snponly.efi"},
    "nccl": _HGX_NCCL,
}

_DERIVED: dict[str, Profile] = {
    "h200_nvl": {
        "base": "h200_sxm",
        "gpu": {
            "model": "NVIDIA H200 NVL",
            "gres_type": "h200_nvl",
            "power_limit_w": 600,
            "nvlinks": None,
            "nvlink_gbs": None,
            "fabric_manager": False,
        },
        # Bridged pairs or fours behind PCIe: no figure of a healthy node is published, so a site measures its own.
        "nccl": {"nvls_gbs": None, "nvls_floor_gbs": None, "nvls_warn_gbs": None, "nvlink_ring_gbs": None},
    },
    "h100_sxm": {
        "base": "h200_sxm",
        "gpu": {"model": "NVIDIA H100 80GB HBM3", "gres_type": "h100", "memory_mib": 81559},
    },
    "dgx_h200": {
        "base": "h200_sxm",
        "nics": {
            "compute": ["mlx5_0", "mlx5_3", "mlx5_4", "mlx5_5", "mlx5_6", "mlx5_9", "mlx5_10", "mlx5_11"],
        },
        "cpu": {"sockets": 2, "cores_per_socket": 56, "threads_per_core": 2},
        "memory_mib": 2097152,
    },
}

# What a value of a profile may be; anything else is a typo that would silently compare nothing.
_INT = (int,)
_NUMBER = (int, float)
_SCHEMA: dict[str, t.Any] = {
    "gpu": {
        "count": _INT,
        "model": (str,),
        "gres_type": (str,),
        "memory_mib": _INT,
        "power_limit_w": _NUMBER,
        "nvlinks": _INT,
        "nvlink_gbs": _NUMBER,
        "fabric_manager": (bool,),
        "pcie_gen": _INT,
        "pcie_width": _INT,
        "driver_version": (str,),
        "vbios_version": (str,),
    },
    "nics": {"compute": (int, list), "rate_gbps": _NUMBER, "link_layer": (str,), "firmware": (str,)},
    "cpu": {"sockets": _INT, "cores_per_socket": _INT, "threads_per_core": _INT},
    "memory_mib": _INT,
    "console": (list,),
    "boot": {"ipxe_binary": (str,)},
    "nccl": {
        "nvls_gbs": _NUMBER,
        "nvls_floor_gbs": _NUMBER,
        "nvls_warn_gbs": _NUMBER,
        "nvlink_ring_gbs": _NUMBER,
        "min_utilization": _NUMBER,
    },
}
_REQUIRED = ("gpu.count", "gpu.model", "gpu.gres_type")
_LINK_LAYERS = ("InfiniBand", "Ethernet")


def _merged(base: Profile, over: t.Mapping[str, t.Any]) -> Profile:
    """``over`` laid upon ``base``: mappings key by key, everything else (lists too) replaced."""
    result = copy.deepcopy(base)
    for key, value in over.items():
        if isinstance(value, t.Mapping) and isinstance(result.get(key), dict):
            result[key] = _merged(result[key], value)
        else:
            result[key] = copy.deepcopy(value)
    return result


def _build(name: str, table: t.Mapping[str, t.Mapping[str, t.Any]], way: tuple[str, ...] = ()) -> Profile:
    if name in way:
        raise InvalidInput(
            f"rack_profiles: {' -> '.join([*way, name])} is a circle of 'base'", variable="rack_profiles"
        )
    own = {key: value for key, value in table[name].items() if key not in ("base", "name")}
    base = table[name].get("base")
    if base is None:
        return copy.deepcopy(own)
    if base not in table:
        raise InvalidInput(
            f"rack_profiles: profile {name!r} names the base {base!r}, which is none of {', '.join(sorted(table))}",
            variable="rack_profiles",
        )
    return _merged(_build(base, table, (*way, name)), own)


def _check(name: str, value: t.Any, schema: t.Any, path: str) -> list[str]:
    if isinstance(schema, dict):
        if not isinstance(value, t.Mapping):
            return [f"{path or name} must be a mapping"]
        problems = [
            f"{f'{path}.{key}' if path else key} is not a key of a profile ({', '.join(schema)})"
            for key in value
            if key not in schema
        ]
        for key, part in schema.items():
            if key in value:
                problems += _check(name, value[key], part, f"{path}.{key}" if path else key)
        return problems
    if value is None:
        return []
    if isinstance(value, bool) and bool not in schema or not isinstance(value, schema):
        return [f"{path} must be {' or '.join(kind.__name__ for kind in schema)}, not {value!r}"]
    if isinstance(value, _NUMBER) and not isinstance(value, bool) and value < 0:
        return [f"{path} must not be negative"]
    return []


def _value(profile: Profile, path: str) -> t.Any:
    value: t.Any = profile
    for key in path.split("."):
        value = value.get(key) if isinstance(value, dict) else None
    return value


def _problems(name: str, profile: Profile) -> list[str]:
    problems = _check(name, profile, _SCHEMA, "")
    if problems:
        return problems
    problems = [f"{path} is missing" for path in _REQUIRED if not _value(profile, path)]
    layer = _value(profile, "nics.link_layer")
    if layer is not None and layer not in _LINK_LAYERS:
        problems.append(f"nics.link_layer must be {' or '.join(_LINK_LAYERS)}, not {layer!r}")
    for path in ("nics.compute", "console"):
        value = _value(profile, path)
        if isinstance(value, list):
            if not all(isinstance(item, str) and item for item in value):
                problems.append(f"{path} must hold names")
            elif len(set(value)) != len(value):
                problems.append(f"{path} names something twice")
    return problems


def resolve(name: str, user_profiles: t.Mapping[str, t.Mapping[str, t.Any]] | None = None) -> Profile:
    """The profile ``name`` with all that it inherits, from ours and ``user_profiles`` (the inventory's rack_profiles).

    A user's profile extends one of ours under a name of its own (``base``) and never shadows it.
    Raises :class:`InvalidInput` that names the variable.
    """
    user = {} if user_profiles is None else user_profiles
    if not isinstance(user, t.Mapping) or not all(isinstance(value, t.Mapping) for value in user.values()):
        raise InvalidInput("rack_profiles must be a mapping of names to profiles", variable="rack_profiles")
    shadowed = sorted(set(user) & set(_TABLE))
    if shadowed:
        raise InvalidInput(
            f"rack_profiles: {', '.join(shadowed)} is a profile of the collection; "
            f"give yours another name and 'base: {shadowed[0]}'",
            variable="rack_profiles",
        )
    table: dict[str, t.Mapping[str, t.Any]] = {**_TABLE, **user}
    if name not in table:
        raise InvalidInput(
            f"rack_profile: {name!r} is none of the known profiles ({', '.join(sorted(table))}); "
            "describe it in rack_profiles",
            variable="rack_profile",
        )
    profile = _build(name, table)
    problems = _problems(name, profile)
    if problems:
        raise InvalidInput(f"rack_profiles: profile {name!r}: {'; '.join(problems)}", variable="rack_profiles")
    return {"name": name, **profile}


def complete(profile: t.Mapping[str, t.Any]) -> Profile:
    """A module's ``profile`` option: a resolved profile as it is, ``{name: h200_sxm}`` or ``{base: …, …}`` resolved."""
    given = {key: value for key, value in profile.items() if key != "name"}
    name = str(profile.get("name") or "given")
    if not given:
        return resolve(name)
    if name in _TABLE and "base" not in given:
        given = {"base": name, **given}
    return {**resolve("given", {"given": given}), "name": name}


def compute_nics(profile: t.Mapping[str, t.Any]) -> tuple[int, list[str]]:
    """How many compute NICs ``profile`` expects and, where it says so, their names."""
    compute = (profile.get("nics") or {}).get("compute")
    if isinstance(compute, list):
        return len(compute), list(compute)
    return int(compute or 0), []


_TABLE: dict[str, Profile] = {"h200_sxm": _H200_SXM, **_DERIVED}
PROFILES: dict[str, Profile] = {name: {"name": name, **_build(name, _TABLE)} for name in _TABLE}
