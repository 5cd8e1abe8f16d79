"""The manifest describes a finished dataset, since TFRecord files have no header for that."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import accumulate, chain, islice
from typing import Any, Literal, get_args

from recordspec import html
from recordspec.errors import (
    Problem,
    SpecError,
    State,
    StoreError,
    counted,
    describe,
    nearest,
    one_of,
    show_text,
)
from recordspec.locations import AnyPath, Location, location, read_bytes
from recordspec.wire.columns import RecordMessage
from recordspec.wire.compression import CODECS, Compression

FILE = "manifest.json"
SCHEMA_FILE = "schema.yaml"
REJECTS_FILE = "rejects.jsonl"
KEYS_FILE = "keys.bin"
INDEX_FILE = "index.bin"
REPORT_FILE = "repair.json"
# Statistics for `fit.encode`, computed when they are first needed.
LAYERS_FILE = "layers.json"
# Statistics of all rows, computed by `recordspec view`.
STATISTICS_FILE = "statistics.json"
# The lengths of rows for `read.pack`, counted when they are first needed.
LENGTHS_FILE = "lengths.npz"
# Files that commands cache in a dataset, and compute again if they are gone.
KEPT_FILES = (LAYERS_FILE, STATISTICS_FILE, LENGTHS_FILE)
# The files of a dataset besides its manifest and its shards.
DATASET_FILES = (SCHEMA_FILE, REJECTS_FILE, KEYS_FILE, INDEX_FILE)
# Suffixes of a shard's name while its dataset is built: the hashes of the keys of its rows, and its index.
KEYS, INDEX = PIECES = (".keys", ".index")
# Suffixes of a file's name: the index of recordspec, and those of the tfrecord package and DALI.
INDEX_SUFFIXES = {"recordspec": ".index", "tfrecord": ".tfindex", "dali": ".idx"}
# Format 1 has no `sha256`, format 2 no `index_sha256`. Every change of the fields needs a new format, since
# unknown fields are refused.
FORMAT = 3
_SUFFIX = re.compile(r"(-v\d{1,9})?")
_LONGEST_NAME = 255  # bytes, on most file systems
# The largest manifest: 500,000 shards of 200 bytes and the names of common labels. Reading it takes three
# times as much memory.
_MOST_BYTES = 128 << 20

# By split, then by label: the number of rows of each class.
LabelCounts = Mapping[str, Mapping[str, tuple[int, ...]]]


@dataclass(frozen=True, kw_only=True)
class Shard:
    """A file of a dataset. `rows` and `records` differ if a record has several rows.

    Attributes:
        file: the name of the file.
        rows: the number of rows.
        records: the number of records.
        bytes: the size of the file.
        sha256: the hash of the whole file, as printed by `sha256sum`; empty for an adopted file of which only
            the lengths were read.
        frames_sha256: for an adopted file without `sha256`, the SHA-256 of its records' lengths and CRCs,
            which detects changed records; otherwise empty.
    """

    file: str
    rows: int
    records: int
    bytes: int
    sha256: str
    frames_sha256: str = ""

    def __post_init__(self) -> None:
        if not _is_name(self.file):
            raise TypeError(f"a shard whose name is {describe(self.file)}")
        if not all(map(_is_count, (self.rows, self.records, self.bytes))):
            raise TypeError(f"counts of {self.file} that are not whole numbers")
        for name in ("sha256", "frames_sha256"):
            if not _is_hash(value := getattr(self, name)):
                raise TypeError(f"a {name} of {self.file} that is {describe(value)}")

    @property
    def identity(self) -> str:
        """The known hash: `sha256`, or else `frames_sha256`."""
        return self.sha256 or self.frames_sha256


def with_suffix(file: str, suffix: str) -> str:
    """Adds a suffix to a stem: `schema.yaml` and `-v2` give `schema-v2.yaml`."""
    stem, dot, rest = file.rpartition(".")
    return f"{stem}{suffix}{dot}{rest}"


def _is_name(value: Any) -> bool:
    """Whether a value is the name of a file in a folder, as opposed to a path."""
    if not isinstance(value, str) or value in ("", ".", "..") or {"/", "\0"} & {*value}:
        return False
    return len(os.fsencode(value)) <= _LONGEST_NAME


def _is_count(value: Any) -> bool:
    return type(value) is int and 0 <= value < 1 << 63


def _is_hash(value: Any) -> bool:
    """Whether a value is short enough to be compared with a hash, and shown."""
    return isinstance(value, str) and len(value) <= 64


def _are_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


# Names that a sidecar may not have.
_OWN_FILES = (FILE, REPORT_FILE, *KEPT_FILES, *DATASET_FILES)
# The valid values of a manifest: another program may have written or changed it.
_FITS: Mapping[str, Callable[[Any], bool]] = {
    "schema": lambda value: value is None or isinstance(value, str),
    "fingerprint": lambda value: value is None or _is_hash(value),
    "record": lambda value: value in get_args(RecordMessage),
    "compression": lambda value: value in list(CODECS),
    "key": _are_texts,
    "shuffle_seed": lambda value: value is None or type(value) is int,
    "labels": lambda value: all(map(_are_texts, value.values())),
    "rejected": _is_count,
    "division": lambda value: isinstance(value, dict),
    "keys_sha256": lambda value: value is None or _is_hash(value),
    "index_sha256": lambda value: value is None or _is_hash(value),
    "block": lambda value: value is None or (_is_count(value) and value > 0),
    "label_counts": lambda value: all(
        isinstance(rows, list) and all(map(_is_count, rows))
        for labels in value.values()
        for rows in labels.values()
    ),
    "adopted": lambda value: value in ("", "files", "links"),
    "suffix": lambda value: isinstance(value, str) and _SUFFIX.fullmatch(value) is not None,
    "beside": lambda value: all(
        _is_name(name) and name not in _OWN_FILES and _is_hash(value[name]) for name in value
    ),
}


@dataclass(frozen=True, kw_only=True)
class Manifest:
    """The schema, options, splits and shards of a dataset, and the rows in each.

    Attributes:
        schema: the schema's name; None for records of an unknown schema.
        fingerprint: the fingerprint of the schema; see Schema.fingerprint.
        record: whether the records are Examples or SequenceExamples; their bytes do not distinguish them.
        compression: the compression of every shard.
        splits: the shards of each split, in order.
        key: the names of the columns that identify a row; empty if its content does.
        shuffle_seed: the seed of the order of rows; None for the order of the source.
        labels: the class names of every label feature, by feature.
        label_counts: the number of rows of every class, by split and by label with one class per row; without
            splits that were not counted.
        rejected: the number of invalid rows, which are in `rejects.jsonl`.
        division: the options that determine a row's split together with its key: `splits` as given, and
            `group_by`.
        keys_sha256: the SHA-256 of `keys.bin`, if keys are unique. That file has the 128-bit hash of every
            row's key, in the order of the splits and shards; appended rows are compared to it.
        index_sha256: the SHA-256 of `index.bin`, the offsets of the records of every shard; None for a
            dataset of an older release, and for files that another program compressed.
        block: the largest number of rows per record; None in the layout `rows`.
        beside: the sidecars (files for other readers), with the SHA-256 of each.
        adopted: for a dataset made by `recordspec.adopt`: `files` if its shards are files of another writer,
            which recordspec neither replaces nor deletes, or `links` if they are links to such files;
            otherwise empty.
        suffix: the version in the names of `schema.yaml`, `rejects.jsonl`, `keys.bin` and `index.bin`, such
            as `-v2` in `schema-v2.yaml`. It is set in an object store, where nothing is overwritten, if a
            replaced dataset exists.
        format: the version of the format that was read; a manifest is written in the latest format.

    Example:
        >>> manifest = rs.Manifest.load("data/points")
        >>> manifest.labels
        {'inside': ('no', 'yes')}
        >>> manifest
        Manifest(points, train: 15 rows in 1 shard, test: 5 rows in 1 shard)
    """

    schema: str | None
    fingerprint: str | None
    record: RecordMessage
    compression: Compression
    splits: Mapping[str, tuple[Shard, ...]]
    key: tuple[str, ...] = ()
    shuffle_seed: int | None = None
    labels: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    label_counts: LabelCounts = field(default_factory=dict)
    rejected: int = 0
    division: Mapping[str, Any] = field(default_factory=dict)
    keys_sha256: str | None = None
    index_sha256: str | None = None
    block: int | None = None
    beside: Mapping[str, str] = field(default_factory=dict)
    adopted: Literal["", "files", "links"] = ""
    suffix: str = ""
    format: int = FORMAT

    def name_of(self, file: str) -> str:
        """Returns the name of `schema.yaml`, `rejects.jsonl`, `keys.bin` or `index.bin` in this dataset.

        Example:
            >>> manifest.name_of("schema.yaml")
            'schema.yaml'
        """
        return with_suffix(file, self.suffix)

    def shards(self, split: str) -> tuple[Shard, ...]:
        """The shards of a split. Raises StoreError for an unknown split.

        Example:
            >>> [shard.file for shard in manifest.shards("test")]
            ['test-00000-of-00001.tfrecord']
        """
        if split not in self.splits:
            hint = nearest(split, self.splits)
            raise StoreError(
                Problem(path=("split",), expected=one_of(self.splits), got=f"`{split}`", hint=hint)
            )
        return self.splits[split]

    @property
    def all_shards(self) -> tuple[Shard, ...]:
        """The shards of all splits, in order.

        Example:
            >>> len(manifest.all_shards)
            2
        """
        return tuple(chain.from_iterable(self.splits.values()))

    @property
    def files(self) -> set[str]:
        """The names of all shards.

        Example:
            >>> sorted(manifest.files)
            ['test-00000-of-00001.tfrecord', 'train-00000-of-00001.tfrecord']
        """
        return set(self._by_file())

    def _by_file(self) -> dict[str, Shard]:
        """A new dictionary of the shards by file name.

        Example:
            >>> manifest._by_file()["test-00000-of-00001.tfrecord"].rows
            5
        """
        return {shard.file: shard for shard in self.all_shards}

    def _splits_of(self, files: Iterable[str]) -> tuple[str, ...]:
        """The splits that the files belong to.

        Example:
            >>> manifest._splits_of(["test-00000-of-00001.tfrecord"])
            ('test',)
        """
        names = set(files)
        return tuple(
            split
            for split, shards in self.splits.items()
            if not names.isdisjoint(shard.file for shard in shards)
        )

    def _starts(self) -> dict[str, int]:
        """The first row of every shard, by file, counted across all splits.

        Example:
            >>> manifest._starts()
            {'train-00000-of-00001.tfrecord': 0, 'test-00000-of-00001.tfrecord': 15}
        """
        starts = accumulate((shard.rows for shard in self.all_shards), initial=0)
        return {shard.file: start for shard, start in zip(self.all_shards, starts, strict=False)}

    def rows(self, split: str) -> int:
        """The number of rows of a split. Raises StoreError for an unknown split.

        Example:
            >>> manifest.rows("train")
            15
        """
        return sum(shard.rows for shard in self.shards(split))

    def bytes(self, split: str) -> int:
        """The size of a split's files in bytes. Raises StoreError for an unknown split.

        Example:
            >>> manifest.bytes("train") == sum(shard.bytes for shard in manifest.shards("train"))
            True
        """
        return sum(shard.bytes for shard in self.shards(split))

    def class_counts(self, splits: Iterable[str]) -> dict[str, tuple[int, ...]]:
        """The number of rows of every class in the given splits, by label; without labels that were not
        counted.

        Example:
            >>> manifest.class_counts(["train", "test"])
            {'inside': (10, 10)}
        """
        counted = [self.label_counts.get(split, {}) for split in splits]
        return {
            label: tuple(map(sum, zip(*(counts[label] for counts in counted), strict=True)))
            for label in self.labels
            if counted and all(label in counts for counts in counted)
        }

    @property
    def identity(self) -> str:
        """The SHA-256 of the data that determines the rows and their order: of all fields except sidecars and
        the index, which commands add to a dataset later.

        Example:
            >>> manifest.identity == pipeline.manifest.identity
            True
        """
        # computed as in format 2, so that a saved position still matches its dataset
        fields = replace(self, beside={}, format=2)._fields()
        del fields["index_sha256"]
        return _sha256(fields)

    def __repr__(self) -> str:
        splits = [
            f"{split}: {counted(self.rows(split), 'row')} in {counted(len(self.splits[split]), 'shard')}"
            for split in islice(self.splits, html.MOST_ROWS)
        ]
        more = len(self.splits) - len(splits)
        splits += [f"{more:,} more"] if more else []
        return show_text(f"{type(self).__name__}({', '.join([self.schema or 'no schema', *splits])})")

    def _repr_html_(self) -> str:
        return html.in_notebook(self._html)

    def _html(self) -> Iterator[html.Markup]:
        from recordspec.schema.options import format_bytes  # imports PyYAML

        layout = "rows" if self.block is None else f"blocks of {self.block:,} rows"
        facts = [self.record, f"layout {layout}"]
        facts += [] if self.compression == "none" else [self.compression]
        facts += [f"key {', '.join(self.key)}"] if self.key else []
        facts += [] if self.shuffle_seed is None else [f"shuffled with seed {self.shuffle_seed}"]
        facts += [f"{self.rejected:,} invalid rows left out"] if self.rejected else []
        facts += ["adopted"] if self.adopted else []
        yield html.heading(f"{self.schema or 'no schema'}: {', '.join(facts)}")
        splits = [
            (split, self.rows(split), len(shards), format_bytes(self.bytes(split)))
            for split, shards in self.splits.items()
        ]
        yield html.listing(("split", "rows", "shards", "size"), splits, "split")
        counted_splits = [split for split in self.splits if split in self.label_counts]
        counts = [(split, self.label_counts[split]) for split in counted_splits[: html.MOST_ROWS]]
        classes = [
            (name, label, *(of_split[label][index] if label in of_split else "" for _, of_split in counts))
            for label, names in self.labels.items()
            if any(label in of_split for _, of_split in counts)
            for index, name in enumerate(names)
        ]
        if classes:
            yield html.listing(
                ("class", "of", *(f"rows of {split}" for split, _ in counts)), classes, "class name"
            )

    def dump(self) -> str:
        """The manifest as JSON of format 3, with the SHA-256 of its other fields.

        Raises SpecError if the manifest is too large to be read.

        Example:
            >>> import json
            >>> json.loads(manifest.dump())["format"]
            3
        """
        data = replace(self, format=FORMAT)._fields()
        text = json.dumps({**data, "sha256": _sha256(data)}, indent=1, ensure_ascii=False) + "\n"
        if (size := len(text.encode())) > _MOST_BYTES:
            expected, hint = f"a manifest of at most {_MOST_BYTES >> 20} MiB", "write fewer shards"
            raise SpecError(Problem(path=("shards",), expected=expected, got=f"{size:,} bytes", hint=hint))
        return text

    def _fields(self) -> dict[str, Any]:
        """The fields as plain values, without those that few datasets set."""
        # `asdict` copies each value of every shard, which takes ten times as long
        names = [option.name for option in dataclasses.fields(Shard) if option.name != "frames_sha256"]
        data = {option.name: getattr(self, option.name) for option in dataclasses.fields(self)}
        data["splits"] = {
            split: [
                {name: getattr(shard, name) for name in names}
                | ({"frames_sha256": shard.frames_sha256} if shard.frames_sha256 else {})
                for shard in shards
            ]
            for split, shards in self.splits.items()
        }
        for name in ("adopted", "suffix"):
            if not data[name]:
                del data[name]
        return data

    @classmethod
    def load(cls, folder: AnyPath) -> Manifest:
        """Reads the manifest of a dataset's folder.

        Raises StoreError if it is missing or invalid, and SpecError for an unsupported URL.

        Example:
            >>> rs.Manifest.load("data/points") == pipeline.manifest
            True
        """
        known = manifest_in(location(folder))
        if known is None:
            hint = (
                "`recordspec build CONFIG` builds a dataset, `recordspec adopt` takes files of other writers"
            )
            where = str(location(folder) / FILE)
            raise StoreError(State(where=where, got="does not exist", hint=hint))
        return known


def _sha256(fields: Mapping[str, Any]) -> str:
    """The SHA-256 of the fields as JSON in UTF-8, with sorted keys and without spaces."""
    text = json.dumps(fields, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


def parse_manifest(data: bytes, where: str) -> Manifest:
    """Parses a manifest. Raises StoreError if it is invalid or was changed; `where` is its location in the
    message.
    """
    try:
        parsed = json.loads(data.decode(), object_pairs_hook=_object)
        if b"\\u" in data:  # half of a surrogate pair cannot be written again
            json.dumps(parsed, ensure_ascii=False).encode()
        changed = _changes(parsed)
        if changed is None:
            return _from_json(parsed)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        got = f"{type(error).__name__}: {error}"
        raise StoreError(Problem(where=where, expected=f"a manifest of format {FORMAT}", got=got)) from None
    raise StoreError(changed.at(where))


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A JSON object. Rejects duplicate names, since programs would read different values."""
    values = dict(pairs)
    if len(values) < len(pairs):
        name, _ = Counter(name for name, _ in pairs).most_common(1)[0]
        raise ValueError(f"two values of `{show_text(name)}`")
    return values


