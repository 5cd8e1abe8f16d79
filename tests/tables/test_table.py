"""TFRecords as tables of Arrow, with `tables.scan_columns`; the laws of `schema.table_columns` are in `test_laws.py`."""

from __future__ import annotations

import gzip
import pickle
import subprocess
import sys

import numpy as np
import pyarrow
import pyarrow.compute
import pyarrow.dataset
import pytest

import recordspec as rs
from examples import example as of_steps
from instances import CASES
from recordspec.errors import RecordError, SpecError, StoreError
from recordspec.schema.features.geometry import Coordinates, Pictures
from recordspec.schema.ragged_array import RaggedArray
from recordspec.store import scan as scan_module
from recordspec.tables.table import RecordTable
from recordspec.wire import record_batch
from recordspec.wire.framing import framed
from some_records import ROWS, SCHEMA, example, sequence_example, write
from third_party_data import DATA, needs_data

FIELD = pyarrow.dataset.field

# ---- a dataset ----


def test_a_dataset_is_a_table_of_its_features(data, chunks):
    table = rs.scan(data)
    assert {field.name: str(field.type) for field in table.schema} == {
        "id": "int64",
        "text": "large_string",
        "many": "large_list<item: float>",
        "side": "dictionary<values=string, indices=int32, ordered=0>",
    }
    rows = sorted(table.to_table().to_pylist(), key=lambda row: row["id"])
    assert rows == [
        {
            "id": row["id"],
            "text": row.get("text"),
            "many": [float(np.float32(number)) for number in row["many"]],
            "side": ["left", "right"][row["side"]],
        }
        for row in ROWS
    ]
    assert table.to_table() == table.to_table()


@pytest.mark.parametrize("layout", ["rows", {"blocks": 4}], ids=["rows", "blocks"])
@pytest.mark.parametrize("section", ["features", "context", "sequence"])
def test_a_table_is_written_as_the_same_bytes(layout, section, tmp_path):
    """All kinds together, many rows, of which some lack what they may lack."""
    features = {case.feature.name: case.feature for case in CASES if case.section == section}
    apart, keys = dict(features), set[str]()
    for name, feature in features.items():
        own = {column.key for column in feature.columns()}
        if own & keys or isinstance(feature, Coordinates | Pictures):
            del apart[name]
        else:
            keys |= own
    record = "example" if section == "features" else "sequence_example"
    schema = rs.Schema(name="all", record=record, **{section: tuple(apart.values())})
    rng = np.random.default_rng(7)

    def value(feature):
        if section != "sequence" or feature.traits.spans_steps:
            return feature.sample(rng)
        return [feature.sample(rng) for _ in range(int(rng.integers(0, 4)))]

    rows = [
        {
            feature.name: value(feature)
            for feature in apart.values()
            if section == "sequence" or not feature.traits.optional or rng.random() < 0.7
        }
        for _ in range(30)
    ]
    options = {"layout": layout, "shards": 2}
    rs.write(rows, schema, tmp_path / "first", **options)
    binary = [name for name, feature in apart.items() if feature.columns()[0].storage == "bytes"]
    table = rs.scan(tmp_path / "first", binary=binary)
    rs.write(table.to_reader(), schema, tmp_path / "second", **options)
    first, second = (
        {path.name: path.read_bytes() for path in (tmp_path / name).glob("*.tfrecord")}
        for name in ("first", "second")
    )
    assert len(first) == 2
    assert first == second


def test_where_rows_are_is_told_to_those_who_ask(data):
    table = rs.scan(data, columns=["record", "id", "file", "split"])
    assert table.schema.names == ["record", "id", "file", "split"]
    rows = table.to_table().to_pylist()
    assert {row["split"] for row in rows} == {"train"}
    numbers = {path: [row["record"] for row in rows if row["file"] == path] for path in {*map(_file, rows)}}
    assert sorted(numbers) == sorted(map(str, data.glob("*.tfrecord")))
    assert all(counted == list(range(len(counted))) for counted in numbers.values())


def _file(row) -> str:
    return row["file"]


