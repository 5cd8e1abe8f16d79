"""Datasets of Hugging Face as rows: what they leave out, their images, sounds, classes and splits."""

from __future__ import annotations

import datasets
import numpy as np
import pytest
from hugging_face_data import INNER, read
from in_parts import records

import recordspec as rs
from media import image_bytes, photo, sound_bytes
from recordspec.writing.sources.parquet import Parquet
from recordspec.writing.sources.python_rows import source_of

IMAGES = rs.Schema.loads(
    "schema: s\nfeatures:\n"
    "  image: {kind: image, shape: [30, 40, 3]}\n"
    "  label: {kind: label, names: [dog, cat]}\n"
)
FEATURES = datasets.Features({"image": datasets.Image(), "label": datasets.ClassLabel(names=["cat", "dog"])})


def images(**columns) -> datasets.Dataset:
    pictures = [photo(), photo()[::-1], photo()[:, ::-1]]
    return datasets.Dataset.from_dict({"image": pictures, "label": [0, 1, 1]} | columns, features=FEATURES)


def test_the_files_of_images_are_stored_and_classes_keep_their_names(tmp_path):
    png = image_bytes(photo(), "png")
    (tmp_path / "a.png").write_bytes(png)
    given = images(
        image=[{"bytes": png, "path": None}, {"bytes": None, "path": str(tmp_path / "a.png")}, photo()]
    )
    rs.write(given, IMAGES, tmp_path / "data", key=None)
    found = read(IMAGES, tmp_path / "data")
    assert [row["label"] for row in found] == [1, 0, 0]  # in the schema, the dog is first
    for row in found:
        np.testing.assert_array_equal(row["image"], photo())
    records = IMAGES.encode_batch({"image": [png] * 3, "label": ["cat", "dog", "dog"]}, 3)
    manifest = rs.Manifest.load(tmp_path / "data")
    assert manifest.rows("train") == 3
    assert png in records[0]
    rs.write(given.to_iterable_dataset(), IMAGES, tmp_path / "streamed", key=None)
    shard = manifest.shards("train")[0].file
    assert (tmp_path / "data" / shard).read_bytes() == (tmp_path / "streamed" / shard).read_bytes()
    rs.write(given, IMAGES, tmp_path / "jobs", key=None, jobs=2)
    assert (tmp_path / "data" / shard).read_bytes() == (tmp_path / "jobs" / shard).read_bytes()


def test_what_was_filtered_and_shuffled_is_read_in_that_order(tmp_path):
    given = datasets.Dataset.from_dict({"n": list(range(100)), "other": ["x"] * 100})
    given = given.shuffle(seed=1).filter(lambda row: row["n"] % 3 == 0, load_from_cache_file=False)
    schema = rs.Schema.loads("schema: s\nfeatures: {n: int64}")
    with pytest.raises(rs.SpecError, match="expected names of `s`, got `other`"):
        rs.write(given, schema, tmp_path / "data")
    given = given.select_columns("n")
    rs.write(given.with_format("numpy"), schema, tmp_path / "data")
    assert [row["n"] for row in read(schema, tmp_path / "data")] == list(given["n"])
    doubled = given.with_transform(lambda batch: {"n": [2 * n for n in batch["n"]]})
    rs.write(doubled, schema, tmp_path / "doubled")
    assert [row["n"] for row in read(schema, tmp_path / "doubled")] == [2 * n for n in given["n"]]
    mapped = given.to_iterable_dataset().map(lambda row: {"n": row["n"] + 1})
    rs.write(mapped, schema, tmp_path / "mapped")
    assert [row["n"] for row in read(schema, tmp_path / "mapped")] == [n + 1 for n in given["n"]]


def test_a_row_without_a_class_or_a_picture_is_an_error(tmp_path):
    for number, (given, expected) in enumerate(
        [
            (
                images(label=[0, -1, 1]),
                "row 1: features.label: expected one of `dog`, `cat`, or an index, got nothing",
            ),
            (
                images(image=[photo(), photo(), None]),
                "row 2: features.image: expected a path, bytes, an array or a PIL image, got nothing",
            ),
        ]
    ):
        for rows in (given, given.to_iterable_dataset()):
            with pytest.raises(rs.RecordError) as caught:
                rs.write(rows, IMAGES, tmp_path / str(number))
            assert str(caught.value).startswith(expected)


BYTE = rs.Schema.loads("schema: s\nfeatures: {n: int64}")


