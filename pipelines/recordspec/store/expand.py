"""Expands paths, patterns and folders to files, in the order of their names or of their manifest."""

from __future__ import annotations

import fnmatch
import glob
import logging
import os
import re
import stat
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice, takewhile
from pathlib import Path
from types import EllipsisType

from recordspec.errors import (
    IncompleteError,
    Problem,
    SpecError,
    State,
    StoreError,
    close_names,
    did_you_mean,
    nearest,
    one_of,
    show_text,
    system_errors,
)
from recordspec.executors import ThreadPool
from recordspec.locations import (
    AnyPath,
    Location,
    check_regular,
    disk_status,
    files_in,
    folders_in,
    location,
    resolved,
)
from recordspec.remote import RemotePath
from recordspec.store.manifest import (
    INDEX_SUFFIXES,
    Manifest,
    manifest_in,
    shard_differences,
)
from recordspec.store.shard_names import (
    IGNORED,
    NumberedFile,
    is_split_name,
    is_tfrecord_name,
    numbered_among,
    parse_name,
    split_word,
    splits_by_name,
    without_numbers,
)
from recordspec.wire.file_types import begins_with_record

log = logging.getLogger("recordspec")

# The split of files that do not name a split.
ALL = "all"
Files = AnyPath | Iterable[AnyPath]
# The name of a split; None for all rows; `...` for the only split, where the rows of several must not mix.
Split = str | EllipsisType | None
# How deep, and in how many folders, TFRecords are searched below a folder without any, for the message.
_DEEPEST, _MOST_FOLDERS = 3, 100
_REQUESTS = 16  # requests to a store at a time
# A `?` in a URL would begin a query.
_PATTERN = re.compile(r"[*\[]")
# The most missing shards that are looked for: a name may announce any number.
_MOST_MISSING = 100_000


def expand(files: Files, *, as_found: bool = False, ignore_adopted: bool = False) -> tuple[Location, ...]:
    """Expands paths, patterns and folders to files: in the order of their names, or for the files of a split,
    of its manifest.

    A folder resolves to its TFRecords: the files in its manifest; without a manifest, the files with a
    TFRecord name (`is_tfrecord_name`); without any TFRecord name, the files that begin with a record, and
    files whose names differ from their names only in numbers. If a folder has no TFRecords and all its
    folders are named as splits (`train`, `test`), it resolves to their files. Hidden files and `.crc` files
    are ignored; folders whose names begin with `_`, too.

    A file that is found twice is returned once. The index of a found file is omitted (`data/train-*` matches
    both). Files that are listed one by one are not checked for completeness. In an object store, a pattern
    also resolves to files in the manifest. A config resolves to the folder of its data. `ignore_adopted`
    ignores the manifests that `adopt` wrote beside files.

    Raises:
        StoreError: a path or pattern matches no file, or a pattern matches a folder.
        SpecError: a path is an unsupported URL.
        IncompleteError: a folder or pattern lacks shards that the manifest or the names of other shards
            announce, or has shards that do not belong to them; or a folder has TFRecords both with and
            without TFRecord names. With `as_found`, all files are returned instead.
    """
    return expand_dataset(files, as_found=as_found, ignore_adopted=ignore_adopted)[0]


def expand_dataset(
    files: Files, *, as_found: bool = False, ignore_adopted: bool = False
) -> tuple[tuple[Location, ...], dict[Location, Manifest]]:
    """Expands files as `expand` does. Also returns the manifests that were read for it, by folder."""
    return _expand_patterns(_without_configs(files), as_found=as_found, ignore_adopted=ignore_adopted)


def _expand_patterns(
    patterns: Sequence[str], *, as_found: bool = False, ignore_adopted: bool = False
) -> tuple[tuple[Location, ...], dict[Location, Manifest]]:
    """`expand_dataset`, without configs."""
    if not patterns:
        raise StoreError(Problem(expected="at least one file", got="none"))
    files_found: list[Location] = []
    manifests: dict[Location, Manifest] = {}
    for pattern in patterns:
        with system_errors("read", pattern):  # a name that is too long, or a folder without permission
            paths, problems = _matches(pattern, manifests, as_found=as_found, ignore_adopted=ignore_adopted)
        if problems and not as_found:
            raise IncompleteError(problems)
        files_found += _in_order(paths, manifests)
    status_of = _status if as_found else check_regular
    _note_empty([path for path in files_found if _is_empty(status_of(path))], manifests)
    suffixes = tuple(INDEX_SUFFIXES.values())
    if any(path.name.endswith(suffixes) for path in files_found):
        indices = {f"{path}{suffix}" for path in files_found for suffix in suffixes}
        files_found = [path for path in files_found if str(path) not in indices]
    return distinct(files_found), manifests