def test_a_feature_may_have_the_name_of_a_place(tmp_path):
    schema = rs.Schema.loads("schema: s\nfeatures: {file: int64}\n")
    rs.write([{"file": 3}], schema, tmp_path / "d")
    assert rs.scan(tmp_path / "d", columns=["file", "split"]).to_table().to_pylist() == [
        {"file": 3, "split": "train"}
    ]


@pytest.mark.parametrize("layout", ["rows", {"blocks": 4}], ids=["rows", "blocks"])
def test_only_what_is_asked_for_is_decoded(layout, tmp_path, monkeypatch):
    rs.write(ROWS, SCHEMA, tmp_path / "d", layout=layout)
    table, asked = rs.scan(tmp_path / "d"), set[str]()
    packed_names = record_batch.packed_names

    def noted(keys):
        asked.update(keys)
        return packed_names(keys)

    monkeypatch.setattr(record_batch, "packed_names", noted)
    for columns, condition, expected in (
        (["id"], None, {"number"}),
        (["id"], FIELD("side") == "left", {"number", "side"}),
        ({"n": FIELD("id") + 1}, None, {"number"}),
        ([], FIELD("text").is_null(), {"text"}),
    ):
        asked.clear()
        table.to_table(columns=columns, filter=condition)
        assert asked & {"number", "text", "many", "side"} == expected
        assert asked == expected or layout != "rows"  # a block also states its rows, and lengths


def test_conditions_are_those_of_arrow(data):
    table = rs.scan(data)
    whole = table.to_table()
    condition = (FIELD("id") > 10) & (FIELD("side") == "right") & ~FIELD("text").is_null()
    expected = whole.filter(condition)
    assert 0 < len(expected) < 50
    assert table.to_table(filter=condition) == expected
    assert table.filter(condition).to_table(columns=["many"]) == expected.select(["many"])
    assert table.filter(FIELD("id") > 10).filter(condition).count_rows() == len(expected)
    assert table.count_rows(condition) == len(expected)
    assert table.head(3, filter=condition) == expected.slice(0, 3)
    assert table.take([49, 0, 0]) == whole.take([49, 0, 0])
    assert table.sort_by([("id", "descending")]).to_table()["id"].to_pylist() == list(range(49, -1, -1))
    some, other = rs.scan(data, columns=["id", "text"]), rs.scan(data, columns=["id", "text"])
    joined = some.join(other, "id", right_suffix="_other").to_table()
    assert len(joined) == 50
    assert joined["text"] == joined["text_other"]
    assert len(pickle.loads(pickle.dumps(table.filter(condition))).to_table()) == len(expected)
    assert pyarrow.RecordBatchReader.from_stream(table).read_all() == whole


def test_the_first_rows_need_no_others(tmp_path):
    """A corrupt record after them is not met."""
    files = [write(tmp_path / f"{n}.tfrecord", *[example(a=[n])] * 5) for n in range(3)]
    files[2].write_bytes(b"\0" * 100)
    table = rs.scan([str(file) for file in files[:1]])
    assert table.head(2).num_rows == 2


def test_wrong_names_and_options_are_told(data):
    places = "one of id, text, many, side, file, record, split, content"
    for wrong, message in (
        ({"columns": ["sid"]}, f"columns: expected {places}, got `sid` (did you mean `side`?)"),
        ({"values": "raw"}, "values: expected one of stored, decoded, got `raw`"),
        ({"corrupt": "ignore"}, "corrupt: expected one of error, skip, got `ignore`"),
    ):
        with pytest.raises(SpecError) as error:
            rs.scan(data, **wrong)
        assert str(error.value) == message
    with pytest.raises(SpecError, match="got `sid`"):
        rs.scan(data).to_table(columns=["sid"])
    with pytest.raises(StoreError):
        rs.scan(data / "nothing-*")


# ---- kinds whose values are not what is stored ----


MEDIA = rs.Schema.loads(
    """
schema: m
features:
  photo: {kind: image, shape: [null, null, 3], encoding: png}
  icon: {kind: image, shape: [4, 4, 1], encoding: raw}
  sound: {kind: audio, sample_rate: 8000, encoding: raw}
  clip: {kind: video, shape: [null, 2, 2, 3], encoding: png}
"""
)


