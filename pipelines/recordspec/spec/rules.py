"""What a schema must keep as a whole: what tf.io would reject later is rejected here."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from recordspec.errors import Problem, one_of
from recordspec.spec.features import Feature
from recordspec.wire.columns import Column, Section, Sequence, Sparse, VarLen

if TYPE_CHECKING:
    from recordspec.spec.schema import Schema

SECTIONS: dict[str, tuple[Section, ...]] = {
    "example": ("features",),
    "sequence_example": ("context", "sequence"),
}
ALL_SECTIONS = ("features", "context", "sequence")


def check(schema: Schema) -> Iterator[Problem]:
    if schema.record not in SECTIONS:
        yield Problem(path=("record",), expected=one_of(SECTIONS), got=f"`{schema.record}`")
        return
    for section in ALL_SECTIONS:
        if getattr(schema, section) and section not in schema.sections:
            yield Problem(
                path=(section,),
                expected=one_of(schema.sections),
                got=f"`{section}`",
                hint=f"record is {schema.record}",
            )
    if not list(schema.placed):
        yield Problem(path=(schema.sections[0],), expected="at least one feature", got="none")
    for section, feature in schema.placed:
        yield from _check_section(section, feature)
    yield from _check_names(schema)
    yield from _check_keys(schema)


def _check_section(section: Section, feature: Feature) -> Iterator[Problem]:
    """What tf.io's parser of SequenceExamples does not take."""
    path = (section, feature.name)
    layouts = [type(column.layout) for column in feature.columns()]
    if section == "context" and (Sequence in layouts or feature.spans_steps):
        expected = "a kind without steps in the context"
        yield Problem(path=path, expected=expected, got=feature.kind, hint="put it under sequence")
    if section != "features" and Sparse in layouts:
        expected = f"a kind that tf.io parses in a {section}"
        yield Problem(path=path, expected=expected, got=feature.kind, hint="it has no SparseFeature there")
    if section == "sequence":
        yield from _check_step(path, feature, layouts)


def _check_step(path: tuple[str, str], feature: Feature, layouts: list[type]) -> Iterator[Problem]:
    if feature.kind == "fixed_len":
        hint = "fixed_len_sequence has one value of its shape a step"
        yield Problem(path=path, expected="a kind for steps", got=feature.kind, hint=hint)
    if any(0 in getattr(column.layout, "shape", ()) for column in feature.columns()):
        hint = "such steps could not be counted"
        yield Problem(path=(*path, "shape"), expected="sizes of at least 1", got="0", hint=hint)
    as_ = getattr(feature, "as_", None)
    if VarLen in layouts and as_ == "sparse":
        expected = "ragged or dense steps"
        yield Problem(path=(*path, "as"), expected=expected, got="sparse", hint="steps would be lost")
    if VarLen in layouts and as_ == "dense" and getattr(feature, "max_length", None) is None:
        hint = "steps are put together one by one, so each must have the same size"
        yield Problem(path=path, expected="a max_length for dense steps", got="none", hint=hint)


def _check_names(schema: Schema) -> Iterator[Problem]:
    owners: dict[str, str] = {}
    for section, feature in schema.placed:
        path = (section, feature.name)
        if not feature.name or feature.stored == "":
            yield Problem(path=path, expected="a name", got="an empty one")
        for output in feature.outputs:
            if output in owners:
                got = f"`{output}`, which `{owners[output]}` decodes to"
                yield Problem(path=path, expected="a name of its own", got=got)
            owners.setdefault(output, feature.name)


def shared_keys(schema: Schema) -> Iterator[Problem]:
    owners: dict[tuple[Section, str], str] = {}
    for section, feature in schema.placed:
        for column in feature.columns():
            other = owners.setdefault((section, column.key), feature.name)
            if other != feature.name:
                yield Problem(
                    where=schema.name,
                    path=(section, feature.name, "key"),
                    expected="a key of its own, to be written",
                    got=f"`{column.key}`, which `{other}` writes",
                )


def _check_keys(schema: Schema) -> Iterator[Problem]:
    """One key has one layout: tf.io parses it once."""
    owners: dict[tuple[Section, str], tuple[str, Column]] = {}
    for section, feature in schema.placed:
        for column in feature.columns():
            owner, other = owners.setdefault((section, column.key), (feature.name, column))
            if other != column:
                got = f"`{column.key}` with another one than that of `{owner}`"
                yield Problem(path=(section, feature.name), expected="one layout for a key", got=got)
