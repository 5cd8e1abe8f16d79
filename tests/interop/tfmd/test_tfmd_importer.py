"""Schemas of TensorFlow Metadata, read: each feature (`interop.stored_tensor`), and what is no schema."""

from __future__ import annotations

import pytest
from tfmd_text import ALWAYS, imported

import recordspec as rs
from examples import example, file_of
from recordspec._tf import tf
from recordspec.integrity.check import check_files
from recordspec.interop import tfmd
from recordspec.schema.features.fixed_len import FixedLen
from recordspec.schema.features.tensor import AnyTensor
from recordspec.schema.features.text import Text
from recordspec.schema.features.var_len import VariableLen
from recordspec.store.dataset import StoredDataset
from recordspec.wire.framing import framed


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


DOMAIN = 'string_domain { name: "tag" value: "new" value: "used" }'
REQUIRED = "presence { min_fraction: 1 } shape {}"


@pytest.mark.parametrize(
    ("options", "label"),
    [
        (f'type: BYTES {REQUIRED} domain: "tag"', "encoding: name"),
        (f'type: BYTES {REQUIRED} string_domain {{ value: "new" value: "used" }}', "encoding: name"),
        (
            f'type: BYTES {REQUIRED} domain: "tag" distribution_constraints {{ min_domain_mass: 0 }}',
            "encoding: name, oov: index",
        ),
        ('type: BYTES domain: "tag"', "encoding: name, shape: [null]"),
    ],
)
def test_a_string_domain_is_the_names_of_a_label(options, label):
    schema, notes = tfmd.loads(f'feature {{ name: "x" {options} }} {DOMAIN}')
    used = [] if "domain: " in options else ["string_domain.tag: not used by any feature"]
    assert list(map(str, notes)) == used
    names = "kind: label, names: [new, used]"
    assert schema == rs.Schema.loads(f"schema: schema\nfeatures: {{x: {{{names}, {label}}}}}")


@pytest.mark.parametrize(
    "options",
    [
        'type: BYTES value_count { max: 3 } domain: "tag"',
        'type: BYTES domain: "other"',
        'type: BYTES string_domain { value: "a" value: "a" }',
        "type: BYTES string_domain { value_type: 3 }",
        'type: INT domain: "tag"',
    ],
)
def test_another_string_domain_is_noted(options):
    schema, notes = tfmd.loads(f'feature {{ name: "x" {options} }} {DOMAIN}')
    assert schema.names["x"].kind == "var_len"
    assert notes


def test_a_label_by_name_reads_the_names_of_others(tmp_path):
    schema, _ = tfmd.loads(f'feature {{ name: "x" type: BYTES {REQUIRED} domain: "tag" }} {DOMAIN}')
    records = [example({"x": ("bytes", [name])}) for name in (b"used", b"new", b"used")]
    path = file_of(tmp_path / "x.tfrecord", records)
    (batch,) = rs.read(path, schema, batch=3)
    assert batch["x"].numpy().tolist() == [1, 0, 1]
    file_of(path, [*records, example({"x": ("bytes", [b"broken"])})])
    said = "x: expected one of `new`, `used`, or an index, got `broken` (`oov: index` gives all others one index)"
    with pytest.raises(tf.errors.InvalidArgumentError) as caught:
        list(rs.read(path, schema, batch=4))
    assert said in caught.value.message
    report = check_files(StoredDataset.of(path, schema).checked_files(), schema)
    assert [str(one.problem) for one in report.examples] == [
        f"{path}: record 3 at byte {path.stat().st_size - len(framed(example({'x': ('bytes', [b'broken'])})))}: "
        "features.x: expected one of `new`, `used`, or an index, got `broken` (add `broken` to `names` if it is a class)"
    ]
    other = rs.Schema.loads(
        "schema: s\nfeatures: {x: {kind: label, names: [new, used], encoding: name, oov: index}}"
    )
    (batch,) = rs.read(path, other, batch=4)
    assert batch["x"].numpy().tolist() == [1, 0, 1, 2]
