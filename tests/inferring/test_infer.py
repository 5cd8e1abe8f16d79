"""`infer X --out s.yaml --config c.yaml`, `lint`, `build`, `model.fit`: for every X that `infer` takes (`inferring.input_files`).
What it returns (`schema.inferred`) says what it left out."""

from __future__ import annotations

import csv
import datetime
import importlib.util
import json
import shutil
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import numpy as np
import pandas
import PIL.features
import PIL.Image
import pyarrow
import pytest
import soundfile
import yaml
from pyarrow import parquet

import recordspec as rs
from examples import example, file_of
from media import image_bytes, photo, sound_bytes
from recordspec.inferring.inferred_config import guess_fit
from recordspec.interop import tfds
from recordspec.writing.sources.folders import AudioFolder, ImageFolder
from shell import run_here as run

ROWS = 40
SCHEMA = rs.Schema.loads("""
schema: flowers
features:
  id: int64
  petals: {dtype: float32, shape: [4]}
  species: {kind: label, names: [setosa, virginica]}
""")


def row(number: int) -> dict[str, Any]:
    return {"id": number, "petals": [number / 9, 1.0, 2.0, 3.0], "species": number % 2}


def record(number: int) -> bytes:
    return SCHEMA.encode(row(number))


def flat(number: int) -> dict[str, Any]:
    return {"id": number, "length": number / 9, "species": ["setosa", "virginica"][number % 2]}


def tfrecord(path: Path, rows: range = range(ROWS)) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    return file_of(path, map(record, rows))


def table(path: Path, rows: range = range(ROWS)) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    found = [flat(number) for number in rows]
    if path.suffix == ".parquet":
        parquet.write_table(pyarrow.Table.from_pylist(found), path)
    elif path.suffix == ".jsonl":
        path.write_text("".join(json.dumps({**one, "made": {"by": "hand"}}) + "\n" for one in found))
    else:
        with path.open("w", newline="") as file:
            delimiter = "\t" if path.suffix == ".tsv" else ","
            writer = csv.DictWriter(file, found[0], delimiter=delimiter)
            writer.writeheader()
            writer.writerows(found)
    return path


def steps(path: Path) -> None:
    records = []
    for number in range(ROWS):
        words = [("int64", [number + step]) for step in range(1 + number % 3)]
        points = [("float32", [0.5, 1.5])] * len(words)
        records.append(example({"label": ("int64", [number % 3])}, {"tokens": words, "points": points}))
    file_of(path, records)


def images(folder: Path, count: int, size: Callable[[int], int]) -> None:
    for number in range(count):
        path = folder / ("cat" if number % 2 else "dog") / f"{number}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(image_bytes(np.full((size(number), 5, 3), number, np.uint8), "png"))


def sounds(folder: Path) -> None:
    for number in range(8):
        path = folder / ("yes" if number % 2 else "no") / f"{number}.wav"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(sound_bytes(np.full((8 + number, 1), number, np.int16), 8000))


def of_tfds(folder: Path, first: int = 30) -> None:
    """As `tfds.builder_from_directory` opens it, the shards named as TFDS names them."""
    folder.mkdir()
    file_of(folder / "flowers-train.tfrecord-00000-of-00002", map(record, range(20)))
    file_of(folder / "flowers-train.tfrecord-00001-of-00002", map(record, range(20, 30)))
    file_of(folder / "flowers-test.tfrecord-00000-of-00001", map(record, range(first, ROWS)))
    text, _ = tfds.dumps(SCHEMA)
    (folder / "features.json").write_text(text)
    (folder / "species.labels.txt").write_text("setosa\nvirginica\n")
    splits = [
        {"name": "train", "shardLengths": ["20", "10"]},
        {"name": "test", "shardLengths": ["10"], "filepathTemplate": ""},
    ]
    info = {"name": "flowers", "fileFormat": "tfrecord", "splits": splits}
    (folder / "dataset_info.json").write_text(json.dumps(info))


def dataset(folder: Path) -> None:
    rs.write(map(row, range(ROWS)), SCHEMA, folder, split={"folds": 2}, shards=3, progress=False)


def halves(make: Callable[..., Any], first: str, second: str) -> Callable[[Path], None]:
    def made(folder: Path) -> None:
        make(folder / first, range(30))
        make(folder / second, range(30, ROWS))

    return made


BOTH = {"train": 30, "test": 10}
# By a name: what makes the files in a folder, what `infer` is given, and the rows of each split that is kept.
CASES: dict[str, tuple[Callable[[Path], Any], tuple[str, ...], dict[str, int] | None]] = {
    "a TFRecord": (lambda folder: tfrecord(folder / "x.tfrecord"), ("x.tfrecord",), None),
    "several": (halves(tfrecord, "a.tfrecord", "b.tfrecord"), ("a.tfrecord", "b.tfrecord"), None),
    "a pattern": (halves(tfrecord, "x-a.tfrecord", "x-b.tfrecord"), ("x-*.tfrecord",), None),
    "splits": (
        halves(tfrecord, "train.tfrecord", "eval.tfrecord"),
        ("train.tfrecord", "eval.tfrecord"),
        {"train": 30, "eval": 10},
    ),
    "splits of TFDS": (
        halves(tfrecord, "x-train.tfrecord-00000-of-00001", "x-test.tfrecord-00000-of-00001"),
        ("*.tfrecord-*",),
        BOTH,
    ),
    "folders": (halves(tfrecord, "d/train/x.tfrecord", "d/validation/y.tfrecord"), ("d",), {"train": 30, "validation": 10}),
    "shards": (dataset, ("data",), {"fold0": 20, "fold1": 20}),
    "SequenceExamples": (lambda folder: steps(folder / "x.tfrecord"), ("x.tfrecord",), None),
    "TFDS": (lambda folder: of_tfds(folder / "tfds"), ("tfds",), BOTH),
    "images": (lambda folder: images(folder / "pets", 20, lambda number: 4), ("pets",), None),
    "images of sizes": (lambda folder: images(folder / "pets", 20, lambda number: 4 + number), ("pets",), None),
    "images in splits": (
        lambda folder: [images(folder / "pets" / name, rows, lambda number: 4) for name, rows in BOTH.items()],
        ("pets",),
        BOTH,
    ),
    "sounds": (lambda folder: sounds(folder / "words"), ("words",), None),
    "JSONL": (lambda folder: table(folder / "x.jsonl"), ("x.jsonl",), None),
    "CSV": (lambda folder: table(folder / "x.csv"), ("x.csv",), None),
    "TSV": (lambda folder: table(folder / "x.tsv"), ("x.tsv",), None),
    "CSVs": (halves(table, "a.csv", "b.csv"), ("a.csv", "b.csv"), None),
    "CSV splits": (halves(table, "t/train.csv", "t/test.csv"), ("t",), BOTH),
    "JSONL splits": (halves(table, "t/train.jsonl", "t/test.jsonl"), ("t/*.jsonl",), BOTH),
    "Parquet": (lambda folder: table(folder / "x.parquet"), ("x.parquet",), None),
    "Parquet splits": (halves(table, "t/train-00000-of-00001.parquet", "t/test-00000-of-00001.parquet"), ("t",), BOTH),
}  # fmt: skip