def _changes(data: dict[str, Any]) -> Problem | None:
    """The problem of a manifest that was changed after it was written, or has another format."""
    if type(data["format"]) is not int or data["format"] not in range(1, FORMAT + 1):
        raise ValueError(f"format {json.dumps(data['format'])}")
    said = data.pop("sha256", None)
    # format 1 has no hash, unless the number of the format was changed
    if (said is not None or data["format"] > 1) and said != _sha256(data):
        got = (
            "the manifest has no `sha256`"
            if said is None
            else "the manifest was changed after it was written"
        )
        hint = "restore it, or build the dataset again"
        return Problem(expected="", got=f"{got}: its values cannot be trusted", hint=hint)
    of_manifest, of_shard = ({option.name for option in dataclasses.fields(of)} for of in (Manifest, Shard))
    shards = chain.from_iterable(data["splits"].values())
    for known, values in [(of_manifest, data), *((of_shard, shard) for shard in shards)]:
        for name in sorted(values.keys() - known):
            hint = "a later release of recordspec may have written it"
            expected = f"a field of format {data['format']}"
            return Problem(expected=expected, got=f"`{show_text(name)}`", hint=hint)
    return None


def _from_json(data: dict[str, Any]) -> Manifest:
    for name, fits in _FITS.items():
        if name in data and not fits(data[name]):
            raise TypeError(f"`{name}` that is {describe(data[name])}")
    splits = {split: tuple(Shard(**shard) for shard in shards) for split, shards in data["splits"].items()}
    files = Counter(shard.file for shards in splits.values() for shard in shards)
    name, count = next(iter(files.most_common(1)), ("", 0))
    if count > 1:  # its rows would be counted twice
        raise ValueError(f"{count} shards of the name {name}")
    labels = {name: tuple(names) for name, names in data["labels"].items()}
    counts = {
        split: {name: tuple(rows) for name, rows in by_label.items()}
        for split, by_label in data.get("label_counts", {}).items()
    }
    read = {"splits": splits, "labels": labels, "label_counts": counts, "key": tuple(data["key"])}
    read["beside"] = dict(data.get("beside", {}))
    return Manifest(**{**data, **read})


