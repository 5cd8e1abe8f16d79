"""Records in files of other formats, and back again."""

from __future__ import annotations

import base64
import json
import os
import shutil
import sys
from collections import ChainMap, defaultdict
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
import tensorflow as tf
from pyarrow import parquet

import recordspec as rs
from instances import CASES
from recordspec._arrow import arrow
from recordspec.errors import RecordError, SpecError, StoreError
from recordspec.kinds import Column, Fixed, ValueType, to_arrow
from recordspec.schema.features import Feature
from recordspec.tables import export_records as module
from recordspec.tables.export import export
from recordspec.tables.table_writers import ParquetWriter
from recordspec.testing import trace_together
from recordspec.wire.tfrecord import scan
from some_records import BLOCKED, example, write
from third_party_data import DATA, needs_data

CELLS = rs.Schema.loads(
    """
schema: cells
features:
  n: int64
  x: {dtype: float32, default: -1.0}
  text: {dtype: string, default: "none"}
"""
)
LISTS = rs.Schema.loads(
    """
schema: lists
features:
  n: int64
  x: {dtype: float32, default: -1.0}
  text: {dtype: string, default: "none"}
  many: {kind: var_len, dtype: float32}
  words: {kind: var_len, dtype: string}
  pair: {dtype: int64, shape: [2]}
"""
)
TEXTS = ["", "ä, b", 'say "so"', "two\nlines", " ", "null", "1", "\u2028", "\x7f\x9b"]
ROWS = [
    {
        "n": n - 7,
        "many": [n / 10] * (n % 4),
        "words": [f"w{n}", "é"][: n % 3],
        "pair": [n, -n],
        **({} if n % 5 == 0 else {"x": n / 7}),
        **({} if n % 4 == 0 else {"text": TEXTS[n % len(TEXTS)]}),
    }
    for n in range(60)
]


def written(schema: rs.Schema, folder: Path, **how) -> Path:
    names = schema.names
    rows = [{name: value for name, value in row.items() if name in names} for row in ROWS]
    rs.write(rows, schema, folder, **how)
    return folder


def records(folder: Path) -> list[bytes]:
    return [record.data for file in sorted(folder.glob("*.tfrecord*")) for record in scan(file)]


def build(home: Path, schema: rs.Schema, source: str) -> list[bytes]:
    """The records that a build makes of a file."""
    (home / "schema.yaml").write_text(schema.dump())
    (home / "config.yaml").write_text(f"schema: schema.yaml\ndata: again\nwrite: {{source: {source}}}\n")
    rs.Pipeline.load(home / "config.yaml").build()
    return records(home / "again")


@pytest.mark.parametrize("chunks", ["small_chunks", None])
@pytest.mark.parametrize(
    ("schema", "suffix"),
    [(CELLS, "csv"), (CELLS, "jsonl"), (CELLS, "parquet"), (LISTS, "jsonl"), (LISTS, "parquet")],
    ids=lambda value: getattr(value, "name", value),
)
def test_what_is_built_from_an_export_is_what_was_there(tmp_path, request, schema, suffix, chunks):
    if chunks:
        request.getfixturevalue(chunks)
    data = written(schema, tmp_path / "data")
    done = export(data, tmp_path / f"out.{suffix}")
    assert (done.rows, done.bytes) == (60, (tmp_path / f"out.{suffix}").stat().st_size)
    assert done.columns == tuple(sorted(schema.names))
    assert build(tmp_path, schema, f"{{{suffix}: out.{suffix}}}") == records(data)


@pytest.mark.parametrize("suffix", ["jsonl", "parquet"])
def test_sequence_examples_are_lists_of_lists(tmp_path, suffix):
    schema = rs.Schema.loads(
        """
schema: s
record: sequence_example
context: {n: int64}
sequence:
  one: {kind: fixed_len_sequence, dtype: string}
  many: {kind: var_len, dtype: float32}
"""
    )
    rows = [
        {"n": n, "one": [f"{n}", "x"][: n % 3], "many": [[0.5] * step for step in range(n % 4)]}
        for n in range(20)
    ]
    rs.write(rows, schema, tmp_path / "data")
    export(tmp_path / "data", tmp_path / f"out.{suffix}")
    assert read_rows(tmp_path / f"out.{suffix}") == [dict(sorted(row.items())) for row in rows]
    assert build(tmp_path, schema, f"{{{suffix}: out.{suffix}}}") == records(tmp_path / "data")