def test_images_and_sounds_may_be_decoded(tmp_path):
    rng = np.random.default_rng(3)
    rows = [{name: feature.sample(rng) for name, feature in MEDIA.names.items()} for _ in range(5)]
    rs.write(rows, MEDIA, tmp_path / "d")
    stored, decoded = rs.scan(tmp_path / "d"), rs.scan(tmp_path / "d", values="decoded")
    assert str(stored.schema.field("photo").type) == "large_binary"
    assert str(stored.schema.field("clip").type) == "large_list<item: large_binary>"
    assert rs.scan(tmp_path / "d", values="decoded").to_table() == decoded.to_table()
    expected = rs.open(tmp_path / "d")[:]
    for name in MEDIA.names:
        column = decoded.to_table()[name].to_pylist()
        for row, value in enumerate(column):
            assert np.array_equal(value, _dense(expected[name][row])), name


def _dense(value):
    return value.to_dense() if isinstance(value, RaggedArray) else value


def test_the_index_of_no_class_is_its_number(tmp_path):
    write(tmp_path / "a.tfrecord", *[example(side=[n]) for n in (1, -1, 0, 7, -1)])
    write(tmp_path / "b.tfrecord", *[example(side=[name]) for name in (b"right", b"up", b"left", b"up")])
    by_index = rs.Schema.loads("schema: s\nfeatures: {side: {kind: label, names: [left, right]}}\n")
    by_name = rs.Schema.loads(
        "schema: s\nfeatures: {side: {kind: label, names: [left, right], encoding: name}}\n"
    )
    column = rs.scan(tmp_path / "a.tfrecord", by_index).to_table()["side"]
    assert column.to_pylist() == ["right", "-1", "left", "7", "-1"]
    digits = rs.Schema.loads('schema: s\nfeatures: {side: {kind: label, names: ["7", "8"]}}\n')
    column = rs.scan(tmp_path / "a.tfrecord", digits).to_table()["side"]
    assert column.to_pylist() == ["8", "-1", "7", "#7", "-1"]
    column = rs.scan(tmp_path / "b.tfrecord", by_name).to_table()["side"]
    assert column.to_pylist() == ["right", "up", "left", "up"]


def test_dates_are_dates(tmp_path):
    schema = rs.Schema.loads(
        "schema: s\nfeatures:\n  day: {dtype: int64, date: days}\n"
        "  at: {dtype: int64, date: milliseconds, default: 0}\n"
    )
    rs.write([{"day": "2026-01-31", "at": "2026-01-31T12:00:00.5Z"}, {"day": 0}], schema, tmp_path / "d")
    table = rs.scan(tmp_path / "d").to_table()
    assert [str(kind) for kind in table.schema.types] == ["date32[day]", "timestamp[ms]"]
    assert [str(day) for day in table["day"].to_pylist()] == ["2026-01-31", "1970-01-01"]
    assert [str(at) for at in table["at"].to_pylist()] == ["2026-01-31 12:00:00.500000", "None"]


def test_a_number_that_the_type_lacks_is_named(tmp_path):
    file = write(tmp_path / "a.tfrecord", example(a=[1], day=[0]), example(a=[300], day=[0]))
    schema = rs.Schema.loads("schema: s\nfeatures: {a: {kind: tensor, dtype: uint8}}\n")
    with pytest.raises(RecordError) as error:
        rs.scan(file, schema).to_table()
    assert "record 1 at byte" in str(error.value)
    assert "features.a: expected a number that uint8 holds, got 300" in str(error.value)
    assert rs.scan(file, schema, corrupt="skip").to_table().to_pylist() == [{"a": 1}]


# ---- records without a schema ----