def shard_differences(
    folder: Location, manifest: Manifest, missing: set[str], foreign: set[str]
) -> Iterator[Problem]:
    """The problems of shards that the manifest names and that are missing, and of shards that it does not
    name.
    """
    for name in sorted(missing):
        yield Problem(where=str(folder / name), expected="a shard that the manifest names", got="no file")
    adopted = manifest.adopted == "files"
    hint = "`recordspec adopt --force` adopts it, too" if adopted else "move it to another folder"
    for name in sorted(foreign):
        expected = "shards that the manifest names"
        yield Problem(where=str(folder / name), expected=expected, got="another one", hint=hint)


def manifest_of(files: tuple[Location, ...]) -> Manifest | None:
    """The manifest of the files, if all are in one folder with a manifest."""
    folders = [*by_folder(files)]
    return manifest_in(folders[0]) if len(folders) == 1 else None


def by_folder(files: Iterable[Location]) -> dict[Location, list[Location]]:
    """Groups files by their folder."""
    # creating a `Path` for the parent of each of thousands of files takes more time than reading the manifest
    by_name: dict[str, list[Location]] = {}
    for path in files:
        by_name.setdefault(os.path.dirname(str(path)), []).append(path)
    return {own[0].parent: own for own in by_name.values()}


def manifest_in(folder: Location) -> Manifest | None:
    """The manifest of a folder, if it has one. Raises StoreError if it is invalid."""
    path = folder / FILE
    try:
        data = read_bytes(path, _MOST_BYTES)
    except StoreError as error:
        if isinstance(error.__cause__, FileNotFoundError):
            return None
        raise
    return parse_manifest(data, str(path))
