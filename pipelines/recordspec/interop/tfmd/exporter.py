"""Exports a schema as a message of TensorFlow Metadata.

Features, including custom kinds, are exported by their columns. The meaning of a kind beyond its columns
becomes a domain, if there is a suitable one.
"""

from __future__ import annotations

import math
from functools import singledispatch
from typing import Any

from recordspec.errors import SpecError
from recordspec.interop.tfmd.messages import (
    BYTES,
    DEFAULT_FIELDS,
    FLOAT,
    INT,
    NARROW_DTYPES,
    STEPS,
    STRUCT,
    add_sizes,
    classes,
    names_domain,
)
from recordspec.schema.features import Feature
from recordspec.schema.features.audio import Audio
from recordspec.schema.features.image import Image
from recordspec.schema.features.label import Label
from recordspec.schema.features.tensor import AnyTensor
from recordspec.schema.features.text import Text
from recordspec.schema.features.video import Video
from recordspec.schema.schema import Schema
from recordspec.schema.values import dtype_range
from recordspec.wire.columns import (
    TF_DTYPES,
    Column,
    Component,
    Fixed,
    Ragged,
    Sequence,
    Sparse,
    VarLen,
)

_TYPES = {"bytes": BYTES, "int64": INT, "float32": FLOAT}


def export_schema(schema: Schema) -> Any:
    """The message, without parts that it cannot express. Raises SpecError if features share a key."""
    if schema._shared_keys:
        raise SpecError(schema._shared_keys)
    message = classes()["Schema"]()
    if schema.description:
        message.annotation.comment.append(schema.description)
    for place, feature in schema._placed:
        if not place.in_steps:
            _FeatureExporter(message, message.feature, in_steps=False).add(feature)
    if schema.record == "sequence_example":
        steps = message.feature.add(name=STEPS, type=STRUCT)
        steps.struct_domain.SetInParent()
        for feature in schema.sequence:
            _FeatureExporter(message, steps.struct_domain.feature, in_steps=True).add(feature)
    message.represent_variable_length_as_ragged = True
    return message


class _FeatureExporter:
    """Adds the features of one section to a list of messages, and their tensors to the schema."""

    def __init__(self, schema: Any, features: Any, *, in_steps: bool) -> None:
        self._schema, self._features = schema, features
        self._in_steps = in_steps
        self._path = (STEPS,) if in_steps else ()

    def add(self, feature: Feature) -> None:
        """Adds a message for each column, and a tensor representation if the columns need one."""
        columns = feature.columns()
        for column in columns:
            message = self._features.add(name=column.key, type=_TYPES[column.storage])
            if isinstance(column.layout, Component):
                continue
            _set_domain(feature, message)
            if feature.traits.known_names and column.storage != "bytes":
                name = names_domain(self._path, column.key)
                self._schema.string_domain.add(name=name, value=feature.traits.known_names)
            if feature.description:
                message.annotation.comment.append(feature.description)
            self._count(message, column, feature)
            values = sum(not isinstance(one.layout, Component) for one in columns)
            name = feature.name if values == 1 else column.key
            self._represent(name, column, feature)

    def _fixed(self, column: Column, feature: Feature) -> tuple[int, ...] | None:
        """The shape of a column if it is the same in every record, or in every step."""
        layout = column.layout
        whole_steps = self._in_steps and feature.traits.spans_steps
        if isinstance(layout, Fixed) or (whole_steps and isinstance(layout, Sequence | Ragged)):
            return layout.shape
        return None

    def _count(self, message: Any, column: Column, feature: Feature) -> None:
        shape = self._fixed(column, feature)
        bound = feature.traits.longest
        if shape is None:
            scalars = column.cell == () and not _row_lengths(column)
            if bound is not None and scalars:
                message.value_count.max = bound
        elif not feature.traits.optional:
            add_sizes(message.shape, shape)
            if not self._in_steps:
                message.presence.min_fraction, message.presence.min_count = 1, 1
        else:  # a `shape` would require the feature in every record
            size = math.prod(shape)
            message.value_count.min = message.value_count.max = size

    def _represent(self, name: str, column: Column, feature: Feature) -> None:
        layout, renamed = column.layout, name != column.key
        shape = self._fixed(column, feature)
        defaults = {*_leaves(getattr(layout, "default", None))}
        if shape is not None and not self._path and len(defaults) < 2:
            if renamed or feature.traits.optional:
                tensor = self._tensor(name).dense_tensor
                tensor.column_name = column.key
                add_sizes(tensor.shape, shape)
                for value in defaults:
                    stored = value.encode() if isinstance(value, str) else value
                    setattr(tensor.default_value, DEFAULT_FIELDS[TF_DTYPES[column.storage]], stored)
        elif isinstance(layout, VarLen) and not layout.ragged:
            self._tensor(name).varlen_sparse_tensor.column_name = column.key
        elif isinstance(layout, Sparse):
            tensor = self._tensor(name).sparse_tensor
            tensor.value_column_name = column.key
            tensor.index_column_names.extend(layout.index_keys)
            add_sizes(tensor.dense_shape, layout.size)
        else:
            # a DefaultValue fills the whole tensor, so that a feature with several values is exported as a
            # list
            cell = () if shape is not None else column.cell
            if renamed or cell or _row_lengths(column):
                tensor = self._tensor(name).ragged_tensor
                tensor.feature_path.step.extend((*self._path, column.key))
                for key in _row_lengths(column):
                    tensor.partition.add(row_length=key)
                for size in cell:
                    tensor.partition.add(uniform_row_length=size)

    def _tensor(self, name: str) -> Any:
        groups = self._schema.tensor_representation_group
        group = groups[0] if len(groups) else groups.add(key="")
        return group.value.tensor_representation.add(key=name).value