def test_keys_are_columns_of_what_they_hold(tmp_path, chunks):
    records = [
        example(n=[1], x=[0.5], some=[1, 2], text=[b"a\xc3\xa4"], data=[b"\xff\0"]),
        example(n=[2], some=[], text=[b""], data=[b"a"]),
        example(),
    ]
    table = rs.scan(write(tmp_path / "a.tfrecord", *records))
    assert {field.name: str(field.type) for field in table.schema} == {
        "data": "large_binary",
        "n": "int64",
        "some": "large_list<item: int64>",
        "text": "large_string",
        "x": "float",
    }
    assert table.to_table().to_pylist() == [
        {"data": b"\xff\0", "n": 1, "some": [1, 2], "text": "aä", "x": 0.5},
        {"data": b"a", "n": 2, "some": None, "text": "", "x": None},
        dict.fromkeys(["data", "n", "some", "text", "x"]),
    ]
    assert str(rs.scan(tmp_path / "a.tfrecord", binary=["text"]).schema.field("text").type) == "large_binary"


def test_feature_lists_are_lists_of_steps(tmp_path):
    records = [
        sequence_example({"s": [[1, 2], []], "n": [[b"x"]]}, n=[7]),
        sequence_example({"s": [[5]], "n": [[b"y"], [b"z"]]}, n=[8]),
    ]
    table = rs.scan(write(tmp_path / "a.tfrecord", *records)).to_table()
    assert table.to_pylist() == [
        {"n": 7, "sequence/n": ["x"], "s": [[1, 2], None]},
        {"n": 8, "sequence/n": ["y", "z"], "s": [[5]]},
    ]


def test_rows_may_lack_a_feature_list_that_others_have(tmp_path, chunks):
    records = [sequence_example({"s": [[1], [2, 3]]}, n=[7]), *[example(n=[number]) for number in range(9)]]
    table = rs.scan(write(tmp_path / "a.tfrecord", *records)).to_table()
    assert table["s"].to_pylist() == [[[1], [2, 3]], *[None] * 9]
    assert table["n"].to_pylist() == [7, *range(9)]


def test_lists_of_any_length_are_empty_without_their_key(tmp_path):
    """As they are read, unless rows may omit them: what is written again is equal."""
    schema = rs.Schema.loads(
        """
        schema: s
        features:
          many: {kind: var_len, dtype: int64}
          pairs: {kind: box, format: xyxy}
          sides: {kind: box, format: xyxy, keys: [x0, y0, x1, y1]}
          words: {kind: ragged, dtype: string, shape: [null, null], missing: empty}
          pair: {dtype: float32, shape: [2], default: [0.5, 1.5]}
        """
    )
    (row,) = rs.scan(write(tmp_path / "a.tfrecord", example()), schema).to_table().to_pylist()
    assert row == {"many": [], "pairs": [], "sides": [], "words": None, "pair": None}


@pytest.mark.parametrize(
    ("later", "message"),
    [
        ({"a": [0.5]}, "a: expected int64, as in the first records, got float32"),
        ({"a": [1, 2]}, "a: expected one value, as in the first records, got 2"),
        ({"t": [b"\xff"]}, "t: expected UTF-8 text, as in the first records, got bytes that are not"),
        ({"none": [1]}, "none: expected none, as in the first records, got int64"),
    ],
)
def test_a_later_record_that_differs_is_named(later, message, tmp_path):
    first = {"a": [1], "t": [b"x"], "none": []}
    file = write(tmp_path / "a.tfrecord", *[example(**first)] * 1000, example(**{**first, **later}))
    table = rs.scan(file)
    with pytest.raises(RecordError) as error:
        table.to_table()
    assert (
        f"record 1000 at byte {file.stat().st_size - len(framed(example(**{**first, **later}))):,}: {message}"
        in str(error.value)
    )
    assert rs.scan(file, corrupt="skip").to_table().num_rows == 1000


def test_files_without_columns_say_why(tmp_path):
    for name, data, message in (
        ("a.tfrecord", b"no records, but text\n", "a.tfrecord: expected"),
        ("b.tfrecord", framed(b"no message"), "b.tfrecord: record 0 at byte 0: expected"),
    ):
        (tmp_path / name).write_bytes(data)
        with pytest.raises(RecordError) as error:
            rs.scan(tmp_path / name)
        assert f"{tmp_path}/{message}" in str(error.value)
        table = rs.scan(tmp_path / name, corrupt="skip")
        assert (table.to_table().num_rows, sum(table.skipped.values())) == (0, 1)
    empty = rs.scan(write(tmp_path / "c.tfrecord", example(), example()))
    assert (empty.schema.names, empty.count_rows()) == ([], 2)


