"""Paths are local and files are regular, at every place of the language, the API and the command line."""

from __future__ import annotations

import ast
import dataclasses
import importlib
import json
import os
import re
import signal
import typing
from pathlib import Path

import click
import pytest

import recordspec as rs
from recordspec import cli, locations
from recordspec.config import Config, From, WriteFrom
from recordspec.spec.features import KINDS
from recordspec.spec.features.label import Label
from recordspec.spec.options import (
    MAPPINGS,
    YamlValue,
    choices,
    document,
    from_python,
    hints,
    literals,
    read_fields,
    wrong_path,
)
from recordspec.writing.build import Execution
from recordspec.writing.options import Write
from recordspec.writing.sources.csv import Csv
from recordspec.writing.sources.folders import AudioFolder, ImageFolder
from recordspec.writing.sources.jsonl import Jsonl
from recordspec.writing.sources.parquet import Parquet
from recordspec.writing.sources.tfrecord import TFRecords

PACKAGE = Path(rs.__file__).parent
URL = "s3://bucket/data"
REFUSED = f"expected a local path, got the URL `{URL}` (URLs are not supported yet)"
SCHEMA = rs.Schema.loads("schema: s\nfeatures: {a: int64}")


@pytest.mark.parametrize(
    "url",
    [
        *("s3://bucket", "gs://bucket/a/b", "hdfs://host:9000/x", "file:///tmp/x", "https://x.org/y.csv"),
        *("S3://bucket", "abfss://a@b.c/d", "s3:/bucket", "data/s3://bucket", Path("s3://bucket")),
    ],
)
def test_a_url_never_becomes_a_path(url):
    with pytest.raises(rs.SpecError) as caught:
        locations.local(url, "data")
    expected = f"expected a local path, got the URL `{url}` (URLs are not supported yet)"
    assert str(caught.value) == f"data: {expected}"


@pytest.mark.parametrize(
    "path", ["a", "/a/b", "a:b", "a:/b", "12:30/x", "./s3:/bucket", "data/train-*", "a//b"]
)
def test_other_paths_do(path):
    assert locations.local(path) == Path(path)


def test_a_long_url_is_cut():
    with pytest.raises(rs.SpecError) as caught:
        locations.local("https://x.org/" + 1000 * "y")
    assert str(caught.value) == (
        f"expected a local path, got the URL `https://x.org/{183 * 'y'}...` (URLs are not supported yet)"
    )


# The language: every option that is text is a path, or is known to be none.

NO_PATHS = {
    *("Config.description", "Read.features", "Read.service", "Bucket.by", "Balance.by", "Shuffle.buffer"),
    *("Fit.inputs", "Fit.targets", "Fit.weights", "Write.key", "Write.group_by", "Key.names"),
    *("ByColumn.column", "ShardSize.size", "Csv.delimiter", "Csv.columns", "Jsonl.columns", "Jsonl.ignore"),
    *("Parquet.columns", "MediaFolder.label", "ImageFolder.image", "AudioFolder.audio"),
    *("Feature.name", "Feature.key", "Feature.description", "Label.names", "SparseValues.index_keys"),
    *("FixedLen.dtype", "FixedLenSequence.dtype", "RaggedLists.dtype", "RaggedLists.row_lengths"),
    *("SparseValues.dtype", "VariableLen.dtype", "AnyTensor.dtype", "Text.pad"),
}


def texts(annotation) -> bool:
    """Whether it may hold text of any kind."""
    for choice in choices(annotation):
        items = () if literals(choice) else typing.get_args(choice)
        if choice is str or any(map(texts, items[typing.get_origin(choice) in MAPPINGS :])):
            return True
    return False


def sections(cls: type, known: set[type]) -> None:
    """The dataclasses of options that a class of options leads to."""
    if cls in known:
        return
    known.add(cls)
    for annotation in hints(cls).values():
        pending = [*choices(annotation)]
        while pending:
            choice = pending.pop()
            pending += typing.get_args(choice)
            if dataclasses.is_dataclass(choice):
                sections(choice, known)