def read_rows(path: Path) -> list[dict]:
    if path.suffix == ".jsonl":
        return [dict(sorted(json.loads(line).items())) for line in path.read_text().splitlines()]
    return [dict(sorted(row.items())) for row in parquet.read_table(path).to_pylist()]


def test_blocks_are_exported_as_rows(tmp_path):
    rows = [{"n": n, "s": [n] * (n % 3), **({"name": "x"} if n % 2 else {})} for n in range(20)]
    rs.write(rows, BLOCKED, tmp_path / "b", layout={"blocks": 8})
    rs.write(rows, BLOCKED, tmp_path / "r")
    for folder in "br":
        export(tmp_path / folder, tmp_path / f"{folder}.jsonl")
    assert (tmp_path / "b.jsonl").read_bytes() == (tmp_path / "r.jsonl").read_bytes()
    (file,) = (tmp_path / "b").glob("*.tfrecord")
    file.rename(tmp_path / "alone")
    with pytest.raises(StoreError) as error:
        export(tmp_path / "alone", tmp_path / "no.jsonl")
    assert str(error.value) == (
        f"`{tmp_path}/schema.yaml` does not exist: blocks are unpacked by it, give it with --schema; "
        "see `recordspec docs explanation/blocks`"
    )


NAN, INFINITY = float("nan"), float("inf")
NUMBERS = (NAN, INFINITY, -INFINITY, -0.0, 0.0, 1e-45, 16777217.0, 3.4028234663852886e38, 0.1)
WORDS = ("", "NaN", "null", "Infinity", "a,b", '"', "\n", "é", " ", "/w==", '{"b64": "/w=="}')
OCTETS = (b"", b"\xff\x00", b"text", b"/w==", b'{"b64": "/w=="}')
# By a name: the features, the values of `x`, and whether a cell of CSV has them. None is a missing value.
ODD: dict[str, tuple[str, tuple, bool]] = {
    "numbers": ("float32", NUMBERS, True),
    "numbers, or none": ("{dtype: float32, default: 0.5}", (None, *NUMBERS), True),
    "integers": ("{dtype: int64, default: 1}", (None, 0, -(2**63), 2**63 - 1, 2**53 + 1), True),
    "days, or none": ("{dtype: int64, date: days, default: 7}", (None, 0, -719162, 20484, 2932896), True),
    "times": ("{dtype: int64, date: milliseconds}", (0, -1, 1769860800123, -62135596800000), True),
    "texts, or none": ("{dtype: string, default: d}", (None, *WORDS), True),
    "bytes, or none": ("{dtype: string, default: d}", (None, *OCTETS), False),
    "labels": ('{kind: label, names: ["1", "2", "3"]}', ("1", "2", "3"), True),
    "labels under another key": ('{kind: label, names: ["2", "1", "a,b"], key: y}', ("1", "2", "a,b"), True),
    "lists of labels": ('{kind: label, names: ["1", "2"], shape: [null]}', ([], ["2", "1"], ["1"]), False),
    "lists of numbers": ("{kind: var_len, dtype: float32}", ([], NUMBERS, [NAN], [-0.0]), False),
    "lists, or none": ("{kind: var_len, dtype: float32, missing: empty}", (None, [], [0.5]), False),
    "lists of bytes": ("{kind: var_len, dtype: string}", ([], OCTETS, WORDS, [b""]), False),
    "images": ("{kind: image, shape: [2, 2, 3]}", (np.zeros((2, 2, 3), np.uint8), np.ones((2, 2, 3), np.uint8)), False),
    "a sound of UTF-8": ("{kind: audio, encoding: wav, sample_rate: 8000, channels: 2}", (np.zeros((5, 2), np.float32),), False),
    "sounds": ("{kind: audio, sample_rate: 8000}", (np.full((64, 1), 0.5, np.float32),), False),
}  # fmt: skip


