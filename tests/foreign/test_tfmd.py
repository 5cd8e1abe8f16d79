"""TensorFlow Metadata, in and out: what it says is kept, and what is not kept is told."""

from __future__ import annotations

from pathlib import Path

import pytest
from google.protobuf import text_format

import recordspec as rs
from instances import CASES
from recordspec.foreign import tfmd
from recordspec.foreign.tfmd.declared import classes
from recordspec.foreign.tfmd.writing import write_schema
from recordspec.spec.plain import shallow

DATA = Path(__file__).parents[2].parent / "shared/data"


def parsed(text: str):
    return text_format.Parse(text, classes()["Schema"]())


def told(schema: str) -> tuple[rs.Schema, list[str]]:
    loaded, notes = tfmd.loads(schema)
    return loaded, [str(note) for note in notes]


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
