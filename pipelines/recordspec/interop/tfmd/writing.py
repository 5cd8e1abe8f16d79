"""A schema of ours as a message of TensorFlow Metadata.

Features are told by the columns that they store, so that a kind of somebody's own is told, too; what a kind
means beside that is said by a domain, where there is one.
"""

from __future__ import annotations

import math
from functools import singledispatch
from typing import Any

from recordspec.errors import SpecError
from recordspec.interop.tfmd.declared import BYTES, FLOAT, INT, STEPS, STRUCT, classes
from recordspec.interop.tfmd.domains import NARROW
from recordspec.interop.tfmd.values import DEFAULT_KINDS, add_sizes
from recordspec.spec.features import Feature
from recordspec.spec.features.audio import Audio
from recordspec.spec.features.image import Image
from recordspec.spec.features.label import Label
from recordspec.spec.features.tensor import AnyTensor
from recordspec.spec.features.text import Text
from recordspec.spec.features.video import Video
from recordspec.spec.schema import Schema
from recordspec.spec.values import dtype_range
from recordspec.wire.columns import TF_DTYPES, Column, Fixed, Part, Ragged, Section, Sequence, Sparse, VarLen

_TYPES = {"bytes": BYTES, "int64": INT, "float32": FLOAT}


def write_schema(schema: Schema) -> Any:
    """The message; what it cannot say is not in it. Raises SpecError where features share a key."""
    if schema.shared_keys:
        raise SpecError(schema.shared_keys)
    message = classes()["Schema"]()
    if schema.description:
        message.annotation.comment.append(schema.description)
    for section, feature in schema.placed:
        if section != "sequence":
            _Writer(message, message.feature, section).add(feature)
    if schema.record == "sequence_example":
        steps = message.feature.add(name=STEPS, type=STRUCT)
        steps.struct_domain.SetInParent()
        for feature in schema.sequence:
            _Writer(message, steps.struct_domain.feature, "sequence").add(feature)
    message.represent_variable_length_as_ragged = True
    return message


class _Writer:
    """Writes features of one section into a list of messages, and their tensors into the schema."""

    def __init__(self, schema: Any, features: Any, section: Section) -> None:
        self._schema, self._features = schema, features
        self._section = section
        self._path = (STEPS,) if section == "sequence" else ()

    def add(self, feature: Feature) -> None:
        """A message for each of its columns, and if need be a representation of the tensor they make."""
        columns = feature.columns()
        for column in columns:
            message = self._features.add(name=column.key, type=_TYPES[column.storage])
            if isinstance(column.layout, Part):
                continue
            _say(feature, message)
            if feature.description:
                message.annotation.comment.append(feature.description)
            self._count(message, column, feature)
            name = feature.name if len(columns) == 1 + _parts(columns) else column.key
            self._represent(name, column, feature)

    def _fixed(self, column: Column, feature: Feature) -> tuple[int, ...] | None:
        """The shape of what has one in every record, or in every step."""
        layout = column.layout
        whole_steps = self._section == "sequence" and feature.spans_steps
        if isinstance(layout, Fixed) or (whole_steps and isinstance(layout, Sequence | Ragged)):
            return layout.shape
        return None

    def _count(self, message: Any, column: Column, feature: Feature) -> None:
        shape = self._fixed(column, feature)
        bound = getattr(feature, "max_length", None)
        if shape is None:
            scalars = getattr(column.layout, "shape", ()) == () and not _row_lengths(column)
            if bound is not None and scalars:
                message.value_count.max = bound
        elif not feature.optional:
            add_sizes(message.shape, shape)
            if self._section != "sequence":
                message.presence.min_fraction, message.presence.min_count = 1, 1
        else:  # a `shape` says that every record has it
            size = math.prod(shape)
            message.value_count.min = message.value_count.max = size

    def _represent(self, name: str, column: Column, feature: Feature) -> None:
        layout, renamed = column.layout, name != column.key
        shape = self._fixed(column, feature)
        defaults = {*_leaves(getattr(layout, "default", None))}
        if shape is not None and not self._path and len(defaults) < 2:
            if renamed or feature.optional:
                self._dense(self._tensor(name).dense_tensor, column, shape, defaults)
        elif isinstance(layout, VarLen) and not layout.ragged:
            self._tensor(name).varlen_sparse_tensor.column_name = column.key
        elif isinstance(layout, Sparse):
            self._sparse(self._tensor(name).sparse_tensor, column.key, layout)
        else:
            # one default stands for all places: a feature with several is said as a list
            cell = () if shape is not None else getattr(layout, "shape", ())
            if renamed or cell or _row_lengths(column):
                self._ragged(self._tensor(name).ragged_tensor, column, cell)

    def _tensor(self, name: str) -> Any:
        groups = self._schema.tensor_representation_group
        group = groups[0] if len(groups) else groups.add(key="")
        return group.value.tensor_representation.add(key=name).value

    def _dense(self, tensor: Any, column: Column, shape: tuple[int, ...], defaults: set[Any]) -> None:
        tensor.column_name = column.key
        add_sizes(tensor.shape, shape)
        for value in defaults:
            given = value.encode() if isinstance(value, str) else value
            setattr(tensor.default_value, DEFAULT_KINDS[TF_DTYPES[column.storage]], given)

    def _sparse(self, tensor: Any, key: str, layout: Sparse) -> None:
        tensor.value_column_name = key
        tensor.index_column_names.extend(layout.index_keys)
        add_sizes(tensor.dense_shape, layout.size)

    def _ragged(self, tensor: Any, column: Column, cell: tuple[int, ...]) -> None:
        tensor.feature_path.step.extend((*self._path, column.key))
        for key in _row_lengths(column):
            tensor.partition.add(row_length=key)
        for size in cell:
            tensor.partition.add(uniform_row_length=size)


def _parts(columns: tuple[Column, ...]) -> int:
    return sum(isinstance(column.layout, Part) for column in columns)


def _row_lengths(column: Column) -> tuple[str, ...]:
    return column.layout.row_lengths if isinstance(column.layout, Ragged) else ()


def _leaves(value: Any) -> list[Any]:
    if isinstance(value, tuple):
        return [leaf for item in value for leaf in _leaves(item)]
    return [] if value is None else [value]


@singledispatch
def _say(feature: Feature, message: Any) -> None:
    """The domain that says what a kind means, if there is one."""


@_say.register
def _say_tensor(feature: AnyTensor, message: Any) -> None:
    if message.type != INT:
        return
    if feature.dtype == "bool":
        message.bool_domain.SetInParent()
    elif feature.dtype in NARROW:
        message.int_domain.min, message.int_domain.max = dtype_range(feature.dtype)


@_say.register
def _say_label(feature: Label, message: Any) -> None:
    domain = message.int_domain
    domain.min, domain.max, domain.is_categorical = 0, feature.classes - 1, True


@_say.register
def _say_text(feature: Text, message: Any) -> None:
    message.natural_language_domain.SetInParent()


@_say.register(Image)
@_say.register(Video)
def _say_image(feature: Image | Video, message: Any) -> None:
    if feature.encoding != "raw":  # of a video, each value is an image
        message.image_domain.SetInParent()


@_say.register
def _say_audio(feature: Audio, message: Any) -> None:
    if feature.encoding != "raw":
        message.audio_domain.SetInParent()