def test_compressed_files_are_read(tmp_path):
    file = tmp_path / "a.tfrecord.gz"
    file.write_bytes(gzip.compress(b"".join(framed(example(a=[n])) for n in range(9))))
    assert rs.scan(file).to_table()["a"].to_pylist() == list(range(9))


def test_blocks_without_their_schema_are_refused(tmp_path):
    rs.write(ROWS, SCHEMA, tmp_path / "d", layout={"blocks": 4})
    (tmp_path / "d/schema.yaml").unlink()
    with pytest.raises(StoreError, match="blocks are unpacked by it"):
        rs.scan(tmp_path / "d")
    assert rs.scan(tmp_path / "d", SCHEMA).count_rows() == 50


# ---- records that cannot be read ----


@pytest.mark.parametrize("layout", ["rows", {"blocks": 4}], ids=["rows", "blocks"])
def test_corrupt_records_are_an_error_or_counted(layout, tmp_path, chunks):
    rs.write(ROWS, SCHEMA, tmp_path / "d", shards=2, layout=layout)
    file = sorted((tmp_path / "d").glob("*.tfrecord"))[0]
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(data)
    with pytest.raises(RecordError, match=f"{file.name}: record"):
        rs.scan(tmp_path / "d").to_table()
    table = rs.scan(tmp_path / "d", corrupt="skip")
    for _ in range(2):
        left_out = 1 if layout == "rows" else 4
        assert table.to_table().num_rows == 50 - left_out
        assert table.skipped == {
            str(path): int(path == file) for path in sorted(file.parent.glob("*.tfrecord"))
        }
    assert table.count_rows() == 50 - left_out


def test_records_of_another_schema_are_an_error_or_counted(tmp_path, chunks):
    good, bad = example(number=[1], side=[0]), example(number=[1, 2], side=[0])
    file = write(tmp_path / "a.tfrecord", bad, good, b"no message", bad, good, good, bad)
    schema = rs.Schema.loads("schema: s\nfeatures: {id: {dtype: int64, key: number}, side: int64}\n")
    with pytest.raises(RecordError) as error:
        rs.scan(file, schema).to_table()
    assert str(error.value).startswith(f"{file}: record 0 at byte 0: features.id: expected 1 int64, got 2")
    table = rs.scan(file, schema, corrupt="skip")
    assert table.to_table().num_rows == 3
    assert table.skipped == {str(file): 4}
    assert table.to_table(columns=["side"]).num_rows == 6


# ---- what a dataset of pyarrow has ----


def test_no_member_is_inherited():
    """Those of the base class expect a dataset in C++, and end the process."""
    members = {name for name in dir(pyarrow.dataset.Dataset) if not name.startswith("__")}
    assert members
    assert not members - vars(RecordTable).keys()


MEMBERS = """
import sys
import pyarrow.dataset
import recordspec as rs

table = rs.scan(sys.argv[1])
arguments = {
    "filter": [pyarrow.dataset.field("id") > 3], "head": [2], "take": [[1]], "sort_by": ["id"],
    "join": [rs.scan(sys.argv[1], columns=["id"]), "id"], "replace_schema": [table.schema],
    "join_asof": [rs.scan(sys.argv[1], columns=["id", "side"]), "id", "side", 1, "id", "side"],
}
for name in dir(pyarrow.dataset.Dataset):
    if name in ("__class__", "__new__", "__init__", "__init_subclass__", "__subclasshook__"):
        continue
    try:
        member = getattr(table, name)
        result = member(*arguments.get(name, [])) if callable(member) else member
    except (rs.RecordspecError, TypeError, AttributeError, pyarrow.lib.ArrowException) as error:
        result = f"{type(error).__name__}: {str(error)[:60]}"
    print(name, type(result).__name__)
"""


def test_every_member_answers_or_says_that_it_cannot(data):
    ran = subprocess.run(
        [sys.executable, "-c", MEMBERS, data], capture_output=True, text=True, check=False, timeout=120
    )
    assert ran.returncode == 0, ran.stderr
    answers = dict(line.split() for line in ran.stdout.splitlines())
    assert len(answers) > 30
    assert answers["to_table"] == answers["head"] == answers["take"] == "Table"
    assert answers["filter"] == "RecordTable"
    assert answers["get_fragments"] == answers["replace_schema"] == "str"


