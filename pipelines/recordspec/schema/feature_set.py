"""The features of a record, the rules that they must satisfy together, and differences of two sets."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
from collections.abc import Callable, Collection, Container, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import zip_longest
from typing import Any, NamedTuple, TypeVar

from recordspec.errors import Path, Problem, SpecError, nearest, one_of
from recordspec.schema.features import KINDS, Feature
from recordspec.schema.features.geometry import Coordinates, Pictures
from recordspec.schema.features.option_checks import WithLength
from recordspec.schema.options import freeze, to_builtins
from recordspec.wire.columns import (
    Column,
    FixedKeys,
    Place,
    Ragged,
    RecordMessage,
    Section,
    Sequence,
    Sparse,
    Storage,
    VarLen,
)

SECTIONS: dict[str, tuple[Section, ...]] = {
    "example": ("features",),
    "sequence_example": ("context", "sequence"),
}
ALL_SECTIONS: tuple[Section, ...] = ("features", "context", "sequence")
# Options with more characters are abbreviated in messages.
_LONGEST_OPTION = 60
# Of a label whose rows are counted: a manifest has the counts of each, and every part of a build.
_MOST_CLASSES = 1 << 15


@dataclass(frozen=True)
class EqualCounts:
    """Features of one section of which a record, or each step, has equally many values.

    Attributes:
        first, second: what is counted: the name of the feature, the key, and the values that count as one.
        steps: whether the steps are counted, not the items in a record, or in each step if there are equally
            many steps.
    """

    section: Section
    first: tuple[str, str, int]
    second: tuple[str, str, int]
    steps: bool = False

    @property
    def places(self) -> tuple[Place, Place]:
        """Where the values are stored that are counted."""
        return Place(self.section, self.first[1]), Place(self.section, self.second[1])

    def problem(self, expected: int, got: int) -> Problem:
        """The problem of the second feature."""
        what = "step" if self.steps else "item"
        text = f"{expected} {what}{'s' * (expected != 1)}, as `{self.first[0]}` has"
        return Problem(path=(self.section, self.second[0]), expected=text, got=str(got))


_Set = TypeVar("_Set", bound="FeatureSet")


class FixedFeatures(NamedTuple):
    """The features that are decoded without Arrow arrays, which take most of the time for few rows.

    Attributes:
        keys: the stored keys of `shapes` and `lists`.
        shapes: the stored key and the shape of a value, by the name of a feature whose values are the stored
            values of every record.
        lists: the features whose values are the stored lists, with their places.
        others, columns: the other features, and their columns, with their places.
    """

    keys: FixedKeys
    shapes: dict[str, tuple[str, tuple[int, ...]]]
    lists: tuple[tuple[Place, Feature], ...]
    others: tuple[tuple[Place, Feature], ...]
    columns: tuple[tuple[Place, Column], ...]


@dataclass(frozen=True, kw_only=True)
class FeatureSet:
    """The data of a `Schema`, which documents the attributes: what encoding, decoding and validation need."""

    name: str
    version: int = 1
    description: str = ""
    record: RecordMessage = "example"
    features: tuple[Feature, ...] = ()
    context: tuple[Feature, ...] = ()
    sequence: tuple[Feature, ...] = ()

    def __post_init__(self) -> None:
        freeze(self)
        problems = list(_check(self))
        if problems:
            raise SpecError(problems)

    @property
    def _sections(self) -> tuple[Section, ...]:
        """The sections of the record: `features`, or `context` and `sequence`."""
        return SECTIONS[self.record]

    @cached_property
    def _placed(self) -> tuple[tuple[Place, Feature], ...]:
        """Every feature with its place, in the order of the spec."""
        return tuple(
            (Place(section, feature.stored), feature)
            for section in self._sections
            for feature in getattr(self, section)
        )

    @cached_property
    def _placed_columns(self) -> tuple[tuple[Place, Column], ...]:
        """Every column of `columns_in` with its place, in the order of the spec."""
        return tuple(
            (Place(place.section, column.key), column)
            for place, feature in self._placed
            for column in columns_in(place, feature)
        )

    @cached_property
    def _stored_keys(self) -> frozenset[str]:
        """The keys of all columns, in all sections."""
        return frozenset(column.key for _, feature in self._placed for column in feature.columns())

    @cached_property
    def _fixed(self) -> FixedFeatures:
        """The features that need no other decoder, unless a record lacks one of them."""
        direct = {
            feature.name: feature.columns()[0]
            for place, feature in self._placed
            if not place.in_steps
            and (feature._takes_lists or ((shape := feature._fixed_shape) is not None and 0 not in shape))
        }
        # features with other decoders may share the key, and need its column; columns are counted
        needed = {
            column.key
            for place, feature in self._placed
            if feature.name not in direct
            for column in columns_in(place, feature)
        } | {place.key for equal in self._equal_counts for place in equal.places}
        direct = {name: column for name, column in direct.items() if column.key not in needed}
        lists = tuple(
            (place, feature)
            for place, feature in self._placed
            if feature.name in direct and feature._takes_lists
        )
        shapes = {
            name: (column.key, shape)
            for name, column in direct.items()
            if (shape := self.names[name]._fixed_shape) is not None
        }
        keys: dict[str, tuple[Storage, int | None]] = {
            column.key: (column.storage, math.prod(shapes[name][1]) if name in shapes else None)
            for name, column in direct.items()
        }
        others = tuple((place, feature) for place, feature in self._placed if feature.name not in direct)
        columns = tuple(
            (Place(place.section, column.key), column)
            for place, feature in others
            for column in columns_in(place, feature)
        )
        return FixedFeatures(FixedKeys(keys), shapes, lists, others, columns)

    @cached_property
    def names(self) -> dict[str, Feature]:
        """The features by name."""
        return {feature.name: feature for _, feature in self._placed}

    @cached_property
    def classes(self) -> dict[str, int]:
        """The features that store the index of one class a row, by name, with the number of classes."""
        return {
            feature.name: len(feature.traits.class_names)
            for place, feature in self._placed
            if feature.traits.class_names and not feature.value_type.shape and not place.in_steps
            if feature.columns()[0].storage != "bytes"
        }

    @property
    def _counted_classes(self) -> dict[str, int]:
        """Those of `classes` whose rows are counted: more classes are things to look up, not to weigh."""
        return {name: count for name, count in self.classes.items() if count <= _MOST_CLASSES}

    @cached_property
    def steps(self) -> frozenset[str]:
        """The names of the features that have a value in each step, not one in a record."""
        return frozenset(
            feature.name
            for place, feature in self._placed
            if place.in_steps and not feature.traits.spans_steps
        )

    @cached_property
    def _images(self) -> dict[str, Pictures]:
        """The images that features of coordinates are in, and those of masks, by the names of these."""
        pictures: dict[str, Pictures] = {}
        for name, feature in self.names.items():
            for image in _images_of(self, name) if feature.traits.mask_of is not None else ():
                if image.name == feature.traits.mask_of:
                    pictures[name] = image
            if isinstance(feature, Coordinates):
                named, known = feature.image, _images_of(self, name)
                for image in known:
                    if named == image.name or len(known) == 1:
                        pictures[name] = image
        return pictures

    @cached_property
    def _equal_counts(self) -> tuple[EqualCounts, ...]:
        """The features whose numbers of values agree: boxes and what is dropped with them, and boxes of steps
        and images of steps."""
        agreeing = []
        for place, feature in self._placed:
            image = self._images.get(feature.name)
            if image is not None and {feature.name, image.name} <= self.steps:
                agreeing.append(EqualCounts(place.section, _counted(image), _counted(feature), steps=True))
            for name in (feature.dropped_with or ()) if isinstance(feature, Coordinates) else ():
                counted = _counted(feature), _counted(self.names[name])
                if place.in_steps:
                    agreeing.append(EqualCounts(place.section, *counted, steps=True))
                agreeing.append(EqualCounts(place.section, *counted))
        return tuple(agreeing)

    @cached_property
    def _shared_keys(self) -> tuple[Problem, ...]:
        """The problems of features that share a stored key, which is allowed only for reading."""
        expected = "a distinct key"
        return tuple(
            Problem(where=self.name, path=(*path, "key"), expected=expected, got=got)
            for path, column, owner, _ in _owners(self)
            for got in [f"`{column.key}`, which `{owner}` writes"]
            if owner != path[1]
        )

    @cached_property
    def outputs(self) -> tuple[str, ...]:
        """The names of the tensors that `decode` returns."""
        return tuple(output for _, feature in self._placed for output in feature.outputs)

    @cached_property
    def padding(self) -> dict[str, Any]:
        """The padding of what `decode` returns, by its names: see `Feature.padding`."""
        return {name: pad for _, feature in self._placed for name, pad in feature.padding.items()}

    @cached_property
    def _padded_to_batch(self) -> dict[str, WithLength]:
        """The features whose values are padded to the longest of a batch, by name: those of the kinds that
        can be decoded without the padding."""
        return {
            name: feature
            for name, feature in self.names.items()
            if isinstance(feature, WithLength)
            and feature.is_padded_to_batch
            and KINDS.get(feature.kind) is type(feature)
        }

    @cached_property
    def _may_grow(self) -> bool:
        """Whether decoded rows may be many times larger than their bytes, as pixels are."""
        return any(feature.traits.may_grow for _, feature in self._placed)

    @cached_property
    def _keeps_in_any_batch(self) -> bool:
        """Whether rows decode to the same values in any batch, and to little more than their bytes.

        Such rows are decoded many by one call, whatever the batches are. Images are larger than their bytes,
        and what is padded, or sparse, depends on the other rows of a batch.
        """
        return self._keeps_unpadded and not self._padded_to_batch

    @cached_property
    def _keeps_unpadded(self) -> bool:
        """Whether rows decode so, as long as the values of `_padded_to_batch` are not padded yet."""
        padded = self._padded_to_batch
        return not self._may_grow and not any(
            feature.traits.list_form == "sparse"
            or (
                feature.traits.longest is None
                and (feature.traits.list_form == "dense" or feature.traits.spans_steps)
            )
            or any(isinstance(layout, Sparse) for layout in layouts)
            or (feature.traits.longest is None and any(isinstance(layout, Sequence) for layout in layouts))
            for _, feature in self._placed
            if feature.name not in padded
            for layouts in [[column.layout for column in feature.columns()]]
        )

    def only(self: _Set, names: Iterable[str]) -> _Set:
        """The schema of the features that decode to these names, and of those on which their values depend.

        Boxes depend on the image that they are in, and a feature whose items are dropped on the boxes.

        Raises SpecError for unknown names.
        """
        return self._of(self._owners(names))

    def _owners(self, outputs: Iterable[str]) -> set[str]:
        """The names of the features that decode to these names. Raises SpecError for unknown names."""
        wanted = tuple(outputs)
        unknown = [
            Problem(expected=one_of(self.outputs), got=f"`{name}`", hint=nearest(name, self.outputs))
            for name in wanted
            if name not in self.outputs
        ]
        if unknown:
            raise SpecError(unknown)
        return {feature.name for _, feature in self._placed if not set(wanted).isdisjoint(feature.outputs)}

    def without(self: _Set, *names: str) -> _Set:
        """The schema without the features that decode to these names, such as the label of a request.

        What the others depend on stays, as in `only`. Raises SpecError for unknown names.
        """
        return self._of(self.names.keys() - self._owners(names))

    def _of(self: _Set, names: Collection[str]) -> _Set:
        """The schema of the features with these names, and of those on which their values depend."""
        follow = [member for member in self.names.values() if isinstance(member, Coordinates)]
        kept = {*names, *(one.name for one in follow if not set(names).isdisjoint(one.dropped_with or ()))}
        needed = {name for name in kept if name in self.names and self.names[name].traits.mask_of is None}
        kept |= {image.name for name, image in self._images.items() if name in needed}

        def among(feature: Feature) -> Feature | None:
            return feature.among(kept) if feature.name in kept else None

        return map_features(self, among)

    def columns(self, section: Section) -> tuple[Column, ...]:
        """The columns that the features of a section store."""
        features: tuple[Feature, ...] = getattr(self, section)
        return tuple(column for feature in features for column in feature.columns())

    @property
    def fingerprint(self) -> str:
        """A hash of all that determines the stored bytes, without descriptions and options of reading.

        It includes whether there is a default, as rows may then omit the key, but not its value.
        """
        stored = {
            section: sorted(
                (
                    to_builtins(
                        feature.stored_options()
                        | ({"optional": True} if feature.traits.optional and not place.in_steps else {})
                    )
                    for place, feature in self._placed
                    if place.section == section
                ),
                key=str,
            )
            for section in self._sections
        }
        text = json.dumps({"record": self.record, **stored}, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:32]


def map_features(schema: _Set, function: Callable[[Feature], Feature | None]) -> _Set:
    """The schema with the function's result in place of each feature; None removes the feature."""
    mapped = {
        section: tuple(filter(None, map(function, getattr(schema, section)))) for section in schema._sections
    }
    return dataclasses.replace(schema, **mapped)  # type: ignore[arg-type]


