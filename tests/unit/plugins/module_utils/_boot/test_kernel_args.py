# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import re

import pytest
from ansible_collections.h200.rack.plugins.module_utils._boot import kernel_args
from ansible_collections.h200.rack.plugins.module_utils._common.errors import InvalidInput
from hypothesis import given, settings
from hypothesis import strategies as st

SETTINGS = {"rack-space:string": " "}


def ipxe(line: str) -> list[str]:
    """The words of the first command of a line, by the rules of iPXE's parser."""
    words = []
    for word in line.split():
        if word.startswith("#") or word in ("||", "&&", ";"):
            break
        words.append(re.sub(r"\$\{([^}]*)\}", lambda match: SETTINGS.get(match.group(1), ""), word))
    return words


@settings(deadline=None)
@given(st.text(alphabet=st.sampled_from("ab=\"';#|&$ {}\\-")))
def test_what_reaches_the_kernel_is_what_was_written(args):
    try:
        kernel_args.check(args, "node x")
    except InvalidInput:
        return
    assert " ".join(ipxe(kernel_args.escape(args))) == args.strip(" ")


@pytest.mark.parametrize(
    "args", ['a="x  ;  y"', "a ; b", "a && b", "#comment", "$HOME", "ds=nocloud;s=http://x/", "a=\\", "${", "x=}"]
)
def test_what_ipxe_would_take_for_its_own_survives(args):
    kernel_args.check(args, "node x")
    assert " ".join(ipxe(kernel_args.escape(args))) == args


def test_what_ipxe_replaces_is_refused_and_names_the_node():
    with pytest.raises(InvalidInput, match="node gpu001"):
        kernel_args.check("a=${net0/ip}", "node gpu001")


@pytest.mark.parametrize("args", ["a\nb", "a\tb", "a\x00", "ä"])
def test_what_no_kernel_can_read_is_refused(args):
    with pytest.raises(InvalidInput, match="printable ASCII"):
        kernel_args.check(args, "node x")
