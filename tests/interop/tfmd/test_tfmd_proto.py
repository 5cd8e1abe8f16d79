"""Messages of TensorFlow Metadata: of any text or bytes, and of other releases."""

from __future__ import annotations

import contextlib

from hypothesis import given
from hypothesis import strategies as st
from tfmd_text import imported, parsed

import recordspec as rs
from recordspec.interop import tfmd
from recordspec.interop.notes import Note
from recordspec.interop.tfmd.importer import import_schema
from recordspec.interop.tfmd.messages import parse_binary
from recordspec.schema.features.var_len import VariableLen


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


@given(st.text(max_size=200) | st.text(alphabet='feature{}:"type INT123<>[]#\n', max_size=200))
def test_any_text_is_a_schema_or_refused(text):
    with contextlib.suppress(rs.SpecError):
        tfmd.loads(text)


@given(st.binary(max_size=200))
def test_any_bytes_are_a_schema_or_refused(data):
    with contextlib.suppress(rs.SpecError):
        import_schema(parse_binary(data, "")[0], "s", "")