@pytest.mark.parametrize("suffix", ["csv", "jsonl", "parquet"])
@pytest.mark.parametrize("case", ODD)
def test_odd_values_are_built_from_an_export(tmp_path, case, suffix):
    """Byte for byte: NaN is another number than a missing value, and -0.0 than 0.0."""
    feature, values, in_cells = ODD[case]
    schema = rs.Schema.loads(f"schema: s\nfeatures: {{n: int64, x: {feature}}}")
    rows = [{"n": n, "x": value} for n, value in enumerate(values)]
    rs.write(rows, schema, tmp_path / "data")
    if suffix == "csv" and not in_cells:
        with pytest.raises(
            SpecError, match=r"^x: expected (one value per record|text or numbers) for csv, got "
        ):
            export(tmp_path / "data", tmp_path / "out.csv")
        return
    export(tmp_path / "data", tmp_path / f"out.{suffix}")
    export(tmp_path / "data", tmp_path / f"named.{suffix}", schema=schema)
    assert (tmp_path / f"out.{suffix}").read_bytes() == (tmp_path / f"named.{suffix}").read_bytes()
    assert build(tmp_path, schema, f"{{{suffix}: out.{suffix}}}") == records(tmp_path / "data")
    if suffix == "jsonl" and case == "numbers":  # as Python's own reader has it
        read = [json.loads(line)["x"] for line in (tmp_path / "out.jsonl").read_text().splitlines()]
        assert np.array(read, np.float32).tobytes() == np.array(NUMBERS, np.float32).tobytes()
    if suffix == "jsonl" and case == "bytes, or none":
        read = [json.loads(line)["x"] for line in (tmp_path / "out.jsonl").read_text().splitlines()]
        assert [one and base64.b64decode(one["b64"]) for one in read] == [None, *OCTETS]


@pytest.mark.parametrize("suffix", ["jsonl", "parquet"])
def test_a_list_of_any_length_without_its_key_is_empty(tmp_path, suffix):
    """As it is read; other writers leave the key out. What is built again has all keys."""
    schema = rs.Schema.loads(
        """
        schema: s
        context:
          n: int64
          many: {kind: var_len, dtype: float32}
          pair: {dtype: int64, shape: [2], default: [3, 4]}
        sequence:
          words: {kind: var_len, dtype: string, missing: empty}
        """
    )
    row = {"n": 7, "many": [0.5], "pair": [1, 2], "words": [["a", "b"]]}
    rs.write([row], schema, tmp_path / "whole")
    (whole,) = records(tmp_path / "whole")
    bare = tf.train.SequenceExample()
    bare.context.feature["n"].int64_list.value.append(7)
    for name, stored in {
        "none": [bare.SerializeToString()] * 2,
        "some": [bare.SerializeToString(), whole],
    }.items():
        folder = tmp_path / name
        folder.mkdir()
        with tf.io.TFRecordWriter(str(folder / "f.tfrecord")) as writer:
            for one in stored:
                writer.write(one)
        export(folder / "f.tfrecord", folder / f"out.{suffix}", schema=schema)
        built = build(folder, schema, f"{{{suffix}: out.{suffix}}}")
        again, found = ([*rs.read(path, schema)] for path in (folder / "again", folder / "f.tfrecord"))
        assert len(built) == len(again) == 2
        for one, other in zip(again, found, strict=True):
            assert {key: value.numpy().tolist() for key, value in one.items()} == {
                key: value.numpy().tolist() for key, value in other.items()
            }


def groups() -> list[tuple[str, list[Feature], list[dict]]]:
    """The instances of all kinds by section, those of different names and keys together, with their rows."""
    found = defaultdict(list)
    for case in trace_together(CASES):
        found[id(case.shared)].append(case)
    return [
        (
            cases[0].section,
            [case.feature for case in cases],
            [dict(ChainMap(*rows)) for rows in zip(*(case.rows for case in cases), strict=True)],
        )
        for cases in found.values()
    ]


