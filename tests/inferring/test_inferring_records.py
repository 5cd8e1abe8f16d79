"""Schemas of files that have none: with them, nothing is found that does not fit."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import yaml

import recordspec as rs
from examples import example, file_of
from media import image_bytes, photo
from recordspec.inferring.infer import infer as inferred
from recordspec.inferring.record_schemas import infer_records as infer
from recordspec.integrity.check import check_files
from recordspec.store.dataset import StoredDataset
from recordspec.wire.framing import framed
from shell import run_here as run
from third_party_data import DATA, needs_data

YAML = """
schema: s
features:
  fare: float32
  hour: int64
  image/class: {kind: label, names: [a, b, c]}
  picture: {kind: image, shape: [4, 5, 3]}
  point: {kind: fixed_len, dtype: float32, shape: [3]}
  said: text
  sound: {kind: audio, sample_rate: 8000}
  words: {kind: var_len, dtype: string}
"""
SCHEMA = rs.Schema.loads(YAML)


def row(number: int) -> dict:
    return {
        "fare": number / 2,
        "hour": number % 24,
        "image/class": number % 3,
        "point": [0.0, 1.0, 2.0],
        "picture": np.full((4, 5, 3), number % 256, np.uint8),
        "said": f"é{number}",
        "sound": np.zeros((100, 1), np.float32),
        "words": ["w"] * (number % 3),
    }


def written(folder, schema, rows) -> Path:
    """The records, and nothing that tells what they are."""
    rs.write(rows, schema, folder / "data", shards=2, key=None, progress=False)
    for name in ("manifest.json", "schema.yaml"):
        (folder / "data" / name).unlink()
    return folder / "data"


def fits(files, schema) -> int:
    """How many rows there are, all of which fit."""
    report = check_files(StoredDataset.of(files, schema).checked_files(), schema)
    assert [str(fault.problem) for fault in report.examples] == []
    return report.rows


def test_what_stands_in_records_is_recognised(tmp_path):
    data = written(tmp_path, SCHEMA, map(row, range(100)))
    found = infer(str(data), "s")
    told = "{kind: var_len, description: missing in 34 of 100, dtype: string}"
    guessed = YAML.replace("[a, b, c]", '["0", "1", "2"]').replace("{kind: var_len, dtype: string}", told)
    assert found.schema == rs.Schema.loads(guessed)
    assert found.notes == (
        "image/class: classes 0 to 2: replace these numbers with the names of the classes",
        "words: missing in 34 of 100 rows",
    )
    assert found.rows == fits(data, found.schema) == 100


def test_four_lists_named_as_sides_are_boxes(tmp_path):
    names = [f"object/bbox/{side}" for side in ("ymin", "xmin", "ymax", "xmax")]
    lists = [
        {name: ("float32", [side] * many) for name, side in zip(names, (0.1, 0.2, 0.5, 1), strict=True)}
        for many in (2, 0, 1)
    ]
    for rows, kinds in ((lists, ["box"]), ([*lists, {names[0]: ("float32", [0.5])}], ["var_len"] * 4)):
        path = file_of(tmp_path / str(len(rows)), map(example, rows))
        found = infer(path, "s")
        assert [feature.kind for feature in found.schema.features] == kinds
        assert fits(path, found.schema) == len(rows)
    (box,) = infer(tmp_path / "3", "s").schema.features
    assert (box.name, box.format, box.keys) == ("object/bbox", "rel_yxyx", tuple(names))


def test_images_of_different_sizes_and_other_bytes(tmp_path):
    schema = rs.Schema.loads(
        "schema: s\nfeatures: {picture: {kind: image}, blob: {kind: fixed_len, dtype: string}}"
    )
    rows = [
        {"picture": np.zeros((1 + number, 2, 3), np.uint8), "blob": bytes([255, number, 0, 1])}
        for number in range(9)
    ]
    data = written(tmp_path, schema, rows)
    found = infer(str(data), "s")
    picture = found.schema.names["picture"]
    assert (picture.kind, picture.shape, picture.encoding) == ("image", (None, 2, 3), "png")
    assert found.schema.names["blob"].dtype == "string"
    assert found.notes == ("blob: 4 bytes each: `kind: tensor` with `encoding: raw`, if these are numbers",)
    assert fits(data, found.schema) == 9


def test_numbers_in_steps(tmp_path):
    full = {"n": [("int64", [1])] * 3, "x": [("float32", [1, 2])] * 2, "w": [("bytes", [b"\xff"])]}
    path = file_of(tmp_path / "x", [example({"n": ("int64", [7])}, full), example({}, {**full, "x": []})])
    found = infer(path, "s")
    assert found.schema == rs.Schema.loads("""
