"""TensorFlow Metadata, in and out: what it says is kept, and what is not kept is told."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest
import tensorflow as tf
from google.protobuf import text_format
from hypothesis import given
from hypothesis import strategies as st

import recordspec as rs
from instances import CASES
from recordspec.foreign import tfmd
from recordspec.foreign.notes import Note
from recordspec.foreign.tfmd import parsing
from recordspec.foreign.tfmd.declared import classes
from recordspec.foreign.tfmd.reading import read_schema
from recordspec.foreign.tfmd.writing import write_schema
from recordspec.inspect.check import check
from recordspec.spec.features.fixed_len import FixedLen
from recordspec.spec.features.ragged import RaggedLists
from recordspec.spec.features.sparse import SparseValues
from recordspec.spec.features.tensor import AnyTensor
from recordspec.spec.features.text import Text
from recordspec.spec.features.var_len import VariableLen
from recordspec.spec.plain import shallow
from recordspec.store.files import known
from recordspec.store.shards import expand

DATA = Path(__file__).parents[2].parent / "shared/data"


def parsed(text: str):
    return text_format.Parse(text, classes()["Schema"]())


def told(text: str) -> tuple[dict, list[str]]:
    """The features of a schema by name, and the notes."""
    loaded, notes = tfmd.loads(text)
    return loaded.names, [str(note) for note in notes]


def without(message, notes):
    """A message less all that the notes name."""
    for note in notes:
        *path, field = note.path
        at = message
        for part in path:
            at = _inside(at, part)
        at.ClearField(field)
    return message


def _inside(at, part):
    if part == "feature" or not hasattr(at, "append"):
        return (
            getattr(at, part)
            if part in at.DESCRIPTOR.fields_by_name
            else _child(at.struct_domain.feature, part)
        )
    return _child(at, part)


def _child(features, name):
    return next(one for one in features if one.name == name)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_what_is_said_of_a_feature_is_kept(case):
    """Ours, there and back, says the same there, but for what the notes of the way back name."""
    text, _ = tfmd.dumps(case.schema)
    back, notes = tfmd.loads(text)
    assert write_schema(back) == without(parsed(text), notes)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_what_comes_back_has_the_same_columns(case):
    back, _ = tfmd.loads(tfmd.dumps(case.schema)[0])
    ours = [(column.key, column.storage) for column in case.schema.columns(case.section)]
    theirs = [(column.key, column.storage) for column in back.columns(case.section)]
    assert ours == theirs
    (feature,) = back.names.values()
    assert feature.name == case.feature.name


@pytest.mark.parametrize("case", CASES, ids=str)
def test_what_comes_back_reads_the_records(case):
    """The same bytes can be decoded with it."""
    back, _ = tfmd.loads(tfmd.dumps(case.schema)[0])
    decoded = back.decode(case.records)
    assert decoded.keys() == {case.feature.name}


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_notes_name_every_difference(case):
    text, notes = tfmd.dumps(case.schema)
    (mine,), (theirs,) = case.schema.names.values(), tfmd.loads(text)[0].names.values()
    found = [note for note in notes if note.path != ("schema",)]
    assert {note.path[:2] for note in found} <= {(case.section, mine.name)}
    if mine.kind != theirs.kind:
        (note,) = found
        assert note.text.startswith(f"kind {mine.kind} is said as {theirs.kind}, by what it stores")
        return
    differing = {name for name, value in shallow(mine).items() if value != shallow(theirs)[name]}
    if mine.columns() == theirs.columns():
        differing -= {"encoding"}  # it says what holds without it
    assert {note.path[2] for note in found} == differing


ALWAYS = "presence {min_fraction: 1}"


@pytest.mark.parametrize(
    ("said", "feature"),
    [
        (f"type: INT {ALWAYS} shape {{}}", FixedLen(name="a", dtype="int64")),
        (f"type: INT {ALWAYS} value_count {{min: 1 max: 1}}", FixedLen(name="a", dtype="int64")),
        (
            f"type: FLOAT {ALWAYS} value_count {{min: 3 max: 3}}",
            FixedLen(name="a", dtype="float32", shape=(3,)),
        ),
        (
            f"type: BYTES {ALWAYS} shape {{dim {{size: 2}} dim {{size: 3}}}}",
            FixedLen(name="a", dtype="string", shape=(2, 3)),
        ),
        ("type: BYTES", VariableLen(name="a", dtype="string")),
        ("type: BYTES value_count {max: 4}", VariableLen(name="a", dtype="string", max_length=4)),
        (f"type: INT {ALWAYS} shape {{}} bool_domain {{}}", AnyTensor(name="a", dtype="bool")),
        ("type: INT int_domain {min: 0 max: 255}", AnyTensor(name="a", dtype="uint8", shape=(None,))),
        ('type: INT domain: "small"', AnyTensor(name="a", dtype="int8", shape=(None,))),
        (f"type: BYTES {ALWAYS} shape {{}} natural_language_domain {{}}", Text(name="a")),
        (
            f'type: INT {ALWAYS} shape {{}} annotation {{comment: "how many"}}',
            FixedLen(name="a", dtype="int64", description="how many"),
        ),
    ],
)
def test_a_feature(said, feature):
    features, notes = told(f'feature {{name: "a" {said}}} int_domain {{name: "small" min: -128 max: 127}}')
    assert features == {"a": feature}
    assert notes == ([] if "small" in said else ["int_domain.small: no feature has it"])


@pytest.mark.parametrize(
    ("said", "note"),
    [
        ("presence {min_count: 3}", "presence: min_count: 3: in how many records it is, is not checked"),
        (
            "value_count {min: 1 max: 4}",
            "value_count.min: 1: how many values it has at least, is not checked",
        ),
        ('domain: "d"', "domain: 'd': values are not restricted to it"),
        ("int_domain {min: 1 max: 9}", "int_domain: min: 1 max: 9: the range is not checked"),
        ('bool_domain {true_value: "y"}', 'bool_domain: true_value: "y": has no counterpart'),
        ("lifecycle_stage: BETA", "lifecycle_stage: BETA: has no counterpart"),
        (
            "shape {dim {size: 2}}",
            "shape: dim { size: 2 }: it is not said that every record has it, or a size is unknown: read as a list",
        ),
        (
            f'{ALWAYS} shape {{dim {{size: 2 name: "x"}}}}',
            'shape: dim { name: "x" }: the names of dimensions have no counterpart',
        ),
        (
            "value_counts {value_count {max: 1}}",
            "value_counts: value_count { max: 1 }: lists in lists are read flat"
            " (a tensor representation says how they are stored)",
        ),
        ("drift_comparator {}", "drift_comparator: : has no counterpart"),
        ('in_environment: "x"', "in_environment: 'x': has no counterpart"),
    ],
)
def test_what_has_no_counterpart_is_noted(said, note):
    _, notes = told(f'feature {{name: "a" type: INT {said}}}')
    assert notes == [f"feature.a.{note}"]


@pytest.mark.parametrize(
    ("said", "note"),
    [
        ("type: INT lifecycle_stage: DEPRECATED", "DEPRECATED: left out, as TFX leaves it out"),
        ("type: INT deprecated: true", "deprecated: left out, as TFX leaves it out"),
        ("type: STRUCT struct_domain {}", "no list of bytes, integers or floats: left out"),
        ("", "no list of bytes, integers or floats: left out"),
    ],
)
def test_a_feature_that_is_left_out_is_noted(said, note):
    features, notes = told(f'feature {{name: "a" type: INT}} feature {{name: "b" {said}}}')
    assert list(features) == ["a"]
    assert notes == [f"feature.b: {note}"]


def test_sparse_and_weighted_features():
    features, notes = told(
        """