def distinct(paths: Iterable[Location]) -> tuple[Location, ...]:
    """The files without duplicates, each under the first of its names."""
    folders: dict[str, str] = {}
    once: dict[str, Location] = {}
    for path in paths:
        folder, name = os.path.split(str(path))
        if isinstance(path, RemotePath) or os.path.islink(path):
            once.setdefault(str(resolved(path)), path)
            continue
        if folder not in folders:  # `realpath` makes a system call for each parent folder
            folders[folder] = os.path.realpath(folder)
        once.setdefault(os.path.join(folders[folder], name), path)
    return tuple(once.values())


def _in_order(paths: list[Location], manifests: Mapping[Location, Manifest]) -> list[Location]:
    """Orders the files of a split as in its manifest: after ten appends, the last shard does not have the
    last name.
    """
    ordered, among = [*paths], {path: number for number, path in enumerate(paths)}
    for folder, manifest in manifests.items():
        for shards in manifest.splits.values():
            names = [shard.file for shard in shards]
            if names == sorted(names):
                continue
            own = [path for name in names if (path := folder / name) in among]
            for number, path in zip(sorted(map(among.__getitem__, own)), own, strict=True):
                ordered[number] = path
    return ordered


def expand_split(files: Files, split: Split) -> tuple[tuple[Location, ...], dict[Location, Manifest]]:
    """Expands files as `expand_dataset` does, and selects the files of a split.

    Raises StoreError for a folder of several splits if `split` is `...`, SpecError for an unknown split.
    """
    patterns = _without_configs(files)
    paths, manifests = _expand_patterns(patterns)
    if split is None:
        return paths, manifests
    folders = [pattern for pattern in patterns if _is_folder(pattern, paths)]
    if split is ... and not folders:
        return paths, manifests
    splits = splits_of(paths, manifests)
    if set(splits.values()) == {ALL}:  # all files may name the same split
        splits = {path: split_word(path) or ALL for path in paths}
    known = tuple(dict.fromkeys(splits.values()))
    if split is ... and len(known) > 1:
        usual = "train" if "train" in known else known[0]
        hint = f'`split="{usual}"` reads one of them, and `split=None` all'
        raise StoreError(State(where=folders[0], got=f"has the splits {', '.join(known)}", hint=hint))
    if split is not ... and split not in known:
        hint = nearest(split, known)
        raise SpecError(Problem(path=("split",), expected=one_of(known), got=f"`{split}`", hint=hint))
    return tuple(path for path in paths if split in (..., splits[path])), manifests


def splits_of(paths: Sequence[Location], manifests: Mapping[Location, Manifest]) -> dict[Location, str]:
    """The split of each file, from the manifest of its folder or from its name."""
    named = {
        folder / shard.file: split
        for folder, manifest in manifests.items()
        for split, shards in manifest.splits.items()
        for shard in shards
    }
    unnamed = any(path not in named for path in paths)
    return (splits_by_name(paths, ALL) if unnamed else {}) | {
        path: named[path] for path in paths if path in named
    }


def _is_folder(pattern: str, paths: Sequence[Location]) -> bool:
    """Whether the pattern is the folder of some of the files; makes no request to a store."""
    place = location(pattern)
    if isinstance(place, RemotePath):
        return any(str(path).startswith(f"{str(place).rstrip('/')}/") for path in paths)
    return place.is_dir()


def _note_empty(paths: Iterable[Location], manifests: dict[Location, Manifest]) -> None:
    """Logs empty files, which read as files without records, unless a manifest says that they are empty."""
    empty = []
    for path in paths:
        with suppress(StoreError):
            manifest = manifests.get(path.parent) or manifest_in(path.parent)
            shards = () if manifest is None else manifest.all_shards
            if not any(shard.file == path.name and not shard.bytes for shard in shards):
                empty.append(path)
    if empty:
        more = f" and {len(empty) - 1:,} more" if len(empty) > 1 else ""
        text = f"{empty[0]}{more}: no records, as there are 0 bytes (an interrupted copy leaves such a file)"
        log.warning("%s", show_text(text))


