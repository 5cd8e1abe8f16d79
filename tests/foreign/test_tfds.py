"""TFDS, in and out: its files are read as it reads them, and it opens what we describe."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path

import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st

import recordspec as rs
from instances import CASES
from recordspec.foreign import tfds
from recordspec.spec.features.audio import Audio
from recordspec.spec.features.fixed_len import FixedLen
from recordspec.spec.features.image import Image
from recordspec.spec.features.label import Label
from recordspec.spec.features.tensor import AnyTensor
from recordspec.spec.features.text import Text
from recordspec.spec.features.var_len import VariableLen
from recordspec.spec.plain import shallow

GOLDEN = Path(__file__).parents[1] / "golden/tfds"
EXAMPLES = [case for case in CASES if case.section == "features"]


def plain(value):
    """A tensor as JSON, its bytes as hexadecimal digits."""
    if isinstance(value, tf.SparseTensor):
        value = tf.sparse.to_dense(value)
    if isinstance(value, tf.RaggedTensor):
        return hexed(value.to_list())
    array = value.numpy()
    return hexed(array if isinstance(array, bytes) else array.tolist())


def hexed(value):
    if isinstance(value, list):
        return [hexed(one) for one in value]
    return value.hex() if isinstance(value, bytes) else value


def nested(flat: dict) -> dict:
    """`{"a/b": 1}` as `{"a": {"b": 1}}`, which TFDS gives."""
    found: dict = {}
    for name, value in flat.items():
        *folders, last = name.split("/")
        at = found
        for folder in folders:
            at = at.setdefault(folder, {})
        at[last] = value
    return found


def records(path: Path) -> list[bytes]:
    return [record.numpy() for record in tf.data.TFRecordDataset(str(path))]


def test_what_tfds_wrote_is_read_as_tfds_reads_it():
    schema, _ = tfds.load(GOLDEN)
    found = [
        nested({name: plain(value) for name, value in schema.decode(record).items()})
        for record in records(GOLDEN / "examples.tfrecord")
    ]
    expected = json.loads((GOLDEN / "decoded.json").read_text())
    for row, other in zip(found, expected, strict=True):
        # what the notes say is read otherwise
        assert row.pop("columns") == [one for row in other.pop("columns") for one in row]
        assert [number % 2**64 for number in row.pop("wide")] == other.pop("wide")
        assert row == other


@pytest.mark.parametrize("case", EXAMPLES, ids=str)
def test_what_is_said_of_a_feature_is_kept(case):
    """Ours, there and back, says the same there; and its notes name what does not come back."""
    try:
        text, notes = tfds.dumps(case.schema)
    except rs.SpecError as error:
        (problem,) = error.problems
        assert problem.got in UNTOLD
        return
    back, lost = tfds.loads(text, name="case")
    stay_bytes = [str(note).endswith("they stay bytes") for note in lost]
    assert all(stay_bytes)
    assert stay_bytes or said(tfds.dumps(back)[0]) == said(text)
    (mine,), (theirs,) = case.schema.names.values(), back.names.values()
    assert [column.key for column in mine.columns()] == [column.key for column in theirs.columns()]
    found = {note.path[2] for note in notes if len(note.path) == 3}
    if mine.kind != theirs.kind:
        assert f"kind {mine.kind} is said as {theirs.kind}" in str(notes[-1])
        return
    differing = {name for name, value in shallow(mine).items() if value != shallow(theirs)[name]}
    assert found == differing - ({"encoding"} if mine.columns() == theirs.columns() else set())


UNTOLD = (
    "left out: kind sparse is none of TFDS",
    "left out: TFDS does not decode bytes of uint32",
    *(
        f"left out: TFDS looks for lists in lists under keys such as `{key}/ragged_flat_values`"
        f" and `{key}/ragged_row_lengths_0`"
        for key in ("two float32", "two int64", "two string", "deep", "v")
    ),
)


def test_what_tfds_says_comes_back():
    """Theirs, there and back, but for what the notes name."""
    schema, notes = tfds.load(GOLDEN)
    ours, flat = said(tfds.dumps(schema)[0]), said((GOLDEN / "features.json").read_text())
    noted = {"/".join(note.path[:-1]) for note in notes}
    assert [name for name, node in flat.items() if ours[name] != node and name not in noted] == []
    assert noted == {"box", "columns", "deep", "double", "sound", "unsaid", "wide"}


def said(text: str) -> dict:
    return dict(flattened(json.loads(text)["featuresDict"]["features"]))


def flattened(features: dict, before: str = "", lengths: tuple = ()):
    """The features at the leaves, by path, without what is said in two ways."""
    for name, node in features.items():
        yield from leaves(node, f"{before}{name}", lengths)


def leaves(node: dict, path: str, lengths: tuple):
    kind = node["pythonClassName"].rpartition(".")[2]
    if kind == "FeaturesDict":
        yield from flattened(node["featuresDict"]["features"], f"{path}/", lengths)
    elif kind == "Translation":
        yield from ((f"{path}/{one}", ("Text", {}, lengths)) for one in node["translation"]["languages"])
    elif kind == "Sequence":
        length = node["sequence"]["length"]
        yield from leaves(node["sequence"]["feature"], path, (*lengths, length))
    else:
        (content,) = (dict(value) for name, value in node.items() if isinstance(value, dict))
        shape = content.pop("shape", {}).get("dimensions", []) if kind != "BBoxFeature" else []
        kind = {"Scalar": "Tensor", "Video": "Image"}.get(kind, kind)
        if kind == "Text" and lengths:
            kind, content = "Tensor", {"dtype": "string", "encoding": "none"}
        yield path, (kind, content, (*lengths, *shape))


LABELS = "features: {label: {kind: label, names: [cat, dog], oov: index}, x: float32}"


@pytest.fixture
def data(tmp_path) -> Path:
    schema = rs.Schema.loads(f"schema: pets\nversion: 2\ndescription: Cats and dogs.\n{LABELS}")
    rows = [{"label": number % 3, "x": number / 2} for number in range(20)]
    rs.write(schema, rows, tmp_path / "data", split={"train": 3, "test": 1}, shards=2)
    return tmp_path / "data"


def test_a_dataset_is_described(data):
    files, notes = tfds.describe(data)
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
    tfds.describe(data)
    tfds.describe(data)
    schema = rs.Schema.load(data / "schema.yaml")
    assert len(list(rs.read(schema, data, batch=None))) == 20
    rows = [{"label": 1, "x": number / 2} for number in range(50, 60)]
    rs.write(schema, rows, data, split={"train": 3, "test": 1}, shards=2, append=True)
    assert not (data / "features.json").exists()
    assert rs.Manifest.load(data).beside == {}
    rs.write(schema, rows, data, force=True)
    tfds.describe(data)
    rs.write(schema, rows, data, force=True)
    assert not (data / "features.json").exists()


@pytest.mark.parametrize("name", ["features.json", "dataset_info.json", "label.labels.txt"])
def test_files_of_another_hand_are_not_replaced(data, name):
    (data / name).write_text("{}")
    before = {path.name: path.read_bytes() for path in data.iterdir()}
    with pytest.raises(rs.StoreError) as error:
        tfds.describe(data)
    assert str(error.value) == (
        f"{data / name}: expected no file, or one that was put here, got another (move it elsewhere first)"
    )
    assert {path.name: path.read_bytes() for path in data.iterdir()} == before


def test_a_file_that_was_changed_is_not_replaced(data):
    tfds.describe(data)
    (data / "features.json").write_text("{}")
    with pytest.raises(rs.StoreError, match="expected no file, or one that was put here"):
        tfds.describe(data)


def test_a_description_that_was_broken_off_is_made_again(data):
    """The files are there, and the manifest does not know of them yet."""
    manifest = (data / "manifest.json").read_text()
    files, _ = tfds.describe(data)
    (data / "manifest.json").write_text(manifest)
    (data / "features.json").unlink()
    assert tfds.describe(data)[0] == files
    assert set(rs.Manifest.load(data).beside) == set(files)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"compression": "gzip"},
            "compression: expected none, for TFDS, got gzip (`recordspec reshard --compression none` writes it so)",
        ),
        (
            {"layout": {"blocks": 4}},
            "layout: expected rows, for TFDS, got blocks"
            " (`recordspec reshard --blocks 0 --schema SCHEMA` writes it so)",
        ),
        (
            {"split": "a+b"},
            "splits: expected splits without a + in their names, which TFDS adds up, got `a+b`",
        ),
    ],
)
def test_datasets_that_tfds_cannot_read_are_refused(tmp_path, options, message):
    rs.write(rs.Schema.loads(f"schema: s\n{LABELS}"), [{"label": 0, "x": 1}], tmp_path / "data", **options)
    with pytest.raises(rs.StoreError) as error:
        tfds.describe(tmp_path / "data")
    assert str(error.value) == f"{tmp_path / 'data'}: {message}"
    assert rs.Manifest.load(tmp_path / "data").beside == {}


def test_shards_that_were_added_are_refused(data):
    schema = rs.Schema.load(data / "schema.yaml")
    rs.write(schema, [{"label": 0, "x": 99}], data, split={"train": 3, "test": 1}, shards=2, append=True)
    with pytest.raises(rs.StoreError) as error:
        tfds.describe(data)
    assert str(error.value).splitlines()[0] == (
        f"{data}: splits.train: expected shard 0 of 4 of `train`, got `train-00000-of-00002.tfrecord`"
        " (`recordspec reshard` numbers shards anew)"
    )


def test_records_of_sequences_are_refused(tmp_path):
    schema = rs.Schema.loads("schema: s\nsequence: {a: {kind: fixed_len_sequence, dtype: int64}}")
    rs.write(schema, [{"a": [1]}], tmp_path / "data")
    with pytest.raises(rs.StoreError, match="record: expected example, got sequence_example"):
        tfds.describe(tmp_path / "data")
    with pytest.raises(rs.SpecError, match="left out: TFDS stores Examples, not SequenceExamples"):
        tfds.dumps(schema)


def test_names_that_are_no_lines_are_noted(tmp_path):
    schema = rs.Schema.loads(
        'schema: s\nfeatures: {l: {kind: label, names: [" a", "b"]}, x: {dtype: int64, default: 1}}'
    )
    rs.write(schema, [{"l": 0, "x": 2}], tmp_path / "data")
    files, notes = tfds.describe(tmp_path / "data")
    assert files == ("features.json", "dataset_info.json")
    assert list(map(str, notes)) == ["features.l.names: not said", "features.x.default: not said"]


def node(kind: str, **content) -> str:
    feature = {"type": f"tensorflow_datasets.core.features.{kind}", "content": content}
    return json.dumps({"type": "a.FeaturesDict", "content": {"a": feature}})


@pytest.mark.parametrize(
    ("text", "feature", "notes"),
    [
        (node("Tensor", shape=[2], dtype="float32"), FixedLen(name="a", dtype="float32", shape=(2,)), []),
        (node("Tensor", shape=[None], dtype="uint8"), AnyTensor(name="a", dtype="uint8", shape=(None,)), []),
        (
            node("Image", shape=[28, 28, 1], dtype="uint8", encoding_format="png", use_colormap=None),
            Image(name="a", shape=(28, 28, 1)),
            [],
        ),
        (node("ClassLabel", num_classes=2), Label(name="a", names=("0", "1")), []),
        (
            node("ClassLabel", num_classes=None),
            FixedLen(name="a", dtype="int64"),
            ["a: its classes have no counterpart: read as integers"],
        ),
        (
            node("Image", shape=[4, 4, 2], dtype="uint8", encoding_format="png"),
            FixedLen(name="a", dtype="string"),
            ["a: shape: expected one of 1, 3, 4 channels for png, got 2: they stay bytes"],
        ),
        (
            node("Image", shape=[4, 4, 1], dtype="float32", encoding_format="png"),
            FixedLen(name="a", dtype="string"),
            ["a: png of float32: they stay bytes"],
        ),
        (
            node(
                "Audio", shape=[None], dtype="int64", file_format="flac", sample_rate=8000, lazy_decode=True
            ),
            Audio(name="a", sample_rate=8000, encoding="flac"),
            ["a.shape: read as [samples, 1]", "a.dtype: int64 is read as float32, with 1.0 as full scale"],
        ),
        (
            node("Dataset", feature=json.loads(node("Text"))["content"]["a"], length=None),
            VariableLen(name="a", dtype="string"),
            ["a: a dataset in each record: read as lists"],
        ),
        (
            node("Tensor", shape=[], dtype="bool", optional=True, minimum=0),
            AnyTensor(name="a", dtype="bool"),
            ["a.minimum: not checked", "a.optional: a record without it cannot be read"],
        ),
    ],
)
def test_features_of_older_files(text, feature, notes):
    schema, found = tfds.loads(text)
    assert schema.names == {"a": feature}
    assert list(map(str, found)) == notes


def test_the_content_may_be_a_message_as_text():
    text = json.dumps(
        {
            "type": "a.FeaturesDict",
            "proto_cls": "tensorflow_datasets.FeaturesDict",
            "content": json.dumps({"features": {"a": {"pythonClassName": "b.Text", "text": {}}}}),
        }
    )
    assert tfds.loads(text)[0].names == {"a": Text(name="a")}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "expected JSON, got Expecting value: line 1 column 1 (char 0)"),
        ("[]", "expected a feature of TFDS, got list []"),
        ('{"pythonClassName": "a.FeaturesDict"}', "expected features by name, got dict {}"),
        ('{"pythonClassName": "a.Text", "text": {}}', "expected a FeaturesDict, got Text"),
        (node("Tensor", shape=3, dtype="int64"), "a.shape: expected a list of sizes, got int 3"),
        (node("Tensor", shape=["x"], dtype="int64"), "a.shape: expected a whole number, got str 'x'"),
        (
            node("Graph"),
            "a: expected one of FeaturesDict, Sequence, Translation, Tensor, Scalar, ClassLabel, Text, Image,"
            " LabeledImage, Video, Audio, BBoxFeature, got `Graph`",
        ),
        (
            node("Tensor", shape=[None, None], dtype="int8", encoding="bytes"),
            "a.shape: expected at most one size that is not known, got [null, null]",
        ),
        (
            node("Tensor", shape=[], dtype="complex64"),
            "a.encoding: expected an encoding for complex numbers, got none",
        ),
        (
            node("Tensor", shape=[1 << 20, 2], dtype="int64", optional=True),
            "a.default: expected a default of at most 1,048,576 values, got 2,097,152",
        ),
    ],
)
def test_what_is_no_features_json_is_refused(text, message):
    with pytest.raises(rs.SpecError) as error:
        tfds.loads(text)
    assert str(error.value) == f"<text>: {message}"


VALUES = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5)
JSON = st.recursive(
    VALUES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner)
)


@given(st.data())
def test_any_json_is_a_schema_or_refused(data):
    """The golden file with one value of it replaced by another."""
    root = json.loads((GOLDEN / "features.json").read_text())
    at = root
    while isinstance(at, dict) and at:
        name = data.draw(st.sampled_from(sorted(at)))
        if not isinstance(at[name], dict) or data.draw(st.booleans()):
            at[name] = data.draw(JSON)
            break
        at = at[name]
    with contextlib.suppress(rs.SpecError):
        tfds.loads(json.dumps(root))
