"""Records as they are shown: any, also those of others and of nobody."""

from __future__ import annotations

import shutil

import pytest
from hypothesis import given
from hypothesis import strategies as st

import recordspec as rs
from fields_by_hand import entry, listed, packed, sized
from fields_by_hand import example as of_entries
from memory import peak_of
from recordspec.errors import RecordError, SpecError
from recordspec.inferring.record_schemas import infer_records as infer
from recordspec.statistics.diff import diff
from recordspec.statistics.info import info
from recordspec.statistics.stats import stats
from recordspec.tables.export import export
from recordspec.tables.query import Query
from recordspec.tables.show import RecordViewer
from recordspec.writing.sources.tfrecord import TFRecords
from some_records import BLOCKED, ROWS, SCHEMA, example, write
from third_party_data import DATA, needs_data


def test_the_first_records(data):
    first, second = RecordViewer(data).head(2)
    assert first == {
        "file": str(data / "train-00000-of-00003.tfrecord"),
        "record": 0,
        "features": {"id": 0, "many": [], "side": "left"},
    }
    assert second["features"] == {"id": 1, "many": 0.1, "side": "right", "text": "t1"}
    assert RecordViewer(data).show(1) == second
    assert len(list(RecordViewer(data).head(1000))) == 50


def test_the_schema_beside_the_files_names_keys_and_labels(data, tmp_path):
    """A key is a name, too; `raw` shows what is stored. Of a file alone, there are the keys."""
    (chosen,) = RecordViewer(data, Query(columns=("side", "number"), where="side = 'right' AND id > 3")).head(
        1
    )
    assert list(chosen["features"].items()) == [("side", "right"), ("id", 5)]
    (raw,) = RecordViewer(data, style="raw").head(1)
    assert raw["features"] == {"id": 0, "many": [], "side": 0}
    (alone,) = RecordViewer(shutil.copy(data / "train-00000-of-00003.tfrecord", tmp_path)).head(1)
    assert alone["features"] == {"many": [], "number": 0, "side": 0}


def test_a_spec_names_keys_and_labels(data):
    (first,) = RecordViewer(data, Query(schema=SCHEMA)).head(1)
    assert first["features"] == {"id": 0, "many": [], "side": "left"}
    (chosen,) = RecordViewer(
        data, Query(schema=SCHEMA, columns=("side", "id"), where="side = 'right' AND id > 3")
    ).head(1)
    assert list(chosen["features"].items()) == [("side", "right"), ("id", 5)]


@pytest.mark.parametrize("compression", ["none", "gzip"])
def test_records_by_number(tmp_path, compression):
    rs.write(ROWS, SCHEMA, tmp_path / "d", shards=3, compression=compression)
    look = RecordViewer(tmp_path / "d")
    assert [look.show(number)["features"]["id"] for number in range(50)] == list(range(50))
    for number in (50, -1):
        with pytest.raises(SpecError) as error:
            look.show(number)
        assert str(error.value) == f"record: expected a number from 0 to 49, got {number}"


def test_a_sample_is_a_function_of_the_seed_and_takes_all_alike(data):
    def numbers(seed: int, **how) -> list[int]:
        return [record["features"]["id"] for record in RecordViewer(data, Query(**how)).sample(5, seed)]

    assert numbers(1) == numbers(1) != numbers(2)
    assert len(numbers(1)) == 5
    assert numbers(3) == sorted(numbers(3))
    assert all(number > 40 for number in numbers(1, where="id > 40"))
    assert len(list(RecordViewer(data).sample(80, 1))) == 50


def test_what_is_long_is_cut_and_what_is_full_is_not(tmp_path):
    numbers = [float(n) / 2 for n in range(784)]
    record = example(
        floats=numbers,
        ints=list(range(-3, 14)),
        text=[b"x" * 300],
        texts=[b"a"] * 17,
        nan=[float("nan")] * 18,
    )
    path = write(tmp_path / "f", record)
    (short,) = RecordViewer(path).head(1)
    assert short["features"] == {
        "floats": "<784 floats in [0.0, 391.5]>",
        "ints": "<17 integers in [-3, 13]>",
        "nan": "<18 NaN>",
        "text": "x" * 200 + "... 300 characters",
        "texts": "<17 bytes values, the first 'a'>",
    }
    (full,) = RecordViewer(path, style="full").head(1)
    assert full["features"]["floats"] == numbers
    assert full["features"]["text"] == "x" * 300
    (raw,) = RecordViewer(path, style="raw").head(1)
    assert raw["features"]["text"] == b"x" * 300


@pytest.mark.parametrize("text", ["نمی\u200cشود", "👩\u200d💻", "10\u00a0km", "x\u202ey", "a\tb\r\nc"])
def test_texts_have_letters_that_are_not_seen(tmp_path, text):
    (record,) = RecordViewer(write(tmp_path / "f", example(t=[text.encode()]))).head(1)
    assert record["features"] == {"t": text}


