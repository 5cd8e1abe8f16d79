"""TensorFlow Metadata round trips: what it expresses is kept, and the rest is noted (`interop.notes`)."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tfmd_text import parsed

import recordspec as rs
from instances import CASES
from recordspec._tf import tf
from recordspec.integrity.check import check_files
from recordspec.interop import tfmd
from recordspec.interop.tfmd.exporter import export_schema
from recordspec.schema.features.geometry import Pictures
from recordspec.schema.options import options_of
from recordspec.store.dataset import StoredDataset
from third_party_data import DATA, needs_data


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


def has_default_of_bytes(case) -> bool:
    return case.feature.kind == "tensor" and isinstance(case.feature.columns()[0].layout.default, bytes)


def test_a_default_of_bytes_is_noted_where_it_is_lost():
    """TensorFlow Metadata has it, and a feature has none that is no text."""
    cases = [case for case in CASES if case.feature.kind == "tensor" and case.feature.traits.optional]
    cases = [case for case in cases if has_default_of_bytes(case)]
    for case in cases:
        back, notes = tfmd.loads(tfmd.dumps(case.schema)[0])
        assert [note.path[-1] for note in notes if note.path[-1] == "default_value"] == ["default_value"]
        assert not back.names[case.feature.name].traits.optional
    assert len(cases) == 6


ROUND_TRIPS = [case for case in CASES if not (case.feature.traits.optional and has_default_of_bytes(case))]


@pytest.mark.parametrize("case", ROUND_TRIPS, ids=str)
def test_a_feature_survives_a_round_trip(case):
    """Exported, imported and exported again, a feature is equal, except for what the notes name."""
    text, _ = tfmd.dumps(case.schema)
    back, notes = tfmd.loads(text)
    assert export_schema(back) == without(parsed(text), notes)


def names_of(case) -> list[str]:
    """The names of what comes back: of four lists, their keys."""
    return list(getattr(case.feature, "keys", ())) or [case.feature.name]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_what_comes_back_has_the_same_columns(case):
    back, _ = tfmd.loads(tfmd.dumps(case.schema)[0])
    ours = [(column.key, column.storage) for column in case.schema.columns(case.section)]
    theirs = [(column.key, column.storage) for column in back.columns(case.section)]
    assert ours == theirs
    assert list(back.names) == names_of(case)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_what_comes_back_reads_the_records(case):
    """The same bytes can be decoded with it."""
    back, _ = tfmd.loads(tfmd.dumps(case.schema)[0])
    decoded = back.decode(case.records)
    may_lack = case.feature.missing is True
    assert decoded.keys() == {*names_of(case), *(f"{name}_missing" for name in names_of(case) if may_lack)}


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_notes_name_every_difference(case):
    text, notes = tfmd.dumps(case.schema)
    (mine,), (theirs, *_) = case.schema.names.values(), tfmd.loads(text)[0].names.values()
    found = [note for note in notes if note.path != ("schema",)]
    assert {note.path[:2] for note in found} <= {(case.section, mine.name)}
    if mine.kind != theirs.kind:
        (note,) = found
        assert note.text.startswith(f"kind {mine.kind} is exported as {theirs.kind}, by its columns")
        return
    differing = {name for name, value in options_of(mine).items() if value != options_of(theirs)[name]}
    if mine.columns() == theirs.columns():
        differing -= {"encoding"}  # an explicit default
    assert {note.path[2] for note in found} == differing


@pytest.mark.parametrize("case", [case for case in CASES if case.feature.kind == "label"], ids=str)
def test_a_label_comes_back_with_its_names(case):
    text, notes = tfmd.dumps(case.schema)
    back, _ = tfmd.loads(text, name="case")
    (mine,) = case.schema.names.values()
    assert back == rs.Schema(
        name="case",
        record=case.schema.record,
        **{case.section: (replace(mine, pad=-1, missing=mine.missing is True or "error").shortest,)},
    )
    pads = [f"{case.section}.{mine.name}.pad"] * (mine.pad != -1)
    missing = ["missing"] * (mine.missing == "empty")
    assert [str(note.path[-1]) for note in notes] == ["schema", *missing, *("pad" for _ in pads)]


def test_two_features_of_one_key_cannot_be_exported():
    schema = rs.Schema.loads("schema: s\nfeatures: {a: int64, b: {dtype: int64, key: a}}")
    with pytest.raises(rs.SpecError, match=r"features\.b\.key: expected a distinct key, got `a`"):
        tfmd.dumps(schema)


@given(st.lists(st.sampled_from(CASES), min_size=1, max_size=6, unique_by=lambda case: case.feature.name))
def test_features_are_exported_independently(cases):
    """The export of a feature does not depend on the others."""
    cases = [case for case in cases if case.section == "features"]
    images = [case for case in cases if isinstance(case.feature, Pictures)]
    cases = [case for case in cases if case not in images[1:]]  # of several, a box has to name its own
    stored = [column.key for case in cases for column in case.feature.columns()]
    if not cases or len(stored) != len(set(stored)):
        return
    schema = rs.Schema(name="s", features=tuple(case.feature for case in cases))
    back, _ = tfmd.loads(tfmd.dumps(schema)[0])
    alone = [tfmd.loads(tfmd.dumps(case.schema)[0])[0].features for case in cases]
    assert back.features == sum(alone, ())


def by_shape(message):
    """A schema with shapes in the place of fixed counts, and with ragged lists."""
    message.represent_variable_length_as_ragged = True
    for feature in message.feature:
        if feature.value_count.min == feature.value_count.max == 1:
            feature.ClearField("value_count")
            feature.shape.SetInParent()
    return message


TAXI = DATA / "taxi"


@needs_data
def test_the_schema_of_the_taxi_trips_comes_back():
    schema, notes = tfmd.load(TAXI / "schema.pbtxt")
    assert len(schema.features) == 18
    assert len(notes) == 10
    original = without(parsed((TAXI / "schema.pbtxt").read_text()), notes)
    domains = {domain.name: domain.value for domain in original.string_domain}
    for feature in original.feature:
        if feature.domain in domains:
            feature.string_domain.value.extend(domains[feature.domain])
            feature.ClearField("domain")
    original.ClearField("string_domain")
    assert export_schema(schema) == by_shape(original)


@needs_data
def test_the_taxi_trips_are_read_with_their_schema(tmp_path):
    """It calls three features INT that the records hold as floats: they are read with FLOAT."""
    floats = ("dropoff_census_tract", "dropoff_community_area", "trip_seconds")
    files = str(TAXI / "*.gz")
    schema, _ = tfmd.load(TAXI / "schema.pbtxt")
    report = check_files(StoredDataset.of(files, schema).checked_files(), schema)
    wrong = {path[-1]: (code, group.examples[0].problem.got) for (path, code), group in report.groups.items()}
    assert wrong == dict.fromkeys(floats, ("kind", "1 float32"))
    text = (TAXI / "schema.pbtxt").read_text()
    for name in floats:
        text = text.replace(f'name: "{name}"\n  type: INT', f'name: "{name}"\n  type: FLOAT')
    schema, _ = tfmd.loads(text)
    (found,) = rs.read(files, schema, batch=20_000)
    assert len(found) == 18
    assert {int(tf.shape(values)[0]) for values in found.values()} == {15_000}
    missing = {name: int((found[name].row_lengths() == 0).numpy().sum()) for name in (*floats, "company")}
    assert missing == {
        "dropoff_census_tract": 4239,
        "dropoff_community_area": 504,
        "trip_seconds": 6,
        "company": 5140,
    }
