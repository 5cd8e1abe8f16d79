"""`RemotePath` on each store: what a store is asked, and what is told of it."""

from __future__ import annotations

import pytest


def test_an_object_is_created_once(bucket):
    place = bucket / "a" / "b.txt"
    assert not place.exists()
    stamp = place.create(b"one")
    with pytest.raises(FileExistsError):
        place.create(b"two")
    assert place.read_bytes() == b"one"
    assert place.read_stamped() == (b"one", stamp)
    assert place.stat().st_size == 3


def test_an_object_is_replaced_if_it_is_still_the_same(bucket):
    place = bucket / "m.json"
    first = place.create(b"one")
    second = place.replace(b"two", first)
    assert place.read_stamped() == (b"two", second)
    with pytest.raises(FileExistsError):
        place.replace(b"three", first)
    assert place.read_bytes() == b"two"


def test_what_is_gone_is_not_replaced(bucket):
    place = bucket / "m.json"
    stamp = place.create(b"one")
    place.unlink()
    place.unlink()
    with pytest.raises(FileExistsError):
        place.replace(b"two", stamp)
    assert not place.exists()
