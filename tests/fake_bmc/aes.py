# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""AES-128 in CBC mode, slow and small, because the standard library has none. For tests only."""

from __future__ import annotations


def _xtime(a: int) -> int:
    return ((a << 1) ^ 0x1B) & 0xFF if a & 0x80 else a << 1


def _multiply(a: int, b: int) -> int:
    product = 0
    while b:
        if b & 1:
            product ^= a
        a, b = _xtime(a), b >> 1
    return product


def _sbox() -> list[int]:
    box = []
    for value in range(256):
        inverse = next((x for x in range(256) if _multiply(value, x) == 1), 0)
        result = 0x63
        for shift in range(5):
            result ^= ((inverse << shift) | (inverse >> (8 - shift))) & 0xFF
        box.append(result)
    return box


SBOX = _sbox()
INVERSE = [SBOX.index(value) for value in range(256)]
TIMES = {factor: [_multiply(value, factor) for value in range(256)] for factor in (1, 2, 3, 9, 11, 13, 14)}


class Aes:
    def __init__(self, key: bytes) -> None:
        words = [list(key[i : i + 4]) for i in range(0, 16, 4)]
        constant = 1
        for i in range(4, 44):
            word = words[i - 1]
            if i % 4 == 0:
                word = [SBOX[value] for value in word[1:] + word[:1]]
                word[0] ^= constant
                constant = _xtime(constant)
            words.append([a ^ b for a, b in zip(words[i - 4], word)])
        self._keys = [sum(words[i : i + 4], []) for i in range(0, 44, 4)]

    def encrypt_cbc(self, iv: bytes, data: bytes) -> bytes:
        out = b""
        for i in range(0, len(data), 16):
            iv = self._encrypt(bytes(a ^ b for a, b in zip(data[i : i + 16], iv)))
            out += iv
        return out

    def decrypt_cbc(self, iv: bytes, data: bytes) -> bytes:
        out = b""
        for i in range(0, len(data), 16):
            block = data[i : i + 16]
            out += bytes(a ^ b for a, b in zip(self._decrypt(block), iv))
            iv = block
        return out

    def _encrypt(self, block: bytes) -> bytes:
        state = _xor(block, self._keys[0])
        for number in range(1, 11):
            state = [SBOX[state[(i + 4 * (i % 4)) % 16]] for i in range(16)]
            if number < 10:
                state = _mix(state, (2, 3, 1, 1))
            state = _xor(state, self._keys[number])
        return bytes(state)

    def _decrypt(self, block: bytes) -> bytes:
        state = _xor(block, self._keys[10])
        for number in range(9, -1, -1):
            state = [INVERSE[state[(i - 4 * (i % 4)) % 16]] for i in range(16)]
            state = _xor(state, self._keys[number])
            if number:
                state = _mix(state, (14, 11, 13, 9))
        return bytes(state)


def _xor(a, b):
    return [x ^ y for x, y in zip(a, b)]


def _mix(state: list[int], row: tuple[int, int, int, int]) -> list[int]:
    out = []
    for column in range(0, 16, 4):
        for i in range(4):
            value = 0
            for j in range(4):
                value ^= TIMES[row[(j - i) % 4]][state[column + j]]
            out.append(value)
    return out
