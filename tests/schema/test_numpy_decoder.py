"""Records, and rows of blocks, decoded without TensorFlow: what features do together, what other writers store,
and errors. The law `testing.numpy_does_as_tensorflow` compares each kind alone."""

from __future__ import annotations

import zlib
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pytest

import recordspec as rs
from instances import CASES
from media import decodes, image_bytes, photo, sound_bytes, tone
from recordspec._tf import tf
from recordspec.kinds import Column, Feature, Fixed, numbers, to_arrow
from recordspec.schema.feature_set import FixedFeatures
from recordspec.schema.features.box import Box
from recordspec.schema.features.image import Image
from recordspec.schema.ragged_array import RaggedArray
from recordspec.testing import Case, numpy_does_as_tensorflow, trace_together
from recordspec.wire import native
from recordspec.wire.arrays import data_of, strings_array
from recordspec.wire.columns import FixedKeys
from recordspec.wire.record_batch import fixed_values

RNG = np.random.default_rng(0)
FORMATS = ["xyxy", "yxyx", "xywh", "center_xywh", "rel_xyxy", "rel_yxyx", "rel_xywh", "rel_center_xywh"]


def flat(value) -> list[np.ndarray]:
    """The values of any batch, of either library, after the lengths or indices of its rows."""
    if isinstance(value, RaggedArray):
        return [value.lengths, *flat(value.values)]
    if isinstance(value, rs.SparseArray):
        return [value.indices, value.values, np.array(value.shape)]
    if isinstance(value, tf.RaggedTensor):
        return [value.row_lengths().numpy(), *flat(value.values)]
    if isinstance(value, tf.sparse.SparseTensor):
        return [value.indices.numpy(), value.values.numpy(), value.dense_shape.numpy()]
    return [np.asarray(value)]


def assert_same(schema: rs.Schema, records: list[bytes], pixels_within: int = 0) -> dict:
    """NumPy and TensorFlow decode the same of these records, but for pixels. Returns NumPy's."""
    expected, found = schema.decode(tf.constant(records, tf.string)), schema.decode_numpy(records)
    assert list(found) == list(expected)
    for name, value in expected.items():
        for one, other in zip(flat(value), flat(found[name]), strict=True):
            assert (one.dtype, one.shape) == (other.dtype, other.shape), name
            if one.dtype == np.uint8:
                one, other = one.astype(int), other.astype(int)
                assert np.abs(one - other).max(initial=0) <= pixels_within, name
            else:
                np.testing.assert_array_equal(other, one, name)
    return found


def example(**lists) -> bytes:
    """An Example of another writer: of each key bytes, floats or integers."""
    return tf.train.Example(features=features(lists)).SerializeToString()


def features(lists: dict) -> tf.train.Features:
    made = {}
    for key, values in lists.items():
        made[key] = tf.train.Feature()
        if values:
            kind = {bytes: "bytes_list", float: "float_list", int: "int64_list"}[type(values[0])]
            getattr(made[key], kind).value.extend(values)
    return tf.train.Features(feature=made)


def steps(**lists) -> bytes:
    """A SequenceExample of another writer: of each key a list of steps."""
    entries = {
        key: tf.train.FeatureList(feature=[features({"f": step}).feature["f"] for step in values])
        for key, values in lists.items()
    }
    return tf.train.SequenceExample(
        feature_lists=tf.train.FeatureLists(feature_list=entries)
    ).SerializeToString()


def spec(text: str) -> rs.Schema:
    """Of the features in YAML, by section."""
    return rs.Schema.loads(f"schema: s\n{text}")


@pytest.mark.tensorflow
def test_a_batch_without_records_has_the_types_of_others():
    for schema in {id(case.shared): case.shared.schema for case in trace_together(CASES)}.values():
        assert_same(schema, [])


def boxes_in(format_: str, height: int, width: int) -> np.ndarray:
    """Some boxes anywhere in an image, also at its edges."""
    corners = np.sort(RNG.uniform(0, 1, (6, 2, 2)), axis=1).astype(np.float32)
    corners[0], corners[1, 0], corners[2, 1] = [[0, 0], [1, 1]], 0, 1
    scale = 1 if format_.startswith("rel_") else np.array([width, height], np.float32)
    low, high = corners[:, 0] * scale, corners[:, 1] * scale
    order = format_.removeprefix("rel_")
    if order == "yxyx":
        low, high = low[:, ::-1], high[:, ::-1]
    elif order == "xywh":
        high = high - low
    elif order == "center_xywh":
        low, high = (low + high) / 2, high - low
    return np.concatenate([low, high], axis=1)[: int(RNG.integers(7))]