@pytest.mark.slow
def test_a_record_of_100_megabytes_is_copied_once(tmp_path):
    """In a process of its own, whose peak tells what the record took."""
    path = write(
        tmp_path / "one.tfrecord", of_entries(entry("a", listed("bytes", sized(1, b"\xff" * (100 << 20)))))
    )
    shown, peak = peak_of(
        "print([*viewer.head(1), viewer.show(0)][0]['features']['a'])",
        f"from recordspec.tables.show import RecordViewer; viewer = RecordViewer({path.name!r})",
        path.parent,
    )
    assert shown == "<104,857,600 bytes>"
    assert 100 << 20 <= peak < 250 << 20  # read, and copied


def test_keys_that_are_there_twice_are_told(tmp_path):
    path = write(tmp_path / "f", example(a=[1]) + example(a=[2]))
    (record,) = RecordViewer(path).head(1)
    assert (record["features"], record["repeated"]) == ({"a": 2}, ["a"])


def test_what_is_no_example_is_said_to_be_none(tmp_path):
    path = write(
        tmp_path / "f",
        b"\x18\x01",
        b"just a text",
        b"\xff\xfe\x00",
        b"\x08" + b"\x80" * 10 + b"\x01",
        b"\x0b" * 10_000,
    )
    records = list(RecordViewer(path).head(9))
    expected = "expected an Example or a SequenceExample, got"
    assert [record["problem"] for record in records] == [
        f"{expected} another message of 2 bytes",
        *(f"{expected} {size} bytes that do not parse" for size in ("11", "3", "12", "10,000")),
    ]
    assert [record["bytes"] for record in records] == [
        "<2 bytes>",
        "just a text",
        "<3 bytes>",
        "<12 bytes>",
        "<10,000 bytes>",
    ]
    found = info(path)
    assert found.kinds == {"Example": 0, "SequenceExample": 0, "neither": 5}
    assert found.features == ()
    (raw,) = RecordViewer(path, style="raw").sample(1, 4)
    assert isinstance(raw.get("bytes", b""), bytes)


@given(st.lists(st.binary(max_size=60), max_size=4))
def test_no_record_is_too_strange_to_be_shown(tmp_path_factory, records):
    path = write(tmp_path_factory.mktemp("any") / "f", *records)
    assert len(list(RecordViewer(path).head(9))) == len(records)
    assert sum(info(path).kinds.values()) == len(records)


def test_a_damaged_file_is_shown_up_to_there(tmp_path):
    path = write(tmp_path / "f", example(a=[1]), example(a=[2]))
    spoilt = bytearray(path.read_bytes())
    spoilt[-1] ^= 1
    path.write_bytes(spoilt)
    shown = RecordViewer(path).head(9)
    assert next(shown)["features"] == {"a": 1}
    with pytest.raises(RecordError) as error:
        next(shown)
    assert (
        str(error.value)
        == f"{path}: record 1 at byte 30: expected data that matches its CRC, got other bytes"
    )


def test_blocks_are_shown_as_rows(tmp_path):
    rows = [{"n": n, "s": [n] * (n % 3), **({"name": "x"} if n % 2 else {})} for n in range(20)]
    rs.write(rows, BLOCKED, tmp_path / "b", layout={"blocks": 8})
    rs.write(rows, BLOCKED, tmp_path / "r")
    blocked, plain = RecordViewer(tmp_path / "b"), RecordViewer(tmp_path / "r")
    for number, (one, other) in enumerate(zip(blocked.head(99), plain.head(99), strict=True)):
        assert (one["row"], one["features"], one.get("sequence")) == (
            other["record"],
            other["features"],
            other.get("sequence"),
        )
        assert blocked.show(number) == one
    assert blocked.notes == ()
    assert [row["features"]["n"] for row in RecordViewer(tmp_path / "b", Query(where="n > 15")).head(99)] == [
        16,
        17,
        18,
        19,
    ]


def test_blocks_without_a_schema_are_shown_as_they_are_stored(tmp_path):
    rs.write([{"n": 1, "s": [2]}, {"n": 3, "s": []}], BLOCKED, tmp_path / "b", layout={"blocks": 8})
    (file,) = (tmp_path / "b").glob("*.tfrecord")
    alone = tmp_path / "alone.tfrecord"
    alone.write_bytes(file.read_bytes())
    look = RecordViewer(alone)
    (block,) = look.head(9)
    assert block["features"]["/rows"] == 2
    assert block["features"]["context/n"] == [1, 3]
    assert look.notes == (
        "each record is a block of rows; a schema beside the shards, or --schema, unpacks them",
    )
    assert [row["features"]["n"] for row in RecordViewer(alone, Query(schema=BLOCKED)).head(9)] == [1, 3]


@pytest.mark.parametrize("rows", [-1, 1 << 60, 3])
def test_blocks_that_lie_are_refused(tmp_path, rows):
    schema = rs.Schema.loads("schema: s\nfeatures: {a: int64}")
    path = write(tmp_path / "f", example(**{"/rows": [rows], "a": [1, 2]}))
    with pytest.raises(RecordError) as error:
        list(RecordViewer(path, Query(schema=schema)).head(9))
    assert str(error.value).startswith(f"{path}: record 0 at byte 0: ")


