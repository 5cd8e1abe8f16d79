"""TF-Ranking's ExampleListWithContext, made with plain protobuf: the values are those of a parse by hand.

What `wire.proto` makes of its bytes is in `test_wire_proto.py`.
"""

from __future__ import annotations

import json

import numpy as np
import pytest
import tensorflow as tf
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

import recordspec as rs
from frames_by_hand import frame
from recordspec import RecordError, SpecError
from recordspec.integrity.check import check
from recordspec.locations import location
from recordspec.store.shards import shard_files
from shell import run_here as run

SCHEMA = rs.Schema.loads("""
schema: queries
record: example_list_with_context
context: {query: text, weight: {dtype: float32, default: 1.0}}
sequence:
  price: float32
  relevance: {kind: label, names: [bad, good, perfect]}
  size: {dtype: int64, shape: [2]}
  tags: {kind: var_len, dtype: string}
  stock: {dtype: int64, default: -1, with_missing: true}
  seen: {kind: fixed_len_sequence, dtype: int64, pad: -1}
""")
LISTS = [
    (
        {"query": b"pizza", "weight": 0.5},
        [
            {"price": 7.5, "relevance": 1, "size": [1, 2], "tags": [b"a", b"b"], "stock": 3, "seen": 1},
            {"price": 9.0, "relevance": 0, "size": [3, 4], "seen": 0},
        ],
    ),
    ({"query": b"none"}, []),
    (
        {"query": b"pasta"},
        [{"price": 8.0, "relevance": 2, "size": [5, 6], "tags": [b"c"], "stock": 0, "seen": 2}],
    ),
]


def message_class():
    """The message, with TensorFlow's own Example in it."""
    file = descriptor_pb2.FileDescriptorProto(
        name="elwc.proto", package="by_hand", dependency=["tensorflow/core/example/example.proto"]
    )
    message = file.message_type.add(name="ExampleListWithContext")
    for number, (name, label) in enumerate([("examples", 3), ("context", 1)], 1):
        message.field.add(name=name, number=number, label=label, type=11, type_name=".tensorflow.Example")
    pool = descriptor_pool.Default()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("by_hand.ExampleListWithContext"))


List = message_class()


def fill(example: tf.train.Example, values: dict) -> None:
    for key, value in values.items():
        several = value if isinstance(value, list) else [value]
        kind = {bytes: "bytes_list", float: "float_list", int: "int64_list"}[type(several[0])]
        getattr(example.features.feature[key], kind).value.extend(several)


def list_of(context: dict | None, examples: list[dict]) -> bytes:
    made = List()
    for values in examples:
        example = made.examples.add()
        example.SetInParent()
        fill(example, values)
    if context is not None:
        fill(made.context, context)
    return made.SerializeToString()


RECORDS = [list_of(*one) for one in LISTS]
EXPECTED = {
    "query": [b"pizza", b"none", b"pasta"],
    "weight": [0.5, 1.0, 1.0],
    "price": [[7.5, 9.0], [], [8.0]],
    "relevance": [[1, 0], [], [2]],
    "size": [[[1, 2], [3, 4]], [], [[5, 6]]],
    "tags": [[[b"a", b"b"], []], [], [[b"c"]]],
    "stock": [[3, -1], [], [0]],
    "stock_missing": [[False, True], [], [False]],
    "seen": [[1, 0], [-1, -1], [2, -1]],
}


def plain(value):
    value = value.to_list() if isinstance(value, tf.RaggedTensor) else value
    value = value.numpy() if isinstance(value, tf.Tensor) else value
    if isinstance(value, rs.RaggedArray):
        return [plain(value[row]) for row in range(len(value))]
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else value


@pytest.fixture
def folder(tmp_path):
    path = tmp_path / "theirs/queries.tfrecord"
    path.parent.mkdir()
    path.write_bytes(b"".join(map(frame, RECORDS)))
    (tmp_path / "queries.yaml").write_text(SCHEMA.dump())
    return path.parent


def test_values_are_those_of_the_messages():
    assert {name: plain(value) for name, value in SCHEMA.decode(RECORDS).items()} == EXPECTED
    in_graph = tf.function(SCHEMA.decode, input_signature=[tf.TensorSpec([None], tf.string)])
    assert {name: plain(value) for name, value in in_graph(tf.constant(RECORDS)).items()} == EXPECTED
    alone = {name: plain(value) for name, value in SCHEMA.decode(RECORDS[0]).items()}
    assert alone == {name: values[0] for name, values in EXPECTED.items()}
    decoded = SCHEMA.decode_numpy(RECORDS)
    assert {name: plain(value) for name, value in decoded.items()} == EXPECTED
    spec = SCHEMA.element_spec()["price"]
    assert (spec.shape.as_list(), spec.dtype) == ([None], tf.float32)
    assert rs.Schema.loads(SCHEMA.dump()) == SCHEMA


def test_a_list_without_a_context_and_one_of_nothing():
    schema = rs.Schema.loads(
        "schema: s\nrecord: example_list_with_context\nsequence: {price: {dtype: float32, default: 0.0}}"
    )
    records = [list_of(None, [{"price": 1.0}]), b""]
    assert plain(schema.decode(records)["price"]) == [[1.0], []]
    assert plain(schema.decode_numpy(records)["price"]) == [[1.0], []]