def refused(feature: Feature, in_steps: bool, suffix: str) -> bool:
    """Whether a format has no form of the values that a source reads."""
    if "complex" in getattr(feature, "dtype", ""):
        return suffix != "parquet"
    raw = feature.kind in ("image", "audio", "video") and feature.encoding == "raw"
    if suffix == "jsonl":
        return raw
    octets = feature.kind in ("image", "audio", "video") or getattr(feature, "dtype", "") == "string"
    if suffix == "csv" and getattr(feature, "date", None):
        return True  # the instances have years after 9999
    lists = in_steps or feature.kind in ("ragged", "sparse", "box", "var_len", "fixed_len_sequence")
    return suffix == "csv" and (lists or octets or len(getattr(feature, "shape", ())) > 0)


@pytest.mark.parametrize("suffix", ["jsonl", "parquet", "csv"])
def test_every_kind_is_built_from_an_export(tmp_path, suffix):
    """What a format cannot hold is refused by name; the records of all others are built again."""
    count = 0
    for number, (section, features, rows) in enumerate(groups()):
        sections = {section: features, "record": "example" if section == "features" else "sequence_example"}
        whole = rs.Schema(name="s", **{**sections, section: tuple(features)})
        rs.write(rows, whole, tmp_path / f"whole{number}", progress=False)
        out = [one.name for one in features if refused(one, section == "sequence", suffix)]
        kept = [one for one in features if one.name not in out]
        home = tmp_path / str(number)
        home.mkdir()
        left = tuple(out)
        while left:  # those that only their values tell are refused after the others
            with pytest.raises(SpecError) as error:
                export(tmp_path / f"whole{number}", home / f"out.{suffix}", columns=left)
            assert all("choose other columns, or " in problem.hint for problem in error.value.problems)
            told = {problem.path[0] for problem in error.value.problems}
            assert told <= set(left)
            left = tuple(name for name in left if name not in told)
        if not kept:
            continue
        names = tuple(one.name for one in kept)
        done = export(tmp_path / f"whole{number}", home / f"out.{suffix}", columns=names if out else ())
        assert set(done.columns) == set(names)
        schema = replace(whole, **{section: tuple(kept)})
        some = [{name: row[name] for name in names} for row in rows]
        rs.write(some, schema, home / "data", progress=False)
        assert build(home, schema, f"{{{suffix}: out.{suffix}}}") == records(home / "data")
        count += len(kept)
    assert count > {"jsonl": 180, "parquet": 190, "csv": 20}[suffix]


@pytest.mark.parametrize("suffix", ["jsonl", "parquet"])
def test_the_gallery_is_built_from_exports(tmp_path, suffix, root):
    rng = np.random.default_rng(1)
    files = sorted((root / "schemas").glob("*.yaml"))
    assert len(files) > 9
    for file in files:
        schema, home = rs.Schema.load(file), tmp_path / file.stem
        rows = [
            {
                feature.name: [feature.sample(rng) for _ in range(n % 3)]
                if place.in_steps and not feature.traits.spans_steps
                else feature.sample(rng)
                for place, feature in schema._placed
            }
            for n in range(9)
        ]
        rs.write(rows, schema, home / "data", key=None, progress=False)
        done = export(home / "data", home / f"out.{suffix}")
        assert set(done.columns) == set(schema.names)
        assert build(home, schema, f"{{{suffix}: out.{suffix}}}") == records(home / "data"), file


NESTED = """
schema: nested
features:
  photo: {dtype: string, key: image/encoded}
  box: {kind: box, format: xyxy, keys: [x0, y0, x1, y1]}
  words: {kind: ragged, dtype: string, shape: [null, null]}
  one: {kind: var_len, dtype: int64}
  where: {kind: sparse, dtype: float32, size: [3, 4]}
"""


