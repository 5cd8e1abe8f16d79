"""Imports a schema of TensorFlow Metadata.

The importer removes supported fields from a copy of the message. The fields that are left at the end become
notes, so that nothing is dropped silently.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Literal

from recordspec.errors import Problem, SpecError
from recordspec.interop.notes import Note
from recordspec.interop.stored_tensor import StoredTensor, full_default
from recordspec.interop.tfmd.messages import (
    BYTES,
    DEFAULT_FIELDS,
    DTYPES,
    FLOAT,
    INT,
    NARROW_DTYPES,
    STEPS,
    inline,
    is_live,
    names_domain,
    sizes,
)
from recordspec.interop.tfmd.representations import (
    FeaturePath,
    TensorRepresentation,
    from_sparse_feature,
    represented,
    unsupported_options,
)
from recordspec.interop.tfmd.unsupported import NO_COUNTERPART, unsupported
from recordspec.schema.feature_set import ALL_SECTIONS
from recordspec.schema.features import Feature
from recordspec.schema.features.label import MISSING, Label
from recordspec.schema.features.sparse import SparseValues
from recordspec.schema.features.text import Text
from recordspec.schema.schema import Schema
from recordspec.schema.values import dtype_range

_BY_RANGE = {dtype_range(dtype): dtype for dtype in NARROW_DTYPES}
_ENCODINGS: dict[int, Literal["index", "name", "float"]] = {INT: "index", BYTES: "name", FLOAT: "float"}
_SHARED_DOMAINS = ("int_domain", "float_domain", "string_domain")
# The values that TFX substitutes for missing ones under `generate_legacy_feature_spec`.
_LEGACY_DEFAULTS: dict[str, Any] = {"string": "", "int64": -1, "float32": -1.0}


def import_schema(message: Any, name: str, source: str) -> tuple[Schema, list[Note]]:
    """Imports a schema. Also returns notes on parts without a counterpart. Raises SpecError if no feature
    can be read.
    """
    try:
        importer = _SchemaImporter(message)
        sections = importer.sections()
        notes = [*importer.notes, *importer.unsupported()]
        if not any(sections.get(section) for section in ALL_SECTIONS):
            hint = str(notes[0]) if notes else ""
            expected = "a feature that can be read"
            raise SpecError(Problem(expected=expected, got="none", hint=hint))
        schema = Schema(name=name, description=importer.description, **sections)
    except SpecError as error:
        raise SpecError([problem.at(source) for problem in error.problems]) from None
    return schema, notes


class _SchemaImporter:
    """Imports a message, from a copy.

    Attributes:
        description: the description of the schema.
        notes: the notes on tensor representations and sparse features.
    """

    def __init__(self, message: Any) -> None:
        self._rest = type(message)()
        self._rest.CopyFrom(message)
        self.notes: list[Note] = []
        _check_unique(message.feature)
        self.description = _take_comment(self._rest)
        self._legacy = self._rest.generate_legacy_feature_spec
        # The domains shared by features, by name.
        self._shared = {one: {each.name: each for each in getattr(message, one)} for one in _SHARED_DOMAINS}
        self._used: set[str] = set()
        _take(self._rest, *_SHARED_DOMAINS)
        self._features: dict[FeaturePath, Any] = {
            (one.name,): one for one in self._rest.feature if is_live(one)
        }
        self._has_steps = (STEPS,) in self._features
        if self._has_steps:
            struct = self._features.pop((STEPS,))
            _take(struct, "presence", "value_count")
            steps = struct.struct_domain.feature
            self._features |= {(STEPS, step.name): step for step in steps if is_live(step)}
        _take(self._rest, "generate_legacy_feature_spec", "represent_variable_length_as_ragged")

    def sections(self) -> dict[str, Any]:
        """The record type, and the features of each of its sections."""
        tensors: dict[FeaturePath, list[TensorRepresentation]] = {}
        for tensor in self._tensors():
            tensors.setdefault(tensor.values, []).append(tensor)
        parts = {path for found in tensors.values() for one in found for path in one.part_paths}
        context: list[Feature] = []
        steps: list[Feature] = []
        for path, feature in self._features.items():
            if feature.type not in DTYPES or path in parts:
                continue
            section = context if len(path) == 1 else steps
            try:
                converted = [self._represented(one) for one in tensors.get(path, [])]
                if not converted:  # without a representation, its shape follows from its counts
                    stored = self._counted(self._stored(path, feature, path[-1]), feature)
                    converted = [self._of_domain(stored, feature)]
                section.extend(converted)
            except SpecError as error:
                raise SpecError([problem.under("feature", *path) for problem in error.problems]) from None
        if self._has_steps:
            return {"record": "sequence_example", "context": tuple(context), "sequence": tuple(steps)}
        return {"features": tuple(context)}

    def _tensors(self) -> Iterator[TensorRepresentation]:
        """The tensors whose features all exist. Adds a note for each of the other tensors."""
        for entry in self._rest.tensor_representation_group:
            for representation in entry.value.tensor_representation:
                tensor = represented(representation.key, representation.value) if entry.key == "" else None
                path = ("tensor_representation_group", entry.key, representation.key)
                if tensor is not None and self._is_complete(tensor):
                    yield tensor
                    self.notes += [
                        Note(path=path, text=text) for text in unsupported_options(representation.value)
                    ]
                else:
                    self.notes.append(
                        Note(path=path, text=f"{inline(representation.value)}: {NO_COUNTERPART}")
                    )
        _take(self._rest, "tensor_representation_group")
        for at, sparse in reversed(list(enumerate(self._rest.sparse_feature))):
            tensor = from_sparse_feature(sparse, self._features) if is_live(sparse) else None
            if tensor is not None and self._is_complete(tensor):
                yield tensor
                if sparse.is_sorted:
                    path = ("sparse_feature", sparse.name, "is_sorted")
                    self.notes.append(Note(path=path, text=f"true: {NO_COUNTERPART}"))
                del self._rest.sparse_feature[at]

    def _is_complete(self, tensor: TensorRepresentation) -> bool:
        parts = [self._features.get(path) for path in (tensor.values, *tensor.part_paths)]
        return all(part is not None and part.type in DTYPES for part in parts)

    def _represented(self, tensor: TensorRepresentation) -> Feature:
        """The feature defined by a tensor representation."""
        field = self._features[tensor.values]
        stored = self._stored(tensor.values, field, tensor.name)
        shape = tensor.shape or ()
        if tensor.kind == "sparse":
            return self._sparse(tensor, stored)
        if tensor.kind == "varlen":
            stored = replace(stored, shape=(None,), sparse=True)
        elif tensor.kind == "dense":
            stored = self._dense(tensor, stored, field)
        elif tensor.parts or shape:
            levels = (None,) * (1 + len(tensor.parts))
            stored = replace(stored, shape=(*levels, *shape), row_lengths=tensor.parts)
        else:
            stored = self._counted(stored, field)
        return self._of_domain(stored, field)

    def _dense(self, tensor: TensorRepresentation, stored: StoredTensor, field: Any) -> StoredTensor:
        counted = self._counted(stored, field)
        shape = counted.shape if tensor.shape is None else tensor.shape
        _take(field, "value_count")
        _take_shape(field)
        if _is_required(field) and tensor.default is None:
            _take_presence(field)
        default = None if tensor.default is None else _default(tensor.default, stored.dtype)
        if tensor.default is not None and default is None:
            path = ("tensor_representation_group", "", tensor.name, "default_value")
            self.notes.append(Note(path=path, text=f"{inline(tensor.default)}: no {stored.dtype}"))
        return replace(stored, shape=shape, default=None if default is None else full_default(default, shape))

    def _sparse(self, tensor: TensorRepresentation, stored: StoredTensor) -> Feature:
        for path in tensor.part_paths:
            _take(self._features[path], "int_domain")  # it follows from the dense shape
        return SparseValues(
            name=stored.name,
            key=stored.key,
            description=stored.description,
            dtype=stored.dtype,
            size=tuple(size or 0 for size in tensor.shape or ()),
            index_keys=tensor.parts,
        ).shortest

    def _of_domain(self, stored: StoredTensor, field: Any) -> Feature:
        """The feature that stores a tensor. Removes from `field` the parts that it expresses: the domain,
        a text, or the range of a dtype.
        """
        self._used.add(field.domain)
        label = self._label(stored, field)
        if label is not None:
            return label
        is_text = field.HasField("natural_language_domain") and stored.default is None
        if is_text and not field.natural_language_domain.ListFields() and stored.shape == ():
            _take(field, "natural_language_domain")
            return Text(name=stored.name, key=stored.key, description=stored.description).shortest
        # `tensor` has no default, no bound, and at most one unknown dimension
        bounded = stored.default is not None or stored.max_length is not None
        narrow = not (bounded or stored.sparse or stored.row_lengths)
        dtype = self._dtype(field) if narrow else None
        if dtype is None:
            return stored.feature()
        _take(field, "bool_domain", "int_domain", "domain")
        return replace(stored, dtype=dtype).feature()

    def _label(self, stored: StoredTensor, field: Any) -> Feature | None:
        """The label whose names are in a string domain; its values are the names or their indices."""
        path = (STEPS,) if stored.per_step else ()
        shared, domain = self._shared["string_domain"], field.string_domain
        if not field.HasField("string_domain"):
            name = field.domain if field.type == BYTES else names_domain(path, stored.key)
            if name not in shared:
                return None
            domain = shared[name]
        # the default of a label that a row may lack
        may_lack = stored.default == ("" if field.type == BYTES else MISSING) and not stored.shape
        plain = (stored.default is None or may_lack) and stored.max_length is None
        names = tuple(domain.value)
        if not plain or stored.sparse or stored.row_lengths or len(stored.shape) > 1:
            return None
        mass = field.distribution_constraints.min_domain_mass
        is_open = field.HasField("distribution_constraints") and mass == 0
        if field.type != BYTES:
            indices = field.int_domain if field.type == INT else field.float_domain
            is_open = indices.max == len(names)
            if not (indices.is_categorical and indices.min == 0 and indices.max + 1 - is_open == len(names)):
                return None
        try:
            label = Label(
                name=stored.name,
                key=stored.key,
                description=stored.description,
                names=names,
                shape=stored.shape,
                missing=may_lack or "error",
                oov="index" if is_open else "error",
                encoding=_ENCODINGS[field.type],
            )
        except SpecError:  # two names are equal, or there are no names
            return None
        self._used.add(domain.name)
        _take(field, "domain", "int_domain", "float_domain")
        _take(field.string_domain, "name", "value", "is_categorical")
        if not field.string_domain.ListFields():
            _take(field, "string_domain")
        if field.type == BYTES and is_open:
            _take(field, "distribution_constraints")
        return label.shortest

    def _dtype(self, field: Any) -> str | None:
        """The dtype whose range is the domain of a feature."""
        if field.type != INT:
            return None
        if field.HasField("bool_domain"):
            return None if field.bool_domain.ListFields() else "bool"
        domain = self._shared["int_domain"].get(field.domain, field.int_domain)
        if domain.is_categorical or not (domain.HasField("min") and domain.HasField("max")):
            return None
        return _BY_RANGE.get((domain.min, domain.max))

    def _stored(self, path: FeaturePath, field: Any, name: str) -> StoredTensor:
        return StoredTensor(
            name=name,
            key=path[-1],
            dtype=DTYPES[field.type],
            per_step=len(path) == 2,
            description=_take_comment(field),
        )

    def _counted(self, stored: StoredTensor, field: Any) -> StoredTensor:
        """The tensor with the shape that follows from the counts of a feature."""
        required = stored.per_step or _is_required(field)
        count = field.value_count
        if field.HasField("shape") and required and None not in sizes(field.shape):
            shape = sizes(field.shape)
        elif count.min == count.max >= 1 and (required or self._legacy):
            shape = () if count.max == 1 else (count.max,)
        else:
            longest = count.max if count.max > 0 else None
            _take(field.value_count, "max", *(["min"] * (count.min == 0)))
            if not field.value_count.ListFields():
                _take(field, "value_count")
            return replace(stored, shape=(None,), max_length=longest)
        _take_shape(field)
        _take(field, "value_count")
        if required:
            _take_presence(field)
            return replace(stored, shape=shape)
        return replace(stored, shape=shape, default=full_default(_LEGACY_DEFAULTS[stored.dtype], shape))

    def unsupported(self) -> Iterator[Note]:
        """Notes on the remaining fields, and on shared domains that no feature uses."""
        for field, domains in self._shared.items():
            for name in sorted(domains.keys() - self._used):
                yield Note(path=(field, name), text="not used by any feature")
        yield from unsupported(self._rest)


def _take(message: Any, *fields: str) -> None:
    """Removes fields from a message: they are supported, and need no note."""
    for field in fields:
        message.ClearField(field)


def _take_shape(message: Any) -> None:
    """Removes the sizes of a shape from a message; names of dimensions remain, and become notes."""
    for dim in message.shape.dim:
        _take(dim, "size")
    if not any(dim.HasField("name") for dim in message.shape.dim):
        _take(message, "shape")


def _is_required(feature: Any) -> bool:
    """Whether every record has the feature."""
    return bool(feature.presence.min_fraction == 1)


def _take_presence(feature: Any) -> None:
    """Removes the presence of a required feature; a minimum count of more than one record stays."""
    if feature.presence.min_count <= 1:
        _take(feature, "presence")
    else:
        _take(feature.presence, "min_fraction")


def _take_comment(message: Any) -> str:
    """Removes the description from an annotation, and returns it; empty unless it is a single comment."""
    if len(message.annotation.comment) != 1:
        return ""
    (comment,) = message.annotation.comment
    _take(message.annotation, "comment")
    if not message.annotation.ListFields():
        _take(message, "annotation")
    return str(comment)


def _default(value: Any, dtype: str) -> Any:
    """A DefaultValue as a value of the dtype; None if it has another dtype, or invalid UTF-8."""
    field = DEFAULT_FIELDS[dtype]
    if not value.HasField(field):
        return None
    scalar = getattr(value, field)
    try:
        return scalar.decode() if dtype == "string" else scalar
    except UnicodeDecodeError:
        return None


def _check_unique(features: Any) -> None:
    """Raises SpecError if two features have the same name; features of steps are separate."""
    names: set[str] = set()
    for feature in features:
        if feature.name in names:
            problem = Problem(path=("feature",), expected="unique names", got=f"`{feature.name}` twice")
            raise SpecError(problem)
        names.add(feature.name)
        _check_unique(feature.struct_domain.feature)
