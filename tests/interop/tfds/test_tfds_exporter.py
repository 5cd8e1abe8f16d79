"""TFDS round trips: what it expresses is kept, and the rest is noted (`interop.notes`)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import tensorflow as tf

import recordspec as rs
from instances import CASES
from recordspec.interop import tfds
from recordspec.schema.options import options_of

GOLDEN = Path(__file__).parents[2] / "golden/tfds"
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
def test_a_feature_survives_a_round_trip(case):
    """Exported, imported and exported again, a feature is equal; the notes name what is lost."""
    try:
        text, notes = tfds.dumps(case.schema)
    except rs.SpecError as error:
        (problem,) = error.problems
        assert problem.got in UNSUPPORTED
        return
    back, lost = tfds.loads(text, name="case")
    stay_bytes = [str(note).endswith("kept as bytes") for note in lost]
    assert all(stay_bytes)
    assert stay_bytes or exported(tfds.dumps(back)[0]) == exported(text)
    (mine,), (theirs, *others) = case.schema.names.values(), back.names.values()
    stored = [column.key for feature in (theirs, *others) for column in feature.columns()]
    assert [column.key for column in mine.columns()] == stored
    found = {note.path[2] for note in notes if len(note.path) == 3}
    if mine.kind != theirs.kind:
        assert f"kind {mine.kind} is exported as {theirs.kind}" in str(notes[-1])
        return
    differing = {name for name, value in options_of(mine).items() if value != options_of(theirs)[name]}
    # TFDS has no default of a raw tensor, which the notes say
    same = mine.columns() == theirs.columns() or (mine.kind == "tensor" and mine.traits.optional)
    assert found == differing - ({"encoding"} if same else set())


UNSUPPORTED = (
    "left out: kind sparse cannot be expressed in TFDS",
    "left out: TFDS does not decode bytes of uint32",
    *(
        f"left out: TFDS expects nested sequences under keys such as `{key}/ragged_flat_values`"
        f" and `{key}/ragged_row_lengths_0`"
        for key in ("two float32", "two int64", "two string", "deep", "v", "perhaps none")
    ),
)


def test_features_of_tfds_survive_a_round_trip():
    """Theirs, there and back, but for what the notes name."""
    schema, notes = tfds.load(GOLDEN)
    ours, flat = exported(tfds.dumps(schema)[0]), exported((GOLDEN / "features.json").read_text())
    noted = {"/".join(note.path[:-1]) for note in notes}
    assert [name for name, node in flat.items() if ours[name] != node and name not in noted] == []
    assert noted == {"box", "columns", "deep", "double", "sound", "unsaid", "wide"}


def exported(text: str) -> dict:
    return dict(flattened(json.loads(text)["featuresDict"]["features"]))


def flattened(features: dict, before: str = "", lengths: tuple = ()):
    """The features at the leaves, by path, without what can be expressed in two ways."""
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
