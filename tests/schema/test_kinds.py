"""Videos, boxes, labels and lengths: what they take, and what they refuse."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import recordspec as rs
from media import image_bytes, photo
from recordspec._tf import tf
from recordspec.errors import show_shape
from recordspec.inspect.check import check
from recordspec.schema.blocks import block_of_records
from recordspec.schema.decoder import decode_problems
from recordspec.schema.features.label import Label
from recordspec.schema.values import BadValue
from recordspec.store.shards import File
from recordspec.wire.arrays import flat_of, strings_array
from recordspec.wire.framing import framed


def schema(options: str, **setting) -> rs.Schema:
    return rs.Schema.loads(f"schema: s\nfeatures:\n  f: {options}\n", **setting)


def refusal(options: str, value) -> str:
    with pytest.raises(rs.RecordError) as caught:
        schema(options).encode({"f": value})
    return str(caught.value).removeprefix("row 0: features.f: ")


@pytest.mark.parametrize("encoding", ["jpeg", "png", "bmp", "webp", "raw"])
@pytest.mark.parametrize("resize", ["", ", resize: [4, 5]"])
def test_a_video_without_frames_is_a_value(encoding, resize):
    shape = [2, 3] if encoding == "raw" else [None, None]
    given = schema(
        f"{{kind: video, encoding: {encoding}, shape: [null, {show_shape(shape)[1:-1]}, 3]{resize}}}"
    )
    pixels = np.zeros([2, 2, 3, 3], np.uint8)
    sides = [4, 5] if resize else shape if encoding == "raw" else [0, 0]
    records = [given.encode({"f": value}) for value in ([], pixels, np.zeros([0, 2, 3, 3], np.uint8))]
    assert records == given.encode_batch({"f": [[], list(pixels), []]}, 3)
    assert given.decode(records[0])["f"].shape == [0, *sides, 3]
    read = tf.function(given.decode).get_concrete_function(tf.TensorSpec([None], tf.string))
    for batch, counts in ((records, [0, 2, 0]), (records[:1], [0]), ([], [])):
        for decoded in (given.decode(batch), read(tf.constant(batch, tf.string)), *blocks_of(given, batch)):
            assert decoded["f"].row_lengths().numpy().tolist() == counts


def blocks_of(given: rs.Schema, records: list[bytes]) -> list[dict]:
    """What the block of records decodes to; there is none without records."""
    return [given.decode_block(block_of_records(given, records))] if records else []


def test_boxes_beside_a_video_without_frames_are_read():
    given = rs.Schema.loads(
        "schema: s\nfeatures: {v: {kind: video, resize: [4, 4]}, b: {kind: box, format: rel_xyxy}}"
    )
    rows = [{"v": [], "b": []}, {"v": [photo()], "b": [[0, 0, 0.5, 0.5]]}, {"v": [], "b": []}]
    records = [given.encode(row) for row in rows]
    assert given.decode(records[0])["b"].shape == [0, 4]
    assert given.decode(records)["b"].to_list() == [[], [[0, 0, 0.5, 0.5]], []]


def test_the_frames_of_a_video_come_back_as_they_were():
    frames = [photo(), photo()[:, ::-1], photo()[::-1]]
    for options in ("{kind: video, encoding: png}", "{kind: video, encoding: png, shape: [3, 30, 40, 3]}"):
        given = schema(options)
        for value in (frames, np.stack(frames), [image_bytes(frame, "png") for frame in frames]):
            record = given.encode({"f": value})
            np.testing.assert_array_equal(given.decode(record)["f"].numpy(), np.stack(frames))
    batch = schema("{kind: video, encoding: png}").encode_batch({"f": [frames, [photo(4, 6)]]}, 2)
    decoded = schema("{kind: video, encoding: png}").decode(list(batch))["f"]
    assert decoded.shape.as_list() == [2, None, None, None, 3]
    np.testing.assert_array_equal(decoded[1].to_tensor().numpy(), photo(4, 6)[None])


@pytest.mark.parametrize(
    ("options", "value", "expected"),
    [
        ("video", [photo(), photo(31, 40)], "expected frames of one size, [30, 40], got [31, 40] at item 1"),
        ("video", [photo(), b"<html>"], "expected an image, got an HTML page at item 1"),
        ("video", "a.mp4", "expected a list of images, got str 'a.mp4'"),
        ("{kind: video, shape: [2, 30, 40, 3]}", [photo()], "expected 2 frames, got 1"),
        ("{kind: box, format: xyxy}", [[0, 0, 5, 5], [3, 3, 2, 9]], "expected a box xyxy with an area, got [3, 3, 2, 9] at item 1 (is the format right?)"),
        ("{kind: box, format: yxyx}", [[0, 0, 0, 9]], "expected a box yxyx with an area, got [0, 0, 0, 9] at item 0 (is the format right?)"),
        ("{kind: box, format: xywh}", [[0, 0, 3, -1]], "expected a box xywh with an area, got [0, 0, 3, -1] at item 0 (is the format right?)"),
        ("{kind: box, format: xywh}", [[-1, 0, 3, 4]], "expected a box xywh from 0, got [-1, 0, 3, 4] at item 0 (clip it to the image)"),
        ("{kind: box, format: rel_xyxy}", [[0, 0, 0.5, 1.2]], "expected a box rel_xyxy up to 1, got [0, 0, 0.5, 1.2] at item 0 (clip it to the image)"),
        ("{kind: box, format: rel_center_xywh}", [[0.9, 0.5, 0.3, 0.2]], "expected a box rel_center_xywh up to 1, got [0.9, 0.5, 0.3, 0.2] at item 0 (clip it to the image)"),
        ("{kind: box, format: xyxy, size: [480, 640]}", [[0, 0, 640, 481]], "expected a box xyxy up to 640 x 480, got [0, 0, 640, 481] at item 0 (clip it to the image)"),
        ("{kind: box, format: xyxy}", [[0, 0, float("nan"), 1]], "expected a box xyxy of finite numbers, got [0, 0, nan, 1] at item 0"),
        ("{kind: box, format: xyxy}", [[0, 0, 1]], "expected float32 of shape [4], got shape [3] at item 0"),
        ("{kind: label, names: [cat, dog], shape: [null]}", ["cat", "dgo"], "expected one of cat, dog, or an index, got `dgo` at item 1 (did you mean `dog`?)"),
        ("{kind: label, names: [a, bc], shape: [null]}", "a", "expected a list of labels [null], got str 'a'"),
        ("{kind: label, names: [a, bc], shape: [2]}", ["a"], "expected 2 labels, got 1"),
    ],
)  # fmt: skip
def test_a_value_that_does_not_fit_is_refused(options, value, expected):
    assert refusal(options, value) == expected


def test_boxes_at_the_very_edges_are_taken():
    boxes = [[0, 0, 1, 1], [0.1, 0.2, 0.9, 0.8]]
    centred = [[0.95, 0.5, 0.1, 0.2], [1 / 3, 0.5, 2 / 3, 1.0]]
    for options, value in (("rel_yxyx", boxes), ("rel_center_xywh", centred)):
        given = schema(f"{{kind: box, format: {options}}}")
        found = given.decode(given.encode({"f": value}))["f"].numpy()
        np.testing.assert_array_equal(found, np.array(value, np.float32))


SIDES = [f"image/object/bbox/{side}" for side in ("ymin", "xmin", "ymax", "xmax")]


def sides(*numbers: list[float], without: str = "") -> bytes:
    """A record as the TensorFlow Object Detection API writes it."""
    lists = {
        key: tf.train.Feature(float_list=tf.train.FloatList(value=some))
        for key, some in zip(SIDES, numbers, strict=True)
        if key != without
    }
    return tf.train.Example(features=tf.train.Features(feature=lists)).SerializeToString(deterministic=True)


def test_boxes_in_four_lists_are_those_of_the_object_detection_api(tmp_path):
    given = schema(f"{{kind: box, format: rel_yxyx, keys: {SIDES}}}".replace("'", ""))
    two, none = sides([0, 0.5], [0.25, 0], [1, 0.75], [0.5, 1]), sides([], [], [], [])
    boxes = [[0, 0.25, 1, 0.5], [0.5, 0, 0.75, 1]]
    assert given.encode({"f": boxes}) == two
    assert given.encode({"f": []}) == none
    lacking = tf.train.Example().SerializeToString(deterministic=True)
    decoded = given.decode([two, none, lacking])["f"]
    assert decoded.to_list() == [boxes, [], []]
    assert decoded.shape.as_list() == [3, None, 4]
    assert given.decode(two)["f"].numpy().tolist() == boxes
    with pytest.raises(rs.RecordError, match=r"item 1 \(is the format right\?\)"):
        given.encode({"f": [boxes[0], [1, 0, 0, 1]]})
    rs.write(given, [{"f": boxes}, {"f": []}], tmp_path / "data", key=None, progress=False)
    for feature in ("{kind: box, format: rel_yxyx}", f"{{kind: box, format: rel_yxyx, keys: {SIDES[::-1]}}}"):
        with pytest.raises(rs.StoreError, match=r"features\.f\.key"):
            rs.read(schema(feature.replace("'", "")), tmp_path / "data", batch=2)
    assert "keys" not in schema("{kind: box, format: rel_yxyx}").names["f"].stored_options()


@pytest.mark.parametrize("without", ["", SIDES[3]])
def test_four_lists_of_different_lengths_are_never_cut(without, tmp_path):
    given = schema(f"{{kind: box, format: rel_yxyx, keys: {SIDES}}}".replace("'", ""))
    bad = sides([0, 0.5], [0.25, 0], [1, 0.75], [0.5], without=without)
    expected = f"expected 2 items under `{SIDES[3]}`, as under `{SIDES[0]}`, got {0 if without else 1}"
    assert list(map(str, decode_problems(given, bad, in_blocks=False))) == [f"features.f: {expected}"]
    for records in (bad, [bad]):
        with pytest.raises(tf.errors.InvalidArgumentError, match="expected as many numbers under each key"):
            given.decode(records)
    with pytest.raises(rs.RecordError, match=f"as under `{SIDES[0]}`"):
        block_of_records(given, [bad])
    crossed = sides([0, 0.5], [0.25, 0], [1, 0.25], [0.5, 1])  # ymax below ymin, which TensorFlow reads
    path = tmp_path / "x"
    path.write_bytes(framed(crossed) + framed(bad))
    report = check([File(path=path)], given)
    assert {str(one.problem).partition("features.f: ")[2] for one in report.examples} == {
        "expected a box rel_yxyx with an area, got [0.5, 0, 0.25, 1] at item 1 (is the format right?)",
        expected,
    }


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ("{kind: video, shape: [2, 2, 3]}", "expected [frames, height, width, channels], got [2, 2, 3]"),
        ("{kind: video, shape: [0, 2, 2, 3]}", "expected at least 1 frame, got 0"),
        ("{kind: video, shape: [null, 2, 2, 4]}", "expected one of 1, 3 channels for jpeg, got 4"),
        (
            "{kind: box, format: rel_xyxy, size: [4, 4]}",
            "expected none for rel_xyxy, got one (its bounds are 0 and 1)",
        ),
        ("{kind: box, format: xyxy, size: [4]}", "expected [height, width], got [4]"),
        (
            "{kind: box, format: rel_yxyx, keys: [a, b, b, c]}",
            "expected four different keys, in the order of rel_yxyx, got ['a', 'b', 'b', 'c']",
        ),
        ("{kind: box, format: xyxy, key: a, keys: [a, b, c, d]}", "expected none beside `keys`, got `a`"),
        ("{kind: label, names: [a], shape: [2, 2]}", "expected [], [null] or [k], got [2, 2]"),
        (
            "{kind: label, names: [a], vocabulary: b.txt}",
            "expected names, or a vocabulary file of them, got both",
        ),
        (
            "{kind: var_len, dtype: int64, with_length: true}",
            "expected false unless `as: dense`, got true (a ragged value knows it)",
        ),
        (
            "{dtype: int64, with_missing: true}",
            "expected false without a default, got true (no value is ever missing)",
        ),
        ("{kind: image, resize: [4]}", "expected [height, width] of at least 1, got [4]"),
        ("{kind: image, resize: {size: [4, 0]}}", "expected [height, width] of at least 1, got [4, 0]"),
        ("{kind: audio, sample_rate: 8000, resample: 0}", "expected at least 1, got 0"),
        (
            "{kind: audio, sample_rate: 44100, resample: 44101}",
            "expected a rate that has a large divisor in common with 44100, got 44101",
        ),
    ],
)
def test_options_that_do_not_go_together_are_refused(options, expected):
    with pytest.raises(rs.SpecError) as caught:
        schema(options)
    assert str(caught.value).split(": ", 2)[2] == expected


def test_names_come_from_a_vocabulary_and_stay_with_the_schema(tmp_path):
    (tmp_path / "words.txt").write_text("\ufeffcat\r\ndog\r\n\u00e9t\u00e9", encoding="utf-8")
    (tmp_path / "s.yaml").write_text("schema: s\nfeatures:\n  f: {kind: label, vocabulary: words.txt}\n")
    given = rs.Schema.load(tmp_path / "s.yaml")
    assert given.names["f"].names == ("cat", "dog", "\u00e9t\u00e9")
    assert given == schema("{kind: label, names: [cat, dog, \u00e9t\u00e9]}")
    assert rs.Schema.loads(given.dump()) == given
    manifest = rs.write(given, [{"f": "dog"}, {"f": 2}], tmp_path / "data")
    assert manifest.labels == {"f": ("cat", "dog", "\u00e9t\u00e9")}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a\nb\na\n", "expected every name once, got {path}:3: `a`, which line 1 has"),
        ("a\n\nb\n", "expected a name on every line, got {path}:2: an empty one"),
        ("", "expected at least one name, got {path}: none"),
        (b"a\n\xff\n", "expected UTF-8 text, got {path}: the byte 0xff at position 2"),
        (None, "{path}: cannot read: no such file or directory"),
    ],
)
def test_a_vocabulary_that_is_wrong_is_named_with_its_line(tmp_path, text, expected):
    path = tmp_path / "words.txt"
    if text is not None:
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
    (tmp_path / "s.yaml").write_text("schema: s\nfeatures:\n  f: {kind: label, vocabulary: words.txt}\n")
    with pytest.raises(rs.SpecError) as caught:
        rs.Schema.load(tmp_path / "s.yaml")
    place = f"{tmp_path}/s.yaml:3:32: features.f.vocabulary"
    assert str(caught.value) == f"{place}: {expected.format(path=path)}"


def test_a_vocabulary_is_in_the_folder_of_the_schema(tmp_path):
    (tmp_path / "secret.txt").write_text("a\n")
    (tmp_path / "schemas").mkdir()
    for name in ("../secret.txt", str(tmp_path / "secret.txt")):
        (tmp_path / "schemas/s.yaml").write_text(
            f"schema: s\nfeatures:\n  f: {{kind: label, vocabulary: {name}}}\n"
        )
        with pytest.raises(rs.SpecError, match=r"expected a file in .*schemas, got `.*secret.txt`"):
            rs.Schema.load(tmp_path / "schemas/s.yaml")
    with pytest.raises(rs.SpecError, match="expected a schema that is read from a file, got text"):
        schema("{kind: label, vocabulary: words.txt}")


def test_indices_are_names_again():
    label = schema("{kind: label, names: [a, b], oov: index}").names["f"]
    indices = tf.ragged.constant([[0, 1], [], [2]], dtype=tf.int64)
    assert label.names_of(indices).to_list() == [[b"a", b"b"], [], [b"<oov>"]]
    assert label.names_of(tf.constant(1)).numpy() == b"b"
    in_graph = tf.data.Dataset.range(2).map(label.names_of)
    assert [name.numpy() for name in in_graph] == [b"a", b"b"]
    with pytest.raises(tf.errors.InvalidArgumentError):
        label.names_of(tf.constant(3))


def test_padding_has_no_name_unless_it_is_an_index():
    padded = tf.constant([[0, 1], [1, -1]], tf.int64)
    label = schema("{kind: label, names: [a, b], shape: [null]}").names["f"]
    assert label.padding == {"f": -1}
    assert label.names_of(padded).numpy().tolist() == [[b"a", b"b"], [b"b", b""]]
    assert label.names_of(tf.ragged.constant([[-1], []], dtype=tf.int64)).to_list() == [[b""], []]
    with pytest.raises(tf.errors.InvalidArgumentError):
        label.names_of(tf.constant([-2]))
    label = schema("{kind: label, names: [a, b], pad: 1}").names["f"]
    assert label.names_of(tf.constant([1, 0])).numpy().tolist() == [b"b", b"a"]
    with pytest.raises(tf.errors.InvalidArgumentError):
        label.names_of(padded)


NAMES = ["a", "bc", "\u00e9t\u00e9", ""]
LABELS = st.one_of(
    *(st.sampled_from(known) for known in (NAMES, [one.encode() for one in NAMES], range(4))),
    st.sampled_from(
        [
            "x",
            b"x",
            b"\xff",
            -1,
            4,
            2**70,
            True,
            None,
            1.0,
            float("nan"),
            (),
            [],
            np.str_("a"),
        ]
    ),
)


@given(
    st.lists(LABELS, max_size=5) | st.lists(st.sampled_from(NAMES)) | st.lists(st.integers(-1, 5)),
    st.booleans(),
)
def test_labels_are_the_same_in_every_container(values, oov):
    """A batch of them is converted at once, in several ways."""
    label = Label(name="f", names=tuple(NAMES), oov="index" if oov else "error")
    expected = [index_of(one, oov) for one in values]
    if None in expected:
        expected = f"bad value {expected.index(None)}"
    objects = np.empty(len(values), object)
    objects[:] = values
    containers = [values, tuple(values), objects]
    if values and all(type(one) is str for one in values):
        names = strings_array([one.encode() for one in values])
        containers += [names, names.dictionary_encode()]
        if "" not in values:
            containers.append(np.array(values))
    if values and all(type(one) is int and one < 2**63 for one in values):
        containers.append(np.array(values))
    for container in containers:
        try:
            found = flat_of(label.encode(container)[0]).tolist()
        except BadValue as bad:
            found = f"bad value {bad.index}"
        assert found == expected


def index_of(value, oov: bool) -> int | None:
    """The index of a label, by what the page says; None if it is refused."""
    if type(value) is bytes:
        try:
            value = value.decode()
        except UnicodeDecodeError:
            return None
    if isinstance(value, str):
        return NAMES.index(str(value)) if value in NAMES else 4 if oov else None
    return value if type(value) is int and 0 <= value < 4 + oov else None


def test_out_of_vocabulary_has_an_index_of_its_own():
    given = schema("{kind: label, names: [a, b], shape: [null], oov: index}")
    assert given.decode(given.encode({"f": ["zzz", "a", "b", 2, 0]}))["f"].numpy().tolist() == [2, 0, 1, 2, 0]


def test_the_length_of_a_padded_list_is_told():
    given = schema("{kind: var_len, dtype: int64, as: dense, pad: 7, with_length: true}")
    decoded = given.decode(given.encode_batch({"f": [[7], [], [1, 7]]}, 3))
    assert decoded["f"].numpy().tolist() == [[7, 7], [7, 7], [1, 7]]
    assert decoded["f_length"].numpy().tolist() == [1, 0, 2]


def test_what_is_missing_is_told():
    """In rows and in blocks, where TensorFlow's parse dictionary has the default alone."""
    given = schema("{dtype: int64, shape: [2], default: [7, 8], with_missing: true}")
    assert str(given.parse_dict()["f"]) == (
        "FixedLenFeature(shape=[2], dtype=tf.int64, default_value=[7, 8])"
    )
    columns = {"f": [[1, 2], None, [7, 8]]}
    for decoded in (
        given.decode(given.encode_batch(columns, 3)),
        given.decode_block(given.encode_block(columns, 3)),
    ):
        assert decoded["f"].numpy().tolist() == [[1, 2], [7, 8], [7, 8]]
        assert decoded["f_missing"].numpy().tolist() == [False, True, False]
    longer = tf.train.Example()
    longer.features.feature["f"].int64_list.value.extend([1, 2, 3, 4])
    with pytest.raises(tf.errors.InvalidArgumentError, match="expected one value, or none"):
        given.decode([longer.SerializeToString()])