def options() -> dict[tuple[type, str], object]:
    """Every option that may hold text."""
    known: set[type] = set()
    for cls in (Config, *KINDS.values()):
        sections(cls, known)
    return {
        (cls, field.name): hints(cls)[field.name]
        for cls in known
        for field in dataclasses.fields(cls)
        if texts(hints(cls)[field.name])
    }


def named(cls: type, field: str) -> str:
    """With the class that declares it."""
    owner = next(one for one in reversed(cls.__mro__) if field in getattr(one, "__annotations__", {}))
    return f"{owner.__name__}.{field}"


PATHS = {place for place, annotation in options().items() if wrong_path(URL, annotation) is not None}


def test_every_option_that_is_text_is_a_path_or_known_to_be_none():
    others = {named(*place) for place in options().keys() - PATHS}
    assert others == NO_PATHS
    assert {named(*place) for place in PATHS} == {
        *("Config.schema", "Config.data", "Csv.path", "Jsonl.path", "Parquet.files", "MediaFolder.path"),
        *("TFRecords.files", "TFRecords.schema", "Read.cache", "Label.vocabulary"),
    }


@pytest.mark.parametrize(
    ("cls", "option"), sorted(PATHS, key=str), ids=lambda one: getattr(one, "__name__", one)
)
def test_an_option_that_is_a_path_takes_no_url(cls, option):
    node, log = document(f"{option}: {URL}\n", "file.yaml")
    read_fields(cls, YamlValue(node), (), log)
    assert f"file.yaml:1:{len(option) + 3}: {option}: {REFUSED}" in map(str, log.problems)
    with pytest.raises(rs.SpecError) as caught:
        from_python(cls, {option: URL})
    assert f"{option}: {REFUSED}" in map(str, caught.value.problems)


def test_lint_names_every_url_with_line_and_column(tmp_path, command):
    (tmp_path / "schema.yaml").write_text(f"schema: s\nfeatures:\n  a: {{kind: label, vocabulary: {URL}}}\n")
    (tmp_path / "config.yaml").write_text(
        f"schema: {URL}\ndata: '{URL}'\nwrite:\n  source: {{csv: {URL}}}\nread: {{batch: 1, cache: {URL}}}\n"
    )
    status, out, err = command("lint", tmp_path / "schema.yaml", tmp_path / "config.yaml")
    assert (status, err) == (2, "")
    assert out.splitlines() == [
        f"{tmp_path}/schema.yaml:3:32: features.a.vocabulary: {REFUSED}",
        f"{tmp_path}/config.yaml:1:9: schema: {REFUSED}",
        f"{tmp_path}/config.yaml:2:7: data: {REFUSED}",
        f"{tmp_path}/config.yaml:4:17: write.source.csv: {REFUSED}",
        f"{tmp_path}/config.yaml:5:25: read.cache: {REFUSED}",
    ]


