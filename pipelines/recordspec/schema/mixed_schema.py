"""The schema of a mixture of datasets: their common features, and the name of the dataset."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from recordspec.errors import Problem, SpecError
from recordspec.schema.features.label import Label
from recordspec.schema.schema import Schema


def common_schema(schemas: Mapping[str, Schema], wanted: Sequence[str] | None = None) -> Schema:
    """The schema of the features that all datasets have.

    Args:
        schemas: the schema of each dataset, by name.
        wanted: the features to read; by default all. The others may differ between datasets.

    Raises SpecError if a feature is another one in another dataset, or none is in all.
    """
    (name, first), *others = schemas.items()
    if all(other.fingerprint == first.fingerprint for _, other in others):
        return first
    problems = []
    shared = {feature.name: (place.section, feature) for place, feature in first._placed}
    if wanted is not None:
        shared = {key: one for key, one in shared.items() if not set(one[1].outputs).isdisjoint(wanted)}
    for dataset, other in others:
        path = ("mix", "datasets", dataset)
        if other.record != first.record:
            expected = f"records of the type of `{name}`, {first.record}"
            problems.append(Problem(path=path, expected=expected, got=other.record))
        known = {feature.name: (place.section, feature) for place, feature in other._placed}
        for feature in [*shared]:
            if feature not in known:
                del shared[feature]
            elif known[feature] != shared[feature]:
                hint = "`read: {features: [...]}` leaves it out"
                expected = f"`{feature}` as in `{name}`"
                problems.append(Problem(path=path, expected=expected, got="another one", hint=hint))
    if not shared and not problems:
        expected, got = f"a feature in common with `{name}`", "none"
        problems.append(Problem(path=("mix", "datasets"), expected=expected, got=got))
    if problems:
        raise SpecError(problems)
    return first.only(output for _, feature in shared.values() for output in feature.outputs)


def with_names(schema: Schema, name: str | None, datasets: tuple[str, ...]) -> Schema:
    """The schema with a label of the names of the datasets; unchanged for None.

    Raises SpecError if it has a feature of this name.
    """
    if name is None:
        return schema
    if name in schema.outputs:
        expected = "a name that no feature has"
        raise SpecError(Problem(path=("mix", "name_as"), expected=expected, got=f"`{name}`"))
    label = Label(name=name, names=datasets)
    if schema.record == "example":
        return replace(schema, features=(*schema.features, label))
    return replace(schema, context=(*schema.context, label))
