"""Columns that are parsed together: equal to what `decode_numpy` gives, which takes each alone."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

import recordspec as rs
from recordspec.reading.corrupt_records import TrialDecode
from recordspec.schema import column_groups
from recordspec.wire.tfrecord import Record

SORTS = {
    "float32": ["{dtype: float32}", "{dtype: float32, default: -1.5}"],
    "int64": ["{dtype: int64}", "{dtype: int64, default: 7}"],
    "string": ["{dtype: string}", "{dtype: string, default: 'none'}"],
}
COLUMNS = 5


def schema_of(record: str = "example") -> rs.Schema:
    """Five columns of each sort, and others between them that are in no group."""
    lines = []
    for dtype, sorts in SORTS.items():
        told = sorts[1].replace("}", ", with_missing: true}")
        for kind, options in enumerate([*sorts, told]):
            lines += [f"{dtype[0]}{kind}{number}: {options}" for number in range(COLUMNS)]
    lines[7:7] = [
        "label: {kind: label, names: [a, b]}",
        "pair: {dtype: float32, shape: [2]}",
        "list: {kind: var_len, dtype: int64}",
        "number: {kind: label, names: [a, b], encoding: name}",
    ]
    body = "".join(f"  {line}\n" for line in lines)
    if record == "example":
        return rs.Schema.loads(f"schema: s\nfeatures:\n{body}")
    return rs.Schema.loads(
        f"schema: s\nrecord: sequence_example\ncontext:\n{body}sequence:\n"
        + "".join(
            f"  step{number}: {{kind: fixed_len_sequence, dtype: float32}}\n" for number in range(COLUMNS)
        )
    )


def rows_of(schema: rs.Schema, count: int) -> list[dict]:
    rng = np.random.default_rng(0)
    rows = []
    for _ in range(count):
        row = {
            "label": int(rng.integers(2)),
            "pair": rng.random(2),
            "list": rng.integers(0, 9, rng.integers(4)),
        }
        row["number"] = "ab"[rng.integers(2)]
        for name in schema.names:
            if len(name) == 3 and (name[1] == "0" or rng.random() < 0.6):
                value = int(rng.integers(1000))
                row[name] = {"f": value / 8, "i": value, "s": str(value)}[name[0]]
        if schema.record == "sequence_example":
            steps = int(rng.integers(3))
            row |= {f"step{number}": rng.random(steps).astype(np.float32) for number in range(COLUMNS)}
        rows.append(row)
    return rows


def same(found, expected) -> None:
    assert set(found) == set(expected)
    for name, value in found.items():
        array = value.flat_values if isinstance(value, tf.RaggedTensor) else value
        other = expected[name].values if isinstance(expected[name], rs.RaggedArray) else expected[name]
        np.testing.assert_array_equal(array, other, name)


@pytest.mark.parametrize("record", ["example", "sequence_example"])
def test_they_have_the_values_that_each_has_alone(record):
    schema = schema_of(record)
    records = [schema.encode(row) for row in rows_of(schema, 30)]
    expected = schema.decode_numpy(records)
    same(schema.decode(records), expected)
    assert len(column_groups.column_groups(schema)) == 5  # strings without a default are too few
    size = {"example": 10, "sequence_example": 15}[record]
    rows = rows_of(schema, 30)
    blocks = [schema.encode_block(columns(schema, rows[n : n + size]), size) for n in range(0, 30, size)]
    same(schema.decode_block(blocks), expected)
    same(schema.decode_block(blocks[0]), schema.decode_numpy(records[:size]))


def columns(schema: rs.Schema, rows: list[dict]) -> dict:
    return {name: [row.get(name) for row in rows] for name in schema.names}


@pytest.mark.parametrize("layout", ["rows", {"blocks": 16}])
@pytest.mark.parametrize(
    "options",
    [
        {"batch": 7},
        {"batch": 8, "features": ["s10", "label", "i20_missing", "f00"]},
        {"batch": 8, "features": ["list", "i20"], "filter": lambda row: row["f00"] > 40},
        {"batch": None},
        {"batch": 16, "shuffle": {"seed": 3, "buffer": 50}},
    ],
    ids=["batches", "features", "filter", "rows", "shuffled"],
)
def test_they_are_read_as_other_columns(tmp_path, layout, options):
    schema, count = schema_of(), 100
    expected = schema.decode_numpy([schema.encode(row) for row in rows_of(schema, count)])
    rs.write(rows_of(schema, count), schema, tmp_path / "data", layout=layout)
    read = list(rs.read(tmp_path / "data", schema, **options))
    names = options.get("features") or [name for name in schema.outputs if name not in ("list", "pair")]
    order = np.arange(count)
    if "filter" in options:
        order = np.flatnonzero(expected["f00"] > 40)
    together = options["batch"] is not None
    for name in names:
        parts = [batch[name] for batch in read]
        if isinstance(parts[0], tf.RaggedTensor) and together:
            lists = [row for part in parts for row in part.to_list()]
            assert lists == [expected[name][row].tolist() for row in order]
            continue
        found = np.concatenate([np.asarray(part) for part in parts]) if together else np.stack(parts)
        if "shuffle" in options:
            assert sorted(found.tolist()) == sorted(expected[name].tolist())
        else:
            np.testing.assert_array_equal(found, expected[name][order], name)


def example(**features: tf.train.Feature) -> bytes:
    return tf.train.Example(features=tf.train.Features(feature=features)).SerializeToString()


def floats(*values: float) -> tf.train.Feature:
    return tf.train.Feature(float_list=tf.train.FloatList(value=values))


def ints(*values: int) -> tf.train.Feature:
    return tf.train.Feature(int64_list=tf.train.Int64List(value=values))


def block(rows: int, **changes: tf.train.Feature | None) -> bytes:
    """Five columns with values, and five of which every second row has one."""
    features = {"/rows": ints(rows)}
    some = [row % 2 for row in range(rows)]
    for number in range(COLUMNS):
        features[f"a{number}"] = floats(*range(rows))
        features[f"b{number}"] = floats(*range(sum(some)))
        features[f"b{number}/lengths"] = ints(*some)
    features |= {name.replace("__", "/"): value for name, value in changes.items()}
    return example(**{name: value for name, value in features.items() if value is not None})


@pytest.mark.parametrize(
    ("blocks", "wrong", "name"),
    [
        ([block(4, a1=floats(1, 2, 3)), block(4, a1=floats(1, 2, 3, 4, 5))], [0, 1], "a1"),
        ([block(4), block(3, a4=None)], [1], "a4"),
        ([block(4), block(3, a4=ints(1, 2, 3))], [1], "a4"),
        ([block(4, b2=floats(1)), block(4, b2=floats(1, 2, 3))], [0, 1], "b2"),
        ([block(4, b2__lengths=ints(2, 0, 0, 0))], [0], "b2"),
        ([block(4, b2__lengths=ints(0, 0, 3, -1))], [0], "b2"),
        ([block(4, b2=floats(1), b2__lengths=ints(1, -1, 1, 0))], [0], "b2"),
        ([block(4, b2__lengths=ints(0, 1, 1)), block(4, b2__lengths=ints(0, 1, 0, 1, 0))], [0, 1], "b2"),
        ([block(2), block(4, b0__lengths=None)], [1], "b0"),
    ],
)
def test_a_block_with_other_numbers_of_values_is_refused(blocks, wrong, name):
    """Also where the blocks together have as many as they should."""
    lines = [
        f"  a{number}: float32\n  b{number}: {{dtype: float32, default: 0.0}}\n" for number in range(COLUMNS)
    ]
    schema = rs.Schema.loads(f"schema: s\nfeatures:\n{''.join(lines)}")
    assert [len(group.columns) for group in column_groups.column_groups(schema)] == [COLUMNS, COLUMNS]
    np.testing.assert_array_equal(schema.decode_block([block(4), block(3)])["b3"], [0, 0, 0, 1, 0, 0, 0])
    with pytest.raises(tf.errors.InvalidArgumentError):
        schema.decode_block(blocks)
    records = [Record(number, 0, data) for number, data in enumerate(blocks)]
    problems = TrialDecode(schema, in_blocks=True).problems(records)
    assert [*problems] == wrong
    assert all(problem.path == ("features", name) for some in problems.values() for problem in some)


def test_more_than_one_value_is_refused():
    lines = [
        f"  b{number}: {{dtype: float32, default: 0.0, with_missing: true}}\n" for number in range(COLUMNS)
    ]
    schema = rs.Schema.loads(f"schema: s\nfeatures:\n{''.join(lines)}")
    with pytest.raises(tf.errors.InvalidArgumentError, match="expected one value, or none"):
        schema.decode([example(), example(b3=floats(1, 2))])
    assert schema.decode([example(), example(b3=floats(1))])["b3_missing"].numpy().tolist() == [True, False]