feature {name: "v" type: FLOAT} feature {name: "i" type: INT int_domain {min: 0 max: 9}}
sparse_feature {name: "s" index_feature {name: "i"} value_feature {name: "v"} is_sorted: true}
feature {name: "w" type: FLOAT} feature {name: "j" type: INT}
weighted_feature {name: "vw" feature {step: "v"} weight_feature {step: "w"}}
sparse_feature {name: "t" index_feature {name: "j"} value_feature {name: "w"}}
"""
    )
    assert list(features.values()) == [
        SparseValues(name="s", key="v", dtype="float32", size=10, index_keys=("i",)),
        VariableLen(name="w", dtype="float32"),
        VariableLen(name="j", dtype="int64"),
    ]
    assert notes == [
        "sparse_feature.s.is_sorted: true: has no counterpart",
        'sparse_feature.t: name: "t" index_feature { name: "j" } value_feature { name: "w" }:'
        " its size is not said: its features are read, each by itself",
        'weighted_feature.vw: name: "vw" feature { step: "v" } weight_feature { step: "w" }:'
        " both features are read, each by itself",
    ]


def test_tensor_representations():
    features, notes = told(
        """
feature {name: "a" type: INT} feature {name: "n" type: INT} feature {name: "d" type: BYTES}
tensor_representation_group {
  key: ""
  value {
    tensor_representation {
      key: "lists"
      value {
        ragged_tensor {
          feature_path {step: "a"} partition {row_length: "n"} partition {uniform_row_length: 2}
          row_partition_dtype: INT32
        }
      }
    }
    tensor_representation {
      key: "odd"
      value {ragged_tensor {feature_path {step: "a"} partition {uniform_row_length: 2} partition {row_length: "n"}}}
    }
    tensor_representation {key: "gone" value {varlen_sparse_tensor {column_name: "none"}}}
    tensor_representation {
      key: "dense"
      value {dense_tensor {column_name: "d" shape {dim {size: 2}} default_value {bytes_value: "?"}}}
    }
  }
}
tensor_representation_group {
  key: "other"
  value {tensor_representation {key: "x" value {varlen_sparse_tensor {column_name: "a"}}}}
}
"""
    )
    assert list(features.values()) == [
        RaggedLists(name="lists", key="a", dtype="int64", shape=(None, None, 2), row_lengths=("n",)),
        FixedLen(name="dense", key="d", dtype="string", shape=(2,), default=("?", "?")),
    ]
    assert notes == [
        'tensor_representation_group."".lists: row partitions of INT32: they are int64 here',
        'tensor_representation_group."".odd: ragged_tensor { feature_path { step: "a" } partition'
        " { uniform_row_length: 2 ...: has no counterpart",
        'tensor_representation_group."".gone: varlen_sparse_tensor { column_name: "none" }: has no counterpart',
        'tensor_representation_group.other.x: varlen_sparse_tensor { column_name: "a" }: has no counterpart',
    ]


def test_a_legacy_feature_spec_has_the_defaults_of_tfx():
    text = """