def note_sizes(paths: Iterable[Location], manifests: Mapping[Location, Manifest]) -> None:
    """Logs files whose size differs from their manifest: reading raises an error, and a scan returns other
    rows.
    """
    sizes = {
        folder / shard.file: shard.bytes for folder, one in manifests.items() for shard in one.all_shards
    }
    others = [
        path
        for path in paths
        if (status := _status(path)) and status.st_size != sizes.get(path, status.st_size)
    ]
    if others:
        more = f" and {len(others) - 1:,} more" if len(others) > 1 else ""
        got = f"not the {sizes[others[0]]:,} bytes of the manifest (`recordspec verify` finds what changed)"
        log.warning("%s", show_text(f"{others[0]}{more}: {got}"))


def _status(path: Location) -> os.stat_result | None:
    try:
        return disk_status(path)
    except OSError:
        return None


def _is_empty(status: os.stat_result | None) -> bool:
    return status is not None and status.st_size == 0 and stat.S_ISREG(status.st_mode)


def path_list(files: Files) -> tuple[str, ...]:
    """Paths, patterns, folders and URLs as a tuple. Raises SpecError for a URL of an unsupported scheme."""
    several = [files] if isinstance(files, (str, os.PathLike, RemotePath)) else files
    return tuple(map(_text_of, several))


def is_config(path: str) -> bool:
    """Whether a path among files is that of a config, by its name: the other files are TFRecords."""
    return path.endswith((".yaml", ".yml")) and not os.path.isdir(path)


def _without_configs(files: Files) -> tuple[str, ...]:
    """`path_list` with the folder of its data instead of each config. Raises StoreError and SpecError."""
    return tuple(map(without_config, path_list(files)))


def without_config(path: str) -> str:
    """The folder of its data for a config; any other path unchanged. Raises StoreError if it is not built."""
    if not is_config(path):
        return path
    place = location(path)
    if isinstance(place, Path) and not place.exists():
        return path
    from recordspec.schema.schema import data_of_config  # 0.06 s, and most files are no config

    data = data_of_config(place)
    if isinstance(data, Path) and not data.exists():
        got = f"is not built, as {data} does not exist"
        raise StoreError(State(where=path, got=got, hint=f"`recordspec build {path}` builds it"))
    return str(data)


def _text_of(path: AnyPath) -> str:
    """The text of a path or a pattern, as it was given."""
    location(path)  # raises SpecError for an unsupported URL
    return str(path) if isinstance(path, RemotePath) else os.fspath(path)


def find_incomplete(files: Files) -> tuple[Problem, ...]:
    """The problems for which `expand` raises IncompleteError.

    Skips folders whose manifest cannot be read.
    """
    problems: list[Problem] = []
    for pattern in _without_configs(files):
        with suppress(StoreError):
            problems += _matches(pattern, {})[1]
    return tuple(dict.fromkeys(problems))


def _matches(
    pattern: str, manifests: dict[Location, Manifest], *, as_found: bool = False, ignore_adopted: bool = False
) -> tuple[list[Location], list[Problem]]:
    """The files of a path, a pattern or a folder, and the problems for which `expand` raises IncompleteError.

    Adds the manifests that it reads to `manifests`. Raises StoreError if there are no files, and for an
    invalid manifest unless `as_found`.
    """
    place = location(pattern)
    if isinstance(place, RemotePath):
        return _remote_matches(place, manifests, as_found, ignore_adopted)
    if place.is_dir():
        return _folder_matches(place, _manifest_in(place, as_found, ignore_adopted), manifests, as_found)
    if place.exists():
        return [place], []
    matched: list[Location] = sorted(map(Path, sorted(glob.glob(pattern))))
    if not matched:
        raise StoreError(_no_file(pattern, _siblings(place)))
    if folders := [path for path in matched if path.is_dir()]:
        hint = f"give `{folders[0]}` instead of the pattern, or `{folders[0] / '*'}`"
        raise StoreError(State(where=pattern, got=f"matches the folder {folders[0]}", hint=hint))
    return matched, [] if as_found else _completeness(matched, place.name, manifests, ignore_adopted)