def test_features_are_columns_of_the_values_of_rows(tmp_path):
    """Their names are columns, and so are stored keys that are asked for; conditions name either."""
    schema = rs.Schema.loads(NESTED)
    boxes = [[0.5, 1.0, 2.0, 3.0], [1.0, 1.0, 4.0, 4.0]]
    sparse = {"indices": [[0, 1], [2, 3]], "values": [0.1, -1.0]}
    rows = [
        {"photo": b"\xff", "box": boxes, "words": [["a", "b"], []], "one": [7], "where": sparse},
        {"photo": "b", "box": [], "words": [], "one": [8], "where": {"indices": [], "values": []}},
    ]
    rs.write(rows, schema, tmp_path / "data", shuffle=None)
    expected = [dict(row, photo={"b64": base64.b64encode(photo).decode()}) for row, photo in zip(rows, (b"\xff", b"b"), strict=True)]  # fmt: skip
    for suffix in ("jsonl", "parquet"):
        done = export(tmp_path / "data", tmp_path / f"all.{suffix}")
        assert done.columns == ("box", "one", "photo", "where", "words")
    read = [json.loads(line) for line in (tmp_path / "all.jsonl").read_text().splitlines()]
    assert sorted(read, key=str) == sorted(expected, key=str)
    table = parquet.read_table(tmp_path / "all.parquet")
    assert {name: str(table.schema.field(name).type).replace("element", "item") for name in table.column_names} == {
        "box": "list<item: list<item: float>>",
        "one": "list<item: int64>",
        "photo": "binary",
        "where": "struct<indices: list<item: list<item: int64>>, values: list<item: float>>",
        "words": "list<item: list<item: string>>",
    }  # fmt: skip
    for columns, row in ((("x0", "one"), {"x0": [0.5, 1.0], "one": [7]}), (("box",), {"box": boxes})):
        out = tmp_path / f"{columns[0]}.jsonl"
        export(tmp_path / "data", out, columns=columns, where="len(box) > 0")
        assert json.loads(out.read_text()) == row
    with pytest.raises(SpecError) as error:
        export(tmp_path / "data", tmp_path / "no.jsonl", columns=("photo", "image/encoded"))
    assert (
        str(error.value) == "columns: expected a feature or its stored keys, got `photo` and `image/encoded`"
    )
    (file,) = (tmp_path / "data").glob("*.tfrecord")
    shutil.copy(file, tmp_path / "alone")  # without its schema, records are what is stored
    stored = ("image/encoded", "one", "where", "where/indices_0", "where/indices_1")
    stored += ("words", "words/row_lengths", "x0", "x1", "y0", "y1")
    assert export(tmp_path / "alone", tmp_path / "alone.jsonl").columns == stored
    done = export(tmp_path / "alone", tmp_path / "named.jsonl", schema=schema)
    assert (tmp_path / "named.jsonl").read_bytes() == (tmp_path / "all.jsonl").read_bytes()
    with pytest.raises(SpecError) as error:
        export(tmp_path / "data", tmp_path / "no.jsonl", columns=("boxs",))
    assert str(error.value).endswith("got `boxs` (did you mean `box`?)")
    with pytest.raises(SpecError) as error:
        export(tmp_path / "data", tmp_path / "no.csv", columns=("box",))
    assert str(error.value) == (
        "box: expected one value per record for csv, got a list "
        "(choose other columns, or write jsonl or parquet)"
    )