def drawn(format_: str) -> dict:
    """An image, its boxes, and what belongs to them."""
    size = RNG.integers(1, 40, 2)
    boxes = boxes_in(format_, *size)
    return {
        "image": RNG.integers(0, 256, (*size, 1), np.uint8),
        "box": boxes,
        "name": ["ab"[at % 2] for at in range(len(boxes))],
        "words": [list(range(at)) for at in range(len(boxes))],
    }


@pytest.mark.tensorflow
@pytest.mark.parametrize("place", ["features", "sequence", "context and sequence"])
@pytest.mark.parametrize("aspect", ["stretch", "crop", "pad"])
@pytest.mark.parametrize("format_", FORMATS)
def test_boxes_follow_their_images_and_are_dropped_with_their_labels(format_, aspect, place):
    image = f"image: {{kind: image, shape: [null, null, 1], resize: {{size: [12, 17], aspect: {aspect}}}}}"
    drop = "{with: [name, words], below: 0.3}" if place == "features" else "{with: [name], below: 0.3}"
    box = f"box: {{kind: box, format: {format_}, pad: -1, drop: {drop}}}"
    label = "name: {kind: label, names: [a, b], shape: [null]}"
    rows = [drawn(format_) for _ in range(12)]
    if place == "features":
        words = "words: {kind: ragged, dtype: int64, shape: [null, null]}"
        given = spec(f"features:\n  {image}\n  {box}\n  {label}\n  {words}\n")
    else:
        listed = [rows[:3], [], rows[3:4], rows[4:]]
        rows = [{key: [row[key] for row in some] for key in ("image", "box", "name")} for some in listed]
        given = spec(f"sequence:\n  {image}\n  {box}\n  {label}\n")
    if place == "context and sequence":
        given = spec(f"context:\n  {image}\nsequence:\n  {box}\n  {label}\n")
        pixels = np.zeros((40, 40, 1), np.uint8)
        rows = [row | {"image": pixels} for row in rows]
    found = assert_same(given, [given.encode(row) for row in rows], pixels_within=1)
    left = found["box"].values
    assert (len(left.values) if isinstance(left, RaggedArray) else len(left)) > (
        5 if aspect == "crop" else 20
    )


def test_boxes_that_are_cut_away_have_the_pad_or_are_dropped_with_their_label():
    image = "image: {kind: image, shape: [4, 8, 1], resize: {size: [4, 4], aspect: crop}}"
    boxes = [[0, 0, 1, 1], [3, 0, 5, 2], [1, 1, 3, 3]]
    row = {"image": np.zeros((4, 8, 1), np.uint8), "box": boxes, "name": ["a", "b", "c"]}
    label = "name: {kind: label, names: [a, b, c], shape: [null]}"
    for drop, kept, expected in [
        ("", [0, 1, 2], [[-1] * 4, [1, 0, 3, 2], [0, 1, 1, 3]]),
        (", drop: {with: [name]}", [1, 2], [[1, 0, 3, 2], [0, 1, 1, 3]]),
        (", drop: {with: [name], below: 0.6}", [1], [[1, 0, 3, 2]]),
    ]:
        given = spec(f"features:\n  {image}\n  box: {{kind: box, format: xyxy, pad: -1{drop}}}\n  {label}\n")
        found = given.decode_numpy([given.encode(row | {"box": [], "name": []}), given.encode(row)])
        assert [found["box"][row].tolist() for row in range(2)] == [[], expected]
        assert [found["name"][row].tolist() for row in range(2)] == [[], kept]


