"""How well a shuffle mixes rows: from how far away neighbours come, and of which classes they are."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from sorted_rows import FORMS, ROWS, SCHEMA, SHUFFLE, recipe, written

import recordspec as rs
from recordspec.reading.shuffle_quality import classes, neighbours, places


@pytest.fixture(scope="module", params=FORMS.values(), ids=FORMS)
def data(tmp_path_factory, request) -> Path:
    return written(tmp_path_factory.mktemp("home"), *request.param)


def test_places_are_those_at_which_the_rows_are_read(data):
    shuffled = recipe(data, shuffle=SHUFFLE)
    dataset = rs.read(SCHEMA, data, batch=32, shuffle=SHUFFLE)
    read = np.concatenate([batch["id"] for batch in dataset.as_numpy_iterator()])
    assert np.concatenate(list(places(shuffled).as_numpy_iterator())).tolist() == read.tolist()


def test_a_larger_buffer_brings_rows_from_further_away(data):
    near = neighbours(recipe(data, shuffle={"buffer": 2, "seed": 1}, interleave={"cycle": 1}))
    far = neighbours(recipe(data, shuffle={"buffer": ROWS, "seed": 1}))
    assert near.rows == far.rows == ROWS
    assert near.apart_by_chance == far.apart_by_chance == (ROWS + 1) / 3
    assert far.adjacent_by_chance == 2 / ROWS
    assert near.apart < far.apart_by_chance / 2
    assert far.apart == pytest.approx(far.apart_by_chance, rel=0.1)
    assert far.adjacent < 0.01


def test_classes_that_stand_together_on_disk_are_told_from_a_shuffle(data):
    near = classes(recipe(data, shuffle={"buffer": 2, "seed": 1}, interleave={"cycle": 1}), "mood", math.inf)
    far = classes(recipe(data, shuffle={"buffer": ROWS, "seed": 1}), "mood", math.inf)
    assert near.rows == far.rows == ROWS
    assert near.same_by_chance == far.same_by_chance == 0.25
    assert near.same_on_disk == far.same_on_disk == (ROWS - 4) / (ROWS - 1)
    assert near.same > 0.9
    assert far.same == pytest.approx(0.25, abs=0.05)