def _row_lengths(column: Column) -> tuple[str, ...]:
    return column.layout.row_lengths if isinstance(column.layout, Ragged) else ()


def _leaves(value: Any) -> list[Any]:
    if isinstance(value, tuple):
        return [leaf for item in value for leaf in _leaves(item)]
    return [] if value is None else [value]


@singledispatch
def _set_domain(feature: Feature, message: Any) -> None:
    """Sets the domain that expresses a kind, if there is one. `losses` notes the kinds without one."""
    if feature.traits.class_names and message.type == INT:
        domain = message.int_domain
        domain.min, domain.max, domain.is_categorical = 0, len(feature.traits.class_names) - 1, True


@_set_domain.register
def _set_domain_of_tensor(feature: AnyTensor, message: Any) -> None:
    if message.type != INT:
        return
    if feature.dtype == "bool":
        message.bool_domain.SetInParent()
    elif feature.dtype in NARROW_DTYPES:
        message.int_domain.min, message.int_domain.max = dtype_range(feature.dtype)


@_set_domain.register
def _set_domain_of_label(feature: Label, message: Any) -> None:
    """Sets the domain of a label: for stored names, the names; for indices, their range, while the names
    are in a domain of the schema: see `names_domain`.
    """
    if message.type != BYTES:
        domain = message.int_domain if message.type == INT else message.float_domain
        domain.min, domain.max, domain.is_categorical = 0, feature.classes - 1, True
        return
    message.string_domain.value.extend(feature.names)
    if feature.oov == "index":
        message.distribution_constraints.min_domain_mass = 0


@_set_domain.register
def _set_domain_of_text(feature: Text, message: Any) -> None:
    message.natural_language_domain.SetInParent()


@_set_domain.register(Image)
@_set_domain.register(Video)
def _set_domain_of_image(feature: Image | Video, message: Any) -> None:
    if feature.encoding != "raw":  # each value of a video is an image
        message.image_domain.SetInParent()


@_set_domain.register
def _set_domain_of_audio(feature: Audio, message: Any) -> None:
    if feature.encoding != "raw":
        message.audio_domain.SetInParent()
