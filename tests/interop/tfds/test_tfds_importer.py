"""The features.json of TFDS, read (`interop.tfds.nodes`): of older files, as a message, and what is none."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import recordspec as rs
from recordspec.interop import tfds
from recordspec.schema.features.audio import Audio
from recordspec.schema.features.fixed_len import FixedLen
from recordspec.schema.features.image import Image
from recordspec.schema.features.label import Label
from recordspec.schema.features.tensor import AnyTensor
from recordspec.schema.features.text import Text
from recordspec.schema.features.var_len import VariableLen
from recordspec.schema.features.video import Video

GOLDEN = Path(__file__).parents[2] / "golden/tfds"


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
            ["a: shape: expected one of 1, 3, 4 channels for png, got 2: kept as bytes"],
        ),
        (
            node("Image", shape=[4, 4, 1], dtype="float32", encoding_format="png"),
            FixedLen(name="a", dtype="string"),
            ["a: png of float32: kept as bytes"],
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
            node(
                "Sequence",
                feature=json.loads(node("Image", shape=[4, 5, 3], dtype="uint8", encoding_format="png"))[
                    "content"
                ]["a"],
                length=None,
            ),
            Video(name="a", shape=(None, 4, 5, 3), encoding="png"),
            [],
        ),
        (
            node("Tensor", shape=[], dtype="bool", optional=True, minimum=0),
            AnyTensor(name="a", dtype="bool"),
            ["a.minimum: not checked", "a.optional: a record without it cannot be read"],
        ),
        (
            node("Tensor", shape=[2], dtype="uint64", optional=True),
            FixedLen(name="a", dtype="int64", shape=(2,), default=(0, 0)),
            ["a.dtype: uint64 is read as int64, which stores it"],
        ),
        (
            node("Tensor", shape=[], dtype="float64", optional=True),
            FixedLen(name="a", dtype="float32", default=float("-inf")),
            ["a.dtype: float64 is read as float32, which stores it"],
        ),
        (
            node("Tensor", shape=[0], dtype="int64", optional=True),
            FixedLen(name="a", dtype="int64", shape=(0,)),
            ["a.optional: a record without it cannot be read"],
        ),
    ],
)
def test_features_of_older_files(text, feature, notes):
    schema, found = tfds.loads(text)
    assert schema.names == {"a": feature}
    assert list(map(str, found)) == notes


TRANSLATION = {"languages": ["de", "en"]}
OF_TRANSLATION = {name: Text(name=name) for name in ("de", "en")}
WORDS = VariableLen(name="words", dtype="string")
OF_WORDS = {"words": {"pythonClassName": "b.Text", "text": {}}}


@pytest.mark.parametrize(
    ("text", "features"),
    [
        ({"pythonClassName": "a.Translation", "translation": TRANSLATION}, OF_TRANSLATION),
        ({"type": "a.Translation", "content": TRANSLATION}, OF_TRANSLATION),
        (
            {"type": "a.TranslationVariableLanguages", "content": {"languages": ["de"]}},
            {name: VariableLen(name=name, dtype="string") for name in ("language", "translation")},
        ),
        (
            {
                "pythonClassName": "a.Sequence",
                "sequence": {
                    "feature": {"pythonClassName": "a.FeaturesDict", "featuresDict": {"features": OF_WORDS}},
                    "length": "-1",
                },
            },
            {"words": WORDS},
        ),
        (
            {"type": "a.Sequence", "content": {"feature": {"type": "a.FeaturesDict", "content": OF_WORDS}}},
            {"words": WORDS},
        ),
    ],
)
def test_any_structure_may_be_on_top(text, features):
    assert tfds.loads(json.dumps(text))[0].names == features


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
    ("feature", "note"),
    [
        (
            {"pythonClassName": "my.Graph"},
            "b: left out: expected one of FeaturesDict, Sequence, Translation, Tensor, Scalar, ClassLabel, Text,"
            " Image, LabeledImage, Video, Audio, BBoxFeature, got `Graph`",
        ),
        (
            json.loads(node("Tensor", shape=[None, None], dtype="int8", encoding="bytes"))["content"]["a"],
            "b.shape: left out: expected at most one unknown size, got [null, null]",
        ),
    ],
)  # fmt: skip
def test_a_feature_without_a_counterpart_is_left_out_with_a_note(feature, note):
    text = {"pythonClassName": "b.Text", "text": {}}
    features = {"features": {"a": text, "b": feature, "c": text}}
    root = {"pythonClassName": "a.FeaturesDict", "featuresDict": features}
    schema, notes = tfds.loads(json.dumps(root))
    assert list(schema.names) == ["a", "c"]
    assert list(map(str, notes)) == [note]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "expected JSON, got Expecting value: line 1 column 1 (char 0)"),
        ("[]", "expected a feature of TFDS, got list []"),
        ('{"pythonClassName": "a.FeaturesDict"}', "expected features by name, got dict {}"),
        (
            '{"pythonClassName": "a.Text", "text": {}}',
            "expected features by name, got a single Text (no key is known; the files alone can be inferred: give them in place of the folder)",
        ),
        (
            '{"type": "tensorflow_datasets.core.features.text_feature.Text", "content": {}}',
            "expected features by name, got a single Text (no key is known; the files alone can be inferred: give them in place of the folder)",
        ),
        (node("Tensor", shape=3, dtype="int64"), "a.shape: expected a list of sizes, got int 3"),
        (node("Tensor", shape=["x"], dtype="int64"), "a.shape: expected a whole number, got str 'x'"),
        (
            node("Tensor", shape=[], dtype="complex64"),
            "expected a feature with a counterpart, got a.encoding: left out: expected an encoding for complex"
            " numbers, got none",
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


@pytest.mark.slow
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