schema: s
record: sequence_example
context:
  n: {dtype: int64, default: 0, with_missing: true, description: missing in 1 of 2}
sequence:
  n_steps: {kind: fixed_len_sequence, dtype: int64, key: n}
  w: {kind: fixed_len_sequence, dtype: string}
  x: {kind: fixed_len_sequence, dtype: float32, shape: [2]}
""")
    assert fits(path, found.schema) == 2
    (batch,) = rs.read(path, found.schema, batch=2)
    assert batch["n"].numpy().tolist() == [7, 0]
    assert batch["n_missing"].numpy().tolist() == [False, True]
    assert batch["n_steps"].numpy().tolist() == [[1, 1, 1]] * 2
    assert batch["x"].numpy().tolist() == [[[1, 2], [1, 2]], [[0, 0], [0, 0]]]


@pytest.mark.parametrize(("kind", "value"), [("int64", 1), ("bytes", b"\xff")])
def test_lists_of_steps_that_some_records_lack(tmp_path, kind, value):
    path = file_of(tmp_path / "x", [example({}, {"s": [(kind, [value])] * 2}), example({})])
    found = infer(path, "s")
    dtype = {"bytes": "string"}.get(kind, kind)
    assert (
        found.schema.names["s"]
        == rs.Schema.loads(f"""
