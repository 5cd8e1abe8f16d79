"""Files whose first look misleads: a note of each reading that the file may have as well."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas
import polars
import pyarrow
import pytest
from PIL import Image
from pyarrow import parquet
from pyarrow.dataset import dataset

import recordspec as rs
from recordspec.wire.framing import framed


def notes_of(path: Path | str, text: str = "") -> list[str]:
    if text:
        Path(path).write_text(text)
    return [
        note.partition(":")[2].strip()
        for note in rs.infer(path).notes
        if note.startswith(("source:", "image:"))
    ]


def test_a_first_line_of_numbers_may_be_a_row(tmp_path):
    rows = "".join(f"4.{n},3.1,setosa\n6.{n},2.2,other\n" for n in range(30))
    (note,) = notes_of(tmp_path / "iris.csv", "5.1,2.7,setosa\n" + rows)
    assert note == (
        "`header: false`: `setosa` is on the first line and in rows, so the first row is no header: "
        "`header: [...]` names the columns"
    )
    found = rs.infer(tmp_path / "iris.csv")
    assert (found.rows, [*found.schema.names]) == (61, ["column_1", "column_2", "column_3"])
    assert notes_of(tmp_path / "named.csv", "length,width,species\n" + rows) == []
    (note,) = notes_of(tmp_path / "years.csv", "country,2019,2020\n" + "DE,1,2\nFR,3,4\nIT,5,6\n")
    assert note.startswith("names of columns are numbers, 2019 (and 1 more): if the file has no header")


def test_a_space_beside_a_delimiter_is_dropped(tmp_path):
    rows = "".join(f"{n}, {n * 7 % 90}, a\n" for n in range(60))
    note, *_ = notes_of(tmp_path / "spaces.csv", "age, hours, y\n" + rows)
    assert note == "`trim: true`: names of columns have spaces around them, ' hours' (and 1 more)"
    note, *_ = notes_of(tmp_path / "cells.csv", "age,hours,y\n" + rows)
    assert note == "`trim: true`: the cells of hours begin with a space, such as ' 0'"
    for name in ("spaces", "cells"):
        features = rs.infer(tmp_path / f"{name}.csv").schema.features
        items = [(one.name, one.value_type.item) for one in features]
        assert items == [("age", "int64"), ("hours", "int64"), ("y", "text")]
    assert notes_of(tmp_path / "plain.csv", ("age, hours, y\n" + rows).replace(", ", ",")) == []


def test_quotes_that_join_lines_of_a_tsv_are_text(tmp_path):
    text = 'text\tlabel\none\tx\n"two\ty\nthree"\tx\nfour\ty\n'
    (note,) = notes_of(tmp_path / "rows.tsv", text)
    assert note == "`quote: null`: cells of several lines that contain the delimiter: 1"
    assert rs.infer(tmp_path / "rows.tsv").rows == 4
    (note,) = notes_of(tmp_path / "lines.tsv", 'text\tlabel\n"one\ntwo"\tx\n')
    assert note.startswith("cells of several lines: 1, which begin with a quote")
    (note,) = notes_of(tmp_path / "after.tsv", text.replace('three"', 'three" 4"'))
    assert note == ('`quote: null`: on line 4 of after.tsv, quotes are no pairs around cells: `three" `')
    assert notes_of(tmp_path / "same.tsv", text.replace('"', "")) == []


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
@pytest.mark.parametrize("given", ["sales", "sales/*/*/*"])
def test_names_of_folders_are_columns_of_one_type(tmp_path, suffix, given):
    folders = ["country=DE/year=2020", "country=__HIVE_DEFAULT_PARTITION__/year=2021", "country=a%20b/year=9"]
    for number, name in enumerate(folders):
        folder = tmp_path / "sales" / name
        folder.mkdir(parents=True)
        frame = pandas.DataFrame({"a": [number, number + 10], "code": ["x", "y"]})
        if suffix == "csv":
            frame.to_csv(folder / "part-0.csv", index=False)
        else:
            frame.to_parquet(folder / "part-0.parquet")
    path = f"{tmp_path}/{given}" + f".{suffix}" * ("*" in given)
    assert notes_of(path) == ["columns in the names of folders: country, year"]
    rs.infer(path).save(tmp_path / "c.yaml", schema=tmp_path / "s.yaml", data=tmp_path / "data")
    options = {"split": "train", "progress": False}
    pipeline = rs.Pipeline.load(tmp_path / "c.yaml")
    ((_, source),) = [pipeline.config.write.source.given]
    assert source.given == (given if "*" not in given else f"{given}.{suffix}",)
    rows = rs.write(source.open(tmp_path), pipeline.schema, tmp_path / "all", shuffle=None, **options)
    expected = dataset(tmp_path / "sales", format=suffix, partitioning="hive").to_table().to_pylist()
    found = rs.scan(tmp_path / "all").to_table().select(["a", "code", "country", "year"]).to_pylist()
    assert sorted(found, key=str) == sorted(
        ({**row, "country": row["country"] or None} for row in expected), key=str
    )
    assert rows.rows("train") == 6


def test_images_of_a_table_are_inputs_and_missing_ones_are_named(tmp_path):
    for number in range(5):
        Image.fromarray(np.full((4, 4, 3), number, np.uint8)).save(tmp_path / f"{number}.png")
    text = "image,y\n" + "".join(f"{number}.png,{number % 2}\n" for number in range(5))
    assert notes_of(tmp_path / "rows.csv", text) == ["paths of image files, judged by the first 5"]
    found = rs.infer(tmp_path / "rows.csv")
    assert (found.schema["image"].kind, found.no_inputs) == ("image", {})  # its path would identify the row
    (tmp_path / "3.png").unlink()
    missing, _ = notes_of(tmp_path / "rows.csv")
    assert missing == (
        f"1 of the first 5 files do not exist, such as {tmp_path}/3.png: `write: {{invalid: ...}}` of the config "
        "leaves their rows out; without it, they are an error"
    )


def test_a_training_split_of_another_name_is_told(tmp_path):
    for split in ("training", "testing"):
        (tmp_path / f"{split}.csv").write_text("x,y\n1.5,a\n2.5,b\n" * 20)
    told = [
        note
        for note in rs.infer([tmp_path / "training.csv", tmp_path / "testing.csv"]).notes
        if "splits" in note
    ]
    assert told == [
        "splits: no `fit.encode` is proposed, which learns from a split named `train`, not `training`"
    ]


def test_photos_of_formats_without_a_feature_are_counted(tmp_path):
    Image.fromarray(np.zeros((4, 4, 3), np.uint8)).save(tmp_path / "a.png")
    for name in ("b.psd", "c.SVG", "d.psd", "Thumbs.db"):
        (tmp_path / name).write_bytes(b"")
    (note,) = [note for note in rs.infer(tmp_path).notes if "left out" in note]
    assert note == (
        "files that are not images, left out: 2 of .psd (b.psd), 1 of .db (Thumbs.db), 1 of .SVG (c.SVG)"
    )


def test_a_split_of_tfds_without_labels_has_missing_labels(tmp_path):
    """TFDS stores a missing label as -1, which no class has, as in most test splits of GLUE."""
    schema = rs.Schema.loads("schema: t\nfeatures: {label: int64, tags: {kind: var_len, dtype: int64}}\n")
    stored = {"train": 1, "test": -1}
    for split, label in stored.items():
        file = tmp_path / f"sst-{split}.tfrecord-00000-of-00001"
        file.write_bytes(framed(schema.encode({"label": label, "tags": [1, label]})) * 3)
    base = "tensorflow_datasets.core.features"
    label = {"pythonClassName": f"{base}.class_label_feature.ClassLabel", "classLabel": {"numClasses": "2"}}
    tags = {"pythonClassName": f"{base}.sequence_feature.Sequence", "sequence": {"feature": label}}
    top = {
        "pythonClassName": f"{base}.features_dict.FeaturesDict",
        "featuresDict": {"features": {"label": label, "tags": tags}},
    }
    (tmp_path / "features.json").write_text(json.dumps(top))
    (tmp_path / "label.labels.txt").write_text("no\nyes\n")
    splits = [{"name": split, "shardLengths": ["3"], "numBytes": "1"} for split in stored]
    info = {"name": "sst", "version": "1.0.0", "fileFormat": "tfrecord", "splits": splits}
    (tmp_path / "dataset_info.json").write_text(json.dumps(info))
    found = rs.infer(tmp_path)
    assert found.notes == (
        "label: -1 in 3 of the first 3 rows of `test`, as TFDS stores a missing label: `missing: true`",
        "tags: -1 in 3 items of the first 3 rows of `test`, as TFDS stores a missing label: kept as numbers, "
        "since a list of labels has no missing item",
    )
    found.save(tmp_path / "c.yaml", schema=tmp_path / "s.yaml")
    pipeline = rs.Pipeline.load(tmp_path / "c.yaml")
    assert pipeline.build().label_counts == {"train": {"label": (0, 3)}, "test": {"label": (0, 0)}}
    for data in (pipeline.data, tmp_path):  # built without the key, and as TFDS stores it
        rows = rs.scan(data, found.schema).to_table()["label"].to_pylist()
        assert sorted(rows, key=str) == [None] * 3 + ["yes"] * 3
    adopted = rs.adopt(tmp_path, found.schema, check=True)
    assert adopted.label_counts == pipeline.manifest.label_counts
    read = {
        split: next(rs.iterate(tmp_path / f"sst-{split}.*", found.schema, batch=3))
        for split in ("train", "test")
    }
    assert [(batch["label"].tolist(), batch["label_missing"].tolist()) for batch in read.values()] == [
        ([1] * 3, [False] * 3),
        ([-1] * 3, [True] * 3),
    ]


# the oldest Polars gives Arrow no order
@pytest.mark.parametrize("library", ["pandas", pytest.param("Polars", marks=pytest.mark.newest), "Arrow"])
def test_ordered_categories_keep_their_order(tmp_path, library):
    """And the class that no row has."""
    levels, values = ["low", "mid", "high"], ["mid", "low", "mid", "low"] * 20
    frame = pandas.DataFrame({"level": pandas.Categorical(values, categories=levels, ordered=True)})
    given = {
        "pandas": frame,
        "Polars": polars.DataFrame({"level": polars.Series(values, dtype=polars.Enum(levels))}),
        "Arrow": pyarrow.Table.from_pandas(frame),
    }[library]
    found = rs.infer(given)
    assert found.schema["level"].traits.class_names == tuple(levels)
    rs.write(given, found, tmp_path / "data", shuffle=None)
    assert rs.open(tmp_path / "data")[:4]["level"].tolist() == [1, 0, 1, 0]
    unordered = rs.infer(pandas.DataFrame({"level": pandas.Categorical(values)}))
    assert unordered.schema["level"].traits.class_names == ("low", "mid")


def test_many_codes_are_no_columns_of_one_hot(tmp_path):
    text = "code,n\n" + "".join(f"c{number % 1001},{number}\n" for number in range(1500))
    (tmp_path / "codes.csv").write_text(text)
    inferred = rs.infer(tmp_path / "codes.csv")
    assert inferred.notes == (
        "code: more than 1,000 distinct texts: `one_hot` has a column for each of the most frequent; "
        "`index` in `fit.encode`, with an Embedding layer, takes all",
    )
    (tmp_path / "codes.csv").write_text(text.replace("c1000", "c999"))
    assert rs.infer(tmp_path / "codes.csv").notes == ()


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("rows.txt", b"a,b\n1,2\n", 'expected a name with a known suffix (.csv, .tsv, .jsonl, .ndjson, .parquet), a TFRecord file, or a format, got text that begins \'a,b\\n1,2\\n\' (such as `--format csv`, or format="csv")'),
        ("rows", b'{"a": 1}\n', 'expected a name with a known suffix (.csv, .tsv, .jsonl, .ndjson, .parquet), a TFRecord file, or a format, got text that begins \'{"a": 1}\\n\' (such as `--format jsonl`, or format="jsonl")'),
        ("rows.json", b'{"a": 1}\n{"a": 2}\n', 'expected one JSON object, got lines of JSON (`--format jsonl`, or format="jsonl", reads them)'),
        ("cat.png", b"\x89PNG\r\n\x1a\n", "expected a folder, got a PNG image (the folder of the classes, each a folder of files, is read)"),
        ("rows.xlsx", b"PK\3\4", 'is a spreadsheet: save it as CSV, or give rs.infer the frame: rs.infer(pandas.read_excel("rows.xlsx"))'),
    ],
)  # fmt: skip
def test_a_file_of_no_known_format_has_a_way_out(tmp_path, monkeypatch, name, content, message):
    monkeypatch.chdir(tmp_path)
    Path(name).write_bytes(content)
    with pytest.raises(rs.SpecError) as error:
        rs.infer(name)
    assert str(error.value).replace("`rows.xlsx` ", "rows.xlsx: ") == f"{name}: {message}"


def test_a_format_that_is_given_reads_any_name(tmp_path):
    (tmp_path / "rows.txt").write_text("a\tb\n1\tx\n2\ty\n")
    (tmp_path / "lines.json").write_text('{"a": 1, "b": "x"}\n{"a": 2, "b": "y"}\n')
    parquet.write_table(pyarrow.table({"a": [1, 2], "b": ["x", "y"]}), tmp_path / "table")
    for name, form in {"rows.txt": "csv", "lines.json": "jsonl", "table": "parquet"}.items():
        config = rs.infer(tmp_path / name, format=form)
        assert [*config.schema.names] == ["a", "b"]
        built = config.pipeline(tmp_path / form).build(progress=False)
        assert sum(map(built.rows, built.splits)) == 2
    for given, message in [
        (lambda: rs.infer(tmp_path / "rows.txt", format="cvs"), "format: expected one of csv, jsonl, json, parquet, tfrecord, got `cvs` (did you mean `csv`?)"),
        (lambda: rs.infer([{"a": 1}], format="csv"), "format: expected none, for rows, got `csv`"),
        (lambda: rs.infer(tmp_path, format="csv"), f"{tmp_path}: expected files of csv, got a folder (give the files, such as '{tmp_path}/*')"),
    ]:  # fmt: skip
        with pytest.raises(rs.SpecError) as error:
            given()
        assert str(error.value) == message