def test_the_examples_of_a_stream_may_differ_in_their_types(tmp_path):
    features = datasets.Features({"y": INNER, "ys": datasets.Sequence(INNER), "s": datasets.Value("string")})
    columns = {"y": [0, 1, 2], "ys": [[0], [], [2, 1]], "s": ["p", None, "q"]}
    given = datasets.Dataset.from_dict(columns, features=features).to_iterable_dataset()
    text = "schema: d\nfeatures:\n  y: {kind: label, names: [c, b, a]}\n"
    text += "  ys: {kind: label, names: [c, b, a], shape: [null]}\n  s: {dtype: string, default: ''}\n"
    schema = rs.Schema.loads(text)
    expected = schema.encode_batch({"y": [2, 1, 0], "ys": [[2], [], [0, 1]], "s": ["p", None, "q"]}, 3)
    mapped = given.map(lambda row: row, features=features)
    for form, rows in {
        "mapped": mapped,
        "filtered": mapped.filter(lambda row: True).cast(features),
        "cast": given.cast(features),
        "renamed": given.rename_column("s", "t").rename_column("t", "s").cast(features),
        "selected": mapped.select_columns(["s", "y", "ys"]).cast(features),
    }.items():
        assert records(source_of(rows), schema) == expected, form
        found = rs.infer(rows).schema
        assert found.names["ys"].traits.class_names == ("a", "b", "c"), form
        manifest = rs.write(rows, found, tmp_path / form, key=None, progress=False)
        assert manifest.rows("train") == 3, form


def test_examples_of_other_types_than_the_features_are_an_error(tmp_path):
    plain = datasets.Dataset.from_dict({"n": [0, 1]}).to_iterable_dataset()
    features = datasets.Features({"n": datasets.Value("int8")})
    rows = plain.map(lambda row: {"n": 300 * row["n"]}, features=features)
    # Newer versions of datasets cast themselves, and do not name the column.
    expected = {"n: expected int8, the type of its feature", "rows: expected values of the types of the dataset's features"}  # fmt: skip
    for read_all in (rs.infer, lambda rows: rs.write(rows, BYTE, tmp_path / "data")):
        with pytest.raises(rs.RecordError) as caught:
            read_all(rows)
        message, _, got = str(caught.value).partition(", got ")
        assert message in expected
        assert got == "Integer value 300 not in range: -128 to 127"


def test_sounds_and_arrays(tmp_path):
    sound = sound_bytes(np.arange(8, dtype=np.int16)[:, None], 8000)
    features = {
        "sound": {"bytes": datasets.Value("binary"), "path": datasets.Value("string")},
        "grid": datasets.Array2D((2, 2), "float32"),
    }
    rows = {"sound": [{"bytes": sound, "path": None}] * 2, "grid": [[[1, 2], [3, 4]]] * 2}
    given = datasets.Dataset.from_dict(rows, features=datasets.Features(features))
    given = given.cast_column("sound", datasets.Audio(8000))
    schema = rs.Schema.loads(
        "schema: s\nfeatures:\n"
        "  sound: {kind: audio, sample_rate: 8000, dtype: int16}\n  grid: {dtype: float32, shape: [2, 2]}"
    )
    rs.write(given, schema, tmp_path / "data")
    for row in read(schema, tmp_path / "data"):
        assert row["sound"][:, 0].tolist() == list(range(8))
        assert row["grid"].tolist() == [[1, 2], [3, 4]]


def test_a_dict_of_datasets_brings_its_splits(tmp_path):
    splits = datasets.DatasetDict(train=images().select([0, 1]), test=images().select([2]))
    manifest = rs.write(splits, IMAGES, tmp_path / "data")
    assert {name: manifest.rows(name) for name in manifest.splits} == {"train": 2, "test": 1}
    assert [row["label"] for row in read(IMAGES, tmp_path / "data", "test")] == [0]
    with pytest.raises(rs.SpecError) as caught:
        rs.write(splits, IMAGES, tmp_path / "other", split={"train": 80, "test": 20})
    assert (
        str(caught.value) == "split: expected rows without splits, got rows with (give the rows of one split)"
    )
    with pytest.raises(rs.SpecError, match="resume: expected rows of files, which can be read again"):
        rs.write(splits, IMAGES, tmp_path / "other", resume=True)


