# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import contextlib
import hashlib
import json

import pytest
from ansible_collections.h200.rack.plugins.module_utils._common.errors import InvalidInput
from ansible_collections.h200.rack.plugins.module_utils._image import manifest as m
from hypothesis import given
from hypothesis import strategies as st

CHUNK = 64 * 1024


def make(lengths=(1000, 2000, 30), zeros=(False, True, False), last=512, **changes) -> m.Manifest:
    chunks, raw, wire = [], 0, 0
    for index, (length, zero) in enumerate(zip(lengths, zeros)):
        size = last if index == len(lengths) - 1 else CHUNK
        sha256 = m.zero_sha256(size) if zero else hashlib.sha256(str(index).encode()).hexdigest()
        chunks.append(m.Chunk(raw, size, wire, length, sha256, zero))
        raw, wire = raw + size, wire + length
    fields = {
        "name": "debian-12",
        "version": "1",
        "arch": "x86_64",
        "boot": "uefi",
        "sector_size": 512,
        "raw_size": raw,
        "raw_sha256": "a" * 64,
        "wire_size": wire,
        "wire_sha256": "b" * 64,
        "chunk_size": CHUNK,
        "minimum_disk": raw,
        "contents": {"kernel": "6.1"},
        "chunks": tuple(chunks),
    }
    return m.Manifest(**{**fields, **changes})


def altered(**changes) -> bytes:
    value = json.loads(m.dump(make()))
    value.update(changes)
    return m.canonical(value)


def altered_chunk(index: int, **changes) -> bytes:
    value = json.loads(m.dump(make()))
    value["chunks"][index].update(changes)
    return m.canonical(value)


def test_what_is_dumped_is_parsed_again() -> None:
    assert m.parse(m.dump(make())) == make()


@given(st.lists(st.tuples(st.integers(1, CHUNK), st.booleans()), min_size=1, max_size=8), st.integers(1, 128))
def test_every_consistent_manifest_survives_a_round_trip(rows, sectors) -> None:
    last = sectors * 512
    lengths = [min(length, m.wire_bound(last)) for length, _zero in rows]
    manifest = make(lengths, [zero for _length, zero in rows], last)
    assert m.parse(m.dump(manifest)) == manifest


@given(st.binary(max_size=200))
def test_no_garbage_raises_anything_but_invalid_input(data) -> None:
    with pytest.raises(InvalidInput):
        m.parse(data)


@given(st.data())
def test_a_flipped_byte_never_passes_as_the_same_manifest(data) -> None:
    original = m.dump(make())
    position = data.draw(st.integers(0, len(original) - 1))
    broken = bytearray(original)
    broken[position] ^= data.draw(st.integers(1, 255))
    with contextlib.suppress(InvalidInput):
        assert m.parse(bytes(broken)) != make()


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8) | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)


@given(st.sampled_from([*m.Manifest._fields, "format"]), json_values)
def test_no_value_of_any_type_in_a_field_raises_anything_but_invalid_input(field, value) -> None:
    try:
        parsed = m.parse(altered(**{field: value}))
    except InvalidInput:
        return
    assert m.dump(parsed) == altered(**{field: value})


@given(st.sampled_from(m.Chunk._fields), json_values, st.integers(0, 2))
def test_no_value_of_any_type_in_a_chunk_raises_anything_but_invalid_input(field, value, index) -> None:
    try:
        parsed = m.parse(altered_chunk(index, **{field: value}))
    except InvalidInput:
        return
    assert m.dump(parsed) == altered_chunk(index, **{field: value})


@pytest.mark.parametrize(
    "data",
    [
        altered(surprise=1),
        altered(format="h200.rack.image/2"),
        altered(name="../../etc/passwd"),
        altered(name="a/b"),
        altered(name=".hidden"),
        altered(version=""),
        altered(raw_sha256="A" * 64),
        altered(arch="sparc"),
        altered(boot="magic"),
        altered(sector_size=520),
        altered(sector_size=True),
        altered(raw_size=10**18),
        altered(raw_size=131584.0),
        altered(minimum_disk=1),
        altered(chunk_size=CHUNK + 1),
        altered(chunk_size=1024),
        altered(wire_size=3031),
        altered(wire_size=3029),
        altered(contents={"Kernel": "x"}),
        altered(contents={"kernel": 1}),
        altered(contents=[]),
        altered(chunks=[]),
        altered(chunks={}),
        altered_chunk(1, raw_offset=0),
        altered_chunk(1, wire_offset=500),
        altered_chunk(1, wire_offset=1001),
        altered_chunk(0, wire_length=0),
        altered_chunk(0, wire_length=1 << 40),
        altered_chunk(2, raw_length=1024),
        altered_chunk(0, zero=True),
        altered_chunk(0, zero=1),
        altered_chunk(0, sha256="x"),
        altered_chunk(0, extra=1),
    ],
)
def test_bad_manifest_is_refused(data) -> None:
    with pytest.raises(InvalidInput):
        m.parse(data)


@pytest.mark.parametrize("change", [(b'"arch"', b'"arch" '), (b'{"arch"', b'{"arch":"x86_64","arch"'), (b"}]", b"} ]")])
def test_other_spellings_of_the_same_manifest_are_refused(change) -> None:
    data = m.dump(make())
    assert change[0] in data
    with pytest.raises(InvalidInput):
        m.parse(data.replace(*change, 1))


@pytest.mark.parametrize("name", ["a", "ubuntu-24.04-h200", "x_1+b"])
def test_plain_names_are_names(name) -> None:
    assert m.is_name(name)


@pytest.mark.parametrize("name", ["", ".", "..", "a/", "-a", "a-", "a b", "ä", "a\n", None, 1, "a" * 129])
def test_path_tricks_are_no_names(name) -> None:
    assert not m.is_name(name)
