"""The format of TFDS: features.json, parsed to nodes, and its names for dtypes, keys and files.

A node is a class of TFDS and its content, in any of three formats. Since release 4.4, TFDS writes the JSON of
a protobuf message. Before, it wrote a type and a content; the content may be such a message, as JSON or as a
string of JSON.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from recordspec.errors import Path, Problem, SpecError, describe
from recordspec.schema.values import DTYPES, is_integer

# The dtypes, by their names in all versions of features.json.
TFDS_DTYPES = {name: name for name in DTYPES} | {"string": "string", "object": "string", "str": "string"}
# The dtype, one that tf.io parses, in which TFDS stores each dtype without an encoding.
STORED_DTYPES: dict[str, str] = {
    **{name: "int64" for name in DTYPES if is_integer(name)},
    "bool": "int64",
    **dict.fromkeys(("float16", "bfloat16", "float32", "float64"), "float32"),
    "string": "string",
}
# The value that TFDS reads for a missing optional value: the smallest one, which for float64 becomes infinite
# as float32.
OPTIONAL_DEFAULTS: dict[str, Any] = {
    "string": "",
    "int64": int(np.iinfo(np.int64).min),
    "uint64": 0,
    "float32": float(np.finfo(np.float32).min),
    "float64": float("-inf"),
}
# TFDS appends these suffixes to the key of nested sequences.
FLAT, ROW_LENGTHS = "ragged_flat_values", "ragged_row_lengths_"
LABELS_SUFFIX = ".labels.txt"

# The deepest accepted nesting of features.
_MAX_DEPTH = 32
_CONTENTS = (
    *("featuresDict", "tensor", "classLabel", "image", "video", "audio", "boundingBox", "text"),
    *("translation", "sequence", "jsonFeature"),
)


@dataclass(frozen=True, kw_only=True)
class FeatureNode:
    """A feature of TFDS.

    Attributes:
        kind: the class, without the module.
        path: the place in the file.
        content: the options.
        description: a text for readers.
    """

    kind: str
    path: Path
    content: Mapping[str, Any]
    description: str = ""

    def wrong(self, expected: str, got: str, *option: str) -> SpecError:
        """The error for an option, or for the whole node."""
        return SpecError(Problem(path=(*self.path, *option), expected=expected, got=got))

    def option(self, name: str) -> Any:
        """An option's value, in camel case in protobuf's JSON; None if it is not given."""
        first, *words = name.split("_")
        camel = "".join([first, *map(str.capitalize, words)])
        return self.content.get(camel, self.content.get(name))

    def text(self, name: str) -> str:
        """A text; empty if it is not given."""
        value = self.option(name)
        if value is not None and not isinstance(value, str):
            raise self.wrong("text", describe(value), name)
        return value or ""

    def number(self, name: str) -> int | None:
        """A whole number, which is text in protobuf's JSON; None if it is not given."""
        value = self.option(name)
        return None if value is None else self._whole(value, name)

    def _whole(self, value: Any, name: str) -> int:
        if isinstance(value, str) and value.removeprefix("-").isdecimal() and len(value) < 20:
            return int(value)
        if isinstance(value, int) and not isinstance(value, bool):
            return value
        raise self.wrong("a whole number", describe(value), name)

    def shape(self) -> tuple[int | None, ...]:
        """The sizes; None for an unknown size."""
        value = self.option("shape")
        if isinstance(value, Mapping):
            value = value.get("dimensions", [])
        if value is None:
            return ()
        if not isinstance(value, list):
            raise self.wrong("a list of sizes", describe(value), "shape")
        sizes = [None if size is None else self._whole(size, "shape") for size in value]
        return tuple(None if size is None or size < 0 else size for size in sizes)

    def child(self, value: Any, *name: str) -> FeatureNode:
        """The node of a nested feature."""
        return _node(value, (*self.path, *name))

    def children(self) -> dict[str, FeatureNode]:
        """The features of a FeaturesDict, by name."""
        features = self.content.get("features", {}) if "features" in self.content else self.content
        if not isinstance(features, Mapping) or not features:
            raise self.wrong("features by name", describe(features))
        return {name: self.child(value, name) for name, value in features.items()}


def parse_features(text: str, source: str) -> FeatureNode:
    """The root node of a file's text. Raises SpecError, located at `source`."""
    try:
        return _node(json.loads(text), ())
    except SpecError as error:
        raise SpecError([problem.at(source) for problem in error.problems]) from None
    except (ValueError, RecursionError) as error:
        raise SpecError(Problem(where=source, expected="JSON", got=str(error))) from None


def _node(value: Any, path: Path) -> FeatureNode:
    expected = "a feature of TFDS"
    if not isinstance(value, Mapping):
        raise SpecError(Problem(path=path, expected=expected, got=describe(value)))
    if len(path) > _MAX_DEPTH:
        raise SpecError(Problem(path=path[:1], expected=f"at most {_MAX_DEPTH} levels", got="more"))
    name = value.get("pythonClassName", value.get("type"))
    content = value.get("content")
    if "type" not in value:  # a message; its content may be absent if it is empty
        content = next((value[one] for one in _CONTENTS if one in value), {})
        if "jsonFeature" in value and isinstance(content, Mapping):
            content = content.get("json", "{}")
    if isinstance(content, str):
        try:
            content = json.loads(content)
        except (ValueError, RecursionError) as error:
            raise SpecError(Problem(path=path, expected="JSON", got=str(error))) from None
    if not isinstance(name, str) or not isinstance(content, Mapping):
        raise SpecError(Problem(path=path, expected=expected, got=describe(dict(value))))
    description = value.get("description", "")
    return FeatureNode(
        kind=name.rpartition(".")[2],
        path=path,
        content=content,
        description=description if isinstance(description, str) else "",
    )


def file_stem(name: str) -> str:
    """The form of a feature's name in file names."""
    return name.replace("/", ".")