def test_a_schema_is_inferred_with_its_classes_and_images(tmp_path):
    given = images().add_column("n", [1, None, 3])
    for rows in (given, given.to_iterable_dataset(), datasets.DatasetDict(train=given)):
        schema = rs.infer(rows).schema
        assert [(name, feature.kind) for name, feature in schema.names.items()] == [
            ("image", "image"),
            ("label", "label"),
            ("n", "fixed_len"),
        ]
        assert schema.names["image"].shape == (30, 40, 3)
        assert schema.names["label"].names == ("cat", "dog")
        assert schema.names["n"].default == 0
    rs.write(given, schema, tmp_path / "data", progress=False)
    assert sorted(row["label"] for row in read(schema, tmp_path / "data")) == [0, 1, 1]


def test_parquet_files_of_hugging_face_have_images(tmp_path):
    images().to_parquet(str(tmp_path / "train.parquet"))
    rs.write(Parquet(files="train.parquet").open(tmp_path), IMAGES, tmp_path / "data")
    found = read(IMAGES, tmp_path / "data")
    assert [row["label"] for row in found] == [1, 0, 0]
    np.testing.assert_array_equal(found[1]["image"], photo()[::-1])
    (note,) = rs.infer(tmp_path / "train.parquet").notes
    assert note.startswith(
        "image: struct<bytes: binary, path: string> (`kind: image` or `kind: audio` takes it), which no "
    )


NESTED = datasets.Features(
    {
        "translation": datasets.Translation(["de", "en"]),
        "objects": [{"box": datasets.Sequence(datasets.Value("float32"), 4), "kind": FEATURES["label"]}],
        "one": {"label": FEATURES["label"]},
        "grid": datasets.Array2D((2, 3), "uint8"),
        "frames": datasets.Array3D((None, 1, 2), "int32"),
    }
)


def nested(number: int) -> dict:
    return {
        "translation": {"de": f"das {number}", "en": f"the {number}"},
        "objects": [{"box": [0.0, 1.0, 2.0, 3.0], "kind": item % 2} for item in range(number % 3)],
        "one": {"label": number % 2},
        "grid": np.full((2, 3), number, np.uint8).tolist(),
        "frames": np.full((1 + number % 2, 1, 2), number).tolist(),
    }


def test_the_members_of_structs_are_columns_with_their_classes(tmp_path):
    given = datasets.Dataset.from_list([nested(number) for number in range(9)], features=NESTED)
    schema = rs.Schema.loads("""
schema: data
features:
  translation.de: text
  translation.en: text
  objects.box: {kind: ragged, dtype: float32, shape: [null, 4]}
  objects.kind: {kind: label, names: [cat, dog], shape: [null]}
  one.label: {kind: label, names: [cat, dog]}
  grid: {kind: tensor, dtype: uint8, shape: [2, 3], encoding: raw}
  frames: {kind: tensor, dtype: int32, shape: [null, 1, 2], encoding: raw}
""")
    names = ("cat", "dog")
    every = [*range(9)]
    for form, rows, numbers in (
        ("dataset", given, every),
        ("filtered", given.filter(lambda row: row["one"]["label"], load_from_cache_file=False), every[1::2]),
        ("selected", given.select([7, 2]), [7, 2]),
        ("numpy", given.with_format("numpy"), every),
        ("stream", given.to_iterable_dataset(), every),
        ("transformed", given.with_transform(lambda batch: batch), every),
        ("splits", datasets.DatasetDict(train=given), every),
        ("table", given.data.table, every),
    ):
        found = rs.infer(rows)
        if form == "transformed":  # Python has no lists of a fixed size
            found = found.with_features({"objects.box": schema["objects.box"]})
        assert (found.schema, found.notes) == (schema, ()), form
        rs.write(rows, found, tmp_path / form, shuffle=None, key=None)
        assert rs.scan(tmp_path / form).to_table().to_pylist() == [
            {
                "translation.de": f"das {number}",
                "translation.en": f"the {number}",
                "objects.box": [one["box"] for one in nested(number)["objects"]],
                "objects.kind": [names[one["kind"]] for one in nested(number)["objects"]],
                "one.label": names[number % 2],
                "grid": nested(number)["grid"],
                "frames": nested(number)["frames"],
            }
            for number in numbers
        ], form
    kept = rs.infer(given).drop("translation.en", "objects.kind")
    assert rs.write(given, kept, tmp_path / "kept").rows("train") == 9
    with pytest.raises(rs.SpecError, match=r"expected names of `data`, got `translation\.en`"):
        rs.write(given, kept.schema, tmp_path / "refused")