generate_legacy_feature_spec: true
feature {name: "a" type: INT value_count {min: 1 max: 1}}
feature {name: "b" type: BYTES value_count {min: 2 max: 2}}
"""
    features, notes = told(text)
    assert list(features.values()) == [
        FixedLen(name="a", dtype="int64", default=-1),
        FixedLen(name="b", dtype="string", shape=(2,), default=("", "")),
    ]
    assert notes == []
    assert told(text.replace("true", "false"))[0]["a"] == VariableLen(name="a", dtype="int64", max_length=1)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "<text>: expected a feature that can be read, got none"),
        (
            'feature {name: "a" tipe: INT}',
            "<text>: expected a feature that can be read, got none"
            " (feature.a: no list of bytes, integers or floats: left out)",
        ),
        (
            'feature {name: "a"\n type: INTT}',
            "<text>:2:8: expected a schema of TensorFlow Metadata, as text, got"
            ' Enum type "FeatureType" has no value named INTT.',
        ),
        (
            'feature {name: "a" type: INT} feature {name: "a" type: INT}',
            "<text>: feature: expected every name once, got `a` again",
        ),
        (
            'feature {name: "a" type: INT presence {min_fraction: 1} shape {dim {size: 9999999999999}}}',
            "<text>: feature.a.shape: expected fewer than 2,147,483,648 values, got [9999999999999]",
        ),
        (
            "generate_legacy_feature_spec: true"
            ' feature {name: "a" type: INT value_count {min: 9999999999999 max: 9999999999999}}',
            "<text>: feature.a.default: expected a default of at most 1,048,576 values, got 9,999,999,999,999",
        ),
    ],
)
def test_what_is_no_schema_is_refused(text, message):
    with pytest.raises(rs.SpecError) as error:
        tfmd.loads(text)
    assert str(error.value) == message


def test_fields_of_other_releases_are_noted(tmp_path):
    text = '# of: {a comment}\nfeature {name: "a {" type: INT future {x: 1}} novel: "b: {"'
    expected = ["future", "x", "novel"]
    assert told(text)[1] == [f"{name}: a field that is not known here: passed over" for name in expected]
    (tmp_path / "schema.pb").write_bytes(
        parsed('feature {name: "a" type: INT}').SerializeToString() + b"\xb8\x3e\x07"
    )
    schema, notes = tfmd.load(tmp_path / "schema.pb")
    assert schema.names == {"a": VariableLen(name="a", dtype="int64")}
    path = ("field 999",)
    assert notes == (Note(path=path, text="a field that is not known here: passed over"),)


def test_files_that_cannot_be_read_are_named(tmp_path):
    path = tmp_path / "schema.pbtxt"
    with pytest.raises(rs.StoreError, match=r"schema\.pbtxt: expected a readable file, got No such file"):
        tfmd.load(path)
    path.write_bytes(b"\xff")
    with pytest.raises(
        rs.SpecError, match=r"schema\.pbtxt: expected UTF-8 text, got the byte 0xff at position 0"
    ):
        tfmd.load(path)
    path.with_suffix(".pb").write_bytes(b"\xff")
    with pytest.raises(rs.SpecError, match="as bytes, got 1 bytes that are none"):
        tfmd.load(path.with_suffix(".pb"))


def test_two_features_of_one_key_cannot_be_said():
    schema = rs.Schema.loads("schema: s\nfeatures: {a: int64, b: {dtype: int64, key: a}}")
    with pytest.raises(
        rs.SpecError, match=r"features\.b\.key: expected a key of its own, to be written, got `a`"
    ):
        tfmd.dumps(schema)


@given(st.lists(st.sampled_from(CASES), min_size=1, max_size=6, unique_by=lambda case: case.feature.name))
def test_schemas_of_many_features_keep_what_is_said(cases):
    """As each feature alone: what one is said to be does not depend on the others."""
    cases = [case for case in cases if case.section == "features"]
    stored = [column.key for case in cases for column in case.feature.columns()]
    if not cases or len(stored) != len(set(stored)):
        return
    schema = rs.Schema(name="s", features=tuple(case.feature for case in cases))
    back, _ = tfmd.loads(tfmd.dumps(schema)[0])
    alone = [tfmd.loads(tfmd.dumps(case.schema)[0])[0].names[case.feature.name] for case in cases]
    assert list(back.features) == alone


@given(st.text(max_size=200) | st.text(alphabet='feature{}:"type INT123<>[]#\n', max_size=200))
def test_any_text_is_a_schema_or_refused(text):
    with contextlib.suppress(rs.SpecError):
        tfmd.loads(text)


@given(st.binary(max_size=200))
def test_any_bytes_are_a_schema_or_refused(data):
    with contextlib.suppress(rs.SpecError):
        read_schema(parsing.binary(data, "")[0], "s", "")


def by_shape(message):
    """A schema whose counts of one number are said as shapes, and whose lists are said to be ragged."""
    message.represent_variable_length_as_ragged = True
    for feature in message.feature:
        if feature.value_count.min == feature.value_count.max == 1:
            feature.ClearField("value_count")
            feature.shape.SetInParent()
    return message


TAXI = DATA / "taxi"
taxi = pytest.mark.skipif(not TAXI.exists(), reason="the foreign data is not beside this checkout")


@taxi
def test_the_schema_of_the_taxi_trips_comes_back():
    schema, notes = tfmd.load(TAXI / "schema.pbtxt")
    assert len(schema.features) == 18
    assert len(notes) == 12
    original = without(parsed((TAXI / "schema.pbtxt").read_text()), notes)
    original.ClearField("string_domain")  # whose features are noted
    assert write_schema(schema) == by_shape(original)


@taxi
def test_the_taxi_trips_are_read_with_their_schema(tmp_path):
    """It calls three features INT that the records hold as floats: they are read once it says FLOAT."""
    floats = ("dropoff_census_tract", "dropoff_community_area", "trip_seconds")
    files = str(TAXI / "*.gz")
    schema, _ = tfmd.load(TAXI / "schema.pbtxt")
    report = check(known(expand(files), schema), schema)
    wrong = {path[-1]: (code, group.found) for (path, code), group in report.groups.items()}
    assert wrong == dict.fromkeys(floats, ("kind", {"float32"}))
    text = (TAXI / "schema.pbtxt").read_text()
    for name in floats:
        text = text.replace(f'name: "{name}"\n  type: INT', f'name: "{name}"\n  type: FLOAT')
    schema, _ = tfmd.loads(text)
    (found,) = rs.read(schema, files, batch=20_000)
    assert len(found) == 18
    assert {int(tf.shape(values)[0]) for values in found.values()} == {15_000}
    missing = {name: int((found[name].row_lengths() == 0).numpy().sum()) for name in (*floats, "company")}
    assert missing == {
        "dropoff_census_tract": 4239,
        "dropoff_community_area": 504,
        "trip_seconds": 6,
        "company": 5140,
    }
