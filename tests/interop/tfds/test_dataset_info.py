"""Datasets described for TFDS: the files beside the shards, and what is not replaced or refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import recordspec as rs
from recordspec.interop import tfds
from recordspec.interop.tfds.dataset_info import given_splits
from recordspec.store.expand import expand

LABELS = "features: {label: {kind: label, names: [cat, dog], oov: index}, x: float32}"


def described(folder: Path) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The names of the files that describe a dataset for TFDS, which it writes, and the notes."""
    done = rs.export(folder, as_="tfds")
    return tuple(Path(file).name for file in done.files), done.notes


@pytest.fixture
def data(tmp_path) -> Path:
    schema = rs.Schema.loads(f"schema: pets\nversion: 2\ndescription: Cats and dogs.\n{LABELS}")
    rows = [{"label": number % 3, "x": number / 2} for number in range(20)]
    rs.write(rows, schema, tmp_path / "data", split={"train": 3, "test": 1}, shards=2)
    return tmp_path / "data"


def test_a_dataset_is_described(data):
    files, notes = described(data)
    assert files == ("features.json", "label.labels.txt", "dataset_info.json")
    assert notes == ()
    assert (data / "label.labels.txt").read_text() == "cat\ndog\n<oov>\n"
    manifest = rs.Manifest.load(data)
    assert json.loads((data / "dataset_info.json").read_text()) == {
        "name": "pets",
        "description": "Cats and dogs.",
        "version": "2.0.0",
        "fileFormat": "tfrecord",
        "splits": [
            {
                "name": split,
                "filepathTemplate": "{SPLIT}-{SHARD_X_OF_Y}.tfrecord",
                "shardLengths": [str(shard.rows) for shard in manifest.splits[split]],
                "numBytes": str(manifest.bytes(split)),
            }
            for split in ("train", "test")
        ],
    }
    assert json.loads((data / "features.json").read_text()) == {
        "pythonClassName": "tensorflow_datasets.core.features.features_dict.FeaturesDict",
        "featuresDict": {
            "features": {
                "label": {
                    "pythonClassName": "tensorflow_datasets.core.features.class_label_feature.ClassLabel",
                    "classLabel": {"numClasses": "3"},
                },
                "x": {
                    "pythonClassName": "tensorflow_datasets.core.features.tensor_feature.Tensor",
                    "tensor": {"shape": {}, "dtype": "float32", "encoding": "none"},
                },
            }
        },
        "description": "Cats and dogs.",
    }
    assert set(manifest.beside) == set(files)
    back, _ = tfds.load(data)
    assert back.features == rs.Schema.load(data / "schema.yaml").features
    assert (back.name, back.description) == ("pets", "Cats and dogs.")


def test_a_described_dataset_is_a_dataset_still(data):
    """It is read, described again, added to, and replaced, and no file of the old one stays."""
    before = rs.Manifest.load(data)
    assert before.beside == {}
    rs.export(data, as_="tfds")
    rs.export(data, as_="tfds")
    schema = rs.Schema.load(data / "schema.yaml")
    assert len(list(rs.read(expand(data), schema, batch=None))) == 20
    rows = [{"label": 1, "x": number / 2} for number in range(50, 60)]
    rs.write(rows, schema, data, split={"train": 3, "test": 1}, shards=2, append=True)
    assert not (data / "features.json").exists()
    assert rs.Manifest.load(data).beside == {}
    rs.write(rows, schema, data, force=True)
    rs.export(data, as_="tfds")
    (split,) = json.loads((data / "dataset_info.json").read_text())["splits"]
    assert split["filepathTemplate"] == "{SPLIT}-v2-{SHARD_X_OF_Y}.tfrecord"
    assert given_splits(data) == {"train": {data / "train-v2-00000-of-00001.tfrecord": 10}}
    rs.write(rows, schema, data, force=True)
    assert not (data / "features.json").exists()