def unknown_name(
    schema: FeatureSet,
    name: object,
    known: Iterable[str],
    others: Container[str],
    remedy: str = "`rs.write(..., ignore=[...])` leaves names out",
) -> Problem:
    """The problem of a name that is not `known`; its hint is a similar name that is not in `others`, or else
    the remedy.
    """
    hint = nearest(str(name), [one for one in known if one not in others]) or remedy
    return Problem(expected=f"names of `{schema.name}`", got=f"`{name}`", hint=hint)


def columns_in(place: Place, feature: Feature) -> tuple[Column, ...]:
    """The columns of a feature. Of a kind that spans the steps, a step of the sequence has one cell."""
    if not place.in_steps or not feature.traits.spans_steps:
        return tuple(feature.columns())
    return tuple(
        dataclasses.replace(column, layout=Sequence(shape=column.cell)) for column in feature.columns()
    )


def _check(schema: FeatureSet) -> Iterator[Problem]:
    if schema.record not in SECTIONS:
        yield Problem(path=("record",), expected=one_of(SECTIONS), got=f"`{schema.record}`")
        return
    for section in ALL_SECTIONS:
        if getattr(schema, section) and section not in schema._sections:
            yield Problem(
                path=(section,),
                expected=one_of(schema._sections),
                got=f"`{section}`",
                hint=f"record is {schema.record}",
            )
    if not schema._placed:
        yield Problem(path=(schema._sections[0],), expected="at least one feature", got="none")
    for place, feature in schema._placed:
        yield from _check_section(place, feature)
    yield from _check_names(schema)
    for place, feature in schema._placed:
        yield from _check_over_images(schema, place.section, feature)
    for path, column, owner, first in _owners(schema):
        if column != first:  # tf.io parses a key once
            got = f"`{column.key}` with another layout than in `{owner}`"
            yield Problem(path=path, expected="one layout for a key", got=got)