def fit(pipeline: rs.Pipeline) -> None:
    """Trains a model of any inputs for an epoch."""
    import keras
    import tensorflow as tf

    names = tuple(pipeline.manifest.splits)
    data = pipeline.dataset(names[-1])
    spec, target = data.element_spec
    specs = spec if isinstance(spec, dict) else {"one": spec}

    class Model(keras.Model):
        def __init__(self) -> None:
            super().__init__()
            self.out = keras.layers.Dense(10)

        def call(self, given: Any) -> Any:
            given = given if isinstance(given, dict) else {"one": given}
            means = []
            for name in specs:
                value = given[name]
                if value.dtype == tf.string:
                    value = tf.strings.length(value)
                value = tf.cast(value, tf.float32)
                means.append(tf.reduce_mean(tf.reshape(value, [tf.shape(value)[0], -1]), 1, keepdims=True))
            return self.out(tf.concat(means, 1))

    model = Model()
    assert target.dtype == tf.int64
    model.compile("sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    model.fit(data, verbose=0)


@pytest.mark.parametrize("case", CASES)
def test_what_is_inferred_builds_and_trains(tmp_path, case):
    make, given, splits = CASES[case]
    make(tmp_path / "data" if case == "shards" else tmp_path)
    done = run("infer", *given, "--out", "s/x.yaml", "--config", "c/x.yaml", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    done = run("lint", "c/x.yaml", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "c/x.yaml: no problems\n")
    done = run("build", "c/x.yaml", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    pipeline = rs.Pipeline.load(tmp_path / "c/x.yaml")
    rows = {split: pipeline.manifest.rows(split) for split in pipeline.manifest.splits}
    assert rows == (splits or rows)
    assert rows.keys() == (splits or {"train", "test"}).keys() if splits else rows.keys() == {"train", "test"}
    fit(pipeline)


def test_a_config_names_the_splits_and_says_what_it_guessed(tmp_path):
    of_tfds(tmp_path / "tfds")
    assert run("infer", "tfds", "--out", "s.yaml", "--config", "c.yaml", cwd=tmp_path).returncode == 0
    text = (tmp_path / "c.yaml").read_text()
    assert yaml.safe_load(text)["write"]["source"] == {
        "train": {"tfrecord": "tfds/flowers-train.tfrecord-*-of-00002"},
        "test": {"tfrecord": "tfds/flowers-test.tfrecord-00000-of-00001"},
    }
    assert "  inputs: petals  # without id: it identifies rows\n" in text
    assert "  targets: species  # a label of 2 classes, of 3 features\n" in text


def test_lengths_of_tfds_that_differ_are_an_error(tmp_path):
    of_tfds(tmp_path / "tfds", first=31)
    done = run("infer", "tfds", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    shard = "tfds/flowers-test.tfrecord-00000-of-00001"
    assert done.stderr == f"{shard}: expected 10 records, as dataset_info.json says, got 9\n"
    (tmp_path / shard).unlink()
    done = run("infer", "tfds", cwd=tmp_path)
    assert done.stderr == f"`{shard}` does not exist: dataset_info.json names it\n"
    info = tmp_path / "tfds/dataset_info.json"
    info.write_text(info.read_text().replace('"tfrecord"', '"array_record"'))
    assert run("infer", "tfds", cwd=tmp_path).stderr == (
        "tfds/dataset_info.json: fileFormat: expected tfrecord, got `array_record` "
        "(prepare it with `file_format='tfrecord'`)\n"
    )
    info.write_text("[]")
    assert run("infer", "tfds", cwd=tmp_path).stderr.startswith(
        "tfds/dataset_info.json: expected the splits of a dataset, as TFDS writes them, got "
    )


def test_files_that_do_not_go_together_are_refused(tmp_path):
    table(tmp_path / "a.csv")
    tfrecord(tmp_path / "b.tfrecord")
    (tmp_path / "c.csv").write_text("id,more\n1,2\n")
    (tmp_path / "empty").mkdir()
    (tmp_path / "other.json").write_text('{"a": 1}')
    (tmp_path / "coco.json").write_text('{"images": [], "annotations": []}')
    for files, said in [
        (("a.csv", "b.tfrecord"), "a.csv: expected files of one format, got a.csv (csv) and b.tfrecord (tfrecord)"),
        (("a.csv", "c.csv"), "c.csv: length: expected string, as in a.csv, got none (a test set without its target "
             "is a split in the config: infer from the other files)"),
        (("coco.json",), "coco.json: categories: expected a list, got none"),
        (("other.json",), "other.json: expected a feature of TFDS, got dict {'a': 1} (rows are lines of a .jsonl file, "
         "and annotations of COCO have `images`)"),
        (("empty",), "`empty` has no TFRecords, no tables, and no images, audio files or arrays by class: empty is empty"),
    ]:  # fmt: skip
        done = run("infer", *files, cwd=tmp_path)
        assert (done.stdout, done.stderr.splitlines()[0]) == ("", said)
        assert done.returncode > 0


def test_sounds_of_several_rates_are_converted(tmp_path):
    """To what most of them are."""
    sounds(tmp_path / "words")
    (tmp_path / "words/no/9.wav").write_bytes(sound_bytes(np.zeros((8, 2), np.int16), 16000))
    (tmp_path / "words/no/8.mp3").write_bytes(sound_bytes(np.zeros((8, 1), np.int16), 8000))
    done = run("infer", "words", "--out", "s.yaml", "--config", "c.yaml", cwd=tmp_path)
    assert done.stderr.splitlines() == [
        "audio: files with the suffix of another format, which `convert` accepts: words/no/8.mp3",
        "audio: 16,000 Hz, 2 channels, 8,000 Hz, 1 channel, converted to 8,000 Hz, 1 channel, the most frequent form",
    ]
    audio = rs.Schema.load(tmp_path / "s.yaml").names["audio"]
    assert (audio.sample_rate, audio.channels, audio.encoding, audio.convert) == (8000, 1, "wav", True)
    manifest = rs.Pipeline.load(tmp_path / "c.yaml").build()
    assert sum(map(manifest.rows, manifest.splits)) == len([*tmp_path.rglob("words/*/*.*")])


def mixed_folder(folder: Path) -> int:
    """Photos, and pictures of other modes and formats; returns how many there are."""
    files = {
        "cat/1.jpg": PIL.Image.fromarray(photo()),
        "cat/2.jpg": PIL.Image.fromarray(photo()).convert("L"),
        "cat/3.jpg": PIL.Image.fromarray(photo()).convert("CMYK"),
        "dog/4.jpg": PIL.Image.fromarray(photo()),
        "dog/5.png": PIL.Image.fromarray(photo()).quantize(8),
        "dog/6.png": PIL.Image.fromarray(np.dstack([photo(), photo()[:, :, :1]])),
        "dog/7.png": PIL.Image.fromarray(photo()[:, :, 0].astype(np.uint16) * 257),
    }
    exif = PIL.Image.Exif()
    exif[0x0112] = 6
    for name, picture in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        picture.save(folder / name, **({"exif": exif} if name == "dog/4.jpg" else {}))
    (folder / "dog/8.jpg").write_bytes(image_bytes(photo(), "png"))
    return 8


def test_a_folder_of_images_of_all_modes_is_built_as_inferred(tmp_path):
    count = mixed_folder(tmp_path / "pets")
    done = run("infer", "pets", "--out", "s.yaml", "--config", "c.yaml", cwd=tmp_path)
    deep = PIL.Image.open(tmp_path / "pets/dog/7.png").mode  # before Pillow 11, `I`
    assert done.stderr.splitlines() == [
        "image: files with the suffix of another format, which `convert` accepts: pets/dog/8.jpg",
        f"image: JPEG and PNG images of modes CMYK, {deep}, L, P, RGB, RGBA, stored as JPEG, converted to 3 channels of "
        "8 bits, transparent ones drawn on white, which changes the others a little (`encoding: png` does not)",
        "image: of different sizes, which `fit` pads to the largest of a batch (with `resize: [h, w]` in the schema, all have one)",
    ]
    image = rs.Schema.load(tmp_path / "s.yaml").names["image"]
    assert (image.shape, image.encoding, image.orientation) == ((None, None, 3), "jpeg", "upright")
    assert (image.convert, image.background) == (True, 255)
    pipeline = rs.Pipeline.load(tmp_path / "c.yaml")
    pipeline.build()
    rows = [row for split in pipeline.manifest.splits for row in pipeline.open(split)]
    assert sorted(row["image"].shape for row in rows) == [(30, 40, 3)] * (count - 1) + [(40, 30, 3)]


def coco(folder: Path, count: int = 12) -> None:
    """Annotations beside their folder of images, as COCO has them."""
    (folder / "annotations").mkdir(parents=True)
    (folder / "train2017").mkdir()
    names = [f"{number:012}.jpg" for number in range(count)]
    for name in names:
        (folder / "train2017" / name).write_bytes(image_bytes(photo(), "jpeg"))
    annotations = [
        {"id": number, "image_id": number, "category_id": (1, 7)[number % 2], "bbox": [1, 2, 30, 20]}
        for number in range(1, count)
    ]
    text = {
        "images": [{"id": n, "file_name": name, "width": 40, "height": 30} for n, name in enumerate(names)],
        "annotations": annotations,
        "categories": [{"id": 1, "name": "person"}, {"id": 7, "name": "train"}, {"id": 9, "name": "boat"}],
    }
    (folder / "annotations/instances_train2017.json").write_text(json.dumps(text))


VOC = """<annotation><filename>{name}</filename><size><width>40</width><height>30</height></size>
<object><name>{label}</name><bndbox><xmin>1</xmin><ymin>1</ymin><xmax>{right}</xmax><ymax>20</ymax></bndbox></object>
</annotation>"""


def voc(folder: Path, count: int = 12) -> None:
    """A folder of Pascal VOC; a box exceeds its image."""
    for name in ("Annotations", "JPEGImages"):
        (folder / name).mkdir(parents=True)
    for number in range(count):
        (folder / f"JPEGImages/{number}.jpg").write_bytes(image_bytes(photo(), "jpeg"))
        values = {
            "name": f"{number}.jpg",
            "label": ("cat", "dog")[number % 2],
            "right": 41 if number == 3 else 40,
        }
        (folder / f"Annotations/{number}.xml").write_text(VOC.format(**values))


@pytest.mark.parametrize(
    ("make", "given", "names", "notes", "source"),
    [
        (coco, "data/annotations/instances_train2017.json", ("person", "train", "boat"), ["boxes: none in 1 of 12 images", "labels: no object is `boat`: remove names that are no classes from `names`"],
         {"coco": {"annotations": "data/annotations/instances_train2017.json", "images": "data/train2017"}}),
        (voc, "data", ("cat", "dog"), ["boxes: some exceed their image, which `clip: true` of the source clips"],
         {"voc": {"annotations": "data/Annotations", "images": "data/JPEGImages", "clip": True}}),
    ],
)  # fmt: skip
def test_annotated_images_are_inferred_and_built(tmp_path, make, given, names, notes, source):
    make(tmp_path / "data")
    done = run("infer", given, "--out", "s.yaml", "--config", "c.yaml", cwd=tmp_path)
    assert (done.returncode, done.stderr.splitlines()) == (0, notes)
    config = yaml.safe_load((tmp_path / "c.yaml").read_text())
    assert config["write"]["source"] == source
    assert config["fit"] == {"inputs": "image", "targets": ["boxes", "labels"]}
    pipeline = rs.Pipeline.load(tmp_path / "c.yaml")
    assert pipeline.schema.names["labels"].names == names
    assert sum(map(pipeline.build().rows, pipeline.manifest.splits)) == 12
    image, (boxes, labels) = pipeline.preview("train", 4)[0], pipeline.preview("train", 4)[1].values()
    assert np.shape(image)[1:] == (30, 40, 3)
    assert np.shape(boxes)[:2] == np.shape(labels)


def test_annotations_without_their_images_are_refused(tmp_path):
    coco(tmp_path / "data")
    shutil.rmtree(tmp_path / "data/train2017")
    done = run("infer", "data/annotations/instances_train2017.json", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (
        3,
        "`data/annotations/instances_train2017.json` names images such as `000000000000.jpg`, which are in no folder "
        "beside it: a config names their folder: `images:` of the source\n",
    )
    (tmp_path / "tasks.json").write_text('[{"id": 1, "data": {}, "annotations": []}]')
    done = run("infer", "tasks.json", cwd=tmp_path)
    assert done.stderr == (
        "tasks.json: expected an object with `images`, `annotations` and `categories`, got a list (tasks of Label "
        "Studio, which exports COCO, too, or `--format json` for rows)\n"
    )


@pytest.mark.parametrize("suffix", ["csv", "jsonl", "parquet"])
def test_columns_of_paths_are_images_and_sounds(tmp_path, suffix):
    for number in range(6):
        for name, data in (
            ("p", image_bytes(photo(), "png")),
            ("s", sound_bytes(np.zeros((8, 1), np.int16), 8000)),
        ):
            (tmp_path / "raw" / name).mkdir(parents=True, exist_ok=True)
            (tmp_path / "raw" / name / f"{number}.{'png' if name == 'p' else 'wav'}").write_bytes(data)
    rows = [{"n": n, "photo": f"p/{n}.png", "sound": f"s/{n}.wav", "gone": f"q/{n}.png"} for n in range(6)]
    path = tmp_path / f"raw/rows.{suffix}"
    if suffix == "parquet":
        parquet.write_table(pyarrow.Table.from_pylist(rows), path)
    elif suffix == "jsonl":
        path.write_text("".join(json.dumps(one) + "\n" for one in rows))
    else:
        path.write_text(
            "n,photo,sound,gone\n" + "".join(",".join(map(str, one.values())) + "\n" for one in rows)
        )
    done = run("infer", f"raw/rows.{suffix}", "--out", "s.yaml", "--config", "c.yaml", cwd=tmp_path)
    assert done.stderr.splitlines() == [
        "photo: paths of image files, judged by the first 6",
        "sound: paths of audio files, judged by the first 6",
    ]
    pipeline = rs.Pipeline.load(tmp_path / "c.yaml")
    assert [feature.kind for feature in pipeline.schema.features] == ["fixed_len", "image", "audio", "text"]
    assert sum(map(pipeline.build().rows, pipeline.manifest.splits)) == 6


def test_a_column_of_images_of_which_some_are_missing(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    media(Path(), *(f"p/{number}.png" for number in range(18)))
    Path("rows.csv").write_text("photo,n\n" + "".join(f"p/{number}.png,{number}\n" for number in range(20)))
    done = run("infer", "rows.csv", "--out", "s.yaml", "--config", "c.yaml", cwd=tmp_path)
    assert done.stderr.splitlines() == [
        "photo: 2 of the first 20 files do not exist, such as p/18.png: `write: {invalid: ...}` of the config leaves "
        "their rows out; without it, they are an error",
        "photo: paths of image files, judged by the first 18",
    ]
    assert (
        "  invalid:  # files that do not exist: 2 of 20 of photo: their rows are left out, and listed in "
        "rejects.jsonl\n    max_invalid: 20%\n"
    ) in Path("c.yaml").read_text()
    pipeline = rs.Pipeline.load("c.yaml")
    pipeline.build(progress=False)
    rows = [row["n"] for split in pipeline.manifest.splits for row in pipeline.open(split)]
    assert sorted(rows) == [*range(18)]
    assert (
        rs.infer("rows.csv").with_options(write={"invalid": "error"}).pipeline("d").config.write.invalid
        == "error"
    )
    shutil.rmtree("p")
    media(Path(), "p/0.png")
    (note,) = [note for note in rs.infer("rows.csv").notes if note.startswith("photo")]
    assert (
        note == "photo: text, not image files, since 19 of the first 20 files do not exist, such as p/1.png"
    )


def test_images_of_several_encodings_become_one(tmp_path):
    images(tmp_path / "pets", 4, lambda number: 4)
    (tmp_path / "pets/cat/x.jpg").write_bytes(image_bytes(np.zeros((4, 5, 1), np.uint8), "jpeg"))
    found = rs.infer(tmp_path / "pets")
    assert found.schema.names["image"].encoding == "png"
    assert found.notes == ("image: JPEG and PNG images of modes L, RGB, stored as PNG",)
    assert found.rows == 5


@pytest.mark.parametrize(
    ("features", "inputs", "target", "reason", "without"),
    [
        ("a: int64, label: {kind: label, names: [x, y]}, z: int64", ["a", "z"], "label", "a label of 2 classes", ""),
        ("y: float32, sex: {kind: label, names: [f, m]}", ["sex"], "y", "by its name", ""),
        ("x: float32, y: float32, inside: {kind: label, names: ['no', 'yes']}", ["x", "y"], "inside",
         "a label of 2 classes", ""),
        ("x: float32, y: float32, town: {kind: label, names: [a, b, c]}", ["x", "town"], "y", "by its name", ""),
        ("a: {kind: label, names: [f, m]}, b: {kind: label, names: [k]}, c: float32", ["a", "c"], "b",
         "a label of 1 classes, the last of 2", ""),
        ("a: float32, b: float32, note: text", ["a", "note"], "b", "the last with numbers", ""),
        ("userId: int64, movie_id: int64, rating: float32, x: float32", ["rating"], "x", "the last with numbers",
         "without userId, movie_id: it identifies rows"),
        ("input_ids: {kind: var_len, dtype: int64}, is_valid: int64, label: int64", ["input_ids", "is_valid"],
         "label", "by its name", ""),
        ("id: int64, label: int64", ["id"], "label", "by its name", ""),
        ("id: {dtype: int64, default: 0, with_missing: true}, x: int64, y: int64", ["x"], "y", "by its name",
         "without id: it identifies rows"),
        ("note: text, photo: image", ["note"], "photo", "the last", ""),
        ("key: text, note: text, more: {kind: var_len, dtype: string}", ["note", "more"], None, "",
         "without key: it identifies rows; no targets: all features are text; `kind: label` makes classes of a text"),
    ],
)  # fmt: skip
def test_what_a_model_takes_is_guessed(features, inputs, target, reason, without):
    schema = rs.Schema.loads(f"schema: s\nfeatures: {{{features}}}")
    guess = guess_fit(schema)
    count = len(schema.names)
    assert (list(guess.inputs), guess.target) == (inputs, target)
    assert (guess.reason, guess.without) == (f"{reason}, of {count} features" if target else "", without)


def test_a_column_of_folders_is_no_target_beside_another_candidate(tmp_path):
    for country in ("DE", "FR"):
        (tmp_path / f"sales/country={country}").mkdir(parents=True)
        lines = [f"{n},{'ab'[n % 2]},{n}.5" for n in range(30)]
        (tmp_path / f"sales/country={country}/rows.csv").write_text("\n".join(["n,size,price", *lines]))
    fit = rs.infer(tmp_path / "sales").pipeline(tmp_path / "data").config.fit
    assert (fit.targets, "country" in fit.inputs) == ("size", True)
    schema = rs.Schema.loads("{schema: s, features: {n: int64, label: {kind: label, names: [x, y]}}}")
    assert guess_fit(schema, partitions=["label"]).target == "label"  # by its name
    assert guess_fit(schema, partitions=["n", "label"]).target == "label"


def test_a_comment_says_how_lists_of_texts_become_numbers(tmp_path):
    rows = [f'{{"id": {n}, "tags": ["t{n}", "u{n}"], "said": ["a b {n}"], "y": {n}.5}}' for n in range(30)]
    (tmp_path / "rows.jsonl").write_text("\n".join(rows))
    done = run("infer", "rows.jsonl", "--out", "s.yaml", "--config", "c.yaml", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    way = "{as: multi_hot, max_tokens: 1000}"
    comment = f"without id: it identifies rows; tags, said: lists of text, which `encode` converts to vectors by {way}"
    text = (tmp_path / "c.yaml").read_text()
    assert f"  inputs:  # {comment}\n  - tags\n  - said\n" in text
    (tmp_path / "c.yaml").write_text(f"{text}  encode: {{tags: {way}, said: {way}}}\n")
    pipeline = rs.Pipeline.load(tmp_path / "c.yaml")
    pipeline.build()
    inputs, _ = next(iter(pipeline.dataset("train")))
    assert all(value.dtype == "float32" and value.shape[0] for value in inputs.values())


def test_a_target_of_several_labels_in_a_row_says_how_it_is_one_vector():
    topics = "topics: {kind: label, names: [x, y], shape: [null]}"
    guess = guess_fit(rs.Schema.loads(f"schema: s\nfeatures: {{a: float32, {topics}}}"))
    assert (guess.target, guess.reason) == (
        "topics",
        "a label of 2 classes, of 2 features; a row has several, and `encode: {topics: multi_hot}` makes one vector of them",
    )


def test_one_feature_has_no_target(tmp_path):
    (tmp_path / "a.png").write_bytes(image_bytes(np.zeros((4, 4, 3), np.uint8), "png"))
    done = run("infer", ".", "--name", "s", "--out", "s.yaml", "--config", "c.yaml", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    text = (tmp_path / "c.yaml").read_text()
    assert text.endswith("fit:\n  inputs: image  # no targets: there is one feature\n")
    assert run("lint", "c.yaml", cwd=tmp_path).returncode == 0


def test_folders_of_classes_are_given_as_one(tmp_path):
    images(tmp_path / "pets", 4, lambda number: 4)
    done = run("infer", "pets/cat", "pets/dog", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    expected = "one folder, which has a folder for each class"
    assert done.stderr == f"pets/dog: expected {expected}, got another one (give `pets`)\n"


@pytest.mark.parametrize(
    ("delimiter", "suffix"), [(";", ".csv"), ("|", ".csv"), ("\t", ".csv"), ("\t", ".tsv")]
)
def test_a_delimiter_is_seen_in_the_header(tmp_path, delimiter, suffix):
    lines = ["size;text;label", *["1,5;a, b;x", "2;;y"] * 20]
    for name in ("train", "test"):
        (tmp_path / f"{name}{suffix}").write_text("\n".join(lines).replace(";", delimiter) + "\n")
    given = [f"{name}{suffix}" for name in ("train", "test")]
    done = run("infer", *given, "--name", "s", "--out", "s.yaml", "--config", "c.yaml", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    config = yaml.safe_load((tmp_path / "c.yaml").read_text())
    options = {"files": f"test{suffix}", "delimiter": delimiter, "decimal": ","}
    assert config["write"]["source"]["test"]["csv"] == options
    assert [*rs.Schema.load(tmp_path / "s.yaml").names] == ["size", "text", "label"]
    assert rs.Pipeline.load(tmp_path / "c.yaml").build(progress=False).rows("test") == 40


def test_the_only_folder_is_perhaps_no_class(tmp_path):
    (tmp_path / "all/jpegs").mkdir(parents=True)
    (tmp_path / "all/jpegs/a.png").write_bytes(image_bytes(np.zeros((4, 4, 3), np.uint8), "png"))
    found = rs.infer(tmp_path / "all")
    assert found.notes == ("label: one class, `jpegs`, the only folder: infer that folder if it is none",)


def media(folder: Path, *names: str) -> None:
    """A sound or an image in each of these files."""
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        pixels = image_bytes(np.zeros((4, 4, 3), np.uint8), "png")
        path.write_bytes(sound_bytes(np.zeros((8, 1), np.int16), 8000) if path.suffix == ".wav" else pixels)


@pytest.mark.parametrize("file", ["1.png", "1.wav"])
def test_another_folder_beside_those_of_splits_is_named(tmp_path, file):
    media(
        tmp_path / "data",
        *(f"{split}/{pet}/{file}" for split in ("train", "val", "train_old") for pet in "ab"),
    )
    done = run("infer", "data", "--out", "s.yaml", "--config", "c.yaml", cwd=tmp_path)
    expected = "expected folders of splits alone, as `train` and `val`, got another one"
    hint = "move it elsewhere; if `train` and `val` are classes, write the config by hand"
    assert (done.returncode, done.stderr) == (1, f"data/train_old: {expected} ({hint})\n")
    assert not (tmp_path / "s.yaml").exists()
    # one folder with folders of classes is no class
    shutil.rmtree(tmp_path / "data/val")
    done = run("infer", "data", cwd=tmp_path)
    assert done.stderr.startswith(
        "data/train_old: expected folders of splits alone, as `train`, got another one"
    )
    shutil.rmtree(tmp_path / "data/train_old")
    assert run("infer", "data", cwd=tmp_path).returncode == 0


def test_folders_beside_those_of_splits_are_all_named(tmp_path):
    media(tmp_path, "train/1.png", "test/2.png", "old/3.png", "more/4.png", "_trash/5.png", ".git/6.png")
    with pytest.raises(rs.RecordError) as caught:
        rs.infer(tmp_path)
    hint = "move them elsewhere; if `test` and `train` are classes, write the config by hand"
    assert str(caught.value).splitlines() == [
        f"{tmp_path}/{name}: expected folders of splits alone, as `test` and `train`, got another one ({hint})"
        for name in ("more", "old")
    ]


def test_what_is_no_class_beside_the_folders_of_splits_is_noted(tmp_path):
    media(tmp_path, *(f"{split}/{pet}/1.png" for split in ("train", "val") for pet in ("cat", "dog")))
    media(tmp_path, "stray.png", "other.PNG", ".hidden.png", "notes.wav")
    (tmp_path / "annotations/more").mkdir(parents=True)
    (tmp_path / "annotations/more/boxes.csv").write_text("a\n1\n")
    (tmp_path / "empty").mkdir()
    done = run("infer", ".", "--name", "s", "--out", "s.yaml", "--config", "c.yaml", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert yaml.safe_load((tmp_path / "c.yaml").read_text())["write"]["source"].keys() == {"train", "val"}
    found = rs.infer(tmp_path)
    assert found.schema.names["label"].names == ("cat", "dog")
    assert found.notes == (
        "images beside `train` and `val`, left out: 2, such as other.PNG",
        "folders without images or audio files beside `train` and `val`, left out: `annotations`, `empty`",
    )
    assert rs.infer([tmp_path / "train", tmp_path / "val"]).notes == ()


def test_the_classes_of_the_current_folder_are_not_beside_it(tmp_path, monkeypatch):
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "0.png").write_bytes(image_bytes(photo(), "png"))
    monkeypatch.chdir(tmp_path)
    assert rs.infer(".").notes == rs.infer(tmp_path).notes


def test_a_folder_without_records_beside_those_of_splits_is_not_refused(tmp_path):
    for name in ("train", "test", "old/more"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "rows.csv").write_text("a\n1\n")
    (tmp_path / "annotations").mkdir()
    (tmp_path / "annotations/boxes.json").write_text("{}")
    with pytest.raises(rs.RecordError) as caught:
        rs.infer(tmp_path)
    assert [problem.where for problem in caught.value.problems] == [str(tmp_path / "old")]
    shutil.rmtree(tmp_path / "old")
    assert rs.infer(tmp_path).rows == 2


def test_the_splits_of_a_dataset_are_those_of_its_manifest(tmp_path):
    schema = rs.Schema.loads("schema: s\nfeatures: {n: int64}")
    options = {"key": "n", "split": {"fit": 1, "other": 1}}
    for start, how in ((0, {}), (0, {"force": True}), (40, {"append": True})):
        rows = [{"n": n} for n in range(start, start + 40)]
        rs.write(rows, schema, tmp_path / "d", **options, **how)
    given = rs.Manifest.load(tmp_path / "d")
    assert all("-v2-" in shard.file for shard in given.all_shards)
    done = run("infer", "d", "--name", "t", "--out", "s.yaml", "--config", "c.yaml", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert yaml.safe_load((tmp_path / "c.yaml").read_text())["write"]["source"].keys() == {"fit", "other"}
    assert run("build", "c.yaml", cwd=tmp_path).returncode == 0
    built = rs.Manifest.load(tmp_path / "t-data")
    assert [built.rows(split) for split in ("fit", "other")] == [given.rows("fit"), given.rows("other")]


def test_folders_in_those_of_the_classes_are_noted(tmp_path):
    media(tmp_path, *(f"{old}/{pet}/1.png" for old in ("train_old", "valid_new") for pet in ("cat", "dog")))
    found = rs.infer(tmp_path)
    assert found.schema.names["label"].names == ("train_old", "valid_new")
    assert found.notes == (
        "label: every class has folders of the same names, which are ignored: `cat`, `dog` "
        "(if these are the classes, give the other folders names of splits, such as `train` and `test`, or take them "
        'with `--classes last`, or classes="last")',
    )
    media(tmp_path, "third/1.png")
    assert rs.infer(tmp_path).notes == (
        "label: the folders at the top name the classes, not these in them: "
        "`train_old/cat`, `train_old/dog`, `valid_new/cat`, `valid_new/dog` "
        '(`--classes last`, or classes="last", takes their names, and `path` all)',
    )


def test_classes_are_the_first_or_the_last_folder_or_their_path(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    places = ("cat/siamese/a.png", "cat/other/b.png", "dog/other/c.png")
    media(Path("pets"), *places)
    expected = {
        "first": ["cat", "cat", "dog"],
        "last": ["siamese", "other", "other"],
        "path": ["cat/siamese", "cat/other", "dog/other"],
    }
    for classes, names in expected.items():
        done = run(
            "infer",
            "pets",
            "--classes",
            classes,
            "--out",
            "s.yaml",
            "--config",
            "c.yaml",
            "--force",
            cwd=tmp_path,
        )
        found = rs.infer("pets", classes=classes)
        notes = found.notes
        assert (done.returncode, done.stderr.splitlines()) == (0, [*notes])
        assert notes == ({
            "last": ("label: one class of several folders: `other`, such as `cat/other` and `dog/other` "
                     "(`--classes path` tells them apart)",),
            "path": (),
        }.get(classes, notes))  # fmt: skip
        pipeline = rs.Pipeline.load("c.yaml")
        source = pipeline.config.write.source.open(Path.cwd())
        rs.write(source, pipeline.schema, "data", key="path", force=True, progress=False)
        labels = pipeline.schema.names["label"].names
        rows = [labels[row["label"]] for row in rs.open("data", pipeline.schema)]
        assert sorted(rows) == sorted(names)
    with pytest.raises(rs.SpecError, match="classes: expected one of first, last, path, got `all`"):
        rs.infer("pets", classes="all")
    Path("rows.csv").write_text("a\n1\n")
    done = run("infer", "rows.csv", "--classes", "last", cwd=tmp_path)
    assert done.stderr == (
        "rows.csv: expected a folder of classes, got csv (`classes` is for folders of images or audio files)\n"
    )


def test_images_and_sounds_of_any_format_that_a_library_reads(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pixels = np.full((16, 24, 3), (10, 100, 200), np.uint8)
    formats = ["jp2", "ppm", "tga"] + ["avif"] * PIL.features.check("avif")
    for number, suffix in enumerate(formats):
        path = Path("raw", "ab"[number % 2], f"{number}.{suffix.upper() if number else suffix}")
        path.parent.mkdir(parents=True, exist_ok=True)
        PIL.Image.fromarray(pixels).save(path)
    Path("raw/a/photo.heic").write_bytes(b"\0\0\0\x18ftypheic" + bytes(8))
    Path("raw/a/notes.md").touch()
    found = rs.infer("raw")
    assert found.schema.names["image"].encoding == "png"
    if importlib.util.find_spec("pillow_heif") is None:
        assert any(
            "a HEIC image" in note and "(pip install pillow-heif reads them; " in note for note in found.notes
        )
    assert found.notes[-1] == "files that are not images, left out: 1 of .md (a/notes.md)"
    found = found.with_options(write={"invalid": {"max_invalid": 1}})
    pipeline = found.pipeline("data")
    pipeline.build(ImageFolder(folder="raw"), progress=False)
    rows = [row for split in pipeline.manifest.splits for row in pipeline.open(split)]
    assert len(rows) == len(formats)
    assert all(np.abs(row["image"].astype(int) - pixels).max() <= 3 for row in rows)

    samples = np.arange(-400, 400, dtype=np.int16)
    Path("sounds").mkdir()
    soundfile.write("sounds/a.aiff", samples, 8000, subtype="PCM_16")
    found = rs.infer("sounds")
    assert found.notes == ("audio: AIFF files, stored as WAV",)
    pipeline = found.with_options(write={"splits": {"train": 1}}).pipeline("wav")
    pipeline.build(AudioFolder(folder="sounds", label=None), progress=False)
    np.testing.assert_array_equal(pipeline.open("train")[0]["audio"].ravel() * 32768, samples)


def test_a_class_that_is_named_as_a_split_is_noted(tmp_path):
    media(tmp_path, "bus/1.png", "car/2.png", "train/3.png")
    found = rs.infer(tmp_path)
    assert found.schema.names["label"].names == ("bus", "car", "train")
    assert found.notes == ("label: the class `train` is named as a split: its files are not kept apart",)


def test_a_class_that_not_every_split_has_is_noted(tmp_path):
    some = [f"{split}/{pet}/1.png" for split in ("train", "val", "test") for pet in ("cat", "dog")]
    media(
        tmp_path,
        *some,
        "train/fox/1.png",
        "val/ant/1.png",
        "val/bee/1.png",
        "val/owl/1.png",
        "test/owl/1.png",
    )
    found = rs.infer(tmp_path)
    assert found.schema.names["label"].names == ("ant", "bee", "cat", "dog", "fox", "owl")
    assert found.notes == (
        "label: classes of val alone: `ant`, `bee`",
        "label: classes of train alone: `fox`",
        "label: classes of test and val alone: `owl`",
    )
    # a class for each letter: not all are named
    media(tmp_path, *(f"train/{letter}/1.png" for letter in "abcdefg"))
    assert "label: classes of train alone: `a`, `b`, `c`, `d`, `e` and 3 more" in rs.infer(tmp_path).notes


def test_classes_that_look_alike_are_noted(tmp_path):
    media(tmp_path, "train/F\u00fcchse/1.png", "train/Igel/1.png", "val/Fu\u0308chse/1.png", "val/Igel/1.png")
    assert rs.infer(tmp_path).notes[-1] == (
        "label: 2 classes that read `F\u00fcchse`, with accents in different forms of Unicode"
        " (rename their folders to one)"
    )


def test_files_that_are_no_images_are_noted(tmp_path):
    images(tmp_path / "pets", 4, lambda number: 4)
    (tmp_path / "pets/cat/page.png").write_text("<html>")
    (tmp_path / "pets/cat/zero.png").write_bytes(b"")
    found = rs.infer(tmp_path / "pets")
    assert found.notes == (
        f"{tmp_path}/pets/cat/page.png: expected an image file, got an HTML page "
        "(and 1 more; `invalid: quarantine` leaves a few such files out; see `recordspec docs building`)",
    )
    assert (found.schema.names["image"].shape, found.rows) == ((4, 5, 3), 6)


def test_a_damaged_image_is_noted(tmp_path):
    images(tmp_path / "pets", 4, lambda number: 4)
    (tmp_path / "pets/cat/cut.jpg").write_bytes(image_bytes(np.zeros((4, 5, 3), np.uint8), "jpeg")[:100])
    assert rs.infer(tmp_path / "pets").notes == (
        f"{tmp_path}/pets/cat/cut.jpg: expected an image file, got a JPEG image that is damaged "
        "(`invalid: quarantine` leaves a few such files out; see `recordspec docs building`)",
    )


def test_notes_of_images_name_the_column(tmp_path):
    for number, mode in enumerate(["jpeg", "png", "webp"]):
        (tmp_path / f"{number}.{mode}").write_bytes(image_bytes(np.zeros((4, 5, 3), np.uint8), mode))
    (tmp_path / "t.csv").write_text("photo,n\n0.jpeg,1\n1.png,2\n2.webp,3\n")
    assert rs.infer(tmp_path / "t.csv").notes == (
        "photo: paths of image files, judged by the first 3",
        "photo: JPEG, PNG and WebP images of modes RGB, stored as PNG",
    )


def test_columns_with_nan_or_infinity_are_no_inputs(tmp_path):
    (tmp_path / "a.csv").write_text("x,ratio,late,y\n" + "1,0.5,2020-01-01,3\n2,nan,2020-01-02,4\n" * 40)
    done = run("infer", "a.csv", "--out", "s.yaml", "--config", "c.yaml", cwd=tmp_path)
    note = "ratio: some numbers are NaN or infinite: a model cannot learn from them"
    assert (done.returncode, note in done.stderr) == (0, True)
    assert (
        "  inputs:  # without ratio: no model learns from NaN or infinity\n"
        in (tmp_path / "c.yaml").read_text()
    )
    pipeline = rs.Pipeline.load(tmp_path / "c.yaml")
    pipeline.build()
    assert sorted(pipeline.preview("train")[0]) == ["late", "x"]
    records = [example({"x": ("float32", [x])}) for x in (1.0, np.inf)]
    assert rs.infer(file_of(tmp_path / "a.tfrecord", records)).no_inputs == {
        "x": "no model learns from NaN or infinity"
    }


def test_a_name_of_two_lines_is_kept(tmp_path):
    (tmp_path / "a.csv").write_text('a,"b\nc"\n' + "1,2\n" * 4)
    done = run("infer", "a.csv", "--out", "s.yaml", "--config", "c.yaml", cwd=tmp_path)
    assert done.returncode == 0
    assert rs.Pipeline.load(tmp_path / "c.yaml").config.fit.targets == "b\nc"


COLUMNS = {
    "n": [1, 2, 3, 4] * 10,
    "x": [0.5] * 40,
    "kind": ["a", "b"] * 20,
    "gap": [1, None] * 20,
    "ok": [True, False] * 20,
    "blob": [b"\xff"] * 40,
}
IN_MEMORY = {
    "rows": lambda: [
        dict(zip(COLUMNS, values, strict=True)) for values in zip(*COLUMNS.values(), strict=True)
    ],
    "columns": lambda: COLUMNS,
    "pandas": lambda: pandas.DataFrame(COLUMNS),
    "Polars": lambda: __import__("polars").DataFrame(COLUMNS),
    "Arrow": lambda: pyarrow.table(COLUMNS),
    "a batch": lambda: pyarrow.RecordBatch.from_pydict(COLUMNS),
    "a reader": lambda: pyarrow.table(COLUMNS).to_reader(7),
    "a generator": lambda: iter(IN_MEMORY["rows"]()),
}


@pytest.mark.parametrize("form", IN_MEMORY)
def test_rows_in_memory_have_a_schema(tmp_path, form):
    found = rs.infer(IN_MEMORY[form]())
    gap = "int64" if form != "pandas" else "float32"  # pandas has no integers with gaps
    assert found.schema == rs.Schema.loads(f"""
schema: data
features:
  n: int64
  x: float32
  kind: {{kind: label, names: [a, b]}}
  gap: {{dtype: {gap}, default: 0, with_missing: true, description: missing in 20 of 40}}
  ok: {{kind: tensor, dtype: bool}}
  blob: string
""")
    assert found.notes == ("gap: missing in 20 of 40 rows and reads as its default, with gap_missing true",)
    assert found.rows == 40
    assert rs.write(IN_MEMORY[form](), found.schema, tmp_path / "d", progress=False).rows("train") == 40


# Two rows of Python's and NumPy's scalars, with the stored values, in rows and in a pandas column.
SECOND, DAY = datetime.timedelta(seconds=1), datetime.date(2026, 1, 1)
SCALARS = {
    "took": ([SECOND, None], [1_000_000, None]),
    "at": ([datetime.time(1, 2, 3), datetime.time(0, 0, 0, 5)], [3_723_000_000, 5]),
    "price": ([Decimal("1.5"), Decimal("2")], [1.5, 2.0]),
    "key": ([UUID(int=511)] * 2, [bytes(14) + b"\1\xff"] * 2),
    "day": ([np.datetime64("2026-01-01"), np.datetime64("NaT")], [DAY, None]),
    "stamp": ([pandas.Timestamp("2026-01-01"), pandas.NaT], [DAY, None]),
    "count": ([1, pandas.NA], [1, None]),
    "times": ([[SECOND], []], [[1_000_000], []]),
    "prices": ([[Decimal("1.5")], []], [[1.5], []]),
    "in": ([{"price": Decimal("1.5"), "took": SECOND}] * 2, None),
}
ROWS_OF_SCALARS = [
    dict(zip(SCALARS, row, strict=True))
    for row in zip(*(given for given, _ in SCALARS.values()), strict=True)
]


@pytest.mark.parametrize(
    "given",
    [
        ROWS_OF_SCALARS,
        {name: given for name, (given, _) in SCALARS.items()},
        pandas.DataFrame(ROWS_OF_SCALARS),
    ],
    ids=["rows", "columns", "pandas"],
)
def test_scalars_that_are_inferred_are_written(tmp_path, given):
    found = rs.infer(given)
    assert "took: microseconds of a duration" in found.notes
    rs.write(given, found, tmp_path / "d", shuffle=None, key=None)
    table = rs.scan(tmp_path / "d").to_table().to_pydict()
    expected = {name: stored for name, (_, stored) in SCALARS.items() if name != "in"}
    assert table == expected | {"in.price": [1.5, 1.5], "in.took": [1_000_000] * 2}


def test_durations_of_arrays_are_counted_in_their_unit(tmp_path):
    arrays = {"v": np.array([1, 2], "timedelta64[ms]"), "w": np.array([1, "NaT"], "timedelta64[s]")}
    rs.write(arrays, found := rs.infer(arrays), tmp_path / "d", shuffle=None)
    assert rs.scan(tmp_path / "d").to_table().to_pydict() == {"v": [1, 2], "w": [1, None]}
    assert found.notes[0] == "v: milliseconds of a duration"
    mixed = [{"v": np.timedelta64(1, "s")}, {"v": np.timedelta64(1, "ms")}]
    rs.write(mixed, rs.infer(mixed), tmp_path / "e", shuffle=None)
    assert rs.scan(tmp_path / "e").to_table().to_pydict() == {"v": [1_000_000, 1_000]}
    for value, said in [
        (np.array([1], "timedelta64[h]"), r"expected a duration in s, ms, us or ns, got timedelta64\[h\]"),
        ([np.timedelta64(1, "ns")], "expected a duration of whole microseconds"),
        ([pandas.Timedelta(1, "ns")], "expected int64, got Timedelta"),
        ([Decimal("1.5")], "expected int64, got Decimal"),
        (np.array([1], "datetime64[s]"), "expected int64, got datetime64"),
    ]:
        with pytest.raises(rs.RecordError, match=said):
            rs.write({"v": value}, rs.Schema.loads("schema: s\nfeatures: {v: int64}"), tmp_path / "f")


def test_a_sample_of_rows_in_memory():
    for form, make in IN_MEMORY.items():
        assert rs.infer(make(), "some", sample=9).rows == 9, form


def test_arrays_keep_their_shape(tmp_path):
    arrays = {
        "image": np.zeros((20, 4, 5), np.uint8),
        "points": np.zeros((20, 2, 3)),
        "ids": np.zeros((20, 7), np.int64),
        "words": np.array([["a", "b"]] * 20),
        "label": np.arange(20) % 2,
    }
    rows = [dict(zip(arrays, values, strict=True)) for values in zip(*arrays.values(), strict=True)]
    expected = rs.Schema.loads("""
schema: arrays
features:
  image: {kind: tensor, dtype: uint8, shape: [4, 5], encoding: raw}
  points: {dtype: float32, shape: [2, 3]}
  ids: {dtype: int64, shape: [7]}
  words: {dtype: string, shape: [2]}
  label: {kind: label, names: ["0", "1"]}
""")
    for number, given in enumerate((arrays, rows)):
        found = rs.infer(given, "arrays")
        assert found.schema == expected
        assert rs.write(given, found.schema, tmp_path / str(number), progress=False).rows("train") == 20


@pytest.mark.parametrize(
    ("values", "note"),
    [
        ([1, "a"], "x: int and str, which no feature holds, so it is left out"),
        (
            [[1, None], [2]],
            "x: list<item: int64> with 1 item that is missing (`{kind: var_len, dtype: int64, missing_item: -1}` "
            "stores -1 in its place), which no feature holds, so it is left out",
        ),
        ([None, None], "x: always empty, in 2 rows: its type is unknown, so it is left out"),
        ([object(), object()], "x: object, which no feature holds, so it is left out"),
        (
            [1, 2**70],
            "x: int beyond int64 and uint64 (in quotes it is text), which no feature holds, so it is left out",
        ),
        ([[1], ["a"]], "x: lists of int and str, which no feature holds, so it is left out"),
        ([[[0, 4, "a"]]] * 2, "x: lists of lists of int and str, which no feature holds, so it is left out"),
        (
            ["\ud800"],
            "x: str with a lone surrogate, which UTF-8 cannot encode, which no feature holds, so it is left out",
        ),
        ([[[]], []], "x: always empty, in 2 rows: its type is unknown, so it is left out"),
        ([{}, None], "x: always empty, in 2 rows: its type is unknown, so it is left out"),
    ],
)
def test_values_that_no_feature_holds(values, note):
    found = rs.infer([{"x": value, "n": 1} for value in values])
    assert (list(found.schema.names), found.notes) == (["n"], (note,))


def test_rows_that_are_none_are_refused():
    for given, said in [
        (7, "rows: expected an iterable of dicts, a dict of arrays, a frame, or an Arrow table, got int 7"),
        ([1], "row 0: expected a mapping from names to values, got int 1"),
        ([], "rows: expected a column with values, got none"),
    ]:
        with pytest.raises(rs.RecordspecError) as caught:
            rs.infer(given)
        assert str(caught.value) == said


# Objects that differ from row to row: each case has its lines, the features, and the columns that are left out.
NESTED: dict[str, tuple[list[Any], set[str], set[str]]] = {
    "a member that no feature holds": (
        [{"m": [{"a": "x", "t": {"i": 1}}, {"a": "y"}]}] * 3,
        {"m.a"},
        {"m.t.i"},
    ),
    "objects without features": ([{"n": 1, "tags": [{"a": 1}, {"a": None}]}] * 3, {"n"}, {"tags.a"}),
    "null beside objects": ([{"n": 1, "m": [None, {"a": 1}]}] * 3, {"n"}, {"m.a"}),
    "names with dots": ([{"geo.pos": {"lat.x": {"y": 1.5}}}] * 3, {"geo.pos.lat.x.y"}, set()),
    "a float beside large integers": (
        [{"m": {"v": 2**24 + 1, "w": 2**53 + 1, "x": 1}}, {"m": {"v": 0.5, "w": 0.5, "x": 2}}] * 3,
        {"m.v", "m.x"},
        {"m.w"},
    ),
    "lists that are empty at first": ([{"v": []}] * 3 + [{"v": [{"p": 7}]}], {"v.p"}, set()),
    "empty lists and objects": ([{"n": 1, "v": []}] * 3 + [{"n": 1, "v": {"p": 7}}], {"n"}, {"v"}),
    "a number that becomes an object": ([{"n": 1, "v": 1}] * 3 + [{"n": 2, "v": {"a": 1}}], {"n"}, {"v"}),
    "a name that is left out twice": (
        [{"n": 1, "m": {"b.c": {"d": 1}, "b": {"c": 2.5}}}] * 3,
        {"n"},
        {"m.b.c"},
    ),
    "bools under a missing parent": (
        [{"m": [{"b": True}, {"b": False}]}, {"n": 1}, {"m": None}],
        {"m.b", "n"},
        set(),
    ),
    "bools among numbers": (
        [{"n": 1, "v": [1.5], "w": [[1]]}, {"n": 1, "v": [True], "w": [[True]]}],
        {"n"},
        {"v", "w"},
    ),
    "integers of either range": ([{"v": 1, "w": -1}] * 2 + [{"v": 2**63, "w": 2**63}], {"v"}, {"w"}),
    "lists of lists of one size": (
        [{"v": [[1, 2]]}] * 2 + [{"v": [[3, 4], [5, 6]]}, {"v": None}],
        {"v"},
        set(),
    ),
    "bytes and text": ([{"v": "a"}] * 2 + [{"v": {"b64": "/w=="}}] * 2, {"v"}, set()),
}


@pytest.mark.parametrize("rows_at_once", [2, 100])
def test_nested_rows_of_json_lines_are_built_as_inferred(tmp_path, monkeypatch, rows_at_once):
    from recordspec.inferring import tables

    monkeypatch.setattr(tables, "_BATCH_ROWS", rows_at_once)
    monkeypatch.chdir(tmp_path)
    for case, (lines, names, left_out) in NESTED.items():
        Path("x.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
        found = rs.infer("x.jsonl").with_options(write={"splits": None, "shuffle": None})
        assert ({*found.schema.names}, {*found.left_out}) == (names, left_out), case
        assert all(any(note.startswith(f"{name}: ") for note in found.notes) for name in left_out), case
        found.save("c.yaml", data="data", force=True)
        rs.Pipeline.load("c.yaml").build(force=True)
        assert rs.scan("data").count_rows() == len(lines), case
        rs.write(lines if case != "bytes and text" else [{"v": b"a"}], found, "written", force=True)
    assert rs.scan("data").to_table().to_pylist() == [{"v": b"a"}] * 2 + [{"v": b"\xff"}] * 2


def test_types_of_json_lines_are_joined(tmp_path, monkeypatch):
    from recordspec.inferring import tables

    monkeypatch.setattr(tables, "_BATCH_ROWS", 2)
    lines = [
        {"x": 1, "late": None, "list": [1, 2]},
        {"x": 2, "odd": 1, "list": []},
        {"x": 2.5, "late": 7, "odd": "a", "list": [0.5]},
    ]
    (tmp_path / "x.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    found = rs.infer([tmp_path / "x.jsonl"])
    assert found.schema == rs.Schema.loads("""
schema: x
features:
  x: float32
  late: {dtype: int64, default: 0, with_missing: true, description: missing in 2 of 3}
  list: {kind: var_len, dtype: float32}
""")
    assert found.left_out == ("odd",)
    (tmp_path / "x.jsonl").write_text('{"x": 1}\n\n{"x": \n')
    with pytest.raises(rs.RecordError) as caught:
        rs.infer(tmp_path / "x.jsonl")
    assert str(caught.value).startswith(f"{tmp_path}/x.jsonl:3: expected JSON, got the end of the line")