@pytest.mark.tensorflow
def test_boxes_of_videos_follow_their_first_frames():
    for shape in ("[null, null, null, 1]", "[2, null, null, 1]"):
        given = spec(
            f"features:\n  clip: {{kind: video, shape: {shape}, encoding: png, resize: {{size: [6, 9], aspect: pad}}}}\n"
            "  box: {kind: box, format: xywh}\n"
        )
        frames = [np.zeros((2, 5, 3, 1), np.uint8), np.zeros((2, 4, 20, 1), np.uint8)]
        frames += [np.zeros((0, 4, 4, 1), np.uint8)] * (shape[1] == "n")
        records = [given.encode({"clip": clip, "box": [[0.5, 0, 2, 1.5]]}) for clip in frames]
        assert_same(given, records, pixels_within=1)


@pytest.mark.tensorflow
def test_labels_stored_by_name_are_indices():
    options = "kind: label, names: [cat, dog, é], encoding: name"
    given = spec(
        f"features:\n  one: {{{options}, oov: index}}\n  some: {{{options}, shape: [null]}}\n"
        f"  two: {{{options}, shape: [2], oov: index}}\n  number: {{kind: label, names: [a, b]}}\n"
    )
    records = [
        example(one=[b"dog"], some=["é".encode(), b"cat"], two=[b"cat", b"\xff"], number=[1]),
        example(one=[b"cow"], some=[], two=[b"", b"dog"], number=[0]),
    ]
    found = assert_same(given, records)
    assert found["one"].tolist() == [1, 3]
    assert [found["some"][row].tolist() for row in range(2)] == [[2, 0], []]
    assert found["two"].tolist() == [[0, 3], [3, 1]]
    listed = spec(f"sequence:\n  one: {{{options}, oov: index}}\n  some: {{{options}, shape: [null]}}\n")
    rows = [
        steps(one=[[b"cat"], [b"cow"]], some=[[], [b"dog", b"cat"]]),
        steps(one=[], some=[]),
        steps(one=[[b"dog"]], some=[[]]),
    ]
    assert [assert_same(listed, rows)["one"][row].tolist() for row in range(3)] == [[0, 3], [], [1]]


@pytest.mark.tensorflow
def test_missing_values_are_defaults():
    given = spec(
        "features:\n  i: {dtype: int64, default: -7}\n  f: {dtype: float32, default: .nan, with_missing: true}\n"
        "  s: {dtype: string, default: é}\n  m: {dtype: int64, shape: [2, 1], default: [[1], [2]]}\n"
        "  t: {dtype: string, shape: [2], default: [a, b], with_missing: true}\n"
        "  v: {kind: var_len, dtype: int64}\n  d: {kind: var_len, dtype: string, as: dense, pad: x}\n"
        "  q: {kind: fixed_len_sequence, dtype: float32, shape: [2], pad: 9}\n"
    )
    whole = {
        "i": [5],
        "f": [2.5],
        "s": [b"x"],
        "m": [3, 4],
        "t": [b"c", b"d"],
        "v": [1, 2],
        "d": [b"y"],
        "q": [1.0, 2.0],
    }
    found = assert_same(given, [example(), example(**whole), example(**{key: [] for key in whole})])
    assert found["i"].tolist() == [-7, 5, -7]
    assert found["s"].tolist() == ["é".encode(), b"x", "é".encode()]
    assert found["m"].tolist() == [[[1], [2]], [[3], [4]], [[1], [2]]]
    assert found["f_missing"].tolist() == [True, False, True]
    assert found["t"].tolist() == [[b"a", b"b"], [b"c", b"d"], [b"a", b"b"]]
    assert_same(given, [example()])


@pytest.mark.tensorflow
def test_sparse_values_of_other_writers_are_sorted():
    given = spec(
        "features:\n  a: {kind: sparse, dtype: float32, size: [3, 4, 2], index_keys: [x, y, z]}\n"
        "  b: {kind: sparse, dtype: string, size: 9}\n"
    )
    records = [
        example(
            a=[1.0, 2.0, 3.0], x=[2, 0, 2], y=[1, 3, 0], z=[0, 1, 1], b=[b"p", b"q"], **{"b/indices": [8, 3]}
        ),
        example(a=[], x=[], y=[], z=[], b=[], **{"b/indices": []}),
        example(a=[4.0], x=[1], y=[1], z=[1], b=[b"r"], **{"b/indices": [0]}),
    ]
    found = assert_same(given, records)
    assert found["a"].values.tolist() == [2, 3, 1, 4]
    assert found["b"][0].to_dense().tolist() == [b"", b"", b"", b"q", b"", b"", b"", b"", b"p"]


