"""The parts of custom feature kinds; `recordspec docs custom-kinds` has a complete example."""

from recordspec.errors import Problem
from recordspec.schema.features import KINDS, Feature
from recordspec.schema.features.feature import READING, WRITING, Traits, ValueType
from recordspec.schema.features.geometry import Coordinates, ImageTransform, Pictures, Resize, Turn
from recordspec.schema.lists import items, rows_of, strings
from recordspec.schema.ragged_array import RaggedArray, SparseArray, dense, ragged
from recordspec.schema.tensors import ragged_spec
from recordspec.schema.values import BadValue, numbers
from recordspec.wire.arrays import to_arrow
from recordspec.wire.columns import Column, Component, Fixed, Ragged, Sequence, Sparse, VarLen

__all__ = [
    "KINDS",
    "READING",
    "WRITING",
    "BadValue",
    "Column",
    "Component",
    "Coordinates",
    "Feature",
    "Fixed",
    "ImageTransform",
    "Pictures",
    "Problem",
    "Ragged",
    "RaggedArray",
    "Resize",
    "Sequence",
    "Sparse",
    "SparseArray",
    "Traits",
    "Turn",
    "ValueType",
    "VarLen",
    "dense",
    "items",
    "numbers",
    "ragged",
    "ragged_spec",
    "rows_of",
    "strings",
    "to_arrow",
]