@needs_data
def test_data_that_nobody_here_wrote(tmp_path):
    """Every file of records is a table, or says where it is none."""
    files = [path for path in DATA.rglob("*") if path.is_file() and "tfrecord" in path.name]
    assert files
    read = 0
    for file in files:
        try:
            table = rs.scan(file, corrupt="skip")
            rows = table.to_table().num_rows
        except StoreError as error:
            told = str(error)
            assert str(file) in told
        else:
            read += 1
            assert rows == table.count_rows()
    assert read


def test_columns_may_have_the_names_of_those_of_arrow(tmp_path):
    names = ["__batch_index", "__filename", "b", "file"]
    write(tmp_path / "x", example(**{name: [1] for name in names}))
    table = rs.scan(tmp_path / "x")
    assert table.to_table(columns=names[::-1]).to_pylist() == [dict.fromkeys(names, 1)]


def test_feature_lists_without_any_step_are_empty(tmp_path):
    """Also where none of a file has a step."""
    write(tmp_path / "x", of_steps({}, {"s": []}), of_steps({}, {"t": []}))
    assert rs.scan(tmp_path / "x").to_table().to_pylist() == [{"s": [], "t": None}, {"s": None, "t": []}]


def test_rows_between_many_bad_ones_are_kept(tmp_path, monkeypatch):
    """Of which each is met once: the rows after it are not decoded again for each."""
    bad = {3, 4, 5, 20, *range(40, 100), 150, 199}
    records = [b"\xff" if row in bad else example(n=[row]) for row in range(200)]
    decoded, decode = [], record_batch.decode
    monkeypatch.setattr(
        scan_module, "decode", lambda *args, **options: decoded.append(args[1]) or decode(*args, **options)
    )
    table = rs.scan(write(tmp_path / "x", *records), corrupt="skip")
    decoded.clear()
    assert table.to_table()["n"].to_pylist() == [row for row in range(200) if row not in bad]
    assert table.skipped == {str(tmp_path / "x"): len(bad)}
    assert sum(map(len, decoded)) < 5 * len(records)


def test_a_column_that_a_condition_names_by_its_number_is_that_one(tmp_path):
    schema = rs.Schema.loads("schema: s\nfeatures: {a: int64, b: int64, c: int64}")
    rs.write([{"a": n, "b": n % 3, "c": n % 2} for n in range(30)], schema, tmp_path / "data", shuffle=None)
    table = rs.scan(tmp_path / "data")
    for one in (table, pyarrow.dataset.dataset(table.to_table())):
        found = one.to_table(columns=["a", "c"], filter=pyarrow.compute.field(1) == 2)
        assert (found.schema.names, found["a"].to_pylist()) == (["a", "c"], list(range(2, 30, 3)))
        assert one.to_table(columns={"x": pyarrow.compute.field(1)})["x"].to_pylist() == [
            n % 3 for n in range(30)
        ]
        assert one.filter(pyarrow.compute.field(2) == 1).to_table(columns=["a"])["a"].to_pylist() == list(
            range(1, 30, 2)
        )


def test_a_table_is_grouped_by_a_label_whose_files_have_other_classes(tmp_path):
    """Indices without a name are classes of their own."""
    stored = rs.Schema.loads("schema: s\nfeatures: {c: int64}")
    rs.write([{"c": n // 2} for n in range(8)], stored, tmp_path / "data", shards=4, shuffle=None)
    for name in ("manifest.json", "schema.yaml"):
        (tmp_path / "data" / name).unlink()  # otherwise the label contradicts the schema beside the files
    label = rs.Schema.loads("schema: s\nfeatures: {c: {kind: label, names: [a]}}")
    table = rs.scan(f"{tmp_path}/data/*.tfrecord", label).to_table()
    counts = table.group_by("c").aggregate([([], "count_all")])
    assert dict(zip(*counts.to_pydict().values(), strict=True)) == {"a": 2, "1": 2, "2": 2, "3": 2}
