"""TF-Ranking's ExampleListWithContext, made with plain protobuf, which a build stores as a SequenceExample.

What `wire.proto` makes of its bytes is in `test_wire_proto.py`.
"""

from __future__ import annotations

import json

import pytest
import tensorflow as tf
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

import recordspec as rs
from frames_by_hand import frame
from recordspec import RecordError, SpecError
from recordspec.schema.decoder import decode_problems
from shell import run_here as run

SCHEMA = rs.Schema.loads("""
schema: queries
context: {query: text, weight: {dtype: float32, default: 1.0}}
sequence:
  price: {kind: fixed_len_sequence, dtype: float32}
  relevance: {kind: label, names: [bad, good, perfect]}
  size: {kind: fixed_len_sequence, dtype: int64, shape: [2]}
  tags: {kind: var_len, dtype: string}
  stock: {kind: var_len, dtype: int64}
  unseen: {kind: ragged, dtype: int64, shape: [null, null]}
""")
LISTS = [
    (
        {"query": b"pizza", "weight": 0.5},
        [
            {"price": 7.5, "relevance": 1, "size": [1, 2], "tags": [b"a", b"b"], "stock": 3},
            {"price": 9.0, "relevance": 0, "size": [3, 4]},
        ],
    ),
    ({"query": b"none"}, []),
    (
        {"query": b"pasta"},
        [{"price": 8.0, "relevance": 2, "size": [5, 6], "tags": [b"c"], "stock": 0}],
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
EXPECTED = [
    {
        "query": "pizza",
        "weight": 0.5,
        "price": [7.5, 9.0],
        "relevance": ["good", "bad"],
        "size": [[1, 2], [3, 4]],
        "tags": [["a", "b"], []],
        "stock": [[3], []],
        "unseen": [[], []],
    },
    {"query": "none", **{name: [] for name in ("price", "relevance", "size", "tags", "stock", "unseen")}},
    {
        "query": "pasta",
        "price": [8.0],
        "relevance": ["perfect"],
        "size": [[5, 6]],
        "tags": [["c"]],
        "stock": [[0]],
        "unseen": [[]],
    },
]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    path = tmp_path / "theirs/queries.tfrecord"
    path.parent.mkdir()
    path.write_bytes(b"".join(map(frame, RECORDS)))
    (tmp_path / "queries.yaml").write_text(SCHEMA.dump())
    (tmp_path / "config.yaml").write_text(
        "schema: queries.yaml\ndata: data\nwrite: {source: {tfrecord: theirs}}\n"
        "read: {batch: 3}\nfit: {inputs: [price, tags], targets: relevance}\n"
    )
    monkeypatch.chdir(tmp_path)
    return path.parent


def test_a_build_stores_them_as_sequence_examples(folder, tmp_path):
    pipeline = rs.Pipeline.load("config.yaml")
    assert pipeline.build(progress=False).rows("train") == 3
    assert run("export", "data", "--out", "rows.jsonl").returncode == 0
    rows = [json.loads(line) for line in (tmp_path / "rows.jsonl").read_text().splitlines()]
    assert rows == [{"weight": None, **row} for row in EXPECTED]
    ((inputs, targets),) = pipeline.dataset("train")
    assert inputs["price"].numpy().tolist() == [[7.5, 9.0], [0.0, 0.0], [8.0, 0.0]]
    assert targets.numpy().tolist() == [[1, 0], [-1, -1], [2, -1]]


def test_lists_may_lie_among_sequence_examples(folder):
    stored = SCHEMA.encode(
        {"query": "x", **{name: [] for name in SCHEMA.names if name not in ("query", "weight")}}
    )
    (folder / "queries.tfrecord").write_bytes(b"".join(map(frame, [stored, RECORDS[2]])))
    rs.Pipeline.load("config.yaml").build(progress=False)
    assert [row["query"] for row in rs.scan("data").to_table().to_pylist()] == ["x", "pasta"]


def test_an_example_that_lacks_a_value_is_refused(folder):
    lacking = list_of({"query": b"x"}, [LISTS[0][1][0], {"price": 1.0, "size": [1, 2]}])
    (folder / "queries.tfrecord").write_bytes(frame(RECORDS[2]) + frame(lacking))
    with pytest.raises(RecordError) as error:
        rs.Pipeline.load("config.yaml").build(progress=False)
    offset = len(frame(RECORDS[2]))
    assert str(error.value).endswith(
        f"theirs/queries.tfrecord: record 1 at byte {offset}: sequence.relevance[1]: expected 1 int64, got none"
    )


def test_what_is_inferred_is_built_and_trained_on(folder):
    done = run("infer", "theirs", "--out", "inferred.yaml", "--config", "inferred-config.yaml")
    assert done.returncode == 0, done.stderr
    assert rs.Schema.load("inferred.yaml").dump() == (
        "schema: queries\n"
        "record: sequence_example\n"
        "context:\n"
        "  query: text\n"
        "  weight: {description: missing in 2 of 3, dtype: float32, default: 0.0, with_missing: true}\n"
        "sequence:\n"
        "  price: {kind: fixed_len_sequence, dtype: float32}\n"
        "  relevance: {kind: fixed_len_sequence, dtype: int64}\n"
        "  size:\n"
        "    kind: fixed_len_sequence\n"
        "    dtype: int64\n"
        "    shape: [2]\n"
        "  stock: {kind: var_len, description: missing in 1 of 3, dtype: int64}\n"
        "  tags: {kind: var_len, description: missing in 1 of 3, dtype: string}\n"
    )
    assert run("build", "inferred-config.yaml").returncode == 0
    rows = rs.scan("queries-data").to_table().to_pylist()
    assert sorted(row["price"] for row in rows) == [[], [7.5, 9.0], [8.0]]


def test_a_key_that_all_documents_of_one_record_lack_is_inferred_as_lists_that_vary(folder):
    lacking = list_of({"query": b"x"}, [{"relevance": 1, "size": [1, 2]}] * 2)
    (folder / "queries.tfrecord").write_bytes(frame(RECORDS[0]) + frame(RECORDS[1]) + frame(lacking))
    done = run("infer", "theirs", "--out", "inferred.yaml", "--config", "inferred-config.yaml")
    assert done.returncode == 0, done.stderr
    price = rs.Schema.load("inferred.yaml").names["price"]
    assert (price.kind, price.missing, price.description) == ("var_len", "error", "missing in 2 of 4")
    assert "price: missing in 2 of 4 steps" in done.stderr
    done = run("build", "inferred-config.yaml")
    assert done.returncode == 0, done.stderr
    rows = rs.scan("queries-data").to_table().to_pylist()
    assert sorted(row["price"] for row in rows) == [[], [[], []], [[7.5], [9.0]]]


def test_nothing_else_reads_them(folder):
    said = (
        "expected an Example or a SequenceExample, got an ExampleListWithContext of 2 Examples "
        "(a record of TF-Ranking: `recordspec build` with the source `tfrecord` writes it as a SequenceExample)"
    )
    plain = rs.Schema.loads("schema: s\nfeatures: {query: text}")
    for schema in (SCHEMA, plain):
        with pytest.raises(tf.errors.InvalidArgumentError):
            list(rs.read("theirs", schema, batch=3))
        assert list(map(str, decode_problems(schema, RECORDS[0], in_blocks=False))) == [said]
    for refused in (
        lambda: SCHEMA.decode_numpy(RECORDS),
        lambda: rs.open("theirs", SCHEMA)[0],
        lambda: rs.scan("theirs", SCHEMA).to_table(),
        lambda: rs.adopt("theirs", SCHEMA),
    ):
        with pytest.raises(RecordError) as error:
            refused()
        assert said in str(error.value)
    checked, queried = (
        run("check", "theirs", "--schema", "queries.yaml"),
        run("query", "SELECT * FROM t", "t=theirs"),
    )
    assert (checked.returncode, queried.returncode) == (1, 1)
    assert json.loads(checked.stdout.splitlines()[0])["got"] == "an ExampleListWithContext of 2 Examples"
    assert said in queried.stderr
    with pytest.raises(SpecError) as error:
        rs.Schema.loads("schema: s\nrecord: example_list_with_context\nsequence: {a: int64}")
    assert "record: expected one of example, sequence_example, got `example_list_with_context`" in str(
        error.value
    )
