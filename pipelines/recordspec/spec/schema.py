"""A feature spec: the features of a record, by name, and what follows from them."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import zip_longest
from pathlib import Path
from typing import Any, Literal

from recordspec import locations
from recordspec.errors import Path as Place
from recordspec.errors import Problem, RecordError, SpecError, describe, nearest, one_of
from recordspec.locations import local
from recordspec.spec import blocks, decoder, encoder, rules, schema_yaml
from recordspec.spec.features import KINDS, Feature
from recordspec.spec.options import document, freeze, to_builtins
from recordspec.spec.schema_yaml import Kinds, Setting
from recordspec.spec.yaml_text import LARGEST_FILE
from recordspec.wire.columns import Column, Section
from recordspec.wire.strings import Strings

# An option that takes more letters is not shown whole.
_LONGEST_OPTION = 60
_BYTES_A_CHARACTER = 4  # of UTF-8, at most


@dataclass(frozen=True, kw_only=True)
class Schema:
    """The features of a record. From it come the parse dictionary, the decoder, and the encoder.

    Attributes:
        name: what the schema is called, `schema:` in YAML.
        version: counts up when the meaning changes.
        description: for people.
        record: whether records are tf.train.Example or tf.train.SequenceExample.
        features: of an Example.
        context, sequence: of a SequenceExample.
    """

    name: str
    version: int = 1
    description: str = ""
    record: Literal["example", "sequence_example"] = "example"
    features: tuple[Feature, ...] = ()
    context: tuple[Feature, ...] = ()
    sequence: tuple[Feature, ...] = ()

    def __post_init__(self) -> None:
        freeze(self)
        problems = list(rules.check(self))
        if problems:
            raise SpecError(problems)

    @classmethod
    def load(cls, path: str | Path, kinds: Kinds = KINDS) -> Schema:
        """The schema in a YAML file. Raises SpecError with every problem in it, StoreError if unreadable."""
        path = local(path)
        return cls.loads(read_text(path), source=str(path), kinds=kinds, folder=path.parent)

    @classmethod
    def loads(
        cls,
        text: str,
        *,
        source: str = "<text>",
        kinds: Kinds = KINDS,
        folder: Path | None = None,
    ) -> Schema:
        """The schema in YAML text; `source` names it in messages. Raises SpecError.

        Files that it names, such as a vocabulary, are looked for in `folder`.
        """
        node, log = document(text, source)
        schema: Schema = schema_yaml.read_schema(Schema, node, log, Setting(kinds, folder))
        log.close()
        return schema

    def dump(self, path: str | Path | None = None) -> str:
        """Canonical YAML, which loads to an equal schema; written to `path` if there is one."""
        text = schema_yaml.text_of(self)
        if path is not None:
            local(path).write_text(text, encoding="utf-8")
        return text

    @property
    def sections(self) -> tuple[Section, ...]:
        """Where features stand: `features`, or `context` and `sequence`."""
        return rules.SECTIONS[self.record]

    @property
    def placed(self) -> Iterator[tuple[Section, Feature]]:
        """Every feature with its section, in the order of the spec."""
        for section in self.sections:
            for feature in getattr(self, section):
                yield section, feature

    @cached_property
    def names(self) -> dict[str, Feature]:
        """The features by name."""
        return {feature.name: feature for _, feature in self.placed}

    @cached_property
    def classes(self) -> dict[str, int]:
        """The features that give a row one class, by name, and how many classes each has."""
        return {
            feature.name: len(feature.class_names)
            for section, feature in self.placed
            if feature.class_names and not feature.value_type.shape and section != "sequence"
        }

    @cached_property
    def shared_keys(self) -> tuple[Problem, ...]:
        """Features that store under one key: reading may share it, writing not."""
        return tuple(rules.shared_keys(self))

    @property
    def outputs(self) -> tuple[str, ...]:
        """The names of the tensors that `decode` gives."""
        return tuple(output for _, feature in self.placed for output in feature.outputs)

    @property
    def padding(self) -> dict[str, Any]:
        """The padding of what `decode` gives, by its names: see `Feature.padding`."""
        return {name: pad for _, feature in self.placed for name, pad in feature.padding.items()}

    def only(self, names: Iterable[str]) -> Schema:
        """The schema of those features alone that decode to these names. Raises SpecError for others."""
        wanted = tuple(names)
        unknown = [
            Problem(expected=one_of(self.outputs), got=f"`{name}`", hint=nearest(name, self.outputs))
            for name in wanted
            if name not in self.outputs
        ]
        if unknown:
            raise SpecError(unknown)
        kept = {
            section: tuple(
                feature for feature in getattr(self, section) if not set(wanted).isdisjoint(feature.outputs)
            )
            for section in self.sections
        }
        return dataclasses.replace(self, **kept)  # type: ignore[arg-type]

    def columns(self, section: Section) -> tuple[Column, ...]:
        """The columns that the features of a section store."""
        features: tuple[Feature, ...] = getattr(self, section)
        return tuple(column for feature in features for column in feature.columns())

    def parse_dict(self) -> Any:
        """The tf.io parse dictionary by stored key; of a SequenceExample the pair (context, sequence)."""
        return decoder.parse_dict(self)

    def decode(self, serialized: Any) -> dict[str, Any]:
        """The tensors of one record or a batch, by feature name. Works eagerly and in a graph.

        Args:
            serialized: string `[]` or `[n]`: bytes, a list of bytes, or a tensor.
        """
        return decoder.decode(self, serialized)

    def element_spec(self) -> dict[str, Any]:
        """The tf.TypeSpec of every tensor that `decode` gives for one record."""
        return decoder.element_spec(self)

    def batch_spec(self, size: int | None = None) -> dict[str, Any]:
        """The tf.TypeSpec of every tensor that `decode` gives for a batch of `size` (None: any)."""
        return decoder.batch_spec(self, size)

    def encode(self, row: Any) -> bytes:
        """One row, a mapping by name, as the bytes of a record. Raises RecordError with all that is wrong."""
        if not isinstance(row, Mapping):
            problem = Problem(expected="a mapping from names to values", got=describe(row))
            raise RecordError(problem)
        return self.encode_batch(encoder.columns_of(self, [row]), 1)[0]

    def encode_batch(self, columns: Mapping[str, Any], rows: int, *, head: int = 0, tail: int = 0) -> Strings:
        """Many rows, given as columns, as records. See `encoder.encode_batch`."""
        return encoder.encode_batch(self, columns, rows, head=head, tail=tail)

    def encode_block(self, columns: Mapping[str, Any], rows: int) -> bytes:
        """Many rows, given as columns, as one record: a block. Raises what `encode_batch` raises."""
        return encoder.encode_block(self, columns, rows)

    def block_of(self, records: Iterable[Any]) -> bytes:
        """Records of one row each (bytes), as one block: what `encode_block` makes of their rows."""
        return blocks.block_of_records(self, records)

    def records_of(self, block: Any, *, head: int = 0, tail: int = 0) -> Strings:
        """The rows of a block (bytes) as records of one row each: the way back from `block_of`."""
        return blocks.records_of_block(self, block, head=head, tail=tail)

    def decode_block(self, serialized: Any) -> dict[str, Any]:
        """The rows of one block (string `[]`) or of several (`[p]`), as `decode` gives those of a batch.

        Works eagerly and in a graph.
        """
        return decoder.decode_block(self, serialized)

    @property
    def fingerprint(self) -> str:
        """A hash of what the stored bytes depend on: not of descriptions, nor of how they are read.

        Of a default only that there is one: rows may then lack the key.
        """
        stored = {
            section: sorted(
                (
                    to_builtins(feature.stored_options() | ({"optional": True} if feature.optional else {}))
                    for feature in getattr(self, section)
                ),
                key=str,
            )
            for section in self.sections
        }
        text = json.dumps({"record": self.record, **stored}, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:32]


def schema_in(path: Path) -> Schema | None:
    """The schema of a file, or None of one that is a config: only a schema has features.

    Raises SpecError, and StoreError where it cannot be read.
    """
    text = read_text(path)
    node, _ = document(text, str(path))
    sections = node.values.keys() & {"features", "context", "sequence"}
    if node.values.keys() & {"data", "write", "read", "fit"} and not sections:
        return None
    return Schema.loads(text, source=str(path), folder=path.parent)


def differences(written: Schema, wanted: Schema) -> Iterator[Problem]:
    """What of `wanted` cannot be read from records that `written` describes.

    A new feature with a default is no difference, nor is one that is no longer wanted.
    """
    if written.record != wanted.record:
        yield Problem(path=("record",), expected=written.record, got=wanted.record)
        return
    stored = {(section, feature.name): feature for section, feature in written.placed}
    for place in wanted.placed:
        section, feature = place
        other = stored.get((section, feature.name))
        if other is None and feature.optional:
            continue
        if other is None:
            expected = "a feature that the data has"
            yield Problem(path=(section, feature.name), expected=expected, got="none of this name")
        else:
            yield from _differences((section, feature.name), other, feature)


def _differences(path: Place, written: Feature, wanted: Feature) -> Iterator[Problem]:
    """Option by option; of another kind only that, as it has others."""
    if written.kind != wanted.kind:
        yield _difference((*path, "kind"), written.kind, wanted.kind)
        return
    old, new = written.stored_options(), wanted.read_options()
    for name in new:
        if old[name] != new[name]:
            yield _difference((*path, name.rstrip("_")), old[name], new[name])
    if written.optional and not wanted.optional:
        expected = "a default, as rows were written that may lack it"
        yield Problem(path=(*path, "default"), expected=expected, got="none")


def _difference(path: Place, before: Any, after: Any) -> Problem:
    """Of long lists, where they begin to differ."""
    old, new = map(_shown, (before, after))
    if max(len(old), len(new)) > _LONGEST_OPTION and isinstance(before, tuple) and isinstance(after, tuple):
        index, values = next(
            (index, values)
            for index, values in enumerate(zip_longest(before, after))
            if values[0] != values[1]
        )
        return _difference((*path, index), *values)
    return Problem(path=path, expected=f"`{old}`, as the data was written", got=f"`{new}`")


def _shown(option: Any) -> str:
    return (
        option
        if isinstance(option, str)
        else json.dumps(to_builtins(option), ensure_ascii=False, default=str)
    )


def read_text(path: Path) -> str:
    """A YAML file's text. Raises StoreError or SpecError."""
    return locations.read_text(path, _BYTES_A_CHARACTER * LARGEST_FILE)