def test_an_example_that_lacks_a_value_is_refused():
    record = list_of(
        {"query": b"x"},
        [
            {"price": 1.0, "relevance": 1, "size": [1, 2], "seen": 1},
            {"price": 1.0, "size": [1, 2], "seen": 1},
        ],
    )
    with pytest.raises(tf.errors.InvalidArgumentError, match="relevance"):
        SCHEMA.decode([record])
    with pytest.raises(RecordError) as error:
        SCHEMA.decode_numpy([record])
    assert str(error.value) == "sequence.relevance[1]: expected 1 int64, got none"
    with pytest.raises(RecordError) as error:
        SCHEMA.decode_numpy([tf.train.Example().SerializeToString() + RECORDS[0], SCHEMA.name.encode()])
    assert str(error.value) == "expected an ExampleListWithContext, got another message"


def test_files_are_inferred_adopted_and_trained_on(folder, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    inferred = rs.infer("theirs", "queries")
    assert inferred.schema.dump() == (
        "schema: queries\n"
        "record: example_list_with_context\n"
        "context:\n"
        "  query: text\n"
        "  weight: {description: missing in 2 of 3, dtype: float32, default: 0.0, with_missing: true}\n"
        "sequence:\n"
        "  price: float32\n"
        "  relevance: int64\n"
        "  seen: int64\n"
        "  size:\n"
        "    dtype: int64\n"
        "    shape: [2]\n"
        "  stock: {kind: var_len, description: missing in 1 of 3, dtype: int64}\n"
        "  tags: {kind: var_len, description: missing in 1 of 3, dtype: string}\n"
    )
    manifest = rs.adopt(SCHEMA, "theirs", check=True)
    assert (manifest.record, manifest.rows("train")) == ("example_list_with_context", 3)
    report = check(shard_files((location(folder / "queries.tfrecord"),), SCHEMA), SCHEMA)
    assert (report.valid, report.rows) == (True, 3)
    (tmp_path / "config.yaml").write_text(
        "schema: queries.yaml\ndata: theirs\nread: {batch: 2}\n"
        "fit: {inputs: [price, stock], targets: relevance, encode: {price: normalize}}\n"
    )
    pipeline = rs.Pipeline.load("config.yaml")
    prices = [7.5, 9.0, 8.0]
    assert pipeline.layers()["price"].mean.numpy().item() == pytest.approx(np.mean(prices))
    targets = [target for _, target in pipeline.dataset("train")]
    assert [plain(target) for target in targets] == [[[1, 0], [-1, -1]], [[2]]]
    read = [plain(batch["price"]) for batch in rs.read(SCHEMA, "theirs", batch=3)]
    assert read == [EXPECTED["price"]]
    assert rs.open("theirs", SCHEMA)[0]["price"].tolist() == [7.5, 9.0]


def test_they_are_read_and_not_written(folder, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    refused = (
        "record: expected example or sequence_example {}, got `example_list_with_context`"
        " (such records are only read)"
    )
    rows = {"query": ["a"], "price": [[1.0]]}
    for write in (
        lambda: rs.write(SCHEMA, rows, "data"),
        lambda: SCHEMA.encode({"query": "a"}),
        lambda: SCHEMA.encode_batch(rows, 1),
    ):
        with pytest.raises(SpecError) as error:
            write()
        assert str(error.value) == refused.format("to be written")
    for how, purpose in {
        "--python": "in plain TensorFlow",
        "--as=tfds": "for TFDS",
        "--as=tfmd": "for TensorFlow Metadata",
    }.items():
        done = run("explain", "queries.yaml", how)
        assert (done.returncode, done.stdout, done.stderr) == (2, "", refused.format(purpose) + "\n")
    with pytest.raises(SpecError) as error:
        rs.Schema.loads(
            "schema: s\nrecord: example_list_with_context\nsequence: {a: {kind: var_len, dtype: int64, missing: empty}}"
        )
    assert str(error.value) == (
        "<text>:3:54: sequence.a.missing: expected no `missing`, got `empty`"
        " (a list without Examples is an empty one of each feature)"
    )


def test_commands_take_their_features_as_columns(folder, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run("export", "theirs", "--out", "lists.jsonl").returncode == 0
    rows = [json.loads(line) for line in (tmp_path / "lists.jsonl").read_text().splitlines()]
    stock, tags = [3, None], [["a", "b"], None]  # an Example without the feature
    first = {"price": [7.5, 9.0], "relevance": [1, 0], "size": [[1, 2], [3, 4]], "seen": [1, 0]}
    assert rows[0] == {"query": "pizza", "weight": 0.5, **first, "tags": tags, "stock": stock}
    assert [row["query"] for row in rows] == ["pizza", "none", "pasta"]
    found = run("head", "theirs", "--where", "len(price) = 1", "--columns", "query,tags", "--json")
    assert found.returncode == 0, found.stderr
    assert [json.loads(line)["examples"] for line in found.stdout.splitlines()] == [[{"tags": "c"}]]
    same = run("diff", "theirs", "theirs", "--json")
    assert (same.returncode, json.loads(same.stdout)["different"]) == (0, False)


def test_a_build_stores_them_as_sequence_examples(folder, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "stored.yaml").write_text("""
schema: stored
context: {query: text}
sequence: {price: {kind: fixed_len_sequence, dtype: float32}, tags: {kind: var_len, dtype: string}}
""")
    (tmp_path / "config.yaml").write_text(
        "schema: stored.yaml\ndata: data\n"
        "write: {source: {tfrecord: {files: theirs, schema: queries.yaml}}}\n"
    )
    pipeline = rs.Pipeline.load("config.yaml")
    assert pipeline.build(progress=False).rows("train") == 3
    rows = run("export", "data", "--out", "rows.jsonl")
    assert rows.returncode == 0, rows.stderr
    rows = [json.loads(line) for line in (tmp_path / "rows.jsonl").read_text().splitlines()]
    assert [row["price"] for row in rows] == EXPECTED["price"]
    assert [row["tags"] for row in rows] == [[["a", "b"], []], [], [["c"]]]
