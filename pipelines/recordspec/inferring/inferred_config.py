"""An inferred config, which can be changed, used and saved in Python."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import ExitStack
from copy import deepcopy
from dataclasses import dataclass, field, fields, is_dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
import yaml

from recordspec.errors import (
    Problem,
    SpecError,
    show_text,
)
from recordspec.inferring.input_files import FOLDERS, LANGUAGES, InputFiles
from recordspec.inferring.rules import IDENTIFIES
from recordspec.inferring.tables import table_suffix
from recordspec.locations import Location, is_below, local, location, output_file, resolved
from recordspec.remote import RemotePath
from recordspec.schema.feature_set import map_features
from recordspec.schema.features import Feature
from recordspec.schema.inferred import Inferred
from recordspec.schema.options import to_builtins
from recordspec.schema.schema import Schema
from recordspec.store.expand import expand
from recordspec.writing.sources.detection import ANNOTATIONS
from recordspec.writing.sources.partitions import columns_of_folders

if TYPE_CHECKING:
    from recordspec.pipeline import Pipeline

# Common names of targets, and of identifiers of rows.
_TARGETS = re.compile(
    r"(.*[/_. -])?(labels?|targets?|class(es|_id)?|categor(y|ies)|species|outcome|sentiment|survived|y)",
    re.IGNORECASE,
)
# The alternative shuffle, which a comment in the config mentions.
_GLOBAL = "or `global: true`, in place of a buffer: all rows, the same batches for any number of workers"
# The number of texts with their own index in a vector; and of words.
_MOST_TOKENS, _MOST_WORDS = 1000, 20_000
_IDENTIFIERS = re.compile(r"(?i:(.*[/_. -])?(id|uid|key|uuid|guid|index))|.*[a-z](Id|ID|Key|Uuid|UUID)")


@dataclass(frozen=True, kw_only=True, repr=False)
class InferredConfig(Inferred):
    """An inferred schema and config for rows or files, to be used, changed and saved. Each change returns a
    new object.

    `recordspec.write` accepts it in place of a schema. The other attributes are those of `Inferred`.

    Attributes:
        files: the files that were read; None for rows.
        given_splits: the splits of the rows or files; empty if a build divides them.
        changes: the options that replace proposed ones, by section: `write`, `read` and `fit`.

    Example:
        >>> config = rs.infer({"id": [1, 2], "x": [0.5, 1.5], "label": ["a", "b"]}, "letters")
        >>> config = config.drop("id").with_features({"label": {"kind": "label", "names": ["a", "b"]}})
        >>> config = config.with_options(write={"splits": {"train": 1}}, read={"batch": 2})
        >>> pipeline = config.pipeline("data/letters")
        >>> pipeline.build({"id": [1, 2], "x": [0.5, 1.5], "label": ["a", "b"]})
        Manifest(letters, train: 2 rows in 1 shard)
        >>> pipeline.config.fit.targets
        'label'
        >>> config.save("configs/letters.yaml", schema="schemas/letters.yaml", data="data/letters")
        >>> rs.Pipeline.load("configs/letters.yaml").manifest.rows("train")
        2
    """

    files: InputFiles | None = None
    given_splits: tuple[str, ...] = ()
    changes: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def with_features(self, features: Mapping[str, Any]) -> InferredConfig:
        """Returns the config with features replaced by name, or added.

        Args:
            features: the features by name, each a dtype or a mapping of options, as in YAML, or a `Feature`.

        Raises SpecError.

        Example:
            >>> rs.infer({"a": [1, 2]}).with_features({"a": "float32"}).schema["a"].dtype
            'float32'
        """
        return replace(
            self,
            schema=self.schema.with_features(features),
            left_out=tuple(name for name in self.left_out if name not in features),
            no_inputs={name: why for name, why in self.no_inputs.items() if name not in features},
            free_text=tuple(name for name in self.free_text if name not in features),
        )

    def drop(self, *names: str) -> InferredConfig:
        """Returns the config without the given features. A build ignores the rows' values of these names.

        Raises SpecError for unknown names.

        Example:
            >>> rs.infer({"a": [1, 2], "b": [3, 4]}).drop("b").left_out
            ('b',)
        """
        dropped = {self.schema[name].name for name in names}
        schema = map_features(self.schema, lambda feature: None if feature.name in dropped else feature)
        return replace(self, schema=schema, left_out=(*self.left_out, *names))

    def with_options(
        self,
        *,
        write: Mapping[str, Any] | None = None,
        read: Mapping[str, Any] | None = None,
        fit: Mapping[str, Any] | None = None,
    ) -> InferredConfig:
        """Returns the config with the given options, as in a config file; all other options stay.

        Args:
            write: options such as `{"splits": {"train": 9, "test": 1}, "key": "id"}`.
            read: options such as `{"batch": 64}`.
            fit: options such as `{"targets": "price"}`; without them, the inputs and targets are guessed.

        Raises SpecError for invalid options.

        Example:
            >>> config = rs.infer({"a": [1, 2]}).with_options(read={"batch": 64})
            >>> config.pipeline("data/a").config.read.batch.size
            64
        """
        sections = {"write": write, "read": read, "fit": fit}
        changes = {
            section: {**self.changes.get(section, {}), **_plain(options or {})}
            for section, options in sections.items()
        }
        changed = replace(self, changes={section: some for section, some in changes.items() if some})
        changed.pipeline("data")  # raises the error
        return changed

    def pipeline(self, data: str | os.PathLike[str]) -> Pipeline:
        """Returns the pipeline that builds the dataset in the folder `data`, and reads it.

        Raises SpecError for options that contradict the features.

        Example:
            >>> pipeline = rs.infer({"a": [1, 2]}).pipeline("data/a")
            >>> pipeline.build({"a": [1, 2]}).rows("train") <= 2
            True
        """
        from recordspec.config import config_of
        from recordspec.pipeline import Pipeline

        options = {"schema": "schema.yaml", "data": os.fspath(data), **self._sections(Path())[0]}
        return Pipeline(config_of(options, self.schema), self.schema, ignore=self.left_out)

    def save(
        self,
        path: str | os.PathLike[str],
        *,
        schema: str | os.PathLike[str] | None = None,
        data: str | os.PathLike[str] | None = None,
        force: bool = False,
    ) -> None:
        """Writes the config and the schema as YAML, for `Pipeline.load` and `recordspec build`.

        Args:
            path: the path of the config.
            schema: the path of the schema; by default `digits-schema.yaml` beside `digits.yaml`.
            data: the folder of the dataset; by default `../data/letters`, with the name of the schema, for a
                config in a folder `configs`, and otherwise `letters-data` beside the config.
            force: whether existing files are replaced.

        Raises StoreError if a file exists or cannot be written, SpecError for options that contradict the
        features, or for a custom kind.

        Example:
            >>> rs.infer({"a": [1, 2]}, "letters").save("letters.yaml", data="data/letters")
            >>> rs.Schema.load("letters-schema.yaml")
            Schema(letters, 1 feature: a)
        """
        from recordspec.language import header, write_json_schema

        place = local(path)
        schema_path = place.with_name(f"{place.stem}-schema.yaml") if schema is None else local(schema)
        self.pipeline("data" if data is None else data)  # raises the error
        texts = {
            schema_path: self.schema.dump(),
            place: config_text(self, schema_path, place, None if data is None else os.fspath(data)),
        }
        for folder in dict.fromkeys(file.parent for file in texts):
            write_json_schema(folder)
        write_texts({file: header() + text for file, text in texts.items()}, force=force)

    def _sections(self, home: Path) -> tuple[dict[str, dict[str, Any]], dict[str, str]]:
        """The sections of the config, with paths relative to a folder, and comments on guesses, by the
        start of the line they belong to.
        """
        write: dict[str, Any] = {}
        files, changes = self.files, self.changes
        if files is not None and "" in files.splits:
            # a JSON Lines source takes files and patterns, not folders
            has_folder = files.source == "jsonl" and any(map(os.path.isdir, files.given))
            write["source"] = _source(files, self, _compact(files.paths) if has_folder else files.given, home)
        elif files is not None:
            write["source"] = {
                split: _source(files, self, _compact(paths), home) for split, paths in files.splits.items()
            }
        if not self.given_splits:
            write["splits"] = {"train": 80, "test": 20}
        missing = {name: counts for name, counts in self.missing_files.items() if name in self.schema.names}
        if missing:
            share = sum(lost / all_files for lost, all_files in missing.values())
            write["invalid"] = {"max_invalid": f"{min(100, math.ceil(200 * share))}%"}
        write |= {"shuffle": {"seed": 1}, **changes.get("write", {})}
        read = {"batch": 32, "shuffle": {"buffer": 10_000, "seed": 1}, **changes.get("read", {})}
        fit, guess = self._fit(write.get("splits", {}))
        guessed = [name for name in ("inputs", "targets") if name not in changes.get("fit", {})]
        comments = {
            "  inputs:": "; ".join(filter(None, (guess.without, _unlearnt(self.schema, guess.inputs)))),
            "  targets:": guess.reason,
        }
        comments = {line: text for line, text in comments.items() if line.strip(" :") in guessed}
        if missing and "invalid" not in changes.get("write", {}):
            comments["  invalid:"] = _leaves_out(missing)
        comments["    buffer:"] = "" if "shuffle" in changes.get("read", {}) else _GLOBAL
        return {"write": write, "read": read, "fit": fit}, comments

    def _fit(self, splits: Any) -> tuple[dict[str, Any], FitGuess]:
        """The section `fit`, and the guess that it contains."""
        options, schema = self.changes.get("fit", {}), self.schema
        targets = options.get("targets")
        given = (targets,) if isinstance(targets, str) else targets
        partitions = () if self.files is None else columns_of_folders(self.files.paths)
        guess = guess_fit(schema, self.no_inputs, given, partitions)
        detects = self.files is not None and self.files.source in ANNOTATIONS
        if detects and {"image", "boxes", "labels"} <= schema.names.keys():
            guess = FitGuess(inputs=("image",), target=("boxes", "labels"), reason="", without="")
        fit: dict[str, Any] = {"inputs": _one_or_all(guess.inputs)}
        if guess.target is not None:
            fit["targets"] = guess.target if isinstance(guess.target, str) else list(guess.target)
        fit |= options
        inputs = (fit["inputs"],) if isinstance(fit["inputs"], str) else fit["inputs"]
        encode = _encodes(schema, inputs, self.free_text)
        names = self.given_splits or (splits if isinstance(splits, Mapping) else ())
        if encode and "train" in names and "encode" not in fit:  # the layers are adapted to the split `train`
            fit["encode"] = encode
        return fit, guess


def _leaves_out(missing: Mapping[str, tuple[int, int]]) -> str:
    """The comment on the proposal to leave out rows whose files are missing."""
    counts = ", ".join(f"{lost:,} of {files:,} of {name}" for name, (lost, files) in missing.items())
    return f"files that do not exist: {counts}: their rows are left out, and listed in rejects.jsonl"


def with_config(
    inferred: Inferred, files: InputFiles | None = None, given_splits: Iterable[str] = ()
) -> InferredConfig:
    """The config for a schema that was inferred from files, or from rows in the given splits."""
    known = {option.name: getattr(inferred, option.name) for option in fields(Inferred)}
    names = given_splits if files is None else filter(None, files.splits)
    return InferredConfig(**known, files=files, given_splits=tuple(names))


def _plain(value: Any) -> Any:
    """Options as plain YAML values: converts dataclasses, tuples, paths and NumPy numbers."""
    if is_dataclass(value):
        return to_builtins(value)
    if isinstance(value, Mapping):
        return {str(name): _plain(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    return value.item() if isinstance(value, np.generic) else value


def write_texts(texts: Mapping[Path, str], *, force: bool = False) -> None:
    """Writes files. All are complete before the first gets its name. Raises StoreError."""
    with ExitStack() as stack:
        for path, text in reversed([*texts.items()]):
            fresh = stack.enter_context(output_file(path, force=force))
            fresh.write_text(text, encoding="utf-8")


def config_text(inferred: InferredConfig, schema_path: Path, path: Path, data: str | None = None) -> str:
    """A YAML config that builds a dataset and trains on it.

    Predefined splits are kept. The inputs and targets are guesses, explained by comments. Raises SpecError
    for a schema of another library, which has no rows.
    """
    home, schema, files = path.parent, inferred.schema, inferred.files
    if files is not None and files.source in LANGUAGES.values():
        expected, hint = "TFRecords, CSV or Parquet", "a config names its rows: infer without --config"
        raise SpecError(Problem(where=str(files.paths[0]), expected=expected, got="a schema", hint=hint))
    folder = _default_data(schema.name, home, files) if data is None else location(data)
    sections, comments = inferred._sections(home)
    return _config_text(inferred, schema_path, home, folder, sections, comments)


def adopted_config_text(
    schema: Schema, schema_path: Location, path: Path, data: Location, splits: Iterable[str]
) -> str:
    """A YAML config that reads and trains on an existing dataset, in the folder `data`; otherwise like
    `config_text`.
    """
    inferred = InferredConfig(schema=schema, notes=(), rows=None, given_splits=tuple(splits))
    sections, comments = inferred._sections(path.parent)
    del sections["write"]
    return _config_text(inferred, schema_path, path.parent, data, sections, comments)


def _default_data(name: str, home: Path, files: InputFiles | None) -> Path:
    """The folder of the dataset of a config in `home`: one that has none of the files that were read."""
    is_beside = Path(os.path.abspath(home)).name != "configs"
    folder = home / f"{name}-data" if is_beside else home / os.pardir / "data" / name
    inputs = () if files is None else (*map(location, files.given), *files.paths)
    if any(is_below(resolved(path), resolved(folder)) for path in inputs):
        folder = folder.with_name(f"{folder.name}-2")
    return folder


def _config_text(
    inferred: InferredConfig,
    schema_path: Location,
    home: Path,
    folder: Location,
    sections: Mapping[str, Mapping[str, Any]],
    comments: dict[str, str],
) -> str:
    """The text of a config in the folder `home`, with paths relative to it."""
    schema = inferred.schema
    config = {"schema": _seen_from(schema_path, home), "data": _seen_from(folder, home), **sections}
    lines = yaml.safe_dump(config, sort_keys=False, allow_unicode=True, width=1 << 16).splitlines()
    if any("\n" in name for name in schema.names):  # a comment inside a name would become a part of it
        comments = {}
    else:
        comments |= _comments_of_options(inferred, lines)
    for number, line in enumerate(lines):
        comment = next((text for key, text in comments.items() if line.startswith(key) and text), "")
        lines[number] = f"{line}  # {comment}" if comment else line
    return "\n".join(lines) + "\n"


def _comments_of_options(inferred: Inferred, lines: Sequence[str]) -> dict[str, str]:
    """The reason for each option of the source, by the start of its line."""
    indent = next((line.partition("files:")[0] for line in lines if line.lstrip().startswith("files:")), "")
    return {f"{indent}{option.name}:": show_text(option.reason) for option in inferred.options}


def _seen_from(place: Location, home: Path) -> str:
    """A path relative to the config's folder, or a URL."""
    return str(place) if isinstance(place, RemotePath) else os.path.relpath(place, home)


