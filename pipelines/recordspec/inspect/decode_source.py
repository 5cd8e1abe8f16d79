"""Python that decodes a schema's records with TensorFlow alone: what `Schema.decode` does, written out.

The functions that it defines are those of the decoder, by their text, so the two cannot drift.
"""

from __future__ import annotations

import ast
import inspect
import math
from collections.abc import Iterator, Mapping
from functools import singledispatch
from textwrap import indent
from typing import Any

import numpy as np

from recordspec.errors import Problem, SpecError
from recordspec.spec import tensors
from recordspec.spec.feature_set import columns_in
from recordspec.spec.features import KINDS, Feature, audio, box, image, label, tensor, video
from recordspec.spec.features.audio import Audio
from recordspec.spec.features.box import Box
from recordspec.spec.features.fixed_len import FixedLen
from recordspec.spec.features.fixed_len_sequence import FixedLenSequence
from recordspec.spec.features.image import Image
from recordspec.spec.features.label import Label
from recordspec.spec.features.options import static
from recordspec.spec.features.ragged import RaggedLists
from recordspec.spec.features.sparse import SparseValues
from recordspec.spec.features.tensor import AnyTensor
from recordspec.spec.features.text import Text
from recordspec.spec.features.var_len import VariableLen
from recordspec.spec.features.video import Video
from recordspec.spec.media import resampling
from recordspec.spec.schema import Schema
from recordspec.spec.values import numpy_dtype
from recordspec.wire.columns import (
    Fixed,
    Part,
    Section,
    Sequence,
    as_decoded,
    literal,
    parse_call,
    parse_calls,
)

# Where functions of the decoder stand, that may be written out, in the order in which they are.
_HOMES = (tensors, resampling, tensor, label, image, audio, video, box)
_IMPORTS = {"np": "import numpy as np", "ceil": "from math import ceil", "gcd": "from math import gcd"}

# Expressions by the names of the tensors that they give.
Outputs = dict[tuple[str, ...], str]


def module_source(schema: Schema) -> str:
    """A module with `parse`, `decode` and `dataset`.

    Raises SpecError with each feature that TensorFlow alone does not decode.
    """
    lines: list[str] = []
    problems: list[Problem] = []
    for section, feature in schema.placed:
        try:
            if (
                type(feature) not in KINDS.values()
            ):  # a custom kind may decode what it inherits in another way
                raise _refused("kind", "a kind of recordspec", feature.kind)
            lines += _statements(section, feature)
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


def _statements(section: Section, feature: Feature) -> Iterator[str]:
    """The lines that decode a feature."""
    values = {
        column.key: _column(section, stated, column.layout)
        for stated, column in zip(
            map(as_decoded, feature.columns()), columns_in(section, feature), strict=True
        )
        if not isinstance(column.layout, Part)
    }
    if section != "sequence" or feature.spans_steps:
        found = outputs(feature, values)
    else:  # the steps of all records are decoded as one batch
        first = next(iter(values.values()))
        inner = outputs(feature, {key: f"{value}.values" for key, value in values.items()})
        found = {names: f"{first}.with_values({expression})" for names, expression in inner.items()}
    for names, expression in found.items():
        yield f"{', '.join(f'decoded[{name!r}]' for name in names)} = {expression}"


def _column(section: Section, stated: Any, layout: Any) -> str:
    if section != "sequence":
        return f"parsed[{stated.key!r}]"
    value = f"steps[{stated.key!r}]"
    call = parse_call(stated, section)
    one_item = isinstance(layout, Fixed | Sequence) and call is not None and call.function == "RaggedFeature"
    return f"{value}.with_values(merged_steps({value}.values))" if one_item else value


def _refused(option: str, expected: str, got: str) -> SpecError:
    return SpecError(Problem(path=(option,), expected=expected, got=got, hint="leave it out of the schema"))


@singledispatch
def outputs(feature: Feature, values: Mapping[str, str]) -> Outputs:
    """The expressions of the tensors of a feature, of the expressions of its columns, a batch, by key."""
    raise NotImplementedError(feature.kind)


@outputs.register
def _label(feature: Label, values: Mapping[str, str]) -> Outputs:
    if feature.encoding != "name":
        return _as_parsed(feature, values)
    known = f"CLASS_NAMES[{feature.name!r}]{'[:-1]' if feature.oov == 'index' else ''}"
    return {feature.outputs: f"indices_of({values[feature.stored]}, {known}, {feature.unknown_name!r})"}


@outputs.register(Text)
@outputs.register(RaggedLists)
@outputs.register(SparseValues)
def _as_parsed(feature: Feature, values: Mapping[str, str]) -> Outputs:
    return {feature.outputs: values[feature.stored]}


@outputs.register
def _fixed_len(feature: FixedLen, values: Mapping[str, str]) -> Outputs:
    value = values[feature.stored]
    if feature.with_missing:
        value = f"with_default({value}, {literal(feature.default)}, {static(feature.shape)!r})"
    return {feature.outputs: value}


@outputs.register
def _var_len(feature: VariableLen, values: Mapping[str, str]) -> Outputs:
    value = values[feature.stored]
    return {feature.outputs: value} if feature.as_ != "dense" else _padded(feature, value, (), True)


@outputs.register
def _fixed_len_sequence(feature: FixedLenSequence, values: Mapping[str, str]) -> Outputs:
    value = values[feature.stored]
    # steps with a padding are parsed as ragged ones, since `tf.io` takes no padding there
    ragged = feature.with_length or "merged_steps" in value
    return _padded(feature, value, static(feature.shape), ragged)