@pytest.mark.tensorflow
def test_ragged_lists_of_other_writers_have_two_or_three_levels():
    given = spec(
        "features:\n  two: {kind: ragged, dtype: string, shape: [null, null], row_lengths: [n]}\n"
        "  three: {kind: ragged, dtype: int64, shape: [null, null, null, 2], row_lengths: [outer, inner]}\n"
    )
    records = [
        example(two=[b"a", b"b", b"c"], n=[0, 2, 1], three=[1, 2, 3, 4], outer=[2, 0, 1], inner=[1, 0, 1]),
        example(),
        example(two=[], n=[0], three=[5, 6], outer=[1], inner=[1]),
    ]
    found = assert_same(given, records)
    assert [found["two"][0][at].tolist() for at in range(3)] == [[], [b"a", b"b"], [b"c"]]
    assert found["three"][0][0][0].tolist() == [[1, 2]]
    assert found["three"][0][2][0].tolist() == [[3, 4]]


@pytest.mark.tensorflow
def test_missing_lists_of_steps_are_empty_where_the_schema_says_so():
    """Of every kind that steps take, in records that have a list of each, or of some, or none."""
    cases = [case for case in CASES if case.section == "sequence"]
    some = {
        case.feature.kind: replace(case.feature, name=case.feature.kind, missing="empty") for case in cases
    }
    assert set(some) == {case.feature.kind for case in CASES if case.feature.traits.takes_steps} - {"sparse"}
    given = rs.Schema(name="s", record="sequence_example", sequence=tuple(some.values()))
    rng = np.random.default_rng(0)
    row = {
        name: [one.sample(rng), one.sample(rng)] for name, one in some.items() if not one.traits.spans_steps
    }
    row |= {name: one.sample(rng) for name, one in some.items() if one.traits.spans_steps}
    whole = given.encode(row)
    partial = tf.train.SequenceExample.FromString(whole)
    for feature in list(some.values())[::2]:
        for column in feature.columns():
            del partial.feature_lists.feature_list[column.key]
    assert_same(given, [b"", whole, partial.SerializeToString(), b""], pixels_within=12)  # of a JPEG
    assert_same(given, [b""])


PNG, WAV = image_bytes(photo(), "png"), sound_bytes(tone(), 8000)
ZLIB = zlib.compress(bytes(12))
DROP = (
    "  image: {kind: image, resize: [4, 4]}\n  box: {kind: box, format: xyxy, drop: {with: [name]}}\n"
    "  name: {kind: label, names: [a, b], shape: [null]}\n"
)
BOX = [0.0, 0.0, 2.0, 2.0]
LABEL = "{kind: label, names: [a, b], encoding: name}"
ERRORS = {
    "raw": ("{kind: tensor, dtype: float64, shape: [2]}", bytes(16), bytes(15), "expected 16 bytes, got 15"),
    "varies": ("{kind: tensor, dtype: int16, shape: [null, 3], encoding: raw}", bytes(6), bytes(7), "expected a multiple of 6 bytes, got 7"),
    "zlib": ("{kind: tensor, dtype: int16, shape: [6], encoding: zlib}", ZLIB, ZLIB[:-5], "expected whole zlib data, got Error -5 while"),
    "no zlib": ("{kind: tensor, dtype: int16, shape: [6], encoding: zlib}", ZLIB, b"zz", "expected whole zlib data, got Error -3 while"),
    "narrow": ("{kind: tensor, dtype: uint8}", 255, 256, "expected numbers that uint8 holds, got 256"),
    "image": ("{kind: image}", PNG, PNG[:60], "expected png data that decodes, got a PNG image: "),
    "no image": ("{kind: image}", PNG, b"<html>", "expected png data that decodes, got an HTML page: Pillow cannot open it"),
    "shape": ("{kind: image, shape: [30, 40, 3]}", PNG, image_bytes(photo(30, 41), "png"), "expected an image uint8 [30, 40, 3], got shape [30, 41, 3]"),
    "pixels": ("{kind: image, shape: [2, 3, 1], encoding: raw}", bytes(6), bytes(5), "expected 6 bytes, got 5"),
    "sound": ("{kind: audio, sample_rate: 8000}", WAV, WAV[:-10], "expected all of its samples, got a WAV file that lacks 10 bytes"),
    "rate": ("{kind: audio, sample_rate: 8000}", WAV, sound_bytes(tone(), 16000), "expected a sample rate of 8000 Hz, got 16000 Hz"),
    "channels": ("{kind: audio, sample_rate: 8000}", WAV, sound_bytes(tone(channels=2), 8000), "expected samples [null, 1], at least one, got shape [2000, 2]"),
    "samples": ("{kind: audio, sample_rate: 8000, encoding: raw}", bytes(4), bytes(5), "expected a multiple of 4 bytes, got 5"),
    "label": (LABEL, b"b", b"c", "expected one of `a`, `b`, or an index, got `c` (`oov: index` gives all others one index)"),
    "missing": (LABEL, b"b", None, "expected 1 string, got none"),
    "kind": (LABEL, b"b", 1, "expected 1 string, got 1 int64"),
}  # fmt: skip


