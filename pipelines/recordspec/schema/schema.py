"""`Schema`: the features of a record, read from YAML, and their methods for users."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from recordspec import html
from recordspec.errors import (
    Problem,
    RecordError,
    RecordspecError,
    SpecError,
    StoreError,
    counted,
    describe,
    nearest,
    one_of,
    see,
    show_text,
)
from recordspec.locations import Location, atomic_write, below, is_path, local, location, read_text
from recordspec.schema import decoder, encoder, numpy_decoder
from recordspec.schema.arrow_values import values_of
from recordspec.schema.feature_set import ALL_SECTIONS, FeatureSet
from recordspec.schema.features import KINDS, Feature
from recordspec.schema.options import (
    INVALID,
    Log,
    YamlValue,
    document,
    option_texts,
    read,
    read_fields,
    to_builtins,
)
from recordspec.schema.row_blocks import blocks_of
from recordspec.schema.tensors import without_autograph
from recordspec.schema.values import DTYPES
from recordspec.schema.yaml_text import LARGEST_FILE, MappingNode, Node, ScalarNode, dump, kind_of
from recordspec.wire.arrays import bytes_in, data_of, strings_array
from recordspec.wire.columns import RecordMessage, Section
from recordspec.wire.file_types import file_type

Kinds = Mapping[str, type[Feature]]

# The kind of a feature without the key `kind`.
DEFAULT_KIND = "fixed_len"
LARGEST_BYTES = 4 * LARGEST_FILE  # a character of UTF-8 has at most 4 bytes
# The types of files for which `recordspec infer` writes a spec.
_INFERRED = ("a TFRecord", "a CSV", "a file of tab-separated", "a JSON Lines", "a Parquet", "a text proto")


@dataclass(frozen=True, kw_only=True)
class Schema(FeatureSet):
    """The features of a record, from which the parse dictionary, the decoder and the encoder are derived.

    Attributes:
        name: the name of the schema, `schema:` in YAML.
        version: incremented when the meaning changes.
        description: a text for readers.
        record: whether records are tf.train.Example or tf.train.SequenceExample.
        features: of an Example.
        context, sequence: of a SequenceExample.

    Example:
        >>> list(schema.names)
        ['x', 'inside']
        >>> schema["inside"].traits.class_names
        ('no', 'yes')
        >>> schema
        Schema(points, 2 features: x, inside)
    """

    def __getitem__(self, name: str) -> Feature:
        if name not in self.names:
            got, hint = f"`{name}`", nearest(str(name), self.names)
            raise SpecError(Problem(expected=one_of(self.names) or "no name", got=got, hint=hint))
        return self.names[name]

    def __contains__(self, name: object) -> bool:
        return name in self.names

    def _ipython_key_completions_(self) -> list[str]:
        return list(self.names)

    def __repr__(self) -> str:
        features = f"{counted(len(self.names), 'feature')}: {html.first_names(list(self.names))}"
        return show_text(f"{type(self).__name__}({self.name}, {features})")

    def _repr_html_(self) -> str:
        return html.in_notebook(self._html)

    def _html(self) -> Iterator[html.Markup]:
        version = f", version {self.version}" if self.version != 1 else ""
        yield html.heading(f"{self.name}{version}: {self.record}, {counted(len(self.names), 'feature')}")
        if self.description:
            yield html.paragraph(self.description)
        in_sections = len(self._sections) > 1
        yield html.listing(
            ("feature", *(("section",) if in_sections else ()), "kind", "options", "description"),
            [
                (
                    feature.name,
                    *((place.section,) if in_sections else ()),
                    feature.kind,
                    ", ".join(f"{name}: {text}" for name, text in option_texts(feature).items()),
                    feature.description,
                )
                for place, feature in self._placed
            ],
            "feature",
        )

    @classmethod
    def load(cls, path: str | Location, kinds: Kinds = KINDS) -> Schema:
        """Loads a YAML file. Raises SpecError with every problem in it, StoreError if it cannot be read.

        Example:
            >>> rs.Schema.load("schemas/points.yaml") == schema
            True
        """
        path = location(path)
        node, log = parse_file(path)
        if node.values.keys() >= {"schema", "data"} and not node.values.keys() & set(ALL_SECTIONS):
            hint = "its `schema` names the schema; `rs.Pipeline.load` loads a config"
            raise SpecError(Problem(where=str(path), expected="a feature spec", got="a config", hint=hint))
        return _schema_of(node, log, _Setting(kinds, path.parent))

    @classmethod
    def loads(
        cls,
        text: str,
        *,
        source: str = "<text>",
        kinds: Kinds = KINDS,
        folder: Location | None = None,
    ) -> Schema:
        """Loads YAML text; `source` names it in messages. Raises SpecError.

        Paths in it, such as a vocabulary, are relative to `folder`.

        Example:
            >>> rs.Schema.loads("{schema: s, features: {a: int64, b: text}}").names["b"].kind
            'text'
        """
        return _schema_of(*document(text, source), _Setting(kinds, folder))

    def dump(self, path: str | Path | None = None) -> str:
        """Returns canonical YAML, which loads to an equal schema; writes it to `path`, if given.

        Raises OSError if the file cannot be written.

        Example:
            >>> print(schema.dump(), end="")
            schema: points
            record: example
            features:
              x: float32
              inside:
                kind: label
                names: ['no', 'yes']
        """
        head = to_builtins(self)
        known: dict[str, Any] = {"schema": head.pop("name")}
        known |= {key: value for key, value in head.items() if key not in ("record", *ALL_SECTIONS)}
        known["record"] = self.record
        known |= {section: {} for section in self._sections}
        for place, feature in self._placed:
            options = to_builtins(feature)
            del options["name"]
            if feature.kind != DEFAULT_KIND:
                options = {"kind": feature.kind, **options} if options else feature.kind
            elif set(options) == {"dtype"}:
                options = options["dtype"]
            known[place.section][feature.name] = options
        text = dump(known)
        if path is not None:
            atomic_write(local(path), text.encode())
        return text

    def parse_dict(self) -> Any:
        """The tf.io parse dictionary by stored key; for a SequenceExample a pair (context, sequence).

        Example:
            >>> schema.parse_dict()["x"]
            FixedLenFeature(shape=[], dtype=tf.float32, default_value=None)
        """
        return decoder.parse_dict(self)

    def decode(self, serialized: Any) -> dict[str, Any]:
        """Decodes a record or a batch to tensors by feature name. Works eagerly and in a graph.

        Args:
            serialized: string `[]` or `[n]`: bytes, a list of bytes, or a tensor.

        Returns:
            The tensors of one record, as in `element_spec`; of a batch, with `n` as their first dimension.

        Raises:
            tf.errors.InvalidArgumentError: a record does not match the schema.

        Example:
            >>> batch = schema.decode([schema.encode({"x": 0.5, "inside": "yes"})])
            >>> batch["x"].numpy().tolist(), batch["inside"].numpy().tolist()
            ([0.5], [1])
        """
        return without_autograph(decoder.decode)(self, serialized)

    def decode_numpy(self, serialized: Sequence[bytes]) -> dict[str, Any]:
        """Decodes records to values of NumPy by feature name, without TensorFlow.

        They are those of `decode`: equal bit for bit, but for JPEG, which TensorFlow decodes with a faster
        and less exact transform (NumPy has the pixels of its `INTEGER_ACCURATE`), images that are
        resized, within 1 of their range, and sounds: resampled ones within one unit in the last place, mp3
        and ogg within 1e-4 of full scale.

        Args:
            serialized: the records.

        Returns:
            Of each feature an array `[n, ...]`; a RaggedArray or a SparseArray where rows differ. Strings are
            objects, bytes.

        Raises:
            RecordError: a record does not match the schema; it has the row.
            SpecError: a custom kind has no `decode_numpy`.

        Example:
            >>> batch = schema.decode_numpy([schema.encode({"x": 0.5, "inside": "yes"})])
            >>> batch["x"].tolist(), batch["inside"].tolist()
            ([0.5], [1])
        """
        data, places = data_of(strings_array(list(serialized)))
        return numpy_decoder.decode(self, data, places[:-1], places[1:])

    def element_spec(self) -> dict[str, Any]:
        """The tf.TypeSpec of every tensor that `decode` returns for one record.

        Example:
            >>> schema.element_spec()["inside"]
            TensorSpec(shape=(), dtype=tf.int64, name=None)
        """
        return decoder.element_spec(self)

    def encode(self, row: Any) -> bytes:
        """Encodes a row, a mapping by name, to the bytes of a record. Raises RecordError.

        Example:
            >>> record = schema.encode({"x": 0.5, "inside": "yes"})
            >>> len(record)
            34
        """
        if not isinstance(row, Mapping):
            problem = Problem(expected="a mapping from names to values", got=describe(row))
            raise RecordError(problem)
        return self._row_encoder.encode(row)

    def with_features(self, features: Mapping[str, Any]) -> Schema:
        """Returns the schema with other features: in the place of those of the same names, or after them.

        Args:
            features: by name, each as YAML has it, a dtype or a mapping of options, or a `Feature`.

        Raises SpecError.

        Example:
            >>> schema.with_features({"x": {"dtype": "float32", "shape": [2]}, "city": "text"})
            Schema(points, 3 features: x, inside, city)
        """
        placed = {feature.name: (place.section, feature) for place, feature in self._placed}
        for name, value in features.items():
            section, _ = placed.get(name, (self._sections[0], None))
            feature = value if isinstance(value, Feature) else self._feature_of(name, value, section)
            if feature.name != name:
                expected = f"a feature of the name `{name}`"
                raise SpecError(Problem(path=(section, name), expected=expected, got=f"`{feature.name}`"))
            placed[name] = (section, feature)
        changed: dict[str, Any] = {
            section: tuple(feature for home, feature in placed.values() if home == section)
            for section in self._sections
        }
        return replace(self, **changed)

    def _feature_of(self, name: str, value: Any, section: Section) -> Feature:
        """A feature of the form that it has in YAML. Raises SpecError."""
        text = dump({"schema": self.name, "record": self.record, section: {name: to_builtins(value)}})
        try:
            (feature,) = getattr(Schema.loads(text), section)
        except SpecError as error:  # the text has no lines that a user knows
            raise SpecError(problem.at("") for problem in error.problems) from None
        return feature  # type: ignore[no-any-return]

    @cached_property
    def _row_encoder(self) -> encoder.RowEncoder:
        return encoder.RowEncoder(self)

    def encode_batch(self, columns: Mapping[str, Any], rows: int, *, framed: bool = False) -> list[bytes]:
        """Encodes rows, given as columns, to records.

        Args:
            columns: for each feature its values: a list, an array of NumPy `[rows, ...]`, or one of Arrow, in
                which null is missing; an absent feature is missing in every row.
            rows: the number of rows.
            framed: whether each record is in its frame, as in a file.

        Returns:
            The records, one for each row.

        Raises:
            SpecError: a name is not that of a feature.
            RecordError: with all the problems of the first row that has any.

        Example:
            >>> records = schema.encode_batch({"x": [0.5, 1.5], "inside": ["yes", "no"]}, 2)
            >>> records[0] == schema.encode({"x": 0.5, "inside": "yes"})
            True
        """
        return bytes_in(encoder.encode_batch(self, values_of(columns, self.names), rows, framed=framed))

    def encode_block(self, columns: Mapping[str, Any], rows: int) -> bytes:
        """Encodes rows, given as columns, to one record, a block. Raises the errors of `encode_batch`.

        Example:
            >>> block = schema.encode_block({"x": [0.5, 1.5], "inside": ["yes", "no"]}, 2)
            >>> len(block)
            55
        """
        sections = encoder.sections_of(self, values_of(columns, self.names), rows)
        (block,) = bytes_in(blocks_of(self, sections, rows, 1))
        return block

    def decode_block(self, serialized: Any) -> dict[str, Any]:
        """Decodes the rows of a block (string `[]`) or of several (`[p]`), like `decode` of a batch.

        Works eagerly and in a graph. Raises tf.errors.InvalidArgumentError for a record that is not a block
        of the schema.

        Example:
            >>> block = schema.encode_block({"x": [0.5, 1.5], "inside": ["yes", "no"]}, 2)
            >>> schema.decode_block(block)["x"].numpy().tolist()
            [0.5, 1.5]
        """
        return without_autograph(decoder.decode_block)(self, serialized)


def schema_in(path: Location, text: str | None = None) -> Schema | None:
    """The schema of a file; None for a config, which has no features. `text` replaces the file's contents.

    Raises SpecError, and StoreError if it cannot be read.
    """
    node, log = parse_file(path, text)
    return None if _is_config(node) else _schema_of(node, log, _Setting(KINDS, path.parent))


def data_of_config(path: Location) -> Location:
    """The data that a config names.

    Raises SpecError for a file that is not a config or names no data, and StoreError if it cannot be read.
    """
    node, _ = parse_file(path)
    data = node.values.get("data")
    if not isinstance(data, ScalarNode):
        is_schema = _has_features(node)
        hint = "the schema is an argument of its own, `schema` or --schema" if is_schema else ""
        got = "a schema" if is_schema else "YAML without `data`"
        if "mix" in node.values:
            got, hint = "a mixture", "name the configs of its datasets"
        raise SpecError(Problem(where=str(path), expected="TFRecord files or a config", got=got, hint=hint))
    return below(path.parent, data.text)


def schema_path(path: Location) -> Location:
    """The file of the schema: the file that a config names, or the path itself.

    Raises SpecError for a config without a schema, and StoreError if it cannot be read.
    """
    node, _ = parse_file(path)
    schema = node.values.get("schema")
    if not _is_config(node):
        return path
    if not isinstance(schema, ScalarNode):
        expected = "a schema, or a config that names one"
        got = "a mixture" if "mix" in node.values else "a config without `schema`"
        raise SpecError(Problem(where=str(path), expected=expected, got=got))
    return below(path.parent, schema.text)


def _is_config(node: MappingNode) -> bool:
    return bool(node.values.keys() & {"data", "write", "read", "fit", "mix"}) and not _has_features(node)


def _has_features(node: MappingNode) -> bool:
    return bool(node.values.keys() & {"features", "context", "sequence"})


def custom_kinds(path: Location) -> tuple[str, ...]:
    """The kinds of a schema file that are not in `KINDS`, which only Python can decode.

    Raises SpecError, and StoreError if it cannot be read.
    """
    node, _ = parse_file(path)
    sections = [node.values.get(section) for section in ALL_SECTIONS]
    features = [
        value for found in sections if isinstance(found, MappingNode) for value in found.values.values()
    ]
    named = [
        feature.values.get("kind") if isinstance(feature, MappingNode) else feature for feature in features
    ]
    kinds = [one.text for one in named if isinstance(one, ScalarNode) and one.type == "str"]
    return tuple(dict.fromkeys(kind for kind in kinds if kind not in (*KINDS, *DTYPES, "string")))


def parse_file(path: Location, text: str | None = None) -> tuple[MappingNode, Log]:
    """The mapping in a YAML file, and a log for its problems. `text` replaces the contents of the file.

    Raises StoreError, and SpecError, which names the type of a file of another one.
    """
    if text is not None:
        return document(text, str(path))
    try:
        return document(read_text(path, LARGEST_BYTES), str(path))
    except StoreError:
        if not isinstance(path, Path) or not path.is_dir():
            raise
        expected = "the file of a feature spec or of a config"
        raise SpecError(Problem(where=str(path), expected=expected, got="a folder")) from None
    except SpecError:
        kind = file_type(path)
        if kind is None:
            raise
        hint = f"`recordspec infer {path}` writes a spec for it" if kind.startswith(_INFERRED) else ""
        expected = "a feature spec or a config"
        raise SpecError(Problem(where=str(path), expected=expected, got=kind, hint=hint)) from None


class _Setting(NamedTuple):
    """The known kinds, and the folder of the files that the schema names."""

    kinds: Kinds
    folder: Location | None


# The keys of a feature spec beside its sections.
HEAD: dict[str, Any] = {
    "schema": str,
    "version": int,
    "description": str,
    "record": RecordMessage,
}


def _schema_of(node: MappingNode, log: Log, setting: _Setting) -> Schema:
    """The schema in a file. Raises SpecError with all the problems of it and of the log."""
    schema: Schema = _read_schema(node, log, setting)
    log.close()
    return schema


def _read_schema(node: MappingNode, log: Log, setting: _Setting) -> Any:
    """The schema in a file, or INVALID."""
    head = {
        key: read(YamlValue(node.values[key]), HEAD[key], (key,), log) for key in HEAD if key in node.values
    }
    known = [*HEAD, *ALL_SECTIONS]
    if "schema" not in node.values and not any(
        key not in known and nearest(key, ["schema"]) for key in node.values
    ):
        log.add(node.position, (), "the key `schema`, a name", "none")
    record = head.get("record", "sequence_example" if "sequence" in node.values else "example")
    sections = {
        key: _read_section(value, key, log, setting)
        for key, value in node.values.items()
        if key in ALL_SECTIONS
    }
    for key in node.values:
        if key not in known:
            log.add(node.keys[key].position, (key,), one_of(known), f"`{key}`", nearest(key, known))
    if record is INVALID:
        return INVALID
    head["name"] = head.pop("schema", INVALID)
    valid = {key: value for key, value in (head | sections).items() if value is not INVALID}
    try:
        return Schema(**{"name": "unnamed", **valid, "record": record})
    except SpecError as error:
        if log.problems:  # problems of several features may only follow from those that were not read
            error = SpecError([problem for problem in error.problems if len(problem.path) > 1])
        return log.adopt(error, YamlValue(node), ())


def _read_section(node: Node, section: str, log: Log, setting: _Setting) -> Any:
    if not isinstance(node, MappingNode):
        return log.add(node.position, (section,), "a mapping of features", kind_of(node))
    features = [
        _read_feature(name, value, (section, name), log, setting) for name, value in node.values.items()
    ]
    return tuple(feature for feature in features if feature is not INVALID)


def _read_feature(name: str, node: Node, path: tuple[str, str], log: Log, setting: _Setting) -> Any:
    kinds = setting.kinds
    if isinstance(node, ScalarNode):
        return _read_shorthand(name, node, path, log, kinds)
    if not isinstance(node, MappingNode):
        return log.add(node.position, path, "a dtype or a mapping of options", kind_of(node))
    kind_node = node.values.get("kind")
    kind = DEFAULT_KIND
    if kind_node is not None:
        kind = kind_node.text if isinstance(kind_node, ScalarNode) else kind_of(kind_node)
        if kind not in kinds:
            hint = nearest(kind, kinds) or f"for kinds of your own, {see('custom-kinds')}"
            return log.add(kind_node.position, (*path, "kind"), one_of(kinds), f"`{kind}`", hint)
    options = MappingNode(
        position=node.position,
        values={key: value for key, value in node.values.items() if key != "kind"},
        keys=node.keys,
    )
    feature = read_fields(kinds[kind], YamlValue(options), path, log, name=name)
    try:
        return feature if feature is INVALID else feature.resolved(setting.folder)
    except SpecError as error:
        return log.adopt(error, YamlValue(options), path)


def _read_shorthand(name: str, node: ScalarNode, path: tuple[str, str], log: Log, kinds: Kinds) -> Any:
    """Reads `int64` as `{kind: fixed_len, dtype: int64}`, and `text` as `{kind: text}`."""
    if node.type == "str" and node.text in kinds:
        empty = MappingNode(position=node.position)
        return read_fields(kinds[node.text], YamlValue(empty), path, log, name=name)
    if node.type == "str" and node.text in (*DTYPES, "string"):
        options = MappingNode(position=node.position, values={"dtype": node}, keys={"dtype": node})
        return read_fields(kinds[DEFAULT_KIND], YamlValue(options), path, log, name=name)
    known = ("float32", "int64", "string", *kinds)
    got = f"`{node.text}`" if node.type == "str" else kind_of(node)
    hint = nearest(node.text, known)
    return log.add(node.position, path, "a dtype, a kind, or a mapping of options", got, hint)


def as_schema(given: Any) -> Schema:
    """A schema, or the schema of a path: of a schema file, or of a config, which names one.

    Raises SpecError for anything else, and StoreError if a file cannot be read.
    """
    if isinstance(given, Schema):
        return given
    if not is_path(given):
        expected = "a Schema, or the path of one"
        raise SpecError(Problem(path=("schema",), expected=expected, got=describe(given)))
    return Schema.load(schema_path(location(given)))


def given_schema(given: Any) -> Schema | None:
    """A schema, or the schema of a path; None if none is given. Raises SpecError for anything else."""
    return None if given is None else as_schema(given)


def check_data_first(data: Any, name: str, call: str) -> None:
    """Raises SpecError if the data, the first argument of a function, is a schema or the path of one.

    Args:
        name: the name of the argument.
        call: the call in its right order.
    """
    is_schema = isinstance(data, Schema)
    if is_path(data) and str(data).endswith((".yaml", ".yml")):
        with suppress(RecordspecError):
            is_schema = isinstance(Schema.load(data), Schema)
    if is_schema:
        hint = f"the schema is the second argument: `{call}`"
        raise SpecError(Problem(path=(name,), expected=name, got="a schema", hint=hint))