def _check_section(place: Place, feature: Feature) -> Iterator[Problem]:
    """Yields problems of features that the SequenceExample parser of tf.io does not support."""
    section, path = place.section, (place.section, feature.name)
    if not place.in_steps and feature.missing != "error" and not feature.traits.optional:
        expected, hint = (
            "a feature of `sequence`, or lists of any length",
            "a missing value has a `default`, a missing list is empty",
        )
        yield Problem(path=(*path, "missing"), expected=expected, got=f"one of `{section}`", hint=hint)
    layouts = [type(column.layout) for column in feature.columns()]
    if section == "context" and (Sequence in layouts or feature.traits.spans_steps):
        expected = "a kind without steps in the context"
        yield Problem(path=path, expected=expected, got=feature.kind, hint="put it under sequence")
    if section != "features" and Sparse in layouts:
        expected = f"a kind that tf.io parses in a {section}"
        yield Problem(path=path, expected=expected, got=feature.kind, hint="it has no SparseFeature there")
    if place.in_steps:
        yield from _check_step(path, feature)


def _check_step(path: tuple[str, str], feature: Feature) -> Iterator[Problem]:
    if not feature.traits.takes_steps:
        hint = "fixed_len_sequence has one value of its shape in each step"
        yield Problem(path=path, expected="a kind for steps", got=feature.kind, hint=hint)
    elif feature.traits.optional and (feature.traits.takes_default or feature.traits.indicator):
        option, got = _option_of_missing(feature)
        yield Problem(path=(*path, option), expected="none in steps", got=got, hint="each step has a value")
    if any(0 in column.cell for column in feature.columns()):
        hint = "such steps could not be counted"
        yield Problem(path=(*path, "shape"), expected="sizes of at least 1", got="0", hint=hint)
    if feature.traits.list_form == "sparse":
        expected = "ragged or dense steps"
        yield Problem(path=(*path, "as"), expected=expected, got="sparse", hint="steps would be lost")
    if feature.traits.list_form == "dense" and feature.traits.longest is None:
        hint = "all steps must have the same size"
        yield Problem(path=path, expected="a max_length for dense steps", got="none", hint=hint)