@pytest.mark.tensorflow
@pytest.mark.parametrize("section", ["features", "sequence"])
@pytest.mark.parametrize("case", ERRORS)
def test_a_record_that_does_not_decode_is_an_error_with_its_row_and_feature(case, section):
    options, good, bad, expected = ERRORS[case]
    given = spec(f"{section}:\n  f: {options}\n")
    good, bad = ([] if one is None else [one] for one in (good, bad))
    records = [example(f=good), example(f=good), example(f=bad), example(f=bad)]
    if section == "sequence":
        records = [steps(f=[good, good]), steps(f=[]), steps(f=[good, bad, bad]), steps(f=[bad])]
    given.decode_numpy(records[:2])
    with pytest.raises(rs.RecordError) as caught:
        given.decode_numpy(records)
    assert caught.value.row == 2
    (problem,) = caught.value.problems[:1]
    assert problem.path[:2] == (section, "f")
    assert f": {expected}" in str(problem)
    if case != "zlib":  # TensorFlow does not read its end
        with pytest.raises((tf.errors.OpError, UnicodeDecodeError)):
            given.decode(records)


@pytest.mark.parametrize(
    ("features", "records", "expected"),
    [
        ("f: {kind: var_len, dtype: int64, as: dense, max_length: 2}", [{"f": [1]}, {"f": [1, 2, 3]}], "features.f: expected at most 2 items (max_length), got 3"),
        ("f: {kind: fixed_len_sequence, dtype: int64, shape: [2], max_length: 1}", [{"f": []}, {"f": [1, 2, 3, 4]}], "features.f: expected at most 1 items (max_length), got 2"),
        ("f: {kind: label, names: [a], shape: [null], encoding: name}", [{"f": [b"a"] * 3}, {"f": [b"a", b"c"]}], "features.f: expected `a`, or an index, got `c`"),
        ("f: {kind: label, names: [a], shape: [2], encoding: name}", [{"f": [b"a"] * 2}, {"f": [b"a", b"c"]}], "features.f: expected `a`, or an index, got `c`"),
        ("f: {kind: video, encoding: png}", [{"f": [PNG, PNG]}, {"f": [PNG, PNG[:60]]}], "features.f: expected png data that decodes, got a PNG image"),
        ("f: {kind: ragged, dtype: int64, shape: [null, null], row_lengths: [n]}", [{"f": [1], "n": [1]}, {"f": [1, 2], "n": [1, 2]}], "features.f: expected 3 items, as `n` says, got 2"),
        (DROP, [{"image": [PNG], "box": BOX, "name": [0]}, {"image": [PNG], "box": BOX, "name": [0, 1]}], "features.name: expected 1 item, as `box` has, got 2"),
    ],
    ids=lambda value: value.partition(",")[0] if isinstance(value, str) else "",
)  # fmt: skip
def test_a_list_that_does_not_decode_is_an_error_with_its_row(features, records, expected):
    given = spec(f"features:\n  {features.strip()}\n")
    with pytest.raises(rs.RecordError) as caught:
        given.decode_numpy([example(**lists) for lists in records])
    assert caught.value.row == 1
    assert str(caught.value).startswith(expected), str(caught.value)