def _source(files: InputFiles, inferred: Inferred, paths: Sequence[str], home: Path) -> dict[str, Any]:
    """The source of a config, with paths relative to the config's folder."""
    if files.source in ANNOTATIONS:
        from recordspec.inferring.annotations import annotations_of

        made = annotations_of(files, files.paths[0] if "" in files.splits else location(paths[0]))
        named = [name for name in ("annotations", "images", "names") if name in made]
        return {files.source: made | {name: _seen_from(location(made[name]), home) for name in named}}
    places = [_seen_from(location(path), home) for path in paths]
    place = places[0] if len(places) == 1 else places
    options: dict[str, Any] = {}
    if inferred.options:
        # copies: for a shared list, YAML would write an anchor
        options = {"files": place} | {one.name: deepcopy(one.value) for one in inferred.options}
    if files.source in ("jsonl", "json") and inferred.left_out:
        options = {"files": place, **options, "ignore": [*inferred.left_out]}
    elif files.source in FOLDERS:
        if "label" not in inferred.schema.names:
            options["label"] = None
        if files.classes != "first":
            options["classes"] = files.classes
        options = {"folder": place, **options} if options else {}
    return {files.source: options or place}


def _compact(paths: Sequence[Location]) -> tuple[str, ...]:
    """The paths of files; a pattern if they are all the shards of one split, or all files of one suffix."""
    first, folder = paths[0], paths[0].parent
    patterns = [re.sub(r"-\d{5,}-of-", "-*-of-", first.name), f"*{table_suffix(first)}"]
    if len(paths) > 1 and not set("*?[") & set(str(folder) + first.name):
        for pattern in patterns:
            if pattern != first.name and set(expand(str(folder / pattern), as_found=True)) == set(paths):
                return (str(folder / pattern),)
    return tuple(map(str, paths))