def _check_names(schema: FeatureSet) -> Iterator[Problem]:
    owners: dict[str, str] = {}
    for place, feature in schema._placed:
        path = (place.section, feature.name)
        if not feature.name or feature.stored == "":
            yield Problem(path=path, expected="a name", got="an empty one")
        for output in feature.outputs:
            if output in owners:
                got = f"`{output}`, which `{owners[output]}` decodes to"
                yield Problem(path=path, expected="a name of its own", got=got)
            owners.setdefault(output, feature.name)


def _pictures(schema: FeatureSet) -> list[Pictures]:
    """The images that are no masks."""
    return [
        feature
        for feature in schema.names.values()
        if isinstance(feature, Pictures) and feature.traits.mask_of is None
    ]


def _images_of(schema: FeatureSet, name: str) -> list[Pictures]:
    """The images in which the coordinates of a feature may be: of the record, or of the same step."""
    return [image for image in _pictures(schema) if name in schema.steps or image.name not in schema.steps]


def _check_over_images(schema: FeatureSet, section: Section, feature: Feature) -> Iterator[Problem]:
    """Yields the problems of coordinates, and of a mask, that cannot follow their image."""
    if isinstance(feature, Coordinates):
        yield from _check_image(schema, section, feature)
        yield from _check_dropped(schema, section, feature)
    if feature.traits.mask_of is not None:
        yield from _check_mask(schema, section, feature)