def test_text_names_the_byte_that_is_no_utf8():
    rows = {"f": ["ok", b"caf\xe9 au lait"]}
    with pytest.raises(rs.RecordError) as caught:
        schema("text").encode_batch(rows, 2)
    assert str(caught.value) == "row 1: features.f: expected UTF-8 text, got the byte 0xe9 at position 3"


def test_frames_of_another_dtype_do_not_change_those_of_other_rows():
    frames = np.zeros((2, 2, 2, 3), np.uint8)
    with pytest.raises(rs.RecordError) as caught:
        schema("{kind: video, encoding: png}").encode_batch({"f": [frames, frames.astype(np.uint16)]}, 2)
    assert caught.value.row == 1


def test_another_quality_is_no_other_image(tmp_path):
    written = schema("{kind: image, encoding: jpeg, quality: 80}")
    rs.write(written, [{"f": photo()}], tmp_path / "data")
    (batch,) = rs.read(schema("{kind: image, encoding: jpeg}"), tmp_path / "data", batch=1)
    assert batch["f"].shape[0] == 1
    with pytest.raises(rs.StoreError, match=r"features\.f\.encoding: expected `jpeg`, .* got `png`"):
        rs.read(schema("{kind: image, encoding: png}"), tmp_path / "data", batch=1)


