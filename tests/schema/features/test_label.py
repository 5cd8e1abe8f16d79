"""Labels: names of a schema or a vocabulary, their indices, and back."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import recordspec as rs
from examples import example
from one_feature import schema
from recordspec._tf import tf
from recordspec.schema.features.label import Label
from recordspec.schema.values import BadValue
from recordspec.wire.arrays import flat_of, strings_array


def test_names_come_from_a_vocabulary_and_stay_with_the_schema(tmp_path):
    (tmp_path / "words.txt").write_text("\ufeffcat\r\ndog\r\n\u00e9t\u00e9", encoding="utf-8")
    (tmp_path / "s.yaml").write_text("schema: s\nfeatures:\n  f: {kind: label, vocabulary: words.txt}\n")
    given = rs.Schema.load(tmp_path / "s.yaml")
    assert given.names["f"].names == ("cat", "dog", "\u00e9t\u00e9")
    assert given == schema("{kind: label, names: [cat, dog, \u00e9t\u00e9]}")
    assert rs.Schema.loads(given.dump()) == given
    manifest = rs.write([{"f": "dog"}, {"f": 2}], given, tmp_path / "data")
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
    perhaps = replace(label, missing=True)
    assert perhaps.names_of(tf.constant([-1, 0, 1])).numpy().tolist() == [b"", b"a", b"b"]
    with pytest.raises(tf.errors.InvalidArgumentError):
        label.names_of(padded)


@pytest.mark.parametrize("encoding", ["index", "name"])
def test_a_missing_label_is_no_class(encoding):
    made = schema(f"{{kind: label, names: [a, b], missing: true, encoding: {encoding}}}")
    rows = [{"f": "b"}, {}, {"f": None}, {"f": "a"}]
    rows += [{"f": -1}] if encoding == "index" else []  # as TFDS gives and stores it
    stored = [made.encode(row) for row in rows]
    wanted = [1, -1, -1, 0, -1][: len(rows)]
    decoded = made.decode_numpy(stored)
    assert decoded["f"].tolist() == wanted
    assert decoded["f_missing"].tolist() == [index < 0 for index in wanted]
    label = made.names["f"]
    names = label.names_of(tf.constant(wanted, tf.int64)).numpy().tolist()
    assert names == [b"b", b"", b"", b"a", b""][: len(rows)]
    for bad in (2, -2, "c", *((-1,) if encoding == "name" else ())):
        with pytest.raises(rs.RecordError, match=r"features.f: expected (an index from 0 to 1|one of )"):
            made.encode({"f": bad})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("shape: [null], missing: true", "features.f.missing: expected `true` for one label alone, got shape [null]"),
        ("missing: false", "features.f.missing: expected `true`, `error` or `empty`, got `false`"),
    ],
)  # fmt: skip
def test_other_forms_of_missing_are_refused(options, message):
    with pytest.raises(rs.SpecError) as caught:
        schema(f"{{kind: label, names: [a, b], {options}}}")
    assert message in str(caught.value)
    with pytest.raises(rs.SpecError, match=r"features.f.missing: "):
        schema("{dtype: int64, missing: true}")
    steps = "schema: s\nrecord: sequence_example\nsequence: {f: {kind: label, names: [a], missing: true}}"
    with pytest.raises(rs.SpecError, match=r"sequence.f.missing: expected none in steps, got `true`"):
        rs.Schema.loads(steps)


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


# The names, the numbers that are the name and the index of one class, and what is said of others.
DIGITS = [
    (("a", "b"), {0: 0, 1: 1}, {2: "an index from 0 to 1, got 2"}),
    (("0", "1", "2"), {0: 0, 1: 1, 2: 2}, {3: "an index from 0 to 2, got 3"}),
    (
        ("1", "2", "3"),
        {},
        {
            0: "a name as text, as names consist of digits, got the number 0 (it is the index of `1`)",
            2: "a name as text, as names consist of digits, got the number 2 (it is the name of class 1 or the index of `3`)",
            3: "a name as text, as names consist of digits, got the number 3 (it is the name of class 2)",
            -1: "a name as text, as names consist of digits, got the number -1",
        },
    ),
    (("01", "02"), {}, {1: "a name as text, as names consist of digits, got the number 1 (it is the index of `02`)"}),
    (("0", "3", "2"), {0: 0, 2: 2}, {1: "a name as text, as names consist of digits, got the number 1 (it is the index of `3`)"}),
]  # fmt: skip


@pytest.mark.parametrize(("names", "taken", "refused"), DIGITS, ids=lambda value: str(value)[:12])
def test_a_number_is_the_index_of_a_class_only_if_no_name_says_otherwise(names, taken, refused):
    feature = Label(name="f", names=names)
    given = rs.Schema(name="s", features=(feature,))
    for number, index in taken.items():
        for value in (number, np.int64(number), np.uint8(number)):
            assert given.encode({"f": value}) == example({"f": ("int64", [index])})
        (array,) = feature.encode(np.array([number] * 3))
        assert flat_of(array).tolist() == [index] * 3
        assert feature.encode_one(number) == (index,)
    for number, message in refused.items():
        for value in (number, np.int64(number)):
            with pytest.raises(rs.RecordError) as error:
                given.encode({"f": value})
            assert str(error.value) == f"row 0: features.f: expected {message}"
        with pytest.raises(BadValue):
            feature.encode(np.array([number] * 3))
        with pytest.raises(BadValue):
            feature.encode(pa.array([number]).dictionary_encode())
        assert feature.encode_one(number) is None
    for index, name in enumerate(names):  # text is a name in any case
        assert given.encode({"f": name}) == example({"f": ("int64", [index])})
        assert not list(feature.invalid_stored(pa.array([index])))
    assert [rows.tolist() for rows, _ in feature.invalid_stored(pa.array([0, len(names), -1]))] == [[1, 2]]


def test_floats_that_are_classes_are_indices():
    """As Earth Engine stores classes. Both readers refuse a fraction by name."""
    made = schema("{kind: label, names: [water, soil, tree], encoding: float}")
    records = [example({"f": ("float32", [value])}) for value in (0.0, 2.0, 1.0)]
    assert [made.encode({"f": one}) for one in ("water", 2.0, 1)] == records
    indices = [0, 2, 1]
    assert made.decode_numpy(records)["f"].tolist() == indices
    assert made.decode(tf.constant(records))["f"].numpy().tolist() == indices

    fraction, refused = example({"f": ("float32", [1.5])}), "f: expected an index from 0 to 2, got 1.5"
    with pytest.raises(rs.RecordError, match=refused):
        made.decode_numpy([fraction])
    with pytest.raises(tf.errors.InvalidArgumentError, match=refused):
        made.decode(tf.constant([fraction]))


@pytest.mark.parametrize(
    ("given", "row", "got"),
    [
        (np.array([0.0, 1.5]), 1, "float 1.5"),
        ([2.0, 0.5], 1, "float 0.5"),
        (pa.array([1.0, np.inf]).to_numpy(), 1, "float inf"),
        (["a", -1.0], 1, "-1"),
    ],
)
def test_floats_that_are_no_classes_are_named(given, row, got):
    label = Label(name="f", names=("a", "b", "c"), encoding="float")
    with pytest.raises(BadValue) as caught:
        label.encode(given)
    assert (caught.value.index, caught.value.problem.got) == (row, got)
    with pytest.raises(BadValue) as caught:
        replace(label, encoding="index").encode([1.0])
    assert caught.value.problem.hint == "`encoding: float` takes whole floats as indices"


@pytest.mark.parametrize(("shape", "kind"), [("[null]", "var_len"), ("[2]", "fixed_len")])
def test_a_list_of_labels_has_no_missing_item(shape, kind):
    made = schema(f"{{kind: label, names: [a, b], shape: {shape}}}")
    hint = f"(a list of labels has no missing item: `kind: {kind}` with `dtype: int64` reads -1 as a number)"
    with pytest.raises(rs.RecordError) as caught:
        made.encode({"f": ["a", -1]})
    assert str(caught.value).endswith(f"expected an index from 0 to 1, got -1 at item 1 {hint}")
    ((_, problem),) = made.names["f"].invalid_stored(pa.array([[0, -1]], pa.large_list(pa.int64())))
    assert str(problem(0)) == f"expected an index from 0 to 1, got -1 {hint}"
