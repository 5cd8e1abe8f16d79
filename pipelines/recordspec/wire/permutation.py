"""Permutations of the numbers below n, in which each position is computed independently.

A number is a pair (x, y) with x < a and y < b, where a is the root of n rounded up, and a * b is n or
slightly more. Rounds alternate: one moves x by a hash of y, modulo a, the next moves y by a hash of x, modulo
b. This is a Feistel network, and hence a bijection of the pairs, whatever the hash. A number that leaves the
range below n is moved again until it is back, which its cycle guarantees. The hash is SplitMix64's finalizer
of the number and a key for the round.

Datasets and trainings outlive a release: the order of an epoch is part of the format, and tests pin it.
"""

from __future__ import annotations

import math

import numpy as np

from recordspec.wire import native
from recordspec.wire.arrays import Ints
from recordspec.wire.hashes import Words, splitmix64

# Luby and Rackoff (1988) need four rounds, with a good hash on long numbers. With 8 rounds, some of the 120
# orders of five rows were more frequent than others (chi-square over 20,000 keys 4.9 times its mean); with
# 32, none is.
ROUNDS, SMALL_ROUNDS, _SMALL = 8, 32, 1 << 12
# The fractional part of the golden ratio. SplitMix64 adds multiples of it, which keeps zero from mapping to
# zero.
_GOLDEN = 0x9E3779B97F4A7C15
_WORD = (1 << 64) - 1


def mixed(*words: int) -> int:
    """A hash of integers, which depends on their order, from 0 to 2**64 - 1. The lowest 64 bits of each
    count.
    """
    state = 0
    for word in words:
        state = int(splitmix64(np.array([(state + word + _GOLDEN) & _WORD], np.uint64))[0])
    return state


def permuted(places: Ints, count: int, key: int, rounds: int | None = None) -> Ints:
    """The numbers at the given positions of a permutation of `0 .. count - 1`, int64 `[n]`.

    Args:
        places: the positions, int64 `[n]`, each from 0 to `count - 1`.
        count: at most 2**62.
        key: selects the permutation; 64 bits.
        rounds: fewer than by default where not all permutations must be equally frequent.
    """
    sides, rounds = _sides(count), rounds or (SMALL_ROUNDS if count < _SMALL else ROUNDS)
    if (library := native.library()) is not None:
        places, numbers = native.ints(places), np.empty(len(places), np.int64)
        library.rs_permute(native.at(places), len(places), count, *sides, rounds, key, native.at(numbers))
        return numbers
    words: Words = places.astype(np.uint64)
    keys = [np.uint64(mixed(key, number)) for number in range(rounds)]
    outside = np.arange(len(words))
    while len(outside):
        words[outside] = _moved(words[outside], sides, keys)
        outside = outside[words[outside] >= count]
    return words.astype(np.int64)


def _sides(count: int) -> tuple[int, int]:
    side = math.isqrt(max(0, count - 1)) + 1
    return side, -(-count // side)


def _moved(numbers: Words, sides: tuple[int, int], keys: list[np.uint64]) -> Words:
    sizes = np.uint64(sides[0]), np.uint64(sides[1])
    pair = list(divmod(numbers, sizes[1]))
    for number, key in enumerate(keys):
        x, y, size = pair[number % 2], pair[1 - number % 2], sizes[number % 2]
        # the upper half of the hash, scaled to the range
        moved = x + ((splitmix64(y ^ key) >> np.uint64(32)) * size >> np.uint64(32))
        pair[number % 2] = np.where(moved >= size, moved - size, moved)
    result: Words = pair[0] * sizes[1] + pair[1]
    return result
