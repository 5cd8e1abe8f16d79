"""Files from an independent hand: theirs are read by us, and ours are, record for record, theirs."""

from __future__ import annotations

import sys

import numpy as np
import pytest
import tensorflow as tf

import recordspec as rs
from recordspec.wire.tfrecord import scan

FULL = {
    "a scalar": -7,
    "shaped": [[1.5, -2.0], [0.0, float("inf")]],
    "defaulted": 5,
    "words": ["a", "é", ""],
    "steps": [[1, 2], [3, 4], [5, 6]],
    "lists": [[1, 2], [], [3]],
    "boxes": [[0, 0, 1, 1]],
    "sparse": ([7, 1], [0.25, 0.5]),
    "bytes": [0, 255],
    "raw": [2**64 - 1, 1],
    "class": "dog",
    "caption": "中🙂",
}
EMPTY = ("words", "steps", "lists", "boxes")


@pytest.fixture
def golden(root):
    sys.path.insert(0, str(root / "tests/golden"))
    import make

    yield make
    sys.path.remove(str(root / "tests/golden"))


@pytest.fixture
def examples(root) -> rs.Schema:
    return rs.Schema.load(root / "tests/golden/examples.yaml")


@pytest.fixture
def sequence_examples(root) -> rs.Schema:
    return rs.Schema.load(root / "tests/golden/sequence_examples.yaml")


def test_examples_are_read(root, examples, golden):
    (batch,) = rs.read(root / "tests/golden/examples.tfrecord", examples, batch=2)
    dense = {name: value for name, value in batch.items() if isinstance(value, tf.Tensor)}
    assert dense.pop("a scalar").numpy().tolist() == [-7, -7]
    assert dense.pop("shaped").numpy().tolist() == [FULL["shaped"]] * 2
    assert dense.pop("defaulted").numpy().tolist() == [5, -1]
    assert dense.pop("steps").numpy().tolist() == [FULL["steps"], [[-1.0, -1.0]] * 3]
    assert dense["bytes"].dtype == tf.uint8
    assert dense.pop("bytes").numpy().tolist() == [[0, 255]] * 2
    assert dense["raw"].dtype == tf.uint64
    assert dense.pop("raw").numpy().tolist() == [FULL["raw"]] * 2
    assert dense.pop("class").numpy().tolist() == [1, 0]
    assert [text.decode() for text in dense.pop("caption").numpy()] == ["中🙂"] * 2
    np.testing.assert_array_equal(dense.pop("picture").numpy(), [golden.IMAGE] * 2)
    assert not dense
    assert batch["words"].to_list() == [[b"a", "é".encode(), b""], []]
    assert batch["lists"].to_list() == [FULL["lists"], []]
    assert batch["boxes"].to_list() == [FULL["boxes"], []]
    assert tf.sparse.to_dense(batch["sparse"]).numpy().tolist() == [
        [0, 0.5, 0, 0, 0, 0, 0, 0.25, 0],
        [0.0] * 9,
    ]


def test_examples_are_written_as_a_hand_writes_them(examples, golden):
    bare = {**FULL, **{name: [] for name in EMPTY}, "sparse": ([], []), "defaulted": None, "class": "cat"}
    rows = [{**row, "picture": golden.IMAGE} for row in (FULL, bare)]
    for row, expected in zip(rows, golden.examples(), strict=True):
        record = tf.train.Example.FromString(examples.encode(row)).features.feature
        hand = dict(expected.features.feature)
        del hand["unknown"]
        if not hand["defaulted"].WhichOneof("kind"):  # ours leaves the key out
            del hand["defaulted"]
        # Pillow's versions compress otherwise: of a picture the pixels must be equal
        ours = {key: value for key, value in record.items() if key != "picture"}
        theirs = {key: value for key, value in hand.items() if key != "picture"}
        assert ours == theirs
        pixels = tf.io.decode_png(record["picture"].bytes_list.value[0])
        np.testing.assert_array_equal(pixels.numpy(), golden.IMAGE)


def test_sequence_examples_are_read(root, sequence_examples):
    (batch,) = rs.read(root / "tests/golden/sequence_examples.tfrecord", sequence_examples, batch=3)
    assert batch["length"].numpy().tolist() == [3, 0, 1]
    assert batch["tokens"].numpy().tolist() == [[1, 2, 3], [-1, -1, -1], [1, -1, -1]]
    assert batch["vectors"].numpy()[0].tolist() == [[0, 0], [1, -1], [2, -2]]
    assert batch["tags"].to_list() == [[[], [b"t"], [b"t", b"t"]], [], [[]]]
    assert batch["class"].to_list() == [[0, 1, 0], [], [0]]


def test_sequence_examples_are_written_as_a_hand_writes_them(sequence_examples, golden):
    for steps, expected in zip((3, 0, 1), golden.sequence_examples(), strict=True):
        row = {
            "length": steps,
            "tokens": list(range(1, steps + 1)),
            "vectors": np.array([[step, -step] for step in range(steps)], np.float32).reshape(-1, 2),
            "tags": [["t"] * step for step in range(steps)],
            "class": ["cat" if step % 2 == 0 else 1 for step in range(steps)],
        }
        record = sequence_examples.encode(row)
        assert tf.train.SequenceExample.FromString(record) == expected


def test_the_committed_files_are_those_of_the_script(root, golden):
    for name, made in (("examples", golden.examples()), ("sequence_examples", golden.sequence_examples())):
        records = [record.data for record in scan(root / f"tests/golden/{name}.tfrecord")]
        kind = type(made[0])
        for record, one in zip(map(kind.FromString, records), made, strict=True):
            if name == "examples":
                for example in (record, one):
                    del example.features.feature["picture"]
            assert record == one