def test_columns_have_the_types_of_a_scan(tmp_path):
    schema = rs.Schema.loads(
        """
        schema: s
        features:
          day: {dtype: int64, date: days}
          at: {dtype: int64, date: seconds, default: 0}
          is: {kind: tensor, dtype: bool, shape: [2]}
          half: {kind: tensor, dtype: float16}
          wave: {kind: tensor, dtype: complex64, shape: [null]}
          side: {kind: label, names: ["7", "8"]}
        """
    )
    rows = [
        {"day": "2026-01-31", "at": "2026-01-31T12:00:00Z", "is": [True, False], "half": 0.5, "wave": [1j], "side": "8"},
        {"day": 2932897, "is": [False, True], "half": -1.0, "wave": [], "side": "7"},
    ]  # fmt: skip
    rs.write(rows, schema, tmp_path / "data", shuffle=None, progress=False)
    export(tmp_path / "data", tmp_path / "out.parquet")
    types = parquet.read_schema(tmp_path / "out.parquet")
    assert {field.name: str(field.type).replace("element", "item") for field in types} == {
        "at": "timestamp[ms]",
        "day": "date32[day]",
        "half": "float",
        "is": "list<item: bool>",
        "side": "string",
        "wave": "list<item: list<item: float>>",
    }
    names = tuple(name for name in schema.names if name != "wave")
    export(tmp_path / "data", tmp_path / "out.jsonl", columns=names)
    assert read_rows(tmp_path / "out.jsonl") == [
        {"at": "2026-01-31T12:00:00", "day": "2026-01-31", "half": 0.5, "is": [True, False], "side": "8"},
        {"at": None, "day": 2932897, "half": -1.0, "is": [False, True], "side": "7"},
    ]
    for name, suffix, message in (
        ("wave", "jsonl", "wave: expected numbers that jsonl can hold, got complex64 (choose other columns, or write parquet)"),
        ("wave", "csv", "wave: expected numbers that csv can hold, got complex64 (choose other columns, or write parquet)"),
        ("day", "csv", "day: expected dates from 0001-01-01 to 9999-12-31 for csv, got 2932897 days since 1970-01-01 "
                       "(choose other columns, or write jsonl or parquet)"),
    ):  # fmt: skip
        with pytest.raises(SpecError) as error:
            export(tmp_path / "data", tmp_path / f"no.{suffix}", columns=(name,))
        assert str(error.value) == message


@dataclass(frozen=True, kw_only=True)
class Hexadecimal(Feature):
    """A text, stored as its hexadecimal digits."""

    kind: ClassVar[str] = "hexadecimal"

    @property
    def value_type(self) -> ValueType:
        return ValueType("text")

    def columns(self):
        return (Column(key=self.stored, storage="bytes", layout=Fixed()),)

    def encode(self, values):
        octets = [value if isinstance(value, bytes) else value.encode() for value in values]
        return (to_arrow([one.hex().encode() for one in octets]),)

    def restored(self, stored):
        return bytes.fromhex(stored[self.stored][0].decode())

    def spec(self):
        return tf.TensorSpec([], tf.string)

    def sample(self, rng):
        return "a"


def test_values_of_a_custom_kind_are_those_of_rows(tmp_path):
    """Whether they are text is not told by what is stored."""
    schema = rs.Schema(name="s", features=(Hexadecimal(name="a"),))
    rs.write([{"a": "é"}, {"a": b"\xff"}], schema, tmp_path / "data", shuffle=None, progress=False)
    (file,) = (tmp_path / "data").glob("*.tfrecord")
    export(file, tmp_path / "text.jsonl", schema=schema, limit=1)
    assert read_rows(tmp_path / "text.jsonl") == [{"a": "é"}]
    export(file, tmp_path / "all.jsonl", schema=schema)
    assert read_rows(tmp_path / "all.jsonl") == [{"a": {"b64": "w6k="}}, {"a": {"b64": "/w=="}}]
    with pytest.raises(RecordError) as error:
        rs.scan(file, schema).to_table()
    assert "record 1 at byte" in str(error.value)
    assert str(error.value).endswith("features.a: expected UTF-8 text, got bytes that are not")


def test_the_index_of_no_class_is_told_from_a_name(tmp_path):
    schema = rs.Schema.loads('schema: s\nfeatures: {side: {kind: label, names: ["7", "8"]}}')
    path = write(tmp_path / "f", *[example(side=[n]) for n in (0, 7, -1, 1)])
    export(path, tmp_path / "out.csv", schema=schema)
    assert (tmp_path / "out.csv").read_text() == '"side"\n"7"\n"#7"\n"-1"\n"8"\n'


def test_records_of_another_schema_are_named(tmp_path):
    """Keys that the schema lacks are columns of what all records have."""
    path = write(tmp_path / "f", example(n=[1], x=[0.5]), example(n=[1, 2], late=[b"a"]))
    schema = rs.Schema.loads("schema: s\nfeatures: {n: int64, x: float32}")
    with pytest.raises(RecordError) as error:
        export(path, tmp_path / "out.jsonl", schema=schema)
    assert str(error.value).startswith(f"{path}: record 1 at byte 45: features.n: expected 1 int64, got 2")
    optional = rs.Schema.loads("schema: s\nfeatures: {x: {dtype: float32, default: 0.0}}")
    assert export(path, tmp_path / "all.jsonl", schema=optional).columns == ("late", "n", "x")
    assert read_rows(tmp_path / "all.jsonl")[1] == {"late": "a", "n": [1, 2], "x": None}