def _remote_matches(
    place: RemotePath, manifests: dict[Location, Manifest], as_found: bool, ignore_adopted: bool
) -> tuple[list[Location], list[Problem]]:
    """`_matches` for a URL. A folder or pattern resolves to files in its manifest, without a LIST request."""
    if _PATTERN.search(place.name):
        folder = place.parent
        manifest = _manifest_in(folder, False, ignore_adopted)
        paths = folder.iterdir() if manifest is None else _named(folder, manifest, manifests)
        matched: list[Location] = sorted(path for path in paths if fnmatch.fnmatchcase(path.name, place.name))
        if matched:
            complete = as_found or manifest is not None
            return matched, [] if complete else _completeness(matched, place.name, manifests, ignore_adopted)
        if not place.exists() and not place.is_dir():  # a name may contain a `[`
            hint = "the last part of a URL alone may be a pattern" if _PATTERN.search(folder.key) else ""
            raise StoreError(_no_file(str(place), hint))
    manifest = None if parse_name(place.name) else _manifest_in(place, as_found, ignore_adopted)
    if manifest is not None:  # the folder also keeps the shards of replaced datasets
        return [*sorted(_named(place, manifest, manifests))], []
    if place.is_http or place.exists():
        return [place], []
    return _folder_matches(place, None, manifests, as_found)


def _manifest_in(folder: Location, as_found: bool, ignore_adopted: bool) -> Manifest | None:
    """The manifest of a folder. None for an invalid manifest if files are taken as found, and for a manifest
    written by `adopt` if adopted manifests are ignored.
    """
    try:
        manifest = manifest_in(folder)
    except StoreError:
        if not as_found:
            raise
        return None
    return None if ignore_adopted and manifest is not None and manifest.adopted == "files" else manifest


def _folder_matches(
    folder: Location, manifest: Manifest | None, manifests: dict[Location, Manifest], as_found: bool
) -> tuple[list[Location], list[Problem]]:
    """`_matches` for a folder; see `expand`."""
    files = files_in(folder)
    if manifest is not None:
        manifests[folder] = manifest
        listed = manifest.files
        present = [path for path in files if path.name in listed or is_tfrecord_name(path.name)]
        unlisted = listed.difference(path.name for path in files)
        if folders := [path for path in (folder / name for name in unlisted) if path.exists()]:
            present = sorted([*present, *folders])  # opening them reports what they are
        if not present:
            raise _no_tfrecords(folder, files, [])
        there = {path.name for path in present}
        return present, [*shard_differences(folder, manifest, listed - there, there - listed)]
    named, others = _tfrecords(files)
    if named:
        problems = [_other_name(path, named, others, files) for path in others]
        problems += _incomplete(numbered_among(named), "*")
        return sorted([*named, *others]) if as_found else named, problems
    if others:
        return others, [*_incomplete(numbered_among(others), "*")]
    folders = folders_in(folder)
    if not folders or not all(is_split_name(one.name) for one in folders):
        raise _no_tfrecords(folder, files, folders)
    matches = [_matches(str(one), manifests, as_found=as_found) for one in folders]
    return [path for paths, _ in matches for path in paths], [one for _, some in matches for one in some]


def has_tfrecords(folder: Location) -> bool:
    """Whether files in a folder are TFRecords, by their names or by their first bytes."""
    return any(_tfrecords(files_in(folder)))


def _tfrecords(files: Iterable[Location]) -> tuple[list[Location], list[Location]]:
    """The TFRecords among the files of a folder: files with a TFRecord name, and others.

    If no file has a TFRecord name, the others are files that begin with a record, and files whose names
    differ from theirs only in numbers, so that a shard with corrupt first bytes is not lost.
    """
    visible = [path for path in files if not IGNORED.fullmatch(path.name)]
    named = [path for path in visible if is_tfrecord_name(path.name)]
    others = _begin_with_records([path for path in visible if not is_tfrecord_name(path.name)])
    if not named:
        alike = {without_numbers(path.name) for path in others}
        others = [path for path in visible if without_numbers(path.name) in alike]
    return named, others


def _begin_with_records(files: Sequence[Location]) -> list[Location]:
    """The files of a folder that begin with a record. Raises StoreError."""
    pool = ThreadPool("recordspec-types", _REQUESTS)  # one request for each file in a store
    try:
        begins = [pool.submit(_begins_with_record, path) for path in files]
        return [path for path, future in zip(files, begins, strict=True) if future.result()]
    finally:
        pool.close()


