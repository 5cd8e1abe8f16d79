"""Schemas of TensorFlow Metadata, read: each feature, what has no counterpart, and what is no schema."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tfmd_text import imported, parsed

import recordspec as rs
from recordspec.interop import tfmd
from recordspec.interop.notes import Note
from recordspec.interop.tfmd.importer import import_schema
from recordspec.interop.tfmd.proto import parse_binary
from recordspec.schema.features.fixed_len import FixedLen
from recordspec.schema.features.ragged import RaggedLists
from recordspec.schema.features.sparse import SparseValues
from recordspec.schema.features.tensor import AnyTensor
from recordspec.schema.features.text import Text
from recordspec.schema.features.var_len import VariableLen

ALWAYS = "presence {min_fraction: 1}"


@pytest.mark.parametrize(
    ("options", "feature"),
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
def test_a_feature(options, feature):
    features, notes = imported(
        f'feature {{name: "a" {options}}} int_domain {{name: "small" min: -128 max: 127}}'
    )
    assert features == {"a": feature}
    assert notes == ([] if "small" in options else ["int_domain.small: not used by any feature"])


@pytest.mark.parametrize(
    ("options", "note"),
    [
        (
            "presence {min_count: 3}",
            "presence: min_count: 3: the number of records that have it is not checked",
        ),
        (
            "value_count {min: 1 max: 4}",
            "value_count.min: 1: the minimum number of values is not checked",
        ),
        ('domain: "d"', "domain: 'd': values are not restricted to it"),
        ("int_domain {min: 1 max: 9}", "int_domain: min: 1 max: 9: the range is not checked"),
        ('bool_domain {true_value: "y"}', 'bool_domain: true_value: "y": has no counterpart'),
        ("lifecycle_stage: BETA", "lifecycle_stage: BETA: has no counterpart"),
        (
            "shape {dim {size: 2}}",
            "shape: dim { size: 2 }: not required in every record, or of an unknown size: read as a list",
        ),
        (
            f'{ALWAYS} shape {{dim {{size: 2 name: "x"}}}}',
            'shape: dim { name: "x" }: the names of dimensions have no counterpart',
        ),
        (
            "value_counts {value_count {max: 1}}",
            "value_counts: value_count { max: 1 }: nested lists are read flat"
            " (a tensor representation defines how they are stored)",
        ),
        ("drift_comparator {}", "drift_comparator: : has no counterpart"),
        ('in_environment: "x"', "in_environment: 'x': has no counterpart"),
    ],
)
def test_what_has_no_counterpart_is_noted(options, note):
    _, notes = imported(f'feature {{name: "a" type: INT {options}}}')
    assert notes == [f"feature.a.{note}"]


@pytest.mark.parametrize(
    ("options", "note"),
    [
        ("type: INT lifecycle_stage: DEPRECATED", "DEPRECATED: left out, as in TFX"),
        ("type: INT deprecated: true", "deprecated: left out, as in TFX"),
        ("type: STRUCT struct_domain {}", "neither BYTES, INT nor FLOAT: left out"),
        ("", "neither BYTES, INT nor FLOAT: left out"),
    ],
)
def test_a_feature_that_is_left_out_is_noted(options, note):
    features, notes = imported(f'feature {{name: "a" type: INT}} feature {{name: "b" {options}}}')
    assert list(features) == ["a"]
    assert notes == [f"feature.b: {note}"]


def test_sparse_and_weighted_features():
    features, notes = imported(
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
        " its shape is unknown: its features are read separately",
        'weighted_feature.vw: name: "vw" feature { step: "v" } weight_feature { step: "w" }:'
        " both features are read separately",
    ]


def test_tensor_representations():
    features, notes = imported(
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
        'tensor_representation_group."".lists: row partitions of INT32: read as int64',
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
    features, notes = imported(text)
    assert list(features.values()) == [
        FixedLen(name="a", dtype="int64", default=-1),
        FixedLen(name="b", dtype="string", shape=(2,), default=("", "")),
    ]
    assert notes == []
    assert imported(text.replace("true", "false"))[0]["a"] == VariableLen(
        name="a", dtype="int64", max_length=1
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "<text>: expected a feature that can be read, got none"),
        (
            'feature {name: "a" tipe: INT}',
            "<text>: expected a feature that can be read, got none"
            " (feature.a: neither BYTES, INT nor FLOAT: left out)",
        ),
        (
            'feature {name: "a"\n type: INTT}',
            "<text>:2:8: expected a schema of TensorFlow Metadata, as text, got"
            ' Enum type "FeatureType" has no value named INTT.',
        ),
        (
            'feature {name: "a" type: INT} feature {name: "a" type: INT}',
            "<text>: feature: expected unique names, got `a` twice",
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
    assert imported(text)[1] == [f"{name}: unknown field: ignored" for name in expected]
    (tmp_path / "schema.pb").write_bytes(
        parsed('feature {name: "a" type: INT}').SerializeToString() + b"\xb8\x3e\x07"
    )
    schema, notes = tfmd.load(tmp_path / "schema.pb")
    assert schema.names == {"a": VariableLen(name="a", dtype="int64")}
    path = ("field 999",)
    assert notes == (Note(path=path, text="unknown field: ignored"),)


def test_files_that_cannot_be_read_are_named(tmp_path):
    path = tmp_path / "schema.pbtxt"
    with pytest.raises(rs.StoreError, match=r"schema\.pbtxt: cannot read: no such file"):
        tfmd.load(path)
    path.write_bytes(b"\xff")
    with pytest.raises(
        rs.SpecError, match=r"schema\.pbtxt: expected UTF-8 text, got the byte 0xff at position 0"
    ):
        tfmd.load(path)
    path.with_suffix(".pb").write_bytes(b"\xff")
    with pytest.raises(rs.SpecError, match="as bytes, got 1 bytes of something else"):
        tfmd.load(path.with_suffix(".pb"))


@given(st.text(max_size=200) | st.text(alphabet='feature{}:"type INT123<>[]#\n', max_size=200))
def test_any_text_is_a_schema_or_refused(text):
    with contextlib.suppress(rs.SpecError):
        tfmd.loads(text)


@given(st.binary(max_size=200))
def test_any_bytes_are_a_schema_or_refused(data):
    with contextlib.suppress(rs.SpecError):
        import_schema(parse_binary(data, "")[0], "s", "")