def test_items_of_one_row_are_never_those_of_another():
    """As many labels as boxes in all rows together, or as many steps, are not enough."""
    given = spec(f"features:\n{DROP}")
    records = [
        example(image=[PNG], box=BOX * 2, name=[0]),
        example(image=[PNG], box=BOX, name=[0, 1]),
    ]
    with pytest.raises(
        rs.RecordError, match=r"features\.name: expected 2 items, as `box` has, got 1"
    ) as caught:
        given.decode_numpy(records)
    assert caught.value.row == 0
    given = spec(f"sequence:\n{DROP}")
    records = [
        steps(image=[[PNG]], box=[BOX, BOX], name=[[0], [0]]),
        steps(image=[[PNG], [PNG]], box=[BOX], name=[[0]]),
    ]
    with pytest.raises(
        rs.RecordError, match=r"sequence\.box: expected 1 step, as `image` has, got 2"
    ) as caught:
        given.decode_numpy(records)
    assert caught.value.row == 0


@pytest.mark.tensorflow
@pytest.mark.parametrize("encoding", ["flac", "mp3", "ogg"])
def test_sounds_of_other_decoders_are_almost_those_of_tensorflow_io(encoding):
    if not decodes(encoding):
        pytest.skip("TensorFlow decodes it with tensorflow-io alone")
    case = Case(rs.KINDS["audio"](name="x", sample_rate=8000, encoding=encoding), tolerance=1e-4)
    case.__dict__["rows"] = [{"x": tone(seconds)} for seconds in (0.1, 0.25, 0.3, 0.5, 0.1, 0.2, 0.7)]
    numpy_does_as_tensorflow(case)


@dataclass(frozen=True, kw_only=True)
class Doubled(Feature):
    """Decodes in a graph alone."""

    kind: ClassVar[str] = "doubled"

    def columns(self):
        return (Column(key=self.stored, storage="int64", layout=Fixed()),)

    def encode(self, values):
        return (to_arrow(numbers(values, "int64")),)

    def decode(self, columns):
        return columns[self.stored] * 2

    def spec(self):
        return tf.TensorSpec([], tf.int64)

    def sample(self, rng):
        return int(rng.integers(9))


@dataclass(frozen=True, kw_only=True)
class Halved(Doubled):
    """The same, and in NumPy: a wrong number."""

    kind: ClassVar[str] = "halved"

    def decode_numpy(self, columns):
        return columns[self.stored].to_numpy() // 2


@dataclass(frozen=True, kw_only=True)
class Plain(Doubled):
    """Decodes to what is stored."""

    kind: ClassVar[str] = "plain"
    decode = Feature.decode


@dataclass(frozen=True, kw_only=True)
class Corner(Box):
    """Follows its image in a graph alone."""

    kind: ClassVar[str] = "corner"

    def resized_numpy(self, value, sides, resize):
        return super(Box, self).resized_numpy(value, sides, resize)


@dataclass(frozen=True, kw_only=True)
class Picture(Image):
    """Is resized in a graph alone."""

    kind: ClassVar[str] = "picture"

    def decode_numpy_with_sides(self, columns):
        return super(Image, self).decode_numpy_with_sides(columns)


@pytest.mark.parametrize(
    ("features", "expected"),
    [
        ([Doubled(name="x")], "x: expected a kind with `decode_numpy`, got doubled (it has `decode`, which needs TensorFlow: `rs.read` reads it)"),
        ([Image(name="image", resize=(2, 2)), Corner(name="x", format="xyxy")], "x: expected a kind with `resized_numpy`, got corner (it has `resized`, which needs TensorFlow: `rs.read` reads it)"),
        ([Picture(name="x", resize=(2, 2))], "x: expected a kind with `decode_numpy_with_sides`, got picture (it has `decode_with_sides`, which needs TensorFlow: `rs.read` reads it)"),
    ],
    ids=["decode", "resized", "decode_with_sides"],
)  # fmt: skip
def test_a_kind_that_only_tensorflow_decodes_says_so(features, expected):
    given = rs.Schema(name="s", features=tuple(features))
    row = {
        "image": photo(),
        "x": {"doubled": 1, "corner": [[0, 0, 1, 1]], "picture": photo()}[features[-1].kind],
    }
    with pytest.raises(rs.SpecError) as caught:
        given.decode_numpy([given.encode({name: row[name] for name in given.names})])
    assert str(caught.value) == expected