@needs_data
def test_mnist():
    (first,) = RecordViewer(DATA / "mnist/mnist.tfrecord").head(1)
    assert first["features"]["image_floats"] == "<784 floats in [-0.5, 0.5]>"


LIST = b"".join(sized(1, example(price=[price])) for price in (0.5, 2.0)) + sized(2, example(query=[b"x"]))
NO_ROWS = (
    "record 1 at byte {}: expected an Example or a SequenceExample, got an ExampleListWithContext of 2 Examples "
    "(a record of TF-Ranking: `recordspec build` with the source `tfrecord` writes it as a SequenceExample)"
)


PRICES = rs.Schema.loads("schema: s\nfeatures: {price: int64}")


def test_an_example_list_with_context_is_named_and_is_no_row(tmp_path):
    path = write(tmp_path / "x", example(price=[1]), LIST)
    assert [{**one, "file": ""} for one in RecordViewer(path).head(2)] == [
        {"file": "", "record": 0, "features": {"price": 1}},
        {
            "file": "",
            "record": 1,
            "problem": NO_ROWS.partition(": ")[2],
            "bytes": f"<{len(LIST)} bytes>",
        },
    ]
    found = info(path)
    assert found.kinds == {"Example": 1, "SequenceExample": 0, "neither": 0, "ExampleListWithContext": 1}
    assert [(one.key, one.records, one.kinds.keys()) for one in found.features] == [("price", 1, {"int64"})]
    said = f"{path}: {NO_ROWS.format(len(example(price=[1])) + 16)}"
    for choice in (
        Query(columns=("price",)),
        Query(where="price > 0"),
        Query(where="price IS NULL", schema=SCHEMA),
    ):
        with pytest.raises(RecordError) as error:
            list(RecordViewer(path, choice).head(2))
        assert str(error.value) == said
    refusals = (
        lambda: export(path, tmp_path / "x.jsonl"),
        lambda: infer(path, "x"),
        lambda: diff(path, path),
        lambda: rs.scan(path).to_table(),
        lambda: rs.adopt(path, PRICES, check=True),
        lambda: rs.reshard(path, tmp_path / "blocks", schema=PRICES, layout={"blocks": 2}),
    )
    for refused in refusals:
        with pytest.raises(RecordError) as error:
            refused()
        assert said in str(error.value)
    ((split,),) = (stats(path).splits,)
    assert (split.broken, list(map(str, split.problems))) == (1, [said])


def test_infer_says_once_that_records_are_example_lists_with_context(tmp_path):
    path = write(tmp_path / "x", example(price=[1]), *[LIST] * 200)
    with pytest.raises(RecordError) as error:
        infer(path, "x")
    said = NO_ROWS.format(len(example(price=[1])) + 16)[:-1] + "; as 199 more records)"
    assert str(error.value) == f"{path}: {said}"
    # if all are, the schema is that of the SequenceExamples that a build makes of them
    alone = write(tmp_path / "lists", *[LIST] * 2000)
    inferred = infer(alone, "x")
    assert inferred.schema.dump() == (
        "schema: x\nrecord: sequence_example\ncontext: {query: text}\n"
        "sequence:\n  price: {kind: fixed_len_sequence, dtype: float32}\n"
    )
    assert inferred.notes == (
        "records of TF-Ranking: `recordspec build` with the source `tfrecord` writes them as SequenceExamples, "
        "which this schema reads",
    )


TWICE = of_entries(entry("n", listed("int64", packed("int64", 5), packed("int64", 6))))
OTHERWISE = (
    "features.n: expected 2 int64, as protobuf reads the record, got 1 int64 in TensorFlow "
    "(TensorFlow reads other values than protobuf)"
)


def test_what_tensorflow_reads_otherwise_is_told_and_not_converted(tmp_path):
    path = write(tmp_path / "x.tfrecord", example(n=[1]), TWICE)
    *_, shown = RecordViewer(path).head(2)
    assert (shown["features"], shown["tensorflow"]) == ({"n": [5, 6]}, [OTHERWISE])
    assert info(path).conflicts == 1
    inferred = infer(path, "x")
    assert inferred.notes == ("TensorFlow refuses 1 of 2 rows, or reads other values: see `check`",)
    warnings = stats(path).splits[0].warnings
    assert warnings == ("TensorFlow refuses 1 of 2 rows, or reads other values: see `check`",)
    said = f"{path}: record 1 at byte {len(example(n=[1])) + 16}: {OTHERWISE}"
    schema = rs.Schema.loads("schema: s\nfeatures: {n: {kind: var_len, dtype: int64}}")
    conversions = (
        lambda: export(path, tmp_path / "x.jsonl"),
        lambda: rs.reshard(path, tmp_path / "new", schema=schema, layout={"blocks": 2}),
        lambda: rs.write(TFRecords(files=str(path)).open(tmp_path), schema, tmp_path / "new"),
    )
    for convert in conversions:
        with pytest.raises(RecordError) as error:
            convert()
        assert str(error.value).splitlines()[0] == said
    assert not (tmp_path / "new").exists()
    rs.reshard(path, tmp_path / "same", schema=schema)  # keeps the bytes