def test_a_file_is_there_whole_or_not_at_all(tmp_path):
    data = written(CELLS, tmp_path / "data")
    out = tmp_path / "out.jsonl"
    export(data, out, limit=2)
    before = out.read_bytes()
    with pytest.raises(StoreError) as error:
        export(data, out)
    assert str(error.value) == f"`{out}` exists: force=True, or --force, replaces it"
    (tmp_path / "broken.jsonl").symlink_to("nowhere")
    with pytest.raises(StoreError, match=r"broken\.jsonl` exists"):
        export(data, tmp_path / "broken.jsonl")
    (tmp_path / "broken.jsonl").unlink()
    (file,) = data.glob("*.tfrecord")
    spoilt = bytearray(file.read_bytes())
    spoilt[-1] ^= 1
    file.write_bytes(spoilt)
    with pytest.raises(RecordError):
        export(data, out, force=True)
    assert out.read_bytes() == before
    assert sorted(os.listdir(tmp_path)) == ["data", "out.jsonl"]
    export(data, out, force=True, limit=3)
    assert len(out.read_text().splitlines()) == 3
    with pytest.raises(StoreError) as error:
        export(data, tmp_path / "none/out.jsonl")
    assert str(error.value) == f"{tmp_path}/none/out.jsonl: cannot write: no such file or directory"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("out.jsnol", "out: expected a name that ends in one of .jsonl, .csv, .parquet, got `out.jsnol` (did you mean `.jsonl`?)"),
        ("out", "out: expected a name that ends in one of .jsonl, .csv, .parquet, got `out`"),
    ],
)  # fmt: skip
def test_a_name_of_no_known_format(tmp_path, name, message):
    with pytest.raises(SpecError) as error:
        export(write(tmp_path / "f", example(a=[1])), tmp_path / name)
    assert str(error.value) == message


def test_records_that_have_no_columns(tmp_path):
    path = write(tmp_path / "f", example(a=[1]), example(a=[0.5]))
    with pytest.raises(RecordError) as error:
        export(path, tmp_path / "out.jsonl")
    assert (
        str(error.value)
        == f"{path}: record 1 at byte 30: a: expected int64, as in records before, got float32"
    )
    path = write(tmp_path / "g", example(a=[1]), b"\x18\x01")
    with pytest.raises(RecordError) as error:
        export(path, tmp_path / "out.jsonl")
    assert str(error.value) == (
        f"{path}: record 1 at byte 30: expected an Example or a SequenceExample, got another message"
    )
    path = write(tmp_path / "h", b"\xff")
    with pytest.raises(RecordError) as error:
        export(path, tmp_path / "out.jsonl")
    assert str(error.value) == (
        f"{path}: record 0 at byte 0: expected an Example or a SequenceExample, got 1 byte that does not parse"
    )


@pytest.mark.parametrize("suffix", ["jsonl", "csv", "parquet"])
def test_no_records_are_a_file_without_rows(tmp_path, suffix):
    done = export(write(tmp_path / "f"), tmp_path / f"out.{suffix}")
    assert (done.rows, done.columns) == (0, ())
    assert (tmp_path / f"out.{suffix}").exists()