def _padded(
    feature: VariableLen | FixedLenSequence, value: str, shape: tuple[int, ...], ragged: bool
) -> Outputs:
    """A list padded to a dense tensor, which it may be already, and its lengths."""
    dense = f"{value}.to_tensor({'' if feature.pad is None else literal(feature.pad)})" if ragged else value
    if feature.max_length is not None:
        dense = f"padded({value}, {literal(feature.pad)}, {feature.max_length}, {shape!r})"
    found: Outputs = {feature.outputs[:1]: dense}
    return found | {(length,): f"{value}.row_lengths()" for length in feature.outputs[1:]}


@outputs.register
def _tensor(feature: AnyTensor, values: Mapping[str, str]) -> Outputs:
    value, dtype = values[feature.stored], feature.dtype
    (column,) = feature.columns()
    varies = feature.shape[:1] == (None,)
    cell = static(feature.shape[1:] if varies else feature.shape)
    if column.storage != "bytes":
        if dtype != column.storage:
            value = f"narrowed({value}, {dtype!r})" if "int" in dtype else f"tf.cast({value}, tf.{dtype})"
        return {feature.outputs: value}
    if feature.encoding == "zlib":
        value = f"tf.io.decode_compressed({value}, 'ZLIB')"
    if varies:
        size = math.prod(cell) * numpy_dtype(dtype).itemsize
        return {
            feature.outputs: f"split_raw({value}, lambda data: {_raw('data', dtype)}, {size}, {list(cell)})"
        }
    return {feature.outputs: f"reshaped({_raw(value, dtype)}, {value}, {cell!r})"}


def _raw(data: str, dtype: str) -> str:
    twin = {"uint32": "int32", "uint64": "int64"}.get(dtype)  # `decode_raw` does not have these
    if twin is not None:
        return f"tf.bitcast(tf.io.decode_raw({data}, tf.{twin}), tf.{dtype})"
    return f"tf.io.decode_raw({data}, tf.{dtype})"


@outputs.register
def _image(feature: Image, values: Mapping[str, str]) -> Outputs:
    return {feature.outputs: _images(feature, values[feature.stored])}


def _images(feature: Image, value: str) -> str:
    pixels = _pixels(feature, _of_one(feature.spec()) if feature.per_example else value)
    if feature.resize is not None:
        how = image.Resize(size=feature.resize) if isinstance(feature.resize, tuple) else feature.resize
        options = (how.size, how.method, how.aspect, how.antialias, feature.pad or 0)
        pixels = f"resized({pixels}, {', '.join(map(repr, options))})"
    if not feature.per_example:
        return pixels
    return _one_by_one(pixels, value, feature.spec())


def _is_ragged(spec: Any) -> bool:
    return type(spec).__name__ == "RaggedTensorSpec"


def _of_one(spec: Any) -> str:
    """The string of one record in an expression for `_one_by_one`."""
    return "record['data']" if _is_ragged(spec) else "data"


def _one_by_one(expression: str, value: str, spec: Any) -> str:
    """The decoded strings of a batch, of the expression that decodes one."""
    shape, dtype = spec.shape.as_list(), f"tf.{spec.dtype.name}"
    if not _is_ragged(spec):
        type_ = f"tf.TensorSpec({shape}, {dtype})"
        return (
            f"tf.map_fn(\n    lambda data: {expression},\n    {value},\n    fn_output_signature={type_},\n)"
        )
    type_ = f"tf.RaggedTensorSpec({shape}, {dtype}, {spec.ragged_rank}, tf.int64)"
    return f"one_by_one(\n    lambda record: {expression},\n    {{'data': {value}}},\n    {type_},\n)"


def _pixels(feature: Image, data: str) -> str:
    calls = {
        "png": f"tf.io.decode_png({data}, {feature.channels}, tf.{feature.dtype})",
        "jpeg": f"tf.io.decode_jpeg({data}, {feature.channels})",
        "bmp": f"tf.io.decode_bmp({data})",
        "gif": f"tf.io.decode_gif({data})[0]",
        "raw": f"reshaped(tf.io.decode_raw({data}, tf.{feature.dtype}), {data}, {static(feature.shape)!r})",
    }
    if feature.encoding not in calls:
        raise _refused("encoding", "one that every TensorFlow decodes", feature.encoding)
    call = calls[feature.encoding]
    return call if feature.encoding == "raw" else f"tf.ensure_shape({call}, {list(feature.shape)})"


@outputs.register
def _video(feature: Video, values: Mapping[str, str]) -> Outputs:
    frames = _images(feature.frame, "frames")
    return {feature.outputs: f"decode_videos({values[feature.stored]}, lambda frames: {frames})"}


@outputs.register
def _audio(feature: Audio, values: Mapping[str, str]) -> Outputs:
    value = values[feature.stored]
    if feature.encoding == "raw":
        size = feature.channels * np.dtype(feature.dtype).itemsize
        samples = (
            f"split_raw({value}, lambda data: {_raw('data', feature.dtype)}, {size}, [{feature.channels}])"
        )
    elif feature.encoding == "wav":
        decoded = f"decode_wav({_of_one(feature.spec())}, {feature.sample_rate})"
        samples = f"converted_samples({decoded}, {feature.channels}, {feature.dtype!r})"
    else:
        raise _refused("encoding", "one that every TensorFlow decodes", feature.encoding)
    if feature.resample not in (None, feature.sample_rate):
        samples = f"resampled({samples}, {feature.sample_rate}, {feature.resample})"
    if feature.per_example:
        samples = _one_by_one(samples, value, feature.spec())
    return {feature.outputs: samples}


@outputs.register
def _box(feature: Box, values: Mapping[str, str]) -> Outputs:
    if not feature.keys:
        return _as_parsed(feature, values)
    return {feature.outputs: f"stacked([{', '.join(values[key] for key in feature.keys)}])"}


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