@dataclass(frozen=True, kw_only=True)
class FitGuess:
    """The guessed inputs and targets of a model.

    Attributes:
        target: the target; None if there is only one feature, or only text, which no model learns.
        reason: the reason for the target.
        without: the features that are not inputs, with the reason; empty if all other features are inputs.
    """

    inputs: tuple[str, ...]
    target: str | tuple[str, ...] | None
    reason: str
    without: str


def guess_fit(
    schema: Schema,
    no_inputs: Mapping[str, str] = MappingProxyType({}),
    targets: Sequence[str] | None = None,
    partitions: Collection[str] = (),
) -> FitGuess:
    """Guesses the inputs, and the target if `targets` is None.

    The target is a feature whose name is common for targets, a label first; else a label; else the last
    feature with numbers; else the last feature that is no text, if any. A number `y` between other features
    may be a coordinate: a label of two classes after it comes first. `partitions`, the columns in the names
    of folders, are targets only by their names, or without another candidate. All other features are
    inputs, except identifiers of rows, judged by their names, and `no_inputs`, which has the reasons.
    """
    features = [feature for _, feature in schema._placed if feature.name not in (targets or ())]
    if len(features) == 1 and not targets:
        (only,) = schema.names
        return FitGuess(inputs=(only,), target=None, reason="", without="no targets: there is one feature")
    reasons = {feature.name: IDENTIFIES for feature in features if _identifies(feature)} | {**no_inputs}
    learnt = [feature for feature in features if feature.value_type.item != "text"]
    target, reason = None, ""
    if not targets:
        candidates = [one for one in learnt if one.name not in reasons] or learnt
        in_rows = [one for one in candidates if one.name not in partitions or _TARGETS.fullmatch(one.name)]
        target, reason = _guess_target(in_rows or candidates)
    others = [feature for feature in features if feature is not target]
    taken = [other for other in others if other.name not in reasons] or others or features
    # A feature with a default has a second output, which tells whether there was a value.
    inputs = [name for one in taken for name in (one.outputs if one.traits.optional else (one.name,))]
    left = {other.name: reasons[other.name] for other in others if other not in taken}
    without = [
        f"without {', '.join(name for name in left if left[name] == why)}: {why}"
        for why in dict.fromkeys(left.values())
    ]
    if target is None and not targets:
        without.append("no targets: all features are text; `kind: label` makes classes of a text")
    if reason:
        reason += f", of {len(features):,} features"
    if target is not None and target.traits.class_names and target.value_type.shape:
        reason += f"; a row has several, and `encode: {{{target.name}: multi_hot}}` makes one vector of them"
    return FitGuess(
        inputs=tuple(inputs),
        target=(tuple(targets) if targets else None) if target is None else target.name,
        reason=reason,
        without="; ".join(without),
    )