def _begins_with_record(path: Location) -> bool:
    status = disk_status(path)
    return (status is None or stat.S_ISREG(status.st_mode)) and begins_with_record(path)


def _other_name(
    path: Location, named: Sequence[Location], others: Sequence[Location], files: Sequence[Location]
) -> Problem:
    """The problem of a TFRecord file without a TFRecord name, in a folder with TFRecord names."""
    alone = _pattern(named, files) or "the others one by one"
    together = _pattern([*named, *others], files) or "the files one by one"
    got = f"a TFRecord file by its first bytes, but not by its name, unlike {named[0].name}"
    hint = f"give {alone} to read those alone, or {together} to read all"
    return Problem(where=str(path), expected="", got=got, hint=hint)


def _pattern(wanted: Sequence[Location], files: Iterable[Location], folder: Location | None = None) -> str:
    """A quoted pattern that matches the wanted files and no others of `files`; empty if there is none.

    Args:
        folder: the folder of the files; by default that of the first wanted file.
    """
    folder = wanted[0].parent if folder is None else folder
    names = sorted({path.name for path in wanted})
    start = _common_start(names).rstrip("0123456789")
    end = _common_start([name[::-1] for name in names])[::-1].lstrip("0123456789")
    all_names = {path.name for path in files}
    candidates = [f"*{end}", f"{start}*", f"{start}*{end}"] if len(names) > 1 else names
    for pattern in candidates:
        magic = glob.has_magic(pattern.replace("*", "", 1))
        if not magic and set(fnmatch.filter(all_names, pattern)) == {*names}:
            return f"'{folder / pattern}'"
    return ""


def _common_start(names: Iterable[str]) -> str:
    letters = takewhile(lambda letters: len({*letters}) == 1, zip(*names, strict=False))
    return "".join(letter for letter, *_ in letters)


def _no_tfrecords(folder: Location, files: Sequence[Location], folders: Sequence[Location]) -> StoreError:
    """The error for a folder without TFRecords. The hint has a pattern for TFRecords below it, if any."""
    hint, below, level = "", folder, folders
    for _ in range(_DEEPEST):
        below = below / "*"
        inside = [path for one in level[:_MOST_FOLDERS] for path in files_in(one)]
        if records := [path for path in inside if is_tfrecord_name(path.name)]:
            parents = ", ".join(dict.fromkeys(str(path.parent) for path in records))
            # only the last part of a URL may be a pattern
            pattern = "" if isinstance(folder, RemotePath) else _pattern(records, inside, below)
            hint = f"give {pattern or parents} to read those below it"
            break
        level = [path for one in level[:_MOST_FOLDERS] for path in folders_in(one)]
    names = [path.name for path in (*files, *folders) if not path.name.startswith(".")]
    if not names and not folder.exists():  # a store has no empty folders
        return StoreError(_no_file(str(folder), hint))
    hint = hint or _siblings(folder / "*")
    return StoreError(State(where=str(folder), got="has no TFRecords", hint=hint))


def _no_file(pattern: str, hint: str) -> State:
    got = "matches no file" if glob.has_magic(pattern) else "does not exist"
    return State(where=pattern, got=got, hint=hint)


def _named(
    folder: RemotePath, manifest: Manifest, manifests: dict[Location, Manifest]
) -> Iterator[RemotePath]:
    """The shards that a manifest names; adds it to `manifests`."""
    manifests[folder] = manifest
    yield from (folder / shard.file for shard in manifest.all_shards)


def _completeness(
    paths: list[Location], pattern: str, manifests: dict[Location, Manifest], ignore_adopted: bool
) -> list[Problem]:
    """The problems of files that are not exactly the shards that a pattern should match, judged by their
    names.

    Raises StoreError for a manifest that cannot be read.
    """
    by_folder: dict[Location, list[NumberedFile]] = defaultdict(list)
    for shard in numbered_among(paths):
        by_folder[shard.path.parent].append(shard)
    problems: list[Problem] = []
    for folder, shards in by_folder.items():
        if manifest := _manifest_in(folder, False, ignore_adopted):
            manifests[folder] = manifest
            named, there = manifest.files, {shard.path.name for shard in shards}
            wanted = {name for name in named if fnmatch.fnmatchcase(name, pattern)}
            problems += shard_differences(folder, manifest, wanted - there, there - named)
        else:
            problems += _incomplete(shards, pattern)
    return problems


