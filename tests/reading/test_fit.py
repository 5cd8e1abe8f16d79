"""What a model takes of ragged and sparse features: dense to the longest, to a length, or as they are."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

import recordspec as rs

SCHEMA = """\
schema: s
features:
  n: int64
  words: {kind: var_len, dtype: string}
  points: {kind: ragged, dtype: float32, shape: [null, 2]}
  nested: {kind: ragged, dtype: int64, shape: [null, null]}
  gaps: {kind: sparse, dtype: float32, size: 4}
"""
CONFIG = """\
schema: s.yaml
data: data
write: {layout: LAYOUT}
read: {batch: 4}
fit:
  inputs: [words, points, nested, gaps]
  targets: n
"""
ROWS = [
    {
        "n": n,
        "words": ["w"] * (n % 3),
        "points": [[n, 1.0]] * (n % 4),
        "nested": [[n] * size for size in range(n % 3)],
        "gaps": ([n % 4], [1.0]),
    }
    for n in range(10)
]


@pytest.fixture(params=["rows", "{blocks: 3}"], ids=["rows", "blocks"])
def make(tmp_path: Path, request):
    def pipeline(more: str = "", rows: list = ROWS) -> rs.Pipeline:
        (tmp_path / "s.yaml").write_text(SCHEMA)
        (tmp_path / "config.yaml").write_text(CONFIG.replace("LAYOUT", request.param) + more)
        made = rs.Pipeline.load(tmp_path / "config.yaml")
        made.build(rows, force=True)
        return made

    return pipeline


def shapes(dataset) -> dict[str, list]:
    inputs, _ = dataset.element_spec
    return {name: spec.shape.as_list() for name, spec in inputs.items()}


def test_dense_is_as_long_as_the_longest_row_of_a_batch(make):
    inputs, numbers = next(iter(make().dataset("train")))
    assert {type(value).__name__ for value in inputs.values()} == {"EagerTensor"}
    assert numbers.numpy().tolist() == [0, 1, 2, 3]
    assert inputs["words"].numpy().tolist() == [[b"", b""], [b"w", b""], [b"w", b"w"], [b"", b""]]
    assert inputs["points"].shape == (4, 3, 2)


def test_what_is_padded_has_static_shapes(make):
    dataset = make("  pad: {words: 3, points: 4, nested: 2}\n").dataset("train")
    assert shapes(dataset) == {
        "words": [None, 3],
        "points": [None, 4, 2],
        "nested": [None, 2, None],
        "gaps": [None, 4],
    }
    inputs, _ = next(iter(dataset))
    assert inputs["words"].numpy().tolist() == [
        [b"", b"", b""],
        [b"w", b"", b""],
        [b"w", b"w", b""],
        [b""] * 3,
    ]
    np.testing.assert_array_equal(inputs["points"][3].numpy(), [[3, 1], [3, 1], [3, 1], [0, 0]])
    np.testing.assert_array_equal(inputs["nested"][2].numpy(), [[0], [2]])


def test_kept_is_as_it_was_decoded(make):
    inputs, _ = next(iter(make("  ragged: keep\n  pad: {words: 2}\n").dataset("train")))
    assert inputs["words"].shape == (4, 2)
    assert inputs["points"].to_list() == [[[n, 1.0]] * (n % 4) for n in range(4)]
    assert inputs["nested"].to_list() == [row["nested"] for row in ROWS[:4]]
    assert isinstance(inputs["gaps"], tf.SparseTensor)


def test_a_row_that_is_too_long_is_an_error_and_never_cut(make):
    dataset = make("  pad: {points: 2}\n").dataset("train")
    message = r"fit\.pad\.points: expected at most 2 values in a row, got 3"
    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
        list(dataset)


def test_what_is_not_ragged_is_not_padded(make):
    made = make("  pad: {gaps: 4}\n")
    with pytest.raises(rs.SpecError) as caught:
        made.dataset("train")
    expected = "fit.pad.gaps: expected a batch of a ragged feature, got float32 (None, 4)"
    assert str(caught.value) == expected


def test_lengths_and_names_that_are_none_have_their_place(make, tmp_path):
    make()
    for more, expected in [
        ("  pad: {words: 0}\n", "8:16: fit.pad.words: expected a length of at least 1, got 0"),
        (
            "  ragged: kept\n",
            "8:11: fit.ragged: expected one of dense, keep, got `kept` (did you mean `keep`?)",
        ),
        (
            "  pad: {wards: 3}\n",
            "8:16: fit.pad.wards: expected one of words, points, nested, gaps, n, got `wards` "
            "(did you mean `words`?)",
        ),
    ]:
        with pytest.raises(rs.SpecError) as caught:
            make(more)
        assert str(caught.value) == f"{tmp_path}/config.yaml:{expected}"