@pytest.mark.tensorflow
def test_the_law_finds_a_wrong_number_and_leaves_out_what_has_none():
    numpy_does_as_tensorflow(Case(Doubled(name="x")))
    numpy_does_as_tensorflow(Case(Plain(name="x"), "sequence"))
    with pytest.raises(AssertionError, match="is not"):
        numpy_does_as_tensorflow(Case(Halved(name="x")))


def test_values_that_need_no_decoder_are_those_of_the_decoders(monkeypatch):
    """Features of one shape, and lists, are read from the codec's memory if every record has them; otherwise,
    and for features that share their key with others, by way of Arrow, with the same values and errors."""
    schema = rs.Schema.loads("""schema: s
features:
  x: float32
  n: {dtype: int64, shape: [2, 3]}
  name: string
  words: {dtype: string, shape: [2]}
  said: text
  gap: {dtype: int64, default: 7}
  none: {dtype: float32, default: 0.5, with_missing: true}
  tags: {kind: var_len, dtype: int64}
  few: {kind: var_len, dtype: string, key: some, as: dense, max_length: 3, with_length: true}
  most: {kind: var_len, dtype: float32, as: dense, pad: -1.0}
  sparse: {kind: var_len, dtype: string, as: sparse}
  code: {dtype: string, key: shared}
  photo: {kind: image, shape: [1, 1, 3], key: shared}
  again: {dtype: string, key: name}
  side: {kind: label, names: [l, r]}
  sides: {kind: label, names: [l, r], shape: [2]}
  perhaps: {kind: label, names: [l, r], missing: true}
""")

    def record(**other) -> bytes:
        lists = {
            "x": [0.5],
            "n": [*range(6)],
            "name": [b"a\\0"],
            "words": [b"", b"bc"],
            "said": ["ä".encode()],
            "side": [1],
            "sides": [0, 1],
            "perhaps": [-1],
            "some": [b"a", b""],
            "most": [0.5],
            "sparse": [b"bc"],
            "shared": [image_bytes(photo(1, 1), "png")],
        }
        return example(**(lists | {"gap": [3], "none": [1.5], "tags": [1, 2]} | other))

    whole = [
        record(),
        record(x=[-1.0], name=[b""], tags=[9]),
        record(
            words=[b"d" * 300, b"e"],
            tags=[3, 1 << 40, -1],
            few=[b"e"],
            most=[1.0, 2.0],
            sparse=[b"", b"\\xff"],
        ),
    ]
    assert set(schema._fixed.shapes) == {
        *("x", "n", "name", "words", "said", "gap", "again"),
        *("side", "sides"),
    }
    lists = [feature.name for _, feature in schema._fixed.lists]
    assert lists == ["tags", "few", "most", "sparse"]
    assert assert_same(schema, whole)["n"].flags.writeable
    assert_same(schema, [*whole, record(tags=[], most=[])])  # an empty Feature
    alone = schema.only([*schema._fixed.shapes, *lists])
    assert not alone._fixed.others
    buffer, places = data_of(strings_array(whole))
    found = fixed_values(buffer, places[:-1], places[1:], alone._fixed.keys, sequence=False)
    assert native.library() is None or (found is not None and found.lengths["tags"].tolist() == [2, 1, 3])
    for records in (whole[:1], whole, [*whole, record(sparse=[])], [record(some=[])]):
        assert_same(alone, records)
    assert schema.decode_numpy(whole[:1])["again"].tolist() == [b"a\\0"]
    assert_same(schema, [*whole, record(gap=[])])  # a default
    wrong = [
        [*whole, record(**other)]
        for other in ({"n": [1]}, {"said": [1.5]}, {"name": [b"a", b"b"]}, {"x": []}, {"most": [1]})
    ]
    errors = []
    for by_arrow in (False, True):
        if by_arrow:
            everything = FixedFeatures(FixedKeys({}), {}, (), schema._placed, schema._placed_columns)
            monkeypatch.setitem(vars(schema), "_fixed", everything)
            assert schema.decode_numpy(whole)["said"].tolist() == ["ä".encode()] * 3
        for records in [*wrong, [*whole, b"\\xff"]]:
            with pytest.raises(rs.RecordError) as error:
                schema.decode_numpy(records)
            errors.append((error.value.row, error.value.problems))
    assert errors[: len(errors) // 2] == errors[len(errors) // 2 :]