def _check_image(schema: FeatureSet, section: Section, feature: Coordinates) -> Iterator[Problem]:
    """Yields the problem of coordinates that cannot follow their image."""
    path = (section, feature.name, "image")
    known = {image.name: image for image in _images_of(schema, feature.name)}
    expected = one_of(known) if known else "a record with an image"
    if feature.image is not None and feature.image not in known:
        other, got = schema.names.get(feature.image), f"`{feature.image}`"
        if other is not None:
            got += ", which each step has" if isinstance(other, Pictures) else f", a {other.kind}"
        yield Problem(path=path, expected=expected, got=got, hint=nearest(feature.image, known))
    elif feature.image is None and len(known) != 1:
        changed = [image for image in _pictures(schema) if image.resizing is not None or image.is_turned]
        for image in changed[:1]:
            how = "resized" if image.resizing is not None else "turned upright"
            hint = f"`{image.name}` is {how}, and its coordinates must follow"
            yield Problem(path=path, expected=expected, got="none", hint=hint)


def _check_mask(schema: FeatureSet, section: Section, feature: Feature) -> Iterator[Problem]:
    """Yields the problems of a mask whose image is missing, or has other options."""
    in_steps = feature.name in schema.steps
    known = {
        image.name: image
        for image in _images_of(schema, feature.name)
        if (image.name in schema.steps) == in_steps
    }
    image = known.get(feature.traits.mask_of or "")
    if image is None:
        expected = one_of(known) if known else "the image of a record with one"
        hint = nearest(feature.traits.mask_of or "", known)
        path = (section, feature.name, "mask_of")
        yield Problem(path=path, expected=expected, got=f"`{feature.traits.mask_of}`", hint=hint)
    else:
        for each in feature._mask_problems(image):
            yield each.under(section, feature.name)