def test_a_build_to_a_url_makes_no_folder_of_that_name(tmp_path, command, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("s.yaml").write_text(SCHEMA.dump())
    Path("c.yaml").write_text(f"schema: s.yaml\ndata: {URL}\n")
    status, out, err = command("build", "c.yaml")
    assert (status, out, err) == (2, "", f"c.yaml:2:7: data: {REFUSED}\n")
    assert sorted(os.listdir()) == ["c.yaml", "s.yaml"]


# The command line: each parameter has the type of paths, or is known to be none.

NO_PATH_OPTIONS = {"columns", "where", "name", "memory", "shards", "split", "as_json", "help", "allow_absent"}


def parameters() -> list[tuple[str, click.Parameter]]:
    group = cli.commands
    context = click.Context(group)
    names = group.list_commands(context)
    return [(name, param) for name in names for param in group.get_command(context, name).params]


def is_path(param: click.Parameter) -> bool:
    from recordspec.cli.options import LocalPath

    return isinstance(param.type, LocalPath)


def test_every_parameter_that_is_text_is_a_path_or_known_to_be_none():
    others = [param for _, param in parameters() if not is_path(param)]
    assert [param.name for param in others if isinstance(param, click.Argument)] == []
    plain = (click.types.StringParamType, click.Path, click.File)
    assert {param.name for param in others if isinstance(param.type, plain)} <= NO_PATH_OPTIONS
    assert sum(is_path(param) for _, param in parameters()) >= 35


def given(param: click.Parameter, value: str) -> list[str]:
    return [param.opts[0], value] if isinstance(param, click.Option) else [value]


@pytest.mark.parametrize(
    ("name", "tried"),
    [(name, param) for name, param in parameters() if is_path(param)],
    ids=lambda one: one if isinstance(one, str) else one.name,
)
def test_a_command_takes_no_url(name, tried, command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    arguments = []
    for _, param in (one for one in parameters() if one[0] == name):
        if param is tried or param.opts == tried.opts:
            arguments += given(param, URL)
        elif param.required:
            arguments += given(param, "1" if isinstance(param.type, click.IntRange) else "x")
    place = tried.opts[0] if isinstance(tried, click.Option) else tried.human_readable_name
    assert command(name, *arguments) == (2, "", f"{place}: {REFUSED}\n")
    assert os.listdir() == []


# The API: each parameter that takes a path as text.


def test_every_function_that_takes_a_path_is_tried_here():
    found = set()
    for file in PACKAGE.rglob("*.py"):
        module = ".".join(file.relative_to(PACKAGE).with_suffix("").parts).removesuffix(".__init__")
        found |= {f"{module}:{place}" for place in path_parameters(ast.parse(file.read_text()), "")}
    assert found == {*CALLS, *TRIED_ELSEWHERE}


def path_parameters(node: ast.AST, prefix: str) -> set[str]:
    """`function:parameter`, of those that a caller outside of the module may call."""
    found = set()
    for child in ast.iter_child_nodes(node):
        name = getattr(child, "name", "")
        if isinstance(child, ast.ClassDef) and not name.startswith("_"):
            found |= path_parameters(child, f"{name}.")
        if isinstance(child, ast.FunctionDef) and (name == "__init__" or not name.startswith("_")):
            arguments = child.args
            for one in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs):
                text = ast.unparse(one.annotation) if one.annotation else ""
                if re.search(r"\bFiles\b|PathLike|\bstr \| Path\b|\bPath \| str\b", text):
                    found.add(f"{prefix}{name}:{one.arg}")
    return found


@pytest.fixture(scope="module")
def dataset(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("dataset") / "data"
    rs.write(SCHEMA, [{"a": 1}], folder)
    return folder


def function(place: str):
    """What a place of CALLS names."""
    module, names, _ = place.split(":")
    found = importlib.import_module(f"recordspec.{module}")
    for name in names.removesuffix(".__init__").split("."):
        found = getattr(found, name)
    return found


def _consumed(value) -> None:
    """Generators and contexts begin when they are entered."""
    if hasattr(value, "__enter__"):
        with value:
            pass
    elif hasattr(value, "__next__"):
        list(value)


def pipeline(**options) -> rs.Pipeline:
    write = WriteFrom(source=From(csv=Csv(path="rows.csv")))
    return rs.Pipeline(Config(**{"schema": "s.yaml", "data": "data", "write": write, **options}), SCHEMA)


# What to call with a dataset and a URL.
CALLS = {
    "config:From.at:path": lambda call, data, url: call(From(csv=Csv(path="rows.csv")), url),
    "interop.tfds:describe:folder": lambda call, data, url: call(url),
    "interop.tfds:load:path": lambda call, data, url: call(url),
    "interop.tfmd:load:path": lambda call, data, url: call(url),
    "inspect.count:count:files": lambda call, data, url: call(url),
    "inspect.diff:diff:new": lambda call, data, url: call(data, url),
    "inspect.diff:diff:old": lambda call, data, url: call(url, data),
    "inspect.export:export:files": lambda call, data, url: call(url, Path("out.csv")),
    "inspect.index:index:files": lambda call, data, url: call(url),
    "inspect.infer:infer:files": lambda call, data, url: call(url, "name"),
    "inspect.info:info:files": lambda call, data, url: call(url),
    "inspect.show:RecordViewer.__init__:files": lambda call, data, url: call(url),
    "inspect.scan:Scanner.__init__:files": lambda call, data, url: call(url),
    "inspect.repair:repair:directory": lambda call, data, url: call(data, url),
    "inspect.repair:repair:files": lambda call, data, url: call(url, "out"),
    "inspect.scan:Scanner.of_rows:files": lambda call, data, url: call(url),
    "inspect.stats:stats:files": lambda call, data, url: call([data, url]),
    "inspect.verify:verify:files": lambda call, data, url: call(url),
    "pipeline:Pipeline.__init__:folder": lambda call, data, url: call(pipeline().config, SCHEMA, url),
    "pipeline:Pipeline.build:source": lambda call, data, url: call(pipeline(), source=url),
    "pipeline:Pipeline.load:path": lambda call, data, url: call(url),
    "pipeline:Pipeline.plan:source": lambda call, data, url: call(pipeline(), source=url),
    "reading.dataset:read:files": lambda call, data, url: call(SCHEMA, url),
    "reading.corrupt_records:locating:files": lambda call, data, url: call(SCHEMA, [data, url]),
    "spec.schema:Schema.dump:path": lambda call, data, url: call(SCHEMA, url),
    "spec.schema:Schema.load:path": lambda call, data, url: call(url),
    "store.manifest:Manifest.load:folder": lambda call, data, url: call(url),
    "store.shards:expand:files": lambda call, data, url: call(url),
    "store.shards:path_list:files": lambda call, data, url: call(url),
    "store.shards:find_incomplete:files": lambda call, data, url: call(url),
    "store.transaction:Transaction.__init__:target": lambda call, data, url: call(url),
    "writing.build:Build.__init__:directory": lambda call, data, url: call(
        SCHEMA, None, url, Write(), Execution()
    ),
    "writing.build:write:directory": lambda call, data, url: call(SCHEMA, [{"a": 1}], url),
    "writing.estimate:estimate:directory": lambda call, data, url: call(SCHEMA, [{"a": 1}], url),
    "writing.reshard:reshard:directory": lambda call, data, url: call(data, url),
    "writing.reshard:reshard:files": lambda call, data, url: call(url, "out"),
    "writing.writer:ShardedWriter.__init__:directory": lambda call, data, url: call(SCHEMA, url),
}
TRIED_ELSEWHERE = {
    *("locations:local:path", "locations:url_problem:path"),
    "spec.media:path_of:value",  # test_a_file_of_a_row_is_no_url
    "reading.resume:Backup.__init__:folder",  # tests/reading/test_backup.py: it needs TensorFlow
}


@pytest.mark.parametrize("place", CALLS)
@pytest.mark.parametrize("url", [URL, Path(URL)], ids=["text", "pathlib"])
def test_a_function_takes_no_url(place, url, dataset, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(rs.SpecError) as caught:
        _consumed(CALLS[place](function(place), dataset, url))
    assert str(caught.value) == REFUSED.replace(URL, str(url))
    assert os.listdir() == []


@pytest.mark.parametrize("form", [Csv, Jsonl, Parquet, TFRecords, ImageFolder, AudioFolder])
def test_a_source_made_in_python_takes_no_url(form, tmp_path):
    with pytest.raises(rs.SpecError) as caught:
        form(**{form.SHORT_FORM: URL}).open(tmp_path)
    assert str(caught.value) == REFUSED


def test_options_made_in_python_take_no_url(tmp_path):
    with pytest.raises(rs.SpecError) as caught:
        _ = pipeline(data=URL).data
    assert str(caught.value) == REFUSED
    with pytest.raises(rs.SpecError) as caught:
        Label(name="a", vocabulary=URL).resolved(tmp_path)
    assert str(caught.value) == f"vocabulary: {REFUSED}"
    with pytest.raises(rs.SpecError) as caught:
        TFRecords(files=str(tmp_path / "x"), schema=URL).open(tmp_path)
    assert str(caught.value) == REFUSED
    with pytest.raises(rs.SpecError) as caught:
        rs.read(SCHEMA, tmp_path, cache=URL)
    assert str(caught.value) == f"cache: {REFUSED}"


MEDIA = rs.Schema.loads("schema: s\nfeatures: {image: image, audio: {kind: audio, sample_rate: 8000}}")


@pytest.mark.parametrize("name", ["image", "audio"])
def test_a_file_of_a_row_is_no_url(name, tmp_path):
    only = MEDIA.only([name])
    (tmp_path / "rows.csv").write_text(f"{name}\n{URL}\n")
    (tmp_path / "rows.jsonl").write_text(json.dumps({name: URL}) + "\n")
    for rows, place in [
        ([{name: URL}], "row 0"),
        (Csv(path="rows.csv").open(tmp_path), f"{tmp_path}/rows.csv:2"),
        (Jsonl(path="rows.jsonl").open(tmp_path), f"{tmp_path}/rows.jsonl:1"),
    ]:
        with pytest.raises(rs.RecordError) as caught:
            rs.write(only, rows, tmp_path / "data")
        assert str(caught.value) == f"{place}: features.{name}: {REFUSED}"


# Files are regular, and opened in one place.


@pytest.fixture
def no_waiting():
    """A test that waits for a pipe fails instead."""

    def fail(signum, frame):
        raise AssertionError("waited for a pipe")

    before = signal.signal(signal.SIGALRM, fail)
    signal.alarm(30)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def pipe(path: Path) -> str:
    path.unlink(missing_ok=True)
    os.mkfifo(path)
    return "a pipe"


def device(path: Path) -> str:
    path.unlink(missing_ok=True)
    path.symlink_to("/dev/zero")
    return "a device"


HINT = "(copy what it gives to a file first)"
SPEC = "schema: s\nfeatures:\n  a: {kind: label, vocabulary: names}\n"


def in_folder(folder: Path) -> None:
    """A dataset that may be looked at by all commands."""
    data = folder / "data"
    rs.write(SCHEMA, [{"a": 1}, {"a": "x"}], data, invalid="quarantine")
    (folder / "s.yaml").write_text(SCHEMA.dump())
    (folder / "c.yaml").write_text(
        "schema: s.yaml\ndata: data\nwrite: {source: rows.csv, invalid: quarantine}\n"
    )
    (folder / "v.yaml").write_text(SPEC)
    (folder / "names").write_text("x\n")
    (folder / "repaired").mkdir()


SHARD = "data/train-00000-of-00001.tfrecord"
REFUSAL = "{path}: expected a regular file, got {got} " + HINT


@pytest.mark.parametrize("special", [pipe, device])
@pytest.mark.parametrize(
    ("name", "arguments", "status", "message"),
    [
        ("s.yaml", "lint {path}", 3, REFUSAL),
        ("s.yaml", "build c.yaml", 3, REFUSAL.replace("{path}", "s.yaml")),
        ("s.yaml", "head data --spec {path}", 3, REFUSAL),
        ("c.yaml", "build {path}", 3, REFUSAL),
        ("rows.csv", "infer {path}", 3, REFUSAL),
        ("rows.parquet", "infer {path}", 3, REFUSAL),
        ("schema.pbtxt", "infer {path}", 3, REFUSAL),
        ("schema.pb", "infer {path}", 3, REFUSAL),
        ("features.json", "infer {path}", 3, REFUSAL),
        (SHARD, "count {path}", 3, REFUSAL),
        ("data/manifest.json", "info data", 3, REFUSAL),
        ("data/schema.yaml", "describe data", 3, REFUSAL),
        ("data/schema.yaml", "stats data", 3, REFUSAL),
        ("data/features.json", "describe data", 3, "{path}: expected no file, or a sidecar of this dataset, got another file (move it elsewhere first)"),
        ("data/rejects.jsonl", "reshard data other", 3, REFUSAL),
        ("repaired/repair.json", "repair data --out repaired --force", 3, "repaired: expected a dataset, and nothing else, got something without a manifest"),
    ],
)  # fmt: skip
def test_a_file_that_is_not_regular_is_refused_at_once(
    name, arguments, status, message, special, tmp_path, command, monkeypatch, no_waiting
):
    monkeypatch.chdir(tmp_path)
    in_folder(tmp_path)
    got = special(Path(name))
    code, out, err = command(*arguments.format(path=name).split())
    assert (code, out + err) == (status, message.format(path=name, got=got) + "\n")


def test_a_vocabulary_is_a_regular_file(tmp_path, command, monkeypatch, no_waiting):
    monkeypatch.chdir(tmp_path)
    in_folder(tmp_path)
    got = pipe(tmp_path / "names")
    refused = f"expected a regular file, got {tmp_path}/names: {got} {HINT}"
    assert command("lint", "v.yaml") == (2, f"v.yaml:3:32: features.a.vocabulary: {refused}\n", "")


@pytest.mark.parametrize("special", [pipe, device])
def test_an_index_that_is_no_file_is_none(special, tmp_path, command, no_waiting):
    in_folder(tmp_path)
    special(tmp_path / f"{SHARD}.index.json")
    status, out, err = command("show", tmp_path / SHARD, "--record", 0)
    assert (status, json.loads(out)["features"], err) == (0, {"a": 1}, "")


@pytest.mark.parametrize("special", [pipe, device])
@pytest.mark.parametrize(("name", "what"), [("image", "an image file"), ("audio", "a sound file")])
def test_a_file_of_a_row_is_regular(special, name, what, tmp_path, no_waiting):
    path = tmp_path / "file"
    got = special(path)
    with pytest.raises(rs.RecordError) as caught:
        MEDIA.only([name]).encode({name: path})
    assert str(caught.value) == f"row 0: features.{name}: expected a regular file at {path}, got {got} {HINT}"
    with pytest.raises(rs.RecordError) as caught:
        MEDIA.only([name]).encode({name: tmp_path / "none"})
    assert str(caught.value) == (
        f"row 0: features.{name}: expected {what} at {tmp_path}/none, got no such file or directory"
    )


@pytest.mark.parametrize("special", [pipe, device])
def test_an_unfinished_build_without_regular_files_is_no_writers(special, tmp_path, no_waiting):
    staging = tmp_path / ".data.partial"
    staging.mkdir()
    special(staging / "owner.json")
    with pytest.raises(rs.StoreError) as caught:
        rs.write(SCHEMA, [{"a": 1}], tmp_path / "data")
    assert str(caught.value) == (
        f"{staging}: expected a folder with an owner.json, got none"
        f" (if nobody writes there, remove {staging})"
    )


def test_the_rejects_of_a_dataset_are_a_regular_file(tmp_path, no_waiting):
    in_folder(tmp_path)
    got = device(tmp_path / "data/rejects.jsonl")
    with pytest.raises(rs.StoreError) as caught:
        rs.write(SCHEMA, [{"a": 2}], tmp_path / "data", append=True, invalid="quarantine")
    assert str(caught.value) == f"{tmp_path}/data/rejects.jsonl: expected a regular file, got {got} {HINT}"


def test_the_limit_of_size_applies_while_reading():
    """Files of /proc say that they have no bytes."""
    path = Path("/proc/self/maps")
    assert path.stat().st_size == 0
    with pytest.raises(rs.StoreError) as caught:
        locations.read_bytes(path, 100)
    assert str(caught.value) == f"{path}: expected a file of at most 100 bytes, got a larger one"
    assert locations.read_bytes(path, 1 << 20).startswith(path.read_bytes()[:12])


@pytest.mark.parametrize(
    ("name", "arguments", "status", "expected"),
    [
        ("s.yaml", "lint {path}", 2, "{path}: expected a file of at most 16 MiB, got a larger one"),
        ("names", "lint v.yaml", 2, "v.yaml:3:32: features.a.vocabulary: expected a file of at most 64 MiB, got {path}: a larger one"),
        ("schema.pbtxt", "infer {path}", 2, "{path}: expected a file of at most 64 MiB, got a larger one"),
        ("data/manifest.json", "info data", 3, "{path}: expected a file of at most 1024 MiB, got a larger one"),
    ],
)  # fmt: skip
def test_a_file_that_is_too_large_is_not_read(
    name, arguments, status, expected, tmp_path, command, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    in_folder(tmp_path)
    with Path(name).open("wb") as file:
        file.truncate(1 << 40)
    code, out, err = command(*arguments.format(path=name).split())
    path = tmp_path / name if name == "names" else name
    assert (code, out + err) == (status, expected.format(path=path) + "\n")


# What may open files without `locations`, and why.
OPENERS = {
    "cli/schemas.py: (starter / name).read_text": "a file of the package",
    "inspect/stats/page.py: files('recordspec.inspect.stats').joinpath('page.css').read_text": "the same",
    "reading/memory.py: Path('/proc/meminfo').read_text": "a file of the system",
    "reading/memory.py: Path(f'/sys/fs/cgroup/memory.{name}').read_text": "the same",
    "spec/media/images.py: library.open": "bytes in memory",
    "spec/media/images.py: pillow('images').open": "bytes in memory",
    "spec/features/video.py: pillow('frames').open": "bytes in memory",
    "inspect/media.py: images.pillow('the sizes of images').open": "bytes in memory",
    "inspect/doctor.py: Image.open": "bytes in memory",
    "inspect/media.py: wave.open": "bytes in memory",
    "config.py: form.open": "a source, of a path that is checked",
    "pipeline.py: given.open": "the same",
    "writing/sources/csv.py: self.span.open": "a part of a file, by open_file",
    "writing/sources/jsonl.py: self.span.open": "the same",
    "locations.py: _Named": "the one that opens",
}


@pytest.mark.skipif(not Path("/proc/self/mem").exists(), reason="only Linux has it")
def test_a_failed_read_names_the_file():
    memory = Path("/proc/self/mem")  # of which the first page cannot be read
    with locations.open_file(memory) as file, pytest.raises(OSError, match="Input/output error") as caught:
        file.read(1)
    assert caught.value.filename == str(memory)


def test_files_are_opened_for_reading_in_one_place():
    found = set()
    for file in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Call) and reads(node):
                found.add(f"{file.relative_to(PACKAGE)}: {ast.unparse(node.func)}")
    assert found == {*OPENERS}


def reads(call: ast.Call) -> bool:
    """Whether a call opens a file for reading by its name, as far as that can be seen."""
    name = getattr(call.func, "attr", getattr(call.func, "id", ""))
    if name in ("FileIO", "_Named"):
        return True
    if name in ("read_text", "read_bytes"):
        return isinstance(call.func, ast.Attribute) and ast.unparse(call.func.value) != "locations"
    if name != "open" or ast.unparse(call.func) == "os.open":
        return False
    modes = [
        one.value
        for one in (*call.args, *(key.value for key in call.keywords))
        if isinstance(one, ast.Constant)
    ]
    return not any(isinstance(mode, str) and set(mode) & set("wxa+") for mode in modes)