def _incomplete(shards: Iterable[NumberedFile], pattern: str) -> Iterator[Problem]:
    """The problems of shards without a manifest, judged by their names: missing shards that `pattern` would
    match, and splits whose shards announce different numbers of shards.
    """
    splits: dict[tuple[Location, str, str], dict[int, dict[int, NumberedFile]]] = defaultdict(
        lambda: defaultdict(dict)
    )
    for shard in shards:
        if shard.index >= shard.count:
            yield Problem(
                where=str(shard.path), expected=f"a number below {shard.count}", got=str(shard.index)
            )
            continue
        first = splits[shard.path.parent, shard.split, shard.type][shard.count].setdefault(shard.index, shard)
        if first is not shard:
            expected = f"one shard of this number, {first.path.name}"
            yield Problem(where=str(shard.path), expected=expected, got="two")
    for _, counts in sorted(splits.items()):
        # the number that most shards announce is the split's; in a tie, the larger number
        count = max(counts, key=lambda count: (len(counts[count]) / count, count))
        for other, of_count in sorted(counts.items()):
            yield from (
                _missing_shards(of_count, pattern) if other == count else [_other_count(of_count, count)]
            )


def _missing_shards(shards: dict[int, NumberedFile], pattern: str) -> Iterator[Problem]:
    """The problem of a split with missing shards."""
    first = next(iter(shards.values()))
    absent = list(islice((index for index in range(first.count) if index not in shards), _MOST_MISSING))
    lacking = [index for index in absent if fnmatch.fnmatchcase(first.sibling(f"{index:05d}").name, pattern)]
    if lacking:
        at_least = "at least " * (len(absent) == _MOST_MISSING)
        got = f"{len(shards)}; {at_least}{len(lacking):,} of {first.count} missing: {_ranges(lacking)}"
        hint = "files that are listed one by one are taken as they are"
        where = str(first.sibling("*"))
        yield Problem(where=where, expected=f"{first.count} shards", got=got, hint=hint)


def _other_count(shards: dict[int, NumberedFile], count: int) -> Problem:
    """The problem of shards that announce a different number of shards than their split has."""
    first = next(iter(shards.values()))
    several = len(shards) > 1
    return Problem(
        where=str(first.sibling("*") if several else first.path),
        expected=f"shards of {count}, as {first.split}-*-of-{count:05d}",
        got=f"{len(shards)} of {first.count}: {_ranges(shards)}" if several else f"one of {first.count}",
        hint=f"to read only some, give a pattern such as '{first.split}-*-of-{count:05d}*'",
    )


def _ranges(numbers: Iterable[int]) -> str:
    """Formats shard numbers: `00002, 00004 to 00007`."""
    runs: list[list[int]] = []
    for number in sorted(numbers):
        if runs and number == runs[-1][-1] + 1:
            runs[-1] = [runs[-1][0], number]
        else:
            runs.append([number])
    return ", ".join(" to ".join(f"{number:05d}" for number in run) for run in runs)


def missing_file(pattern: str) -> State | None:
    """The problem of a local path that does not exist, or of a pattern that matches no file. None for a URL,
    and for a path that cannot be examined: opening it reports the error.
    """
    place = location(pattern)
    if isinstance(place, RemotePath):
        return None
    try:
        os.stat(place)
        return None
    except FileNotFoundError:
        is_matched = glob.has_magic(pattern) and any(glob.iglob(pattern))
        return None if is_matched else _no_file(pattern, _siblings(place))
    except (OSError, ValueError):
        return None


def _siblings(path: Location) -> str:
    """A hint for a folder in which no match was found: the file or folder of a similar name, or else the list
    of all.
    """
    folder = path.parent
    if not folder.is_dir():
        missing = "no folder matches" if glob.has_magic(str(folder)) else "there is no folder"
        return f"{missing} {folder}"
    names = sorted(child.name for child in folder.iterdir() if not child.name.startswith("."))
    stem, suffix = os.path.splitext(path.name)
    stems = [one.removesuffix(suffix) for one in names if os.path.splitext(one)[1] == suffix]
    if not glob.has_magic(stem) and (close := close_names(stem, stems)):
        return did_you_mean(*(f"{one}{suffix}" for one in close))
    more = ", ..." * (len(names) > 3)
    return f"{folder} has {', '.join(names[:3])}{more}" if names else f"{folder} is empty"