def _check_dropped(schema: FeatureSet, section: Section, feature: Coordinates) -> Iterator[Problem]:
    """Yields the problems of features that cannot lose the items of dropped coordinates."""
    path = (section, feature.name, "drop", "with")
    for place, name in enumerate(feature.dropped_with or ()):
        known = [one.name for one in getattr(schema, section) if _is_list(one) and one.name != feature.name]
        others = [
            other.name
            for other in schema.names.values()
            if isinstance(other, Coordinates) and other is not feature and name in (other.dropped_with or ())
        ]
        if name not in known:
            expected = one_of(known) if known else "a list in the same section"
            yield Problem(path=(*path, place), expected=expected, got=f"`{name}`", hint=nearest(name, known))
        elif others:
            got = f"`{name}`, which `{others[0]}` has"
            yield Problem(path=(*path, place), expected="a feature that only these boxes drop", got=got)
        elif isinstance(named := schema.names[name], Coordinates) and named.dropped_with is not None:
            got = f"`{name}`, which has its own"
            yield Problem(path=(*path, place), expected="a feature without `drop`", got=got)


def _counted(feature: Feature) -> tuple[str, str, int]:
    """The name of a feature, the key whose values tell how many items it has, and the values of an item."""
    column = feature.columns()[0]
    lengths = column.layout.row_lengths if isinstance(column.layout, Ragged) else ()
    if lengths:
        return feature.name, lengths[0], 1
    return feature.name, column.key, max(1, math.prod(column.cell))


def _is_list(feature: Feature) -> bool:
    """Whether a value is a list, and decodes to one, ragged in a batch."""
    layout = feature.columns()[0].layout
    ragged = isinstance(layout, Ragged) or (isinstance(layout, VarLen) and layout.ragged)
    return ragged and feature.traits.list_form in (None, "ragged") and len(feature.outputs) == 1


def _owners(schema: FeatureSet) -> Iterator[tuple[tuple[Section, str], Column, str, Column]]:
    """For every column its path, itself, and the first feature with its key, with the column of that."""
    owners: dict[Place, tuple[str, Column]] = {}
    for place, feature in schema._placed:
        for column in feature.columns():
            owner, first = owners.setdefault(Place(place.section, column.key), (feature.name, column))
            yield (place.section, feature.name), column, owner, first


def differences(written: FeatureSet, wanted: FeatureSet) -> Iterator[Problem]:
    """Yields problems of reading `wanted` features from records of `written` ones.

    Neither a new feature with a default nor a removed feature is a difference.
    """
    if written.record != wanted.record:
        yield Problem(path=("record",), expected=written.record, got=wanted.record)
        return
    stored = {(place.section, feature.name): feature for place, feature in written._placed}
    for place, feature in wanted._placed:
        path = (place.section, feature.name)
        other = stored.get(path)
        if other is None and feature.traits.optional:
            continue
        if other is None:
            expected = "a feature that the data has"
            yield Problem(path=path, expected=expected, got="none of this name")
        else:
            yield from _differences(path, other, feature)


def _differences(path: Path, written: Feature, wanted: Feature) -> Iterator[Problem]:
    """Compares the options of a feature; features of different kinds have other options."""
    if written.kind != wanted.kind:
        yield _difference((*path, "kind"), written.kind, wanted.kind)
        return
    old, new = written.stored_options(), wanted.read_options()
    for name in new:
        if old.get(name) != new[name]:
            yield _difference((*path, name.rstrip("_")), old.get(name), new[name])
    if written.traits.optional and not wanted.traits.optional:
        option, what = _option_of_missing(written)
        expected = f"{what}, as rows were written that may lack it"
        yield Problem(path=(*path, option), expected=expected, got="none")


def _option_of_missing(feature: Feature) -> tuple[str, str]:
    """The option by which a row may lack the value of a feature, and the option's value in a message."""
    return ("missing", "`true`") if feature.traits.class_names else ("default", "a default")


def _difference(path: Path, before: Any, after: Any) -> Problem:
    """The difference of two options; of long lists, the first item that differs."""
    old, new = (
        option
        if isinstance(option, str)
        else json.dumps(to_builtins(option), ensure_ascii=False, default=str)
        for option in (before, after)
    )
    if max(len(old), len(new)) > _LONGEST_OPTION and isinstance(before, tuple) and isinstance(after, tuple):
        index, values = next(
            (index, values)
            for index, values in enumerate(zip_longest(before, after))
            if values[0] != values[1]
        )
        return _difference((*path, index), *values)
    return Problem(path=path, expected=f"`{old}`, as the data was written", got=f"`{new}`")