schema: s
record: sequence_example
sequence: {{s: {{kind: fixed_len_sequence, dtype: {dtype}, missing: empty}}}}
""").names["s"]
    )
    assert found.notes[0] == "s: no list of steps in 1 of 2 records"
    assert fits(path, found.schema) == 2
    (batch,) = rs.read(path, found.schema, batch=2)
    assert batch["s"].numpy().tolist() == [[value] * 2, [type(value)()] * 2]


def test_names_of_steps_that_are_taken(tmp_path):
    context = {key: ("int64", [1]) for key in ("a", "a_steps")}
    steps = {key: [("int64", [1])] for key in ("a", "a_steps", "a_steps_steps")}
    found = infer(file_of(tmp_path / "x", [example(context, steps)]), "s")
    assert [(one.name, one.key) for one in found.schema.sequence] == [
        ("a_steps_steps", "a"),
        ("a_steps_steps_steps", "a_steps"),
        ("a_steps_steps_steps_steps", "a_steps_steps"),
    ]


def test_the_empty_key_is_left_out(tmp_path):
    found = infer(file_of(tmp_path / "x", [example({"": ("int64", [1]), "n": ("int64", [1])})]), "s")
    assert list(found.schema.names) == ["n"]
    assert found.notes == (
        '"": the empty key, which no feature holds, so it is left out',
        "TensorFlow refuses 1 of 1 rows, or reads other values: see `check`",
    )


def test_text_is_text_to_its_end(tmp_path):
    long = [b"a" * 300, b"b" * 300 + "é".encode(), b"short"]
    path = file_of(tmp_path / "x", [example({"s": ("bytes", [one])}) for one in long])
    assert infer(path, "s").schema.names["s"].kind == "text"
    cut = [*long, "é".encode()[1:]], [*long, b"c" * 300 + "é".encode()[:1]]
    for some in cut:
        path = file_of(tmp_path / "x", [example({"s": ("bytes", [one])}) for one in some])
        assert infer(path, "s").schema.names["s"].kind == "fixed_len"


def test_several_kinds_under_a_key_are_left_out(tmp_path):
    one = rs.Schema.loads("schema: s\nfeatures: {n: int64, m: int64}")
    other = rs.Schema.loads("schema: s\nfeatures: {n: float32, m: int64}")
    path = tmp_path / "x.tfrecord"
    path.write_bytes(framed(one.encode({"n": 1, "m": 1})) + framed(other.encode({"n": 1.5, "m": 2})))
    found = infer(path, "s")
    assert list(found.schema.names) == ["m"]
    assert found.notes[-1] == (
        "n: lists of several kinds (1 of float32 and 1 of int64), which no feature holds, so it is left out"
    )


def test_classes_that_do_not_begin_at_0_are_numbers(tmp_path):
    schema = rs.Schema.loads("schema: s\nfeatures: {label: int64}")
    data = written(tmp_path, schema, [{"label": 1 + number % 3} for number in range(60)])
    assert infer(str(data), "s").schema == schema


@pytest.mark.parametrize("rows", [29, 30])
def test_integers_may_be_classes_if_each_is_frequent(tmp_path, rows):
    schema = rs.Schema.loads("schema: s\nfeatures: {n: int64}")
    data = written(tmp_path, schema, [{"n": number % 3} for number in range(rows)])
    found = infer(str(data), "s")
    assert found.schema == schema
    note = "n: integers from 0 to 2: if they are classes, `kind: label` takes their names"
    assert found.notes == ((note,) if rows == 30 else ())


@pytest.mark.parametrize(
    ("name", "values", "feature", "notes"),
    [
        ("landcover", [0.0, 1.0, 2.0], {"kind": "label", "names": ["0", "1", "2"], "encoding": "float"}, (
            "landcover: floats, all whole, from 0 to 2, 3 different: classes, by the name; replace these numbers with the names of the classes",
        )),
        ("b1", [1.0, 2.0], "float32", (
            "b1: floats, all whole, from 1 to 2, 2 different: if they are classes, `kind: label` with `encoding: float` takes their names, the first of which is that of 0",
        )),
        ("label", [0.0, 1.0, 1.5], "float32", ()),
        ("label", [0.0, 1.0, float("nan")], "float32", (
            "label: some numbers are NaN or infinite: a model cannot learn from them",
        )),
    ],
)  # fmt: skip
def test_floats_may_be_classes_if_all_are_whole_and_few(tmp_path, name, values, feature, notes):
    """As in the TFRecords of Earth Engine."""
    schema = rs.Schema.loads(yaml.safe_dump({"schema": "s", "features": {name: "float32"}}))
    rows = [{name: value} for value in values * 20]
    found = infer(str(written(tmp_path, schema, rows)), "s")
    assert found.schema == rs.Schema.loads(yaml.safe_dump({"schema": "s", "features": {name: feature}}))
    assert found.notes == notes


def test_a_sample_looks_at_the_first_records(tmp_path):
    schema = rs.Schema.loads("schema: s\nfeatures: {n: {kind: var_len, dtype: int64}}")
    path = tmp_path / "x.tfrecord"
    path.write_bytes(
        b"".join(framed(schema.encode({"n": [1] * (2 if number > 50 else 1)})) for number in range(100))
    )
    assert infer(path, "s", sample=40).schema.names["n"].kind == "fixed_len"
    assert infer(path, "s", sample=40).rows == 40
    assert infer(path, "s").schema.names["n"].kind == "var_len"


def test_records_without_features_have_no_schema(tmp_path):
    path = tmp_path / "x.tfrecord"
    path.write_bytes(framed(b"") * 3)
    with pytest.raises(rs.RecordError) as caught:
        infer(path, "s")
    assert str(caught.value) == f"{path}: expected records with features, got none"
    path.write_bytes(framed(b"\x10\x01") * 3)
    with pytest.raises(rs.RecordError) as caught:
        infer(path, "s")
    assert str(caught.value) == (
        f"{path}: expected records with features, got other messages, which `head` names"
    )
    path.write_bytes(framed(b"\xff\xff") * 3)
    with pytest.raises(rs.RecordError) as caught:
        infer(path, "s")
    assert str(caught.value).splitlines()[0] == (
        f"{path}: record 0 at byte 0: expected an Example or a SequenceExample, got 2 bytes that do not parse"
    )


def test_a_schema_and_a_config_that_build(tmp_path):
    written(tmp_path, SCHEMA, map(row, range(40)))
    done = run(
        "infer",
        "data",
        "--out",
        "schemas/s.yaml",
        "--config",
        "configs/c.yaml",
        "--name",
        "mine",
        cwd=tmp_path,
    )
    language = ["schemas/recordspec.schema.json", "configs/recordspec.schema.json"]
    assert (done.returncode, done.stdout.split()) == (0, ["schemas/s.yaml", "configs/c.yaml", *language])
    done = run("build", "configs/c.yaml", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert sum(json.loads(line)["rows"] for line in done.stdout.splitlines()) == 40
    inputs, targets = next(iter(rs.Pipeline.load(tmp_path / "configs/c.yaml").dataset("train")))
    assert set(inputs) == set(SCHEMA.names) - {"image/class", "said"}  # a word of its own in each row
    assert targets.dtype == "int64"
    done = run("infer", "data", "--out", "schemas/s.yaml", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (
        4,
        "`schemas/s.yaml` exists: nothing was written; --force replaces it\n",
    )


@needs_data
def test_real_trips_fit_their_schema_and_are_read():
    files = str(DATA / "taxi/trips-*.gz")
    found = infer(files, "trips")
    assert "company: missing in 5,140 of 15,000 rows and reads as its default" in found.notes
    assert (
        "pickup_census_tract: always empty, in 15,000 rows: its type is unknown, so it is left out"
        in found.notes
    )
    assert fits(files, found.schema) == 15_000
    read = rs.read(files, found.schema, batch=1000)
    batches = list(read)
    assert sum(int(batch["fare"].shape[0]) for batch in batches) == 15_000
    assert sum(int(batch["trip_seconds_missing"].numpy().sum()) for batch in batches) == 6


@needs_data
def test_real_sequences_and_digits():
    steps = infer(str(DATA / "sequence"), "steps")
    assert (steps.schema.record, list(steps.schema.names)) == ("sequence_example", ["f", "i", "s"])
    assert fits(DATA / "sequence", steps.schema) == 15_000
    digits = infer(str(DATA / "mnist/mnist.tfrecord"), "digits").schema
    assert digits.names["image_floats"].shape == (784,)
    assert digits.names["image_class"].names == tuple("0123456789")


@needs_data
def test_schemas_of_other_languages():
    found = inferred([str(DATA / "taxi/schema.pbtxt")], None)
    assert found.rows is None
    assert found.schema.names["fare"].dtype == "float32"


def test_keys_that_some_records_lack(tmp_path):
    """A default stands for one number or text, unless a record has an empty list, which it does not reach."""
    some = {
        "n": ("int64", [3]),
        "text": ("bytes", [b"a"]),
        "raw": ("bytes", [b"\xff"]),
        "empty": ("int64", [1]),
    }
    path = file_of(
        tmp_path / "x",
        [
            example({**some, "x": ("float32", [1]), "x_missing": ("int64", [1])}),
            example({"x_missing": ("int64", [0]), "empty": ("int64", [])}),
        ],
    )
    schema = infer(path, "s").schema
    assert {
        name: (feature.kind, feature.traits.optional, len(feature.outputs))
        for name, feature in schema.names.items()
    } == {
        "empty": ("var_len", False, 1),
        "n": ("fixed_len", True, 2),
        "raw": ("var_len", False, 1),
        "text": ("fixed_len", True, 1),
        "x": ("fixed_len", True, 1),
        "x_missing": ("fixed_len", False, 1),
    }
    (batch,) = rs.read(path, schema, batch=2)
    assert batch["n"].numpy().tolist() == [3, 0]
    assert batch["n_missing"].numpy().tolist() == [False, True]


def test_texts_of_words_that_differ_are_free_text(tmp_path):
    schema = rs.Schema.loads("schema: s\nfeatures: {town: text, code: text, said: text, late: text}\n")
    rows = [
        {
            "town": ("Rome", "New York")[number % 2],  # of two words, and few
            "code": f"u{number}",
            "said": f"I am row {number}",
            "late": f"{'x' * 70}{number}",
        }
        for number in range(40)
    ]
    found = inferred(written(tmp_path, schema, rows), "s")
    assert found.free_text == ("late", "said")
    notes = "texts of several words, mostly different: `fit.encode` takes them as `words`"
    adopt = "source: `recordspec adopt` makes a dataset of the files in place, and a build a copy"
    assert found.notes == (f"late: {notes}", f"said: {notes}", adopt)
    few = inferred(written(tmp_path / "few", schema, rows[:19]), "s")
    assert (few.free_text, few.notes) == ((), (adopt,))
    some = rs.Schema.loads("schema: s\nfeatures: {said: {dtype: string, default: ''}}\n")
    gaps = [{}, *({"said": row["said"]} for row in rows)]
    assert inferred(written(tmp_path / "gaps", some, gaps), "s").notes == (
        "said: missing in 1 of 41 rows and reads as its default",
        f"said: {notes}",
        "said: a missing text has no words, whose mean is NaN: `default: none` is a word",
        adopt,
    )


def test_keys_beyond_the_first_thousand_are_told(tmp_path):
    keys = {f"k{number:04}": ("int64", [number]) for number in range(1002)}
    some = infer(file_of(tmp_path / "some", [example(dict(list(keys.items())[:1000]))]), "s")
    assert (len(some.schema.names), some.notes) == (1000, ())
    many = infer(file_of(tmp_path / "many", [example(keys)]), "s")
    assert (many.schema.names, many.notes) == (
        some.schema.names,
        ("more than 1,000 keys: those after `k0999` are left out",),
    )


def test_several_images_in_a_record_are_seen_as_such(tmp_path):
    """And numbers stored raw, as pixels of six channels are, name the kind that reads them."""
    stored = rs.Schema.loads(
        "schema: s\nfeatures: {frames: {kind: var_len, dtype: string}, raw: {dtype: string}}"
    )
    frames, raw = [image_bytes(photo(), "jpeg") for _ in range(3)], bytes(range(256)) * 6
    records = [stored.encode({"frames": frames[: 1 + n % 3], "raw": raw[n:] + raw[:n]}) for n in range(9)]
    (tmp_path / "a.tfrecord").write_bytes(b"".join(map(framed, records)))
    found = rs.infer(tmp_path / "a.tfrecord")
    assert found.notes[:2] == (
        "frames: several JPEG images in a record, kept as bytes: `kind: video` with `encoding: jpeg` and "
        "`shape: [null, null, null, 3]` decodes them, if those of a record have one size",
        "raw: 1,536 bytes each: `kind: tensor` with `encoding: raw`, if these are numbers",
    )
    video = {"kind": "video", "encoding": "jpeg", "shape": [None, None, None, 3]}
    tensor = {"kind": "tensor", "encoding": "raw", "dtype": "uint8", "shape": [16, 16, 6]}
    followed = found.schema.with_features({"frames": video, "raw": tensor})
    batch = next(rs.iterate(tmp_path / "a.tfrecord", followed, batch=3))
    assert [len(frames) for frames in batch["frames"]] == [1, 2, 3]
    assert batch["raw"][1].tobytes() == raw[1:] + raw[:1]
