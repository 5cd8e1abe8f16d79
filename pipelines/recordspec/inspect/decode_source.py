"""Python that decodes a schema's records with TensorFlow alone: what `Schema.decode` does, written out.

The functions that it defines are those of the decoder, by their text, so the two cannot drift.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from textwrap import indent
from typing import Any

from recordspec.errors import Problem, SpecError
from recordspec.schema import tensors
from recordspec.schema.decoder import types_of
from recordspec.schema.feature_set import columns_in
from recordspec.schema.features import Feature, audio, box, geometry, image, label, tensor, video
from recordspec.schema.features.geometry import Pictures
from recordspec.schema.features.python_source import in_resized, outputs_of, sides_of_images
from recordspec.schema.media import resampling
from recordspec.schema.schema import Schema
from recordspec.wire.columns import (
    Component,
    Fixed,
    Section,
    Sequence,
    as_decoded,
    parse_call,
    parse_calls,
)

# The modules of the decoder's functions that may be written out, in this order.
_HOMES = (tensors, resampling, tensor, label, geometry, image, audio, video, box)
_IMPORTS = {"np": "import numpy as np", "ceil": "from math import ceil", "gcd": "from math import gcd"}


def module_source(schema: Schema) -> str:
    """A module with `parse`, `decode` and `dataset`.

    Raises SpecError with each feature that TensorFlow alone does not decode, and for records of TF-Ranking.
    """
    schema.check_message("in plain TensorFlow")
    lines: list[str] = []
    problems: list[Problem] = []
    with types_of(schema):
        for section, feature in schema.placed:
            try:
                lines += _statements(schema, section, feature)
            except SpecError as error:
                problems += [problem.under(section, feature.name) for problem in error.problems]
    if problems:
        raise SpecError(problems)
    body = "\n".join([_parse_source(schema), _decode_source(schema, lines), _DATASET])
    functions = list(_functions_in(body))
    names = {feature.name: list(feature.class_names) for _, feature in schema.placed if feature.class_names}
    classes = [
        f"# The names of the classes, by feature, in the order of their indices.\nCLASS_NAMES = {names!r}\n"
    ]
    text = "\n\n".join([*functions, body])
    imports = [line for name, line in sorted(_IMPORTS.items()) if _uses(text, name)]
    top = "\n".join([*sorted(imports, reverse=True), *[""] * bool(imports), "import tensorflow as tf", ""])
    return "\n\n".join([top, *([] if not names else classes), *functions, body]).replace("\n\n\n\n", "\n\n\n")


_DATASET = '''
def dataset(files, batch, compression=""):
    """Decoded batches of the records of TFRecord files, in their order; compression is GZIP, ZLIB or none."""
    records = tf.data.TFRecordDataset(files, compression)
    return records.batch(batch).map(decode, num_parallel_calls=tf.data.AUTOTUNE)
'''


def _parse_source(schema: Schema) -> str:
    tables = []
    for section in schema.sections:
        calls = parse_calls(map(as_decoded, schema.columns(section)), section)
        rows = "".join(f"    {key!r}: {call.source()},\n" for key, call in calls.items())
        tables.append(f"{section} = {{\n{rows}}}\n")
    if schema.record == "example":
        function = (
            "def parse(serialized):\n"
            '    """The columns of a batch of records, string [n], by stored key."""\n'
            "    return tf.io.parse_example(serialized, features)\n"
        )
    else:
        parsed = "tf.io.parse_example(serialized, context)"
        steps = "tf.io.parse_sequence_example(serialized, {}, sequence)[1]"
        function = (
            "def parse(serialized):\n"
            '    """The columns of the context and of the steps of a batch of records, string [n]."""\n'
            f"    parsed = {parsed if schema.context else '{}'}\n"
            f"    return parsed, {steps if schema.sequence else '{}'}\n"
        )
    return "\n".join([*tables, "", function])


def _decode_source(schema: Schema, lines: list[str]) -> str:
    parsed = "parsed" if schema.record == "example" else "parsed, steps"
    return "\n".join(
        [
            "",
            "def decode(serialized):",
            '    """The decoded features of a batch of records, string [n], by name."""',
            f"    {parsed} = parse(serialized)",
            "    decoded = {}",
            *(indent(line, "    ") for line in lines),
            "    return decoded",
            "",
        ]
    )


def _statements(schema: Schema, section: Section, feature: Feature) -> Iterator[str]:
    """The lines that decode a feature."""
    values = _values(section, feature)
    first = next(iter(values.values()))
    in_steps, image = feature.name in schema.steps, schema.images.get(feature.name)
    # the steps of all records are decoded as one batch
    outputs = outputs_of(feature, _flat(values) if in_steps else values)
    if image is not None and image.resizing is not None:
        sides = _sides(schema, image)
        sides = f"sides_by_step({sides}, {first})" if in_steps else sides
        outputs = {names: in_resized(feature, one, sides, image.resizing) for names, one in outputs.items()}
    for names, expression in outputs.items():
        value = f"{first}.with_values({expression})" if in_steps else expression
        yield f"{', '.join(f'decoded[{name!r}]' for name in names)} = {value}"


def _sides(schema: Schema, image: Pictures) -> str:
    """The height and width of images before they are resized."""
    (section,) = (section for section, feature in schema.placed if feature is image)
    values = _values(section, image)
    if image.name not in schema.steps:
        return sides_of_images(image, values)
    return f"{next(iter(values.values()))}.with_values({sides_of_images(image, _flat(values))})"


def _values(section: Section, feature: Feature) -> dict[str, str]:
    """The parsed columns of a feature, by key."""
    columns = zip(map(as_decoded, feature.columns()), columns_in(section, feature), strict=True)
    return {
        column.key: _column(section, stated, column.layout)
        for stated, column in columns
        if not isinstance(column.layout, Component)
    }


def _flat(values: dict[str, str]) -> dict[str, str]:
    return {key: f"{value}.values" for key, value in values.items()}


def _column(section: Section, stated: Any, layout: Any) -> str:
    if section != "sequence":
        return f"parsed[{stated.key!r}]"
    value = f"steps[{stated.key!r}]"
    call = parse_call(stated, section)
    one_item = isinstance(layout, Fixed | Sequence) and call is not None and call.function == "RaggedFeature"
    return f"{value}.with_values(merged_steps({value}.values))" if one_item else value


# The functions that the module uses.


def _uses(text: str, name: str) -> bool:
    return any(isinstance(node, ast.Name) and node.id == name for node in ast.walk(ast.parse(text)))


def _functions_in(body: str) -> Iterator[str]:
    """The texts of the functions and constants that this text needs, and those that they need."""
    known: dict[str, tuple[int, int, str]] = {}
    for place, home in enumerate(_HOMES):
        source = inspect.getsource(home)
        for node in ast.parse(source).body:
            for name in _names_of(node):
                known[name] = (place, node.lineno, _text_of(node, source))
    needed: dict[str, tuple[int, int, str]] = {}
    waiting = [body]
    while waiting:
        for used in ast.walk(ast.parse(waiting.pop())):
            if isinstance(used, ast.Name) and used.id in known and used.id not in needed:
                needed[used.id] = known[used.id]
                waiting.append(known[used.id][2])
    yield from (text for _, _, text in sorted(needed.values()))


def _names_of(node: ast.stmt) -> list[str]:
    """The name of a function, or of a constant."""
    if isinstance(node, ast.FunctionDef):
        return [node.name]
    targets = node.targets if isinstance(node, ast.Assign) else []
    return [target.id for target in targets if isinstance(target, ast.Name) and target.id.isupper()]


def _text_of(node: ast.stmt, source: str) -> str:
    """The text of a statement; of a function without annotations, which name types of others."""
    lines = source.splitlines()
    if not isinstance(node, ast.FunctionDef):
        return "\n".join(lines[node.lineno - 1 : node.end_lineno]) + "\n"
    for argument in (*node.args.args, *node.args.kwonlyargs):
        argument.annotation = None
    text = "\n".join(lines[node.body[0].lineno - 1 : node.end_lineno])
    for inner in ast.walk(node):
        if isinstance(inner, ast.FunctionDef) and inner is not node:
            for argument in inner.args.args:
                argument.annotation = None
            old = lines[inner.lineno - 1].strip()
            text = text.replace(old, f"def {inner.name}({ast.unparse(inner.args)}):")
    return f"def {node.name}({ast.unparse(node.args)}):\n{text}\n"
