"""A schema of TensorFlow Metadata as one of ours.

What is understood is taken out of the message; what is left in it when all is done are the notes. So
nothing is passed over in silence.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from recordspec.errors import Problem, SpecError
from recordspec.interop.forms import Form, filled
from recordspec.interop.notes import Note
from recordspec.interop.tfmd.declared import STEPS
from recordspec.interop.tfmd.domains import Domains
from recordspec.interop.tfmd.leftover import NO_COUNTERPART, is_live, left_in
from recordspec.interop.tfmd.parsing import inline
from recordspec.interop.tfmd.tensors import Place, Tensor, of_sparse_feature, represented, unsaid
from recordspec.interop.tfmd.values import (
    DTYPES,
    LEGACY_DEFAULTS,
    comment_of,
    default_of,
    is_always_there,
    sizes,
    take,
    take_presence,
    take_shape,
)
from recordspec.spec.features import Feature
from recordspec.spec.features.sparse import SparseValues
from recordspec.spec.rules import ALL_SECTIONS
from recordspec.spec.schema import Schema


def read_schema(message: Any, name: str, source: str) -> tuple[Schema, list[Note]]:
    """The schema, and what has no counterpart in it. Raises SpecError where it gives none."""
    try:
        reader = _Reader(message)
        sections = reader.sections()
        notes = [*reader.notes, *reader.left()]
        if not any(sections.get(section) for section in ALL_SECTIONS):
            hint = str(notes[0]) if notes else ""
            expected = "a feature that can be read"
            raise SpecError(Problem(expected=expected, got="none", hint=hint))
        schema = Schema(name=name, description=reader.description, **sections)
    except SpecError as error:
        raise SpecError([problem.at(source) for problem in error.problems]) from None
    return schema, notes


class _Reader:
    """A message that is read, on a copy.

    Attributes:
        description: of the schema.
        notes: on what is no field's.
    """

    def __init__(self, message: Any) -> None:
        self._rest = type(message)()
        self._rest.CopyFrom(message)
        self.notes: list[Note] = []
        _check_once(message.feature)
        self.description = comment_of(self._rest)
        self._legacy = self._rest.generate_legacy_feature_spec
        self._domains = Domains(self._rest)
        self._features: dict[Place, Any] = {(one.name,): one for one in self._rest.feature if is_live(one)}
        self._has_steps = (STEPS,) in self._features
        self._features |= {(STEPS, one.name): one for one in self._steps()}
        take(self._rest, "generate_legacy_feature_spec", "represent_variable_length_as_ragged")

    def _steps(self) -> list[Any]:
        found = self._features.pop((STEPS,), None)
        if found is None:
            return []
        take(found, "presence", "value_count")
        return [one for one in found.struct_domain.feature if is_live(one)]

    def sections(self) -> dict[str, Any]:
        """The kind of record, and the features of each of its sections."""
        tensors: dict[Place, list[Tensor]] = {}
        for tensor in self._tensors():
            tensors.setdefault(tensor.values, []).append(tensor)
        parts = {place for found in tensors.values() for one in found for place in [*one.places][1:]}
        first: list[Feature] = []
        steps: list[Feature] = []
        for place, feature in self._features.items():
            if feature.type not in DTYPES or place in parts:
                continue
            made = self._made(place, tensors.get(place, []))
            (first if len(place) == 1 else steps).extend(made)
        if self._has_steps:
            return {"record": "sequence_example", "context": tuple(first), "sequence": tuple(steps)}
        return {"features": tuple(first)}

    def _made(self, place: Place, tensors: list[Tensor]) -> list[Feature]:
        """The features of the tensors of one place, or that of the place itself."""
        try:
            return [self._represented(one) for one in tensors] or [self._plain(place)]
        except SpecError as error:
            raise SpecError([problem.under("feature", *place) for problem in error.problems]) from None

    def _tensors(self) -> Iterator[Tensor]:
        """Those that are made of features that are there; notes are left on the others."""
        for entry in self._rest.tensor_representation_group:
            for one in entry.value.tensor_representation:
                tensor = represented(one.key, one.value) if entry.key == "" else None
                path = ("tensor_representation_group", entry.key, one.key)
                if tensor is not None and self._is_there(tensor):
                    yield tensor
                    self.notes += [Note(path=path, text=text) for text in unsaid(one.value)]
                else:
                    self.notes.append(Note(path=path, text=f"{inline(one.value)}: {NO_COUNTERPART}"))
        take(self._rest, "tensor_representation_group")
        for at, given in reversed(list(enumerate(self._rest.sparse_feature))):
            tensor = of_sparse_feature(given, self._features) if is_live(given) else None
            if tensor is not None and self._is_there(tensor):
                yield tensor
                if given.is_sorted:
                    path = ("sparse_feature", given.name, "is_sorted")
                    self.notes.append(Note(path=path, text=f"true: {NO_COUNTERPART}"))
                del self._rest.sparse_feature[at]

    def _is_there(self, tensor: Tensor) -> bool:
        found = [self._features.get(place) for place in tensor.places]
        return all(one is not None and one.type in DTYPES for one in found)

    def _represented(self, tensor: Tensor) -> Feature:
        """The feature of a tensor that the schema describes."""
        given = self._features[tensor.values]
        form = self._form(tensor.values, given, tensor.name)
        shape = tensor.shape or ()
        if tensor.form == "sparse":
            return self._sparse(tensor, form)
        if tensor.form == "varlen":
            form = replace(form, shape=(None,), sparse=True)
        elif tensor.form == "dense":
            form = self._dense(tensor, form, given)
        elif tensor.parts or shape:
            levels = (None,) * (1 + len(tensor.parts))
            form = replace(form, shape=(*levels, *shape), row_lengths=tensor.parts)
        else:
            form = self._counted(form, given)
        return self._domains.feature(form, given)

    def _dense(self, tensor: Tensor, form: Form, given: Any) -> Form:
        counted = self._counted(form, given)
        shape = counted.shape if tensor.shape is None else tensor.shape
        take(given, "value_count")
        take_shape(given)
        if is_always_there(given) and tensor.default is None:
            take_presence(given)
        default = None if tensor.default is None else default_of(tensor.default, form.dtype)
        if tensor.default is not None and default is None:
            path = ("tensor_representation_group", "", tensor.name, "default_value")
            self.notes.append(Note(path=path, text=f"{inline(tensor.default)}: no {form.dtype}"))
        return replace(form, shape=shape, default=None if default is None else filled(default, shape))

    def _sparse(self, tensor: Tensor, form: Form) -> Feature:
        shape = tuple(size or 0 for size in tensor.shape or ())
        usual = tuple(f"{form.key}/indices{f'_{at}' * (len(shape) > 1)}" for at in range(len(shape)))
        for place in [*tensor.places][1:]:
            take(self._features[place], "int_domain")  # the size tells it
        return SparseValues(
            name=form.name,
            key=None if form.key == form.name else form.key,
            description=form.description,
            dtype=form.dtype,
            size=shape[0] if len(shape) == 1 else shape,
            index_keys=() if tensor.parts == usual else tensor.parts,
        )

    def _plain(self, place: Place) -> Feature:
        """The feature that no representation describes: its counts tell its shape."""
        given = self._features[place]
        return self._domains.feature(self._counted(self._form(place, given, place[-1]), given), given)

    def _form(self, place: Place, given: Any, name: str) -> Form:
        return Form(
            name=name,
            key=place[-1],
            dtype=DTYPES[given.type],
            steps=len(place) == 2,
            description=comment_of(given),
        )

    def _counted(self, form: Form, given: Any) -> Form:
        """With the shape that the counts of a feature tell."""
        always = form.steps or is_always_there(given)
        count = given.value_count
        if given.HasField("shape") and always and None not in sizes(given.shape):
            shape = sizes(given.shape)
        elif count.min == count.max >= 1 and (always or self._legacy):
            shape = () if count.max == 1 else (count.max,)
        else:
            longest = count.max if count.max > 0 else None
            take(given.value_count, "max", *(["min"] * (count.min == 0)))
            if not given.value_count.ListFields():
                take(given, "value_count")
            return replace(form, shape=(None,), max_length=longest)
        take_shape(given)
        take(given, "value_count")
        if always:
            take_presence(given)
            return replace(form, shape=shape)
        return replace(form, shape=shape, default=filled(LEGACY_DEFAULTS[form.dtype], shape))

    def left(self) -> Iterator[Note]:
        """On what was not understood."""
        yield from self._domains.left()
        yield from left_in(self._rest)


def _check_once(features: Any) -> None:
    """Raises SpecError where two features have one name; those of steps stand apart."""
    names: set[str] = set()
    for feature in features:
        if feature.name in names:
            problem = Problem(path=("feature",), expected="every name once", got=f"`{feature.name}` again")
            raise SpecError(problem)
        names.add(feature.name)
        _check_once(feature.struct_domain.feature)