@pytest.mark.parametrize("name", ["features.json", "dataset_info.json", "label.labels.txt"])
def test_files_of_another_hand_are_not_replaced(data, name):
    (data / name).write_text("{}")
    before = {path.name: path.read_bytes() for path in data.iterdir()}
    with pytest.raises(rs.StoreError) as error:
        rs.export(data, as_="tfds")
    assert str(error.value) == (
        f"{data / name}: expected no file, or a sidecar of this dataset, got another file (move it elsewhere first)"
    )
    assert {path.name: path.read_bytes() for path in data.iterdir()} == before


def test_a_file_that_was_changed_is_not_replaced(data):
    rs.export(data, as_="tfds")
    (data / "features.json").write_text("{}")
    with pytest.raises(rs.StoreError, match="expected no file, or a sidecar of this dataset"):
        rs.export(data, as_="tfds")


def test_a_description_that_was_broken_off_is_made_again(data):
    """The files are there, and the manifest does not know of them yet."""
    manifest = (data / "manifest.json").read_text()
    files, _ = described(data)
    (data / "manifest.json").write_text(manifest)
    (data / "features.json").unlink()
    assert described(data)[0] == files
    assert set(rs.Manifest.load(data).beside) == set(files)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"compression": "gzip"},
            "compression: expected none, for TFDS, got gzip (`recordspec reshard --compression none` converts it)",
        ),
        (
            {"layout": {"blocks": 4}},
            "layout: expected rows, for TFDS, got blocks"
            " (`recordspec reshard --blocks 0 --schema SCHEMA` converts it)",
        ),
        (
            {"split": "a+b"},
            "splits: expected splits without a + in their names, which TFDS adds up, got `a+b`",
        ),
    ],
)
def test_datasets_that_tfds_cannot_read_are_refused(tmp_path, options, message):
    rs.write([{"label": 0, "x": 1}], rs.Schema.loads(f"schema: s\n{LABELS}"), tmp_path / "data", **options)
    with pytest.raises(rs.StoreError) as error:
        rs.export(tmp_path / "data", as_="tfds")
    assert str(error.value) == f"{tmp_path / 'data'}: {message}"
    assert rs.Manifest.load(tmp_path / "data").beside == {}


def test_shards_that_were_added_are_refused(data):
    schema = rs.Schema.load(data / "schema.yaml")
    rs.write([{"label": 0, "x": 99}], schema, data, split={"train": 3, "test": 1}, shards=2, append=True)
    with pytest.raises(rs.StoreError) as error:
        rs.export(data, as_="tfds")
    assert str(error.value).splitlines()[0] == (
        f"{data}: splits.train: expected shard 0 of 4 of `train`, got `train-00000-of-00002.tfrecord`"
        " (`recordspec reshard` renumbers the shards)"
    )


def test_records_of_sequences_are_refused(tmp_path):
    schema = rs.Schema.loads("schema: s\nsequence: {a: {kind: fixed_len_sequence, dtype: int64}}")
    rs.write([{"a": [1]}], schema, tmp_path / "data")
    with pytest.raises(rs.StoreError, match="record: expected example, got sequence_example"):
        rs.export(tmp_path / "data", as_="tfds")
    with pytest.raises(rs.SpecError, match="left out: TFDS stores Examples, not SequenceExamples"):
        tfds.dumps(schema)


def test_names_that_are_no_lines_are_noted(tmp_path):
    schema = rs.Schema.loads(
        'schema: s\nfeatures: {l: {kind: label, names: [" a", "b"]}, x: {dtype: int64, default: 1}}'
    )
    rs.write([{"l": 0, "x": 2}], schema, tmp_path / "data")
    files, notes = described(tmp_path / "data")
    assert files == ("features.json", "dataset_info.json")
    assert list(notes) == [
        "features.l.names: not expressed",
        "features.x.default: not expressed: TFDS fails at a record without the feature",
    ]