def _encodes(schema: Schema, names: Iterable[str], free_text: Sequence[str]) -> dict[str, Any]:
    """The encoding of single values that a model could not use otherwise, or would learn badly from; for
    free text, its words.
    """
    encoded: dict[str, Any] = {}
    for feature in (schema.names[name] for name in names if name in schema.names):
        value_type = feature.value_type
        if value_type.item == "class" and value_type.shape in ((), (None,)):
            encoded[feature.name] = "multi_hot" if value_type.shape else "one_hot"
        elif (
            value_type.shape == ()
            and value_type.item == "text"
            and (feature.kind == "text" or feature.traits.optional)
        ):
            in_words = feature.name in free_text
            encoded[feature.name] = (
                {"as": "words", "max_tokens": _MOST_WORDS}
                if in_words
                else {"as": "one_hot", "max_tokens": _MOST_TOKENS}
            )
        elif value_type.shape == () and value_type.is_number and value_type.item != "bool":
            encoded[feature.name] = "normalize"
    return encoded


def _unlearnt(schema: Schema, names: Iterable[str]) -> str:
    """The comment on inputs that are lists of texts, which only a lookup layer takes."""
    types = {name: schema.names[name].value_type for name in names if name in schema.names}
    lists = [name for name, value_type in types.items() if value_type.item == "text" and value_type.shape]
    way = f"{{as: multi_hot, max_tokens: {_MOST_TOKENS}}}"
    return f"{', '.join(lists)}: lists of text, which `encode` converts to vectors by {way}" if lists else ""


