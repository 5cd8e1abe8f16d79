"""A schema in YAML: read, with every problem in it, and written."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from recordspec.errors import SpecError, nearest, one_of
from recordspec.spec import rules
from recordspec.spec.features import Feature
from recordspec.spec.options import INVALID, Log, read, read_fields, to_builtins
from recordspec.spec.values import DTYPES
from recordspec.spec.yaml_text import MappingNode, Node, ScalarNode, dump, kind_of
from recordspec.wire.columns import Section

if TYPE_CHECKING:
    from recordspec.spec.schema import Schema

Kinds = Mapping[str, type[Feature]]

# The kind of a feature that names none.
DEFAULT_KIND = "fixed_len"


class Setting(NamedTuple):
    """What a schema is read with: the kinds that there are, and the folder of the files it names."""

    kinds: Kinds
    folder: Path | None


_HEAD: dict[str, Any] = {
    "schema": str,
    "version": int,
    "description": str,
    "record": Literal["example", "sequence_example"],
}


def read_schema(make: Callable[..., Schema], node: MappingNode, log: Log, setting: Setting) -> Any:
    """What `make` makes of the fields in a file, or INVALID."""
    head = {key: _read_head(node, key, log) for key in _HEAD if key in node.values}
    if "schema" not in node.values:
        log.add(node.position, (), "the key `schema`, a name", "none")
    record = head.get("record", "sequence_example" if "sequence" in node.values else "example")
    sections = {
        key: _read_section(value, key, log, setting)
        for key, value in node.values.items()
        if key in rules.ALL_SECTIONS
    }
    _refuse_unknown(node, log)
    if record is INVALID:
        return INVALID
    head["name"] = head.pop("schema", INVALID)
    fields = {"name": "unnamed", **_valid(head), **_valid(sections), "record": record}
    try:
        return make(**fields)
    except SpecError as error:
        return log.relocate(_of_features(error) if log.problems else error, node, ())


def _valid(values: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not INVALID}


def _of_features(error: SpecError) -> SpecError:
    """The problems of single features; the others may only follow from what could not be read."""
    return SpecError([problem for problem in error.problems if len(problem.path) > 1])


def _read_head(node: MappingNode, key: str, log: Log) -> Any:
    """One of the keys beside the features."""
    return read(node.values[key], _HEAD[key], (key,), log)


def _refuse_unknown(node: MappingNode, log: Log) -> None:
    known = [*_HEAD, *rules.ALL_SECTIONS]
    for key in node.values:
        if key not in known:
            log.add(node.keys[key].position, (key,), one_of(known), f"`{key}`", nearest(key, known))


def _read_section(node: Node, section: str, log: Log, setting: Setting) -> Any:
    if not isinstance(node, MappingNode):
        return log.add(node.position, (section,), "a mapping of features", kind_of(node))
    features = [
        _read_feature(name, value, (section, name), log, setting) for name, value in node.values.items()
    ]
    return tuple(feature for feature in features if feature is not INVALID)


def _read_feature(name: str, node: Node, path: tuple[str, str], log: Log, setting: Setting) -> Any:
    if isinstance(node, ScalarNode):
        return _read_shorthand(name, node, path, log, setting)
    if not isinstance(node, MappingNode):
        return log.add(node.position, path, "a dtype or a mapping of options", kind_of(node))
    kind_node = node.values.get("kind")
    kind = DEFAULT_KIND
    if kind_node is not None:
        kind = kind_node.text if isinstance(kind_node, ScalarNode) else kind_of(kind_node)
        if kind not in setting.kinds:
            hint = nearest(kind, setting.kinds)
            return log.add(kind_node.position, (*path, "kind"), one_of(setting.kinds), f"`{kind}`", hint)
    options = MappingNode(
        position=node.position,
        values={key: value for key, value in node.values.items() if key != "kind"},
        keys=node.keys,
    )
    feature = read_fields(setting.kinds[kind], options, path, log, name=name)
    try:
        return feature if feature is INVALID else feature.resolved(setting.folder)
    except SpecError as error:
        return log.relocate(error, options, path)


def _read_shorthand(name: str, node: ScalarNode, path: tuple[str, str], log: Log, setting: Setting) -> Any:
    """`int64` stands for `{kind: fixed_len, dtype: int64}`, `text` for `{kind: text}`."""
    kinds = setting.kinds
    if node.type == "str" and node.text in kinds:
        empty = MappingNode(position=node.position)
        return read_fields(kinds[node.text], empty, path, log, name=name)
    if node.type == "str" and node.text in (*DTYPES, "string"):
        options = MappingNode(position=node.position, values={"dtype": node}, keys={"dtype": node})
        return read_fields(kinds[DEFAULT_KIND], options, path, log, name=name)
    known = ("float32", "int64", "string", *kinds)
    got = f"`{node.text}`" if node.type == "str" else kind_of(node)
    hint = nearest(node.text, known)
    return log.add(node.position, path, "a dtype, a kind, or a mapping of options", got, hint)


def text_of(schema: Schema) -> str:
    """Canonical YAML, which loads to an equal schema."""
    head = to_builtins(schema)
    known: dict[str, Any] = {"schema": head.pop("name")}
    known |= {key: value for key, value in head.items() if key not in ("record", *rules.ALL_SECTIONS)}
    known["record"] = schema.record
    return dump(known | {section: _dump_section(schema, section) for section in schema.sections})


def _dump_section(schema: Schema, section: Section) -> dict[str, Any]:
    return {feature.name: _dump_feature(feature) for feature in getattr(schema, section)}


def _dump_feature(feature: Feature) -> Any:
    options = to_builtins(feature)
    del options["name"]
    if feature.kind == DEFAULT_KIND:
        return options["dtype"] if set(options) == {"dtype"} else options
    return {"kind": feature.kind, **options} if options else feature.kind