@pytest.mark.slow
def test_records_with_a_key_each_are_cut_into_pieces_or_refused(tmp_path, monkeypatch):
    path = write(tmp_path / "f", *(example(**{f"key{n}": [n]}) for n in range(4097)))
    with pytest.raises(SpecError) as error:
        export(path, tmp_path / "out.jsonl")
    assert str(error.value) == "columns: expected at most 4,096 features to export, got more (choose some)"
    some = write(tmp_path / "g", *(example(**{f"key{n}": [n]}) for n in range(50)))
    monkeypatch.setattr(module, "_MOST_CELLS", 100)
    held, write_to = [], ParquetWriter.write
    monkeypatch.setattr(
        ParquetWriter, "write", lambda self, batch: held.append(batch.num_rows) or write_to(self, batch)
    )
    export(some, tmp_path / "out.parquet")
    assert max(held) <= 10  # rows, which have a key each
    rows = parquet.read_table(tmp_path / "out.parquet").to_pylist()
    assert list(rows[0]) == sorted(rows[0])
    assert rows == [{f"key{n}": n if n == row else None for n in range(50)} for row in range(50)]


def test_a_condition_on_a_feature_in_several_keys_or_on_one_of_these(tmp_path):
    schema = rs.Schema.loads(NESTED)
    rs.write([schema_row(schema)], schema, tmp_path / "data")
    conditions = (
        ("len(box) = 3", 1),
        ("len(box) <> 3", 0),
        ("x0[1] = box[1][1] AND y0[3] = box[3][2]", 1),
        ("x0[1] = box[2][1]", 0),
    )
    for spec in (schema, None):
        for where, rows in conditions:
            done = export(tmp_path / "data", tmp_path / "out.jsonl", where=where, schema=spec, force=True)
            assert (done.rows, where) == (rows, where)


def schema_row(schema: rs.Schema) -> dict:
    rng = np.random.default_rng(1)
    return {name: feature.sample(rng) for name, feature in schema.names.items()}


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_without_pyarrow_it_is_asked_for(tmp_path, monkeypatch, suffix):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    arrow.cache_clear()
    with pytest.raises(rs.errors.MissingExtra) as error:
        export(write(tmp_path / "f", example(a=[1])), tmp_path / f"out.{suffix}")
    assert str(error.value) == (
        "expected pyarrow for tables of columns, got import of pyarrow halted; None in sys.modules "
        "(pip install 'pyarrow<26'; see `recordspec docs installing`)"
    )
    assert os.listdir(tmp_path) == ["f"]


@needs_data
def test_taxi(tmp_path):
    files = DATA / "taxi/trips-0000?-of-00002.tfrecord.gz"
    assert export(files, tmp_path / "out.parquet").rows == 15_000
    table = parquet.read_table(tmp_path / "out.parquet")
    assert table["company"].null_count == 5140
    assert str(table.schema.field("pickup_census_tract").type) == "null"
    assert export(files, tmp_path / "out.csv").rows == 15_000
    schema = rs.Schema.loads(
        "schema: s\nfeatures: {trip_start_timestamp: int64, fare: float32, company: {dtype: string, default: '-'}}"
    )
    (built,) = rs.read(files, schema, batch=20_000)
    np.testing.assert_array_equal(table["fare"].to_numpy(), built["fare"].numpy())
    for suffix in ("csv", "parquet"):
        folder = tmp_path / suffix
        folder.mkdir()
        (tmp_path / f"out.{suffix}").rename(folder / f"out.{suffix}")
        build(folder, schema, f"{{{suffix}: out.{suffix}}}")
        (again,) = rs.read(folder / "again", schema, batch=20_000)
        for name, value in built.items():
            np.testing.assert_array_equal(again[name].numpy(), value.numpy())


@needs_data
def test_sequences(tmp_path):
    export(DATA / "sequence/data-00000-of-00001.tfrecord.gz", tmp_path / "out.parquet")
    table = parquet.read_table(tmp_path / "out.parquet")
    assert [str(table.schema.field(name).type) for name in ("f", "i", "s")] == [
        "float",
        "int64",
        "list<element: string>",
    ]
    assert table["i"].null_count == 1500
    assert table["s"].to_pylist() == [[f"{n}", f"{n + 1}"] for n in range(15_000)]


@needs_data
def test_mnist(tmp_path):
    file = DATA / "mnist/mnist.tfrecord"
    export(file, tmp_path / "out.parquet")
    table = parquet.read_table(tmp_path / "out.parquet")
    assert table.num_rows == 1000
    assert set(map(len, table["image_floats"].to_pylist())) == {784}