def _guess_target(features: Sequence[Feature]) -> tuple[Feature | None, str]:
    if not features:
        return None, ""
    labels = [feature for feature in features if feature.traits.class_names]
    numbers = [feature for feature in features if feature.traits.class_names or feature.value_type.is_number]
    named = [feature for feature in numbers if _TARGETS.fullmatch(feature.name)]
    if len(named) == 1 and _may_be_coordinate(named[0], features):
        named = []
    for candidate in (*(label for label in labels if label in named), *named[:1], *labels[-1:]):
        which = f", the last of {len(labels)}" if candidate not in named and len(labels) > 1 else ""
        if candidate.traits.class_names:
            return candidate, f"a label of {len(candidate.traits.class_names):,} classes{which}"
        return candidate, "by its name"
    complete = [feature for feature in numbers if not feature.traits.optional]
    if complete != numbers and complete:
        return complete[-1], "the last with a number in every row"
    return (numbers or features)[-1], "the last" if not numbers else "the last with numbers"


def _may_be_coordinate(feature: Feature, features: Sequence[Feature]) -> bool:
    """Whether a feature is a number `y` that is not the first feature, before a label of two classes."""
    place = features.index(feature)
    after = [other for other in features[place:] if len(other.traits.class_names) == 2]
    return feature.name.lower() == "y" and feature.value_type.is_number and place > 0 and bool(after)


def _identifies(feature: Feature) -> bool:
    """Whether a feature is a single value that identifies its row, judged by its name."""
    named = _IDENTIFIERS.fullmatch(feature.name)
    scalar = feature.value_type.shape == () and feature.value_type.item in ("int64", "text")
    return bool(named) and scalar and not feature.traits.class_names


def _one_or_all(names: Sequence[str]) -> str | list[str]:
    return names[0] if len(names) == 1 else list(names)