# Encodes values in every encoding that there is, twice, and prints a hash of the bytes of each.
ENCODE_ALL = """
import hashlib
from typing import get_args

import numpy as np

from recordspec.schema.features.audio import Audio
from recordspec.schema.features.image import Image
from recordspec.schema.features.tensor import AnyTensor
from recordspec.schema.features.video import Video
from recordspec.schema.media.images import ImageEncoding
from recordspec.schema.media.sounds import SoundEncoding
from recordspec.wire import arrays

rng = np.random.default_rng(0)
pixels = rng.integers(0, 2, (3, 40, 50, 3), np.uint8) * np.uint8(255)  # of 8 colours, for GIF
deep = pixels[0].astype(np.uint16) * 257
samples = rng.normal(0, 0.1, (40_000, 2)).clip(-1, 1).astype(np.float32)
values = [
    *((Image(name=f"image {e}", shape=(40, 50, 3), encoding=e), pixels[0]) for e in get_args(ImageEncoding)),
    *((Image(name=f"deep {e}", shape=(40, 50, 3), encoding=e, dtype="uint16"), deep) for e in ("png", "raw")),
    *((Video(name=f"video {e}", shape=(3, 40, 50, 3), encoding=e), pixels) for e in get_args(ImageEncoding)),
    *(
        (Audio(name=f"audio {e}", sample_rate=8000, channels=2, encoding=e), samples)
        for e in get_args(SoundEncoding)
    ),
    (AnyTensor(name="zlib", dtype="float32", shape=samples.shape, encoding="zlib"), samples),
]
for _ in range(2):
    for feature, value in values:
        (column,) = feature.encode([value])
        print(feature.name, hashlib.sha256(arrays.buffer_of(arrays.flat_of(column))).hexdigest())
"""


def test_every_encoder_gives_equal_bytes_in_every_process():
    """The hash of a row without a key is its place in the order, and its split."""
    command = [sys.executable, "-c", ENCODE_ALL]
    processes = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    one, other = (process.communicate()[0].splitlines() for process in processes)
    assert len(one) == 2 * len(set(one)) == 2 * 20
    assert one[:20] == one[20:] == other[:20] == other[20:]
