# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From checked options to an open Redfish session. Private to h200.rack."""

from __future__ import annotations

import contextlib
import typing as t

from ansible.module_utils.basic import missing_required_lib

from .._common.deadline import Deadline
from .address import check_name, parse_redfish
from .errors import BmcError
from .http import SUSHY_ERROR
from .redfish import Redfish


@contextlib.contextmanager
def open_redfish(
    params: dict[str, t.Any], deadline: Deadline, warnings: list[str], secrets: list[str]
) -> t.Iterator[Redfish]:
    """Log in for the time of the block; what the client has to say ends up in ``warnings`` and ``secrets``."""
    if SUSHY_ERROR:
        raise BmcError("unsupported", missing_required_lib("sushy"), exception=SUSHY_ERROR)
    address = parse_redfish(params["bmc_host"])
    check_name(address.host, min(float(params["timeout"]), deadline.remaining))
    client = Redfish(
        address,
        params["bmc_username"],
        params["bmc_password"],
        validate_certs=params["validate_certs"],
        ca_path=params["ca_path"],
        timeout=float(params["timeout"]),
        deadline=deadline,
    )
    client.warnings, client.secrets = warnings, secrets
    with client:
        yield client
