"""Paths are local and files are regular, at every place of the language, the API and the command line (`cli.shared_options`)."""

from __future__ import annotations

import ast
import dataclasses
import importlib
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import typing
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

import click
import numpy as np
import pyarrow as pa
import pytest
from obstore.store import MemoryStore
from pyarrow import parquet

import recordspec as rs
from media import image_bytes, photo, sound_bytes, tone
from recordspec import cli, locations, remote
from recordspec.cli import shared_options as options_module
from recordspec.config import Config, From, WriteFrom
from recordspec.schema.features import KINDS
from recordspec.schema.features.label import Label
from recordspec.schema.options import (
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
from recordspec.store.expand import expand
from recordspec.store.manifest import Manifest
from recordspec.writing.sources.csv import Csv
from recordspec.writing.sources.folders import AudioFolder, ImageFolder
from recordspec.writing.sources.jsonl import Jsonl
from recordspec.writing.sources.parquet import Parquet
from recordspec.writing.sources.python_rows import source_of
from recordspec.writing.sources.tfrecord import TFRecords
from recordspec.writing.write_options import Execution, Write

PACKAGE = Path(rs.__file__).parent
URL = "s3://bucket/data"
LOCAL_ONLY = f"expected a local path, got the URL `{URL}`"
PLACE = "expected a path or a URL of s3, gs, az, http or https, got"
CREDENTIALS = "(credentials come from the environment)"
QUERY = "(credentials come from the environment, and `?` is not a wildcard here)"
COLLAPSED = "(a URL has two slashes; pathlib drops one)"
# What is refused everywhere, and how.
REFUSED = {
    "hdfs://host:9000/x": f"{PLACE} `hdfs://host:9000/x`",
    "file:///tmp/x": f"{PLACE} `file:///tmp/x`",
    "s3://me:SECRET@bucket/x": f"expected s3://BUCKET/PATH, got a user or a password in `s3://bucket/x` {CREDENTIALS}",
    "https://x.org/y.csv?sig=SECRET": f"expected https://HOST/PATH, got a query in `https://x.org/y.csv` {QUERY}",
    Path("s3://bucket/x"): f"{PLACE} the URL `s3:/bucket/x` {COLLAPSED}",
}  # fmt: skip
SCHEMA = rs.Schema.loads("schema: s\nfeatures: {a: int64}")


@pytest.fixture
def stores(monkeypatch, tmp_path_factory) -> None:
    """Every bucket is empty, and in memory; builds into it work in a folder of their own."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path_factory.mktemp("work")))
    stores = lru_cache(lambda root: MemoryStore())
    for name in ("_store", "_upload_store"):
        monkeypatch.setattr(remote, name, stores)


@pytest.fixture(params=REFUSED, ids=["hdfs", "file", "password", "query", "collapsed"])
def refused(request) -> tuple[str | Path, str]:
    """What is no place of data, and what is said of it."""
    return request.param, REFUSED[request.param]


def local_refusal(url: str | Path) -> str:
    """What is said of it where a path on this machine is needed."""
    hint = f" {COLLAPSED}" if isinstance(url, Path) else ""
    return f"expected a local path, got the URL `{remote.shown_url(str(url))}`{hint}"


@pytest.mark.parametrize(
    ("url", "message"),
    [
        *REFUSED.items(),
        ("s3a://bucket/x", f"{PLACE} `s3a://bucket/x` (did you mean `s3`?)"),
        ("abfss://a@b.c/d", f"{PLACE} `abfss://b.c/d`"),
        ("data/s3://bucket", f"{PLACE} the URL `data/s3://bucket`"),
        (Path("https://me:SECRET@x.org/y?sig=SECRET"), f"{PLACE} the URL `https:/x.org/y` {COLLAPSED}"),
        ("s3://", "expected s3://BUCKET/PATH, got no bucket in `s3://`"),
        ("http:///y", "expected http://HOST/PATH, got no host in `http:///y`"),
        (
            "s3://my bucket/x",
            "expected s3://BUCKET/PATH, got a name with other characters in `s3://my bucket/x`",
        ),
        ("s3://bucket/a\nb", r"expected s3://BUCKET/PATH, got a control character in `s3://bucket/a\nb`"),
        ("gs://bucket/a#b", "expected gs://BUCKET/PATH, got a fragment in `gs://bucket/a`"),
        (
            "az://box/x?sv=1&sig=SECRET#a",
            f"expected az://BUCKET/PATH, got a query in `az://box/x` {QUERY}",
        ),
        # a password that is not quoted
        (
            "s3://ME:SE/CRET@bucket/x",
            f"expected s3://BUCKET/PATH, got a user or a password in `s3://bucket/x` {CREDENTIALS}",
        ),
        (
            "s3://ME:S?E#CRET@bucket/x",
            f"expected s3://BUCKET/PATH, got a user or a password in `s3://bucket/x` {CREDENTIALS}",
        ),
        (
            "s3://ME:SECRET",
            f"expected s3://BUCKET/PATH, got a user or a password in `s3://...` {CREDENTIALS}",
        ),
    ],
)
def test_what_is_no_place_is_told_without_secrets(url, message):
    with pytest.raises(rs.SpecError) as caught:
        locations.location(url)
    assert str(caught.value) == message
    with pytest.raises(rs.SpecError) as caught:
        locations.local(url, "data")
    assert str(caught.value).startswith("data: expected a local path, got the URL `")
    assert "SE" not in str(caught.value)


@pytest.mark.parametrize(
    ("url", "root", "key"),
    [
        ("s3://bucket", "s3://bucket", ""),
        ("GS://bucket//a/./b/../c/", "gs://bucket", "a/c"),
        ("az://$web/../x", "az://$web", "x"),
        ("s3://b/100%25 ü+@:*[1]", "s3://b", "100%25 ü+@:*[1]"),
        ("HTTPS://[::1]:80/a%20b%3F/%C3%BC", "https://[::1]:80", "a b?/ü"),
    ],
)
def test_a_url_of_a_store(url, root, key):
    place = locations.location(url)
    assert (place.root, place.key) == (root, key)
    assert locations.location(str(place)) == place
    with pytest.raises(rs.SpecError) as caught:
        locations.local(url)
    assert str(caught.value) == f"expected a local path, got the URL `{url}`"


@pytest.mark.parametrize(
    "path", ["a", "/a/b", "a:b", "a:/b", "12:30/x", "./s3:/bucket", "data/train-*", "a//b"]
)
def test_other_paths_are_local(path):
    assert locations.local(path) == locations.location(path) == Path(path)


def test_a_long_url_is_cut():
    with pytest.raises(rs.SpecError) as caught:
        locations.local("https://x.org/" + 1000 * "y")
    assert str(caught.value) == f"expected a local path, got the URL `https://x.org/{183 * 'y'}...`"


@pytest.mark.parametrize(
    ("folder", "path", "found"),
    [
        ("s3://b/c", "data", "s3://b/c/data"),
        ("s3://b/c", "./a b/../#1?.csv", "s3://b/c/#1?.csv"),
        ("s3://b/c", "../../../x", "s3://b/x"),
        ("s3://b", "train-*", "s3://b/train-*"),
        ("s3://b/c", "gs://other/x", "gs://other/x"),
        ("/home/c", "gs://other/x", "gs://other/x"),
        ("/home/c", "../x", "/home/x"),
        ("/home/c", "/x", "/x"),
    ],
)
def test_paths_of_a_config_start_at_its_folder(folder, path, found):
    assert str(locations.below(locations.location(folder), path)) == found


def test_a_config_in_a_store_names_nothing_on_this_machine():
    with pytest.raises(rs.SpecError) as caught:
        locations.below(locations.location("s3://b/c"), "/tmp/data")
    assert str(caught.value) == "expected a URL, or a path from s3://b/c, got `/tmp/data`"


@pytest.mark.parametrize(
    ("path", "folder", "inside"),
    [
        ("s3://b/c/x", "s3://b/c", True),
        ("s3://b/c/x", "s3://b", True),
        ("s3://b/c", "s3://b/c", True),
        ("s3://b/cx", "s3://b/c", False),
        ("s3://bc/x", "s3://b", False),
        ("gs://b/c/x", "s3://b/c", False),
        ("s3://b/c", ".", False),
        ("s3:b/c", "s3://b", False),
    ],
)
def test_what_is_below_a_folder(path, folder, inside):
    assert locations.is_below(locations.location(path), locations.location(folder)) is inside


# The language: every option that is text is a path, or is known to be none.

NO_PATHS = {
    *(
        "Config.description",
        "Image.mask_of",
        "Read.features",
        "Read.service",
        "Bucket.by",
        "Balance.by",
        "Shuffle.buffer",
        "Shuffle.window",
    ),
    *("Augment.image", "Augment.masks", "Augment.splits"),
    *("Fit.inputs", "Fit.targets", "Fit.weights", "Fit.derived", "Write.key", "Write.group_by", "Key.names"),
    *("Box.keys", "Coordinates.image", "Drop.with_", "WebDataset.columns", "AnnotatedImages.columns"),
    *(
        "ByColumn.column",
        "ShardSize.size",
        "Staging.size",
        "Csv.delimiter",
        "Csv.header",
        "Csv.comment",
        "Csv.quote",
        "Csv.currency",
        "Csv.lists",
        "Csv.media",
        "Jsonl.media",
        "Parquet.media",
        "JsonList.records",
        "Csv.columns",
        "Csv.encoding",
        "Csv.missing",
        "Csv.dates",
        "Jsonl.columns",
        "Jsonl.ignore",
    ),
    "Quarantine.max_invalid",
    *(
        "Parquet.columns",
        "MediaFolder.label",
        "ImageFolder.image",
        "AudioFolder.audio",
        "TensorFolder.tensor",
    ),
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


PATHS = {
    place: wrong_path(URL, annotation) is not None
    for place, annotation in options().items()
    if wrong_path("hdfs://x", annotation) is not None
}  # whether it is on this machine alone


def test_every_option_that_is_text_is_a_path_or_known_to_be_none():
    others = {named(*place) for place in options().keys() - PATHS.keys()}
    assert others == NO_PATHS
    assert {named(*place) for place in PATHS} == {
        *("Config.schema", "Config.data", "Csv.files", "Jsonl.files", "Parquet.files", "MediaFolder.folder"),
        *("AnnotatedImages.annotations", "AnnotatedImages.images", "Yolo.names", "WebDataset.files"),
        *("TFRecords.files", "TFRecords.schema", "Read.cache", "Staging.folder", "Label.vocabulary"),
    }
    alone = {named(*place) for place, is_local in PATHS.items() if is_local}
    assert alone == {"Read.cache", "Staging.folder", "Label.vocabulary"}


@pytest.mark.parametrize(
    ("cls", "option"), sorted(PATHS, key=str), ids=lambda one: getattr(one, "__name__", one)
)
def test_an_option_that_is_a_path_takes_no_other_url(cls, option, refused):
    url, message = refused
    assert problem_of(cls, option, url) == (local_refusal(url) if PATHS[cls, option] else message)


@pytest.mark.parametrize(
    ("cls", "option"), sorted(PATHS, key=str), ids=lambda one: getattr(one, "__name__", one)
)
def test_an_option_that_is_a_path_takes_a_url_of_a_store_or_says_not(cls, option):
    assert problem_of(cls, option, URL) == (LOCAL_ONLY if PATHS[cls, option] else None)


def problem_of(cls: type, option: str, url: str | Path) -> str | None:
    """What is said of a value of an option, the same in YAML, at its place, and in Python."""
    node, log = document(f"{option}: {url}\n", "file.yaml")
    read_fields(cls, YamlValue(node), (), log)
    places = {problem.where for problem in log.problems if problem.path == (option,)}
    assert places <= {f"file.yaml:1:{len(option) + 3}"}
    problems = log.problems
    try:
        from_python(cls, {option: str(url)})
    except rs.SpecError as error:
        problems = [*problems, *error.problems]
    said = {str(problem.at("")) for problem in problems if problem.path == (option,)} or {None}
    (message,) = said
    return None if message is None else message.removeprefix(f"{option}: ")


def test_lint_names_every_url_with_line_and_column(tmp_path, command, refused):
    url, message = refused
    (tmp_path / "schema.yaml").write_text(f"schema: s\nfeatures:\n  a: {{kind: label, vocabulary: {URL}}}\n")
    (tmp_path / "config.yaml").write_text(
        f"schema: {url}\ndata: '{url}'\nwrite:\n  source: {{csv: '{url}'}}\nread: {{batch: 1, cache: {URL}}}\n"
    )
    status, out, err = command("lint", tmp_path / "schema.yaml", tmp_path / "config.yaml")
    assert (status, err) == (2, "")
    assert out.splitlines() == [
        f"{tmp_path}/schema.yaml:3:32: features.a.vocabulary: {LOCAL_ONLY}",
        f"{tmp_path}/config.yaml:1:9: schema: {message}",
        f"{tmp_path}/config.yaml:2:7: data: {message}",
        f"{tmp_path}/config.yaml:4:17: write.source.csv: {message}",
        f"{tmp_path}/config.yaml:5:25: read.cache: {LOCAL_ONLY}",
    ]


def test_a_build_to_a_url_makes_no_folder_of_that_name(tmp_path, command, monkeypatch, stores, refused):
    monkeypatch.chdir(tmp_path)
    url, message = refused
    Path("s.yaml").write_text(SCHEMA.dump())
    Path("rows.csv").write_text("a\n1\n")
    Path("c.yaml").write_text(f"schema: s.yaml\ndata: {url}\nwrite: {{source: {{csv: rows.csv}}}}\n")
    assert command("build", "c.yaml") == (2, "", f"c.yaml:2:7: data: {message}\n")
    Path("c.yaml").write_text(f"schema: s.yaml\ndata: {URL}\nwrite: {{source: {{csv: rows.csv}}}}\n")
    assert command("build", "c.yaml")[0] == 0
    assert Manifest.load(URL).rows("train") == 1
    assert sorted(os.listdir()) == ["c.yaml", "rows.csv", "s.yaml"]


# The command line: each parameter has the type of paths, or is known to be none.

NO_PATH_OPTIONS = {
    "columns",
    "where",
    "name",
    "memory",
    "shards",
    "split",
    "splits",  # NAME=FILES: the files are those of `adopt`
    "as_json",
    "help",
    "allow_absent",
    "older_than",
    "page",
    "sql",
    "spark",
}


def parameters() -> list[tuple[str, click.Parameter]]:
    group = cli.commands
    context = click.Context(group)
    names = group.list_commands(context)
    return [(name, param) for name in names for param in group.get_command(context, name).params]


def is_path(param: click.Parameter) -> bool:
    return isinstance(param.type, options_module.LocationType)


def test_every_parameter_that_is_text_is_a_path_or_known_to_be_none():
    others = [param for _, param in parameters() if not is_path(param)]
    assert [param.name for param in others if isinstance(param, click.Argument)] == ["page", "sql", "number"]
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
def test_a_command_takes_urls_of_stores_alone(name, tried, command, tmp_path, monkeypatch, stores, refused):
    monkeypatch.chdir(tmp_path)
    place = tried.opts[0] if isinstance(tried, click.Option) else tried.human_readable_name
    url, message = refused
    if tried.type is options_module.LOCAL_PATH:
        message = local_refusal(url)
    assert command(name, *arguments(name, tried, str(url))) == (2, "", f"{place}: {message}\n")
    status, out, err = command(name, *arguments(name, tried, URL))
    if tried.type is options_module.LOCAL_PATH:
        assert (status, out, err) == (2, "", f"{place}: {LOCAL_ONLY}\n")
    else:
        assert status in ({0} if name == "sweep" else {1, 2, 3})  # there is nothing; "x" is not there, too
        assert not (out + err).startswith((f"{place}: ", "Traceback"))
    assert os.listdir() == []


def arguments(name: str, tried: click.Parameter, url: str) -> list[str]:
    """Those of a command, with a URL as one of them."""
    found = []
    for _, param in (one for one in parameters() if one[0] == name):
        if param is tried or param.opts == tried.opts:
            found += given(param, url)
        elif param.required:
            found += given(param, "1" if isinstance(param.type, click.IntRange) else "x")
    return found


# The API: each parameter that takes a path as text.


def test_a_location_in_a_store_has_methods_of_paths_alone():
    """What differs between a disk and a store is asked by functions."""
    own = {name for name in vars(remote.RemotePath) if not name.startswith("__")}
    assert own - {*dir(Path)} == {"parse", "is_http"}


@pytest.mark.newest
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
                if re.search(r"\bFiles\b|PathLike|\bAnyPath\b|\bstr \| Path\b|\bstr \| Location\b", text):
                    found.add(f"{prefix}{name}:{one.arg}")
    return found


@pytest.fixture(scope="module")
def dataset(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("dataset") / "data"
    rs.write([{"a": 1}], SCHEMA, folder)
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
    write = WriteFrom(source=From(csv=Csv(files="rows.csv")))
    return rs.Pipeline(Config(**{"schema": "s.yaml", "data": "data", "write": write, **options}), SCHEMA)


# What to call with a dataset and a URL.
CALLS = {
    "config:From.open:path": lambda call, data, url: call(From(csv=Csv(files="rows.csv")), Path(), url),
    "interop.export:export:files": lambda call, data, url: call(url, as_="card"),
    "interop.tfds:load:path": lambda call, data, url: call(url),
    "interop.tfmd:load:path": lambda call, data, url: call(url),
    "statistics.count:count:files": lambda call, data, url: call(url),
    "statistics.diff:diff:new": lambda call, data, url: call(data, url),
    "statistics.diff:diff:old": lambda call, data, url: call(url, data),
    "tables.export:export:files": lambda call, data, url: call(url, Path("out.csv")),
    "integrity.indexing:index:files": lambda call, data, url: call(url),
    "inferring.record_schemas:infer_records:files": lambda call, data, url: call(url, "name"),
    "statistics.info:info:files": lambda call, data, url: call(url),
    "tables.show:RecordViewer.__init__:files": lambda call, data, url: call(url),
    "store.dataset:StoredDataset.of:files": lambda call, data, url: call(url),
    "integrity.repair:repair:directory": lambda call, data, url: call(data, url),
    "integrity.repair:repair:files": lambda call, data, url: call(url, "out"),
    "store.dataset:StoredDataset.asked:files": lambda call, data, url: call(url, None, None, "rs.open"),
    "tables.table:scan:files": lambda call, data, url: call(url).to_table(),
    "statistics.stats:stats:files": lambda call, data, url: call([data, url]),
    "statistics.leaks:leaks:files": lambda call, data, url: call(url),
    "tables.query:query:files": lambda call, data, url: call("SELECT 1", url),
    "integrity.check:check:files": lambda call, data, url: call(url, SCHEMA),
    "integrity.verify:verify:files": lambda call, data, url: call(url),
    "pipeline:Pipeline.__init__:folder": lambda call, data, url: call(pipeline().config, SCHEMA, url),
    "pipeline:Pipeline.build:source": lambda call, data, url: call(pipeline(), source=url),
    "pipeline:Pipeline.export_model:folder": lambda call, data, url: call(pipeline(), None, url),
    "pipeline:Pipeline.load:path": lambda call, data, url: call(url),
    "pipeline.mixture:mix:datasets": lambda call, data, url: call({"one": url}, seed=1),
    "pipeline:Pipeline.estimate:source": lambda call, data, url: call(pipeline(), source=url),
    "reading.dataset:read:files": lambda call, data, url: call(url, SCHEMA),
    "reading.corrupt_records:locating:files": lambda call, data, url: call(SCHEMA, [data, url]),
    "inferring.inferred_config:InferredConfig.save:path": lambda call, data, url: call(
        rs.infer({"a": [1]}), url
    ),
    "inferring.inferred_config:InferredConfig.save:schema": lambda call, data, url: call(
        rs.infer({"a": [1]}), "out", schema=url
    ),
    "schema.schema:Schema.dump:path": lambda call, data, url: call(SCHEMA, url),
    "schema.schema:Schema.load:path": lambda call, data, url: call(url),
    "store.manifest:Manifest.load:folder": lambda call, data, url: call(url),
    "store.expand:expand:files": lambda call, data, url: call(url),
    "store.expand:expand_dataset:files": lambda call, data, url: call(url),
    "store.expand:expand_split:files": lambda call, data, url: call(url, None),
    "store.expand:path_list:files": lambda call, data, url: call(url),
    "store.expand:find_incomplete:files": lambda call, data, url: call(url),
    "store.remote_transaction:transaction:target": lambda call, data, url: call(url),
    "store.transaction:Transaction.__init__:target": lambda call, data, url: call(url),
    "writing.build:planned_build:directory": lambda call, data, url: call(SCHEMA, url, Write(), Execution()),
    "writing.local:build_locally:directory": lambda call, data, url: call(
        SCHEMA, source_of([{"a": 1}]), url, Write(splits={"train": 1}), Execution()
    ),
    "writing.write:write:directory": lambda call, data, url: call([{"a": 1}], SCHEMA, url),
    "writing.build_plan:free_space:directory": lambda call, data, url: call(url),
    "writing.estimate:estimate:directory": lambda call, data, url: call([{"a": 1}], SCHEMA, url),
    "writing.reshard:reshard:directory": lambda call, data, url: call(data, url),
    "writing.reshard:reshard:files": lambda call, data, url: call(url, "out"),
    "writing.writer:ShardedWriter.__init__:directory": lambda call, data, url: call(SCHEMA, url),
}
TRIED_ELSEWHERE = {
    *("locations:local:path", "locations:url_problem:path", "locations:location:path"),
    *("locations:location_problem:path", "locations:absolute:path"),
    *(
        "locations:below:folder",
        "locations:open_file:path",
        "locations:joined:path",
    ),
    *("locations:read_bytes:path", "locations:read_text:path", "locations:output_file:path"),
    *("viewer.viewed_files:ViewedFiles.__init__:files", "viewer.problems:problems:files"),
    *("wire.hashes:sha256_of:path", "writing.sources.base:FileSource.open:folder"),
    "writing.sources.detection:AnnotatedImages.open:folder",
    *("writing.sources.tfrecord:TFRecords.open:folder",),
    *("writing.adopt:adopt:files", "writing.adopt:adopt:out"),  # tests/writing/test_adopt.py, and the command
    *("spark.frames:read:files", "spark.frames:read:schema"),  # they do as `scan`
    *("ray_data:read:files", "ray_data:read:schema"),
    *("tables.table:plain_table:files", "tables.table:plain_table:schema"),
    *("spark:build:source", "spark:write:directory"),  # they need Spark, and do as Pipeline.build and Build
    "config:WriteFrom.open:path",  # as From.open
    "schema.media:path_of:value",  # test_a_file_of_a_row_is_no_url
    *("arrays.random_access:open:files", "arrays.random_access:Rows.__init__:files"),  # the test of rows
    "arrays.iterate:iterate:files",  # the same
    # tests/test_inferred_config.py
    *(
        "inferring.inferred_config:InferredConfig.pipeline:data",
        "inferring.inferred_config:InferredConfig.save:data",
    ),
    # paths of schemas, as `Schema.load`: tests/test_arguments.py
    *("reading.dataset:read:schema", "arrays.iterate:iterate:schema", "arrays.random_access:open:schema"),
    *(
        "arrays.random_access:Rows.__init__:schema",
        "tables.table:scan:schema",
        "statistics.stats:stats:schema",
    ),
    *("store.dataset:StoredDataset.asked:schema", "writing.writer:ShardedWriter.__init__:schema"),
    *("tables.query:query:schema", "tables.export:export:schema", "statistics.diff:diff:schema"),
    *("integrity.check:check:schema", "statistics.leaks:leaks:schema"),
    *("tables.sql:named_tables:files", "linting:lint:files"),  # as path_list
    *("tables.export:export:out", "interop.export:export:out"),  # as locations.output_file
    "interop.export:export:schema",  # as Schema.load
    *("writing.write:write:schema", "writing.write:named_rows:schema", "writing.adopt:adopt:schema"),
    "training.backup:Backup.__init__:folder",  # tests/training/test_backup.py: it needs TensorFlow
}


# Those that take a path on this machine alone.
LOCAL_CALLS = {
    *("interop.export:export:files", "interop.tfds:load:path", "interop.tfmd:load:path"),
    *(
        "integrity.repair:repair:directory",
        "schema.schema:Schema.dump:path",
        "pipeline:Pipeline.export_model:folder",
        "inferring.inferred_config:InferredConfig.save:path",
        "inferring.inferred_config:InferredConfig.save:schema",
    ),
    "store.transaction:Transaction.__init__:target",
}
# Those that take a file, which a folder is not, and those that make a dataset.
FILE_CALLS = {
    *("pipeline:Pipeline.build:source", "pipeline:Pipeline.load:path", "pipeline:Pipeline.estimate:source"),
    *("pipeline.mixture:mix:datasets", "schema.schema:Schema.load:path"),
}
WRITE_CALLS = {
    *("writing.local:build_locally:directory", "writing.write:write:directory"),
    "writing.writer:ShardedWriter.__init__:directory",
    *("writing.reshard:reshard:directory", "store.remote_transaction:transaction:target"),
}
# Those that ask a store for nothing.
IDLE_CALLS = {
    *("config:From.open:path", "pipeline:Pipeline.__init__:folder", "writing.build:planned_build:directory"),
    *("store.expand:path_list:files", "writing.estimate:estimate:directory"),
    "writing.build_plan:free_space:directory",
    "tables.show:RecordViewer.__init__:files",
    "reading.corrupt_records:locating:files",
}


def said(place: str, dataset: Path, url: str | Path) -> str | None:
    """What a call is refused with."""
    try:
        _consumed(CALLS[place](function(place), dataset, url))
    except rs.RecordspecError as error:
        return str(error)
    return None


@pytest.fixture
def empty(tmp_path, monkeypatch) -> Iterator[Path]:
    """The current folder, in which nothing is made but what is asked for."""
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    assert {*os.listdir()} <= {"out", "out.csv"}


@pytest.mark.parametrize("place", CALLS)
def test_a_function_takes_no_url_of_others(place, dataset, empty, refused):
    url, message = refused
    assert said(place, dataset, url) == (local_refusal(url) if place in LOCAL_CALLS else message)
    assert os.listdir() == []


@pytest.mark.parametrize("place", CALLS)
def test_a_function_takes_a_url_of_a_store_or_says_not(place, dataset, empty, stores):
    missing = said(place, dataset, URL)
    for path in dataset.iterdir():
        remote.put_file(locations.location(URL) / path.name, path, overwrite=True)  # it may have been written
    found = said(place, dataset, URL)
    if place in LOCAL_CALLS:
        assert missing == found == LOCAL_ONLY
        return
    absent = f"{URL}: cannot read: no such file or directory"
    exists = f"`{URL}` exists: force=True, or --force, replaces it"
    assert missing is None or missing.startswith(
        (absent, f"`{URL}` does not exist", f"`{URL}` has no rows", f"`{URL}/manifest.json` does not exist")
    )
    assert found == (absent if place in FILE_CALLS else exists if place in WRITE_CALLS else None)


@pytest.mark.parametrize("place", sorted(CALLS.keys() - LOCAL_CALLS - IDLE_CALLS))
def test_a_url_without_the_package_of_stores_is_told(place, dataset, empty, monkeypatch):
    monkeypatch.setitem(sys.modules, "obstore", None)
    monkeypatch.setattr(remote, "_store", remote._store.__wrapped__)
    got = "import of obstore halted; None in sys.modules"
    hint = "pip install 'recordspec[remote]'; see `recordspec docs installing`"
    assert said(place, dataset, URL) == f"expected obstore for data in object stores, got {got} ({hint})"


def test_rows_by_number_come_from_stores_too(dataset, empty, stores, refused, tmp_path_factory, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
    for path in dataset.iterdir():
        remote.put_file(locations.location(URL) / path.name, path, overwrite=True)
    for call in (rs.open, lambda url: rs.iterate(url, batch=1)):
        wanted, found = (list(call(place)) for place in (str(dataset), URL))
        assert [one.keys() for one in found] == [one.keys() for one in wanted]
        assert all(np.array_equal(a[name], b[name]) for a, b in zip(wanted, found, strict=True) for name in a)
        with pytest.raises(rs.SpecError) as refusal:
            call(refused[0])
        assert str(refusal.value) == refused[1]


def test_local_work_imports_no_package_of_stores(tmp_path):
    code = f"""
import sys, recordspec as rs
from recordspec.integrity.verify import verify
schema = rs.Schema.loads("schema: s\\nfeatures: {{a: int64}}")
rs.write([{{"a": 1}}], schema, {str(tmp_path / "data")!r})
assert list(verify({str(tmp_path / "data")!r})) and rs.Pipeline
assert not [name for name in sys.modules if name.startswith("obstore")]
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr


@pytest.mark.parametrize("form", [Csv, Jsonl, Parquet, TFRecords, ImageFolder, AudioFolder])
def test_a_source_made_in_python_takes_urls_of_stores_alone(form, tmp_path, refused):
    url, message = refused
    with pytest.raises(rs.SpecError) as caught:
        form(**{form.SHORT_FORM: str(url)}).open(tmp_path)
    assert str(caught.value) == message
    assert getattr(form(**{form.SHORT_FORM: URL}).open(tmp_path), form.SHORT_FORM) == URL


def test_options_made_in_python_take_urls_of_stores_alone(tmp_path, refused):
    url, message = refused
    with pytest.raises(rs.SpecError) as caught:
        _ = pipeline(data=str(url)).data
    assert str(caught.value) == message
    with pytest.raises(rs.SpecError) as caught:
        TFRecords(files=str(tmp_path / "x"), schema=str(url)).open(tmp_path)
    assert str(caught.value) == message
    for local_url, message in [(url, local_refusal(url)), (URL, LOCAL_ONLY)]:
        with pytest.raises(rs.SpecError) as caught:
            Label(name="a", vocabulary=str(local_url)).resolved(tmp_path)
        assert str(caught.value) == f"vocabulary: {message}"
        with pytest.raises(rs.SpecError) as caught:
            rs.read(tmp_path, SCHEMA, cache=str(local_url))
        assert str(caught.value) == f"cache: {message}"
        with pytest.raises(rs.SpecError) as caught:
            rs.read(tmp_path, SCHEMA, staging={"folder": str(local_url)})
        assert str(caught.value) == f"staging.folder: {message}"


CONFIG = """\
schema: schema.yaml
data: data
write: {source: {csv: tables/rows.csv}}
read: {batch: 1, cache: CACHE}
"""


def test_a_config_in_a_store(tmp_path, stores, dataset):
    """All that it names is there, but a cache and what the caller gives."""
    folder = locations.location("s3://bucket/home")
    remote.create(folder / "schema.yaml", SCHEMA.dump().encode())
    remote.create(folder / "tables/rows.csv", b"a\n1\n2\n")
    remote.create(folder / "c.yaml", CONFIG.replace("CACHE", str(tmp_path / "cache")).encode())
    remote.create(folder / "d.yaml", CONFIG.replace("CACHE", "cache").encode())
    remote.create(
        folder / "e.yaml", CONFIG.replace("CACHE", "none").replace("data: data", "data: /data").encode()
    )
    found = rs.Pipeline.load(f"{folder}/c.yaml")
    assert found.build().rows("train") == 2
    assert str(found.data) == "s3://bucket/home/data"
    (tmp_path / "more.csv").write_text("a\n1\n2\n3\n")
    assert found.build(source=tmp_path / "more.csv", force=True).rows("train") == 3
    assert found._read({}).cache == str(tmp_path / "cache")
    with pytest.raises(rs.SpecError) as caught:
        rs.Pipeline.load(f"{folder}/d.yaml")._read({})
    assert str(caught.value) == (
        f"read.cache: expected an absolute path, as the config is in {folder}, got `cache`"
    )
    with pytest.raises(rs.SpecError) as caught:
        rs.Pipeline.load(f"{folder}/e.yaml").build()
    assert str(caught.value) == f"expected a URL, or a path from {folder}, got `/data`"


MEDIA = rs.Schema.loads("schema: s\nfeatures: {image: image, audio: {kind: audio, sample_rate: 8000}}")
WHAT = {"image": "an image file", "audio": "a sound file"}
FILES = {"image": image_bytes(photo(), "PNG"), "audio": sound_bytes(tone(), 8000)}


@pytest.mark.parametrize(
    "url", ["s3://bucket", "gs://b/a b/100%/ü", "az://b//run[1]/", "s3://b/x*", "s3://b/@:~+&="]
)
def test_a_dataset_in_a_folder_of_an_odd_name(url, stores):
    place = locations.location(url)
    names = [f"train-0000{number}-of-00002.tfrecord" for number in (0, 1)]
    for options in ({}, {"append": True}, {"force": True}):
        rs.write([{"a": number} for number in range(10)], SCHEMA, url, shards=2, **options)
        paths = expand(url)
        assert {path.parent for path in paths} == {place}
        assert expand(str(place)) == expand(place) == expand(f"{place}/train*") == paths
        assert options or [path.name for path in paths] == names
        assert expand(str(paths[0])) == expand(f"{place}/{paths[0].name[:-1]}[d]") == (paths[0],)
        assert Manifest.load(url).rows("train") == (20 if "append" in options else 10)


def test_a_bucket_is_no_file_to_write(stores):
    expected = "expected a file in a bucket, got the bucket"
    for url in ("s3://bucket", "s3://bucket/"):
        with pytest.raises(rs.SpecError) as caught:
            locations.output_file(locations.location(url), force=False).__enter__()
        assert str(caught.value) == f"s3://bucket: {expected}"


def test_the_signs_of_patterns_may_be_in_names(stores):
    for name in ("a[1].tfrecord", "a/x[1].tfrecord", "b*/c.tfrecord"):
        remote.create(locations.location("s3://bucket") / name, b"")
    for url in ("s3://bucket/a[1].tfrecord", "s3://bucket/a/x[1].tfrecord"):
        assert [*map(str, expand(url))] == [url]
    assert [*map(str, expand("s3://bucket/b*/c.*"))] == ["s3://bucket/b*/c.tfrecord"]
    hint = "the last part of a URL alone may be a pattern"
    for url, said in [("s3://bucket/*/x*", f": {hint}"), ("s3://bucket/a[2].tfrecord", "")]:
        with pytest.raises(rs.StoreError) as caught:
            expand(url)
        assert str(caught.value) == f"`{url}` matches no file{said}"


@pytest.mark.parametrize("name", ["image", "audio"])
def test_a_file_of_a_row_may_be_in_a_store(name, tmp_path, stores, refused):
    url, message = refused
    only = MEDIA.only([name])
    for given, expected in [
        (url, f"row 0: features.{name}: {message}"),
        (URL, f"row 0: features.{name}: expected {WHAT[name]} at {URL}, got no such file or directory"),
    ]:
        with pytest.raises(rs.RecordError) as caught:
            rs.write([{name: given}], only, tmp_path / "data")
        assert str(caught.value) == expected
    remote.create(locations.location(URL), FILES[name])
    assert rs.write([{name: URL}], only, tmp_path / "data").rows("train") == 1


def tables(folder: locations.Location, name: str, *values: str) -> list[tuple[object, str]]:
    """Sources of the same column, and what they call the first row."""
    column = json.dumps(list(values))
    rows = "".join(json.dumps({name: value}) + "\n" for value in values)
    lines = "".join('"' + value.replace('"', '""') + '"\n' for value in values)
    sink = pa.BufferOutputStream()
    parquet.write_table(pa.table({name: json.loads(column)}), sink)
    for file, data in [
        ("rows.csv", f"{name}\n{lines}".encode()),
        ("rows.jsonl", rows.encode()),
        ("rows.parquet", sink.getvalue().to_pybytes()),
    ]:
        place = folder / file
        place.write_bytes(data) if isinstance(place, Path) else remote.create(place, data)
    return [
        (Csv(files="rows.csv").open(folder), f"{folder}/rows.csv:2"),
        (Jsonl(files="rows.jsonl").open(folder), f"{folder}/rows.jsonl:1"),
        (Parquet(files="rows.parquet").open(folder), f"{folder}/rows.parquet: row 0"),
    ]


@pytest.mark.parametrize(
    ("home", "value", "got"),
    [
        ("", URL, f"`{URL}`"),
        ("", "https://x.org/a.png?sig=SECRET", "a query in `https://x.org/a.png`"),
        ("", "hdfs://host/a.png", "`hdfs://host/a.png`"),
        ("", "s3:/bucket/a.png", "the URL `s3:/bucket/a.png`"),
        ("", "../a.png", "`../a.png`"),
        ("s3://bucket/home", URL, f"`{URL}`"),
        ("s3://bucket/home", "s3://other/home/a.png", "`s3://other/home/a.png`"),
        ("s3://bucket/home", "hdfs://host/a.png", "`hdfs://host/a.png`"),
        ("s3://bucket/home", "../a.png", "`../a.png`"),
        ("s3://bucket/home", "/etc/passwd", "`/etc/passwd`"),
    ],
)
def test_a_file_of_a_table_stays_in_its_folder(home, value, got, tmp_path, stores):
    folder = locations.location(home or tmp_path)
    for rows, place in tables(folder, "image", value):
        with pytest.raises(rs.RecordError) as caught:
            rs.write(rows, MEDIA.only(["image"]), tmp_path / "data")
        assert str(caught.value) == f"{place}: features.image: expected a path in {folder}, got {got}"


ODD = ["a b.png", "100%.png", "a%20b.png", "a#1?.png", "ü/e\u0301.png", "[1]*.png", "~a+b=c&d;.png"]


@pytest.mark.parametrize("home", ["", "s3://bucket/home dir/[1]", "s3://bucket"])
def test_files_of_odd_names(home, tmp_path, stores):
    folder = locations.location(home or tmp_path)
    for name in ODD:
        place = folder / name
        if isinstance(place, Path):
            place.parent.mkdir(exist_ok=True)
        place.write_bytes(FILES["image"]) if isinstance(place, Path) else remote.create(place, FILES["image"])
    names = [*ODD, *[f"{home}/a b.png"] * bool(home)]  # a URL of the folder is as an absolute path in it
    only = MEDIA.only(["image"])
    for number, (rows, _) in enumerate(tables(folder, "image", *names)):
        assert rs.write(rows, only, tmp_path / f"data{number}").rows("train") == len(names)
    source = ImageFolder(folder=".", label=None).open(folder)
    written = rs.write(source, only, tmp_path / "all", key="path")
    assert written.rows("train") == len(ODD)


# Files are regular, and opened in one place.


@pytest.fixture
def no_waiting():
    """A test that waits for a pipe fails instead."""

    def fail(signum, frame):
        raise AssertionError("waited for a pipe")

    before = signal.signal(signal.SIGALRM, fail)
    signal.alarm(60)
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


HINT = "(copy its contents to a file first)"
SPEC = "schema: s\nfeatures:\n  a: {kind: label, vocabulary: names}\n"


def in_folder(folder: Path) -> None:
    """A dataset that may be looked at by all commands."""
    data = folder / "data"
    rs.write([{"a": 1}, {"a": "x"}], SCHEMA, data, invalid="quarantine")
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
        ("s.yaml", "head data --schema {path}", 3, REFUSAL),
        ("c.yaml", "build {path}", 3, REFUSAL),
        ("rows.csv", "infer {path}", 3, REFUSAL),
        ("rows.parquet", "infer {path}", 3, REFUSAL),
        ("schema.pbtxt", "infer {path}", 3, REFUSAL),
        ("schema.pb", "infer {path}", 3, REFUSAL),
        ("features.json", "infer {path}", 3, REFUSAL),
        (SHARD, "count {path}", 3, REFUSAL),
        ("data/manifest.json", "info data", 3, REFUSAL),
        ("data/schema.yaml", "export data --as tfds", 3, REFUSAL),
        ("data/schema.yaml", "stats data", 3, REFUSAL),
        ("data/features.json", "export data --as tfds", 3, "{path}: expected no file, or a sidecar of this dataset, got another file (move it elsewhere first)"),
        ("data/rejects.jsonl", "reshard data other", 3, REFUSAL),
        ("repaired/repair.json", "repair data --out repaired --force", 3, "`repaired` is not a dataset: it has no manifest"),
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


LOOP = "{path}: cannot read: too many levels of symbolic links"


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        *(
            ("loop", arguments, LOOP)
            for arguments in (
                *("count {path}", "head {path}", "show {path} 0", "sample {path}", "info {path}"),
                *("stats {path}", "index {path}", "infer {path}", "diff data {path}"),
                "check {path} --schema s.yaml",
                *("export {path} --out o.csv", "repair {path} --out o", "reshard {path} o", "count lo*"),
            )
        ),
        ("loop", "repair data --out {path}", LOOP.replace("read", "write") + " ({folder}/{path})"),
        ("loop", "reshard data {path}", LOOP.replace("read", "write") + " ({folder}/{path})"),
        ("x" * 300, "count {path}", "{path}: cannot read: file name too long"),
        ("s.yaml/x", "count {path}", "`{path}` does not exist: there is no folder s.yaml"),
        ("loop/x", "count {path}", "`{path}` does not exist: there is no folder loop"),
    ],
)
def test_a_path_that_the_system_refuses_is_told_on_one_line(
    name, arguments, message, tmp_path, command, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    in_folder(tmp_path)
    Path("loop").symlink_to("loop")
    before = sorted(tmp_path.rglob("*"))
    code, out, err = command(*arguments.format(path=name).split())
    if "*" in arguments:
        name = "loop"
    assert (code, out, err) == (3, "", message.format(path=name, folder=tmp_path) + "\n")
    assert sorted(tmp_path.rglob("*")) == before


def test_an_image_that_is_a_link_to_itself_is_an_invalid_value(tmp_path):
    (tmp_path / "loop.png").symlink_to("loop.png")
    (tmp_path / "rows.csv").write_text("image\nloop.png\n")
    schema, rows = (
        rs.Schema.loads("schema: s\nfeatures: {image: image}"),
        Csv(files="rows.csv").open(tmp_path),
    )
    with pytest.raises(rs.RecordspecError) as caught:
        rs.write(rows, schema, tmp_path / "data")
    got = f"expected an image file at {tmp_path}/loop.png, got too many levels of symbolic links"
    assert str(caught.value) == f"{tmp_path}/rows.csv:2: features.image: {got}"


def test_a_vocabulary_is_a_regular_file(tmp_path, command, monkeypatch, no_waiting):
    monkeypatch.chdir(tmp_path)
    in_folder(tmp_path)
    got = pipe(tmp_path / "names")
    refused = f"expected a regular file, got {tmp_path}/names: {got} {HINT}"
    assert command("lint", "v.yaml") == (2, f"v.yaml:3:32: features.a.vocabulary: {refused}\n", "")


@pytest.mark.parametrize("special", [pipe, device])
def test_an_index_that_is_no_file_is_none(special, tmp_path, command, no_waiting):
    in_folder(tmp_path)
    special(tmp_path / f"{SHARD}.index")
    status, out, err = command("show", tmp_path / SHARD, 0)
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
        rs.write([{"a": 1}], SCHEMA, tmp_path / "data")
    assert str(caught.value) == (f"`{staging}` has no owner.json: if no process writes there, remove it")


def test_the_rejects_of_a_dataset_are_a_regular_file(tmp_path, no_waiting):
    in_folder(tmp_path)
    got = device(tmp_path / "data/rejects.jsonl")
    with pytest.raises(rs.StoreError) as caught:
        rs.write([{"a": 2}], SCHEMA, tmp_path / "data", append=True, invalid="quarantine")
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
        ("data/manifest.json", "info data", 3, "{path}: expected a file of at most 128 MiB, got a larger one"),
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
    "cli/__init__.py: open": "the null device, for streams that are closed",
    "spark/tasks.py: path.read_bytes": "files of the package",
    "wire/native.py: _SOURCE.read_bytes": "a file of the package",
    "viewer/server.py: part.read_bytes": "the same",
    "viewer/server.py: webbrowser.open": "a URL in a browser",
    "viewer/media_previews.py: images.pillow('images').open": "bytes in memory",
    "viewer/offline.py: folder.joinpath(name).read_text": "the same",
    "reading/memory.py: Path('/proc/meminfo').read_text": "a file of the system",
    "reading/memory.py: Path(f'/sys/fs/cgroup/memory.{name}').read_text": "the same",
    "store/mapped_files.py: _LIMIT.read_text": "the same",
    "store/transaction.py: _MOUNTS.read_bytes": "the same",
    "schema/media/images.py: library.open": "bytes in memory",
    "schema/media/images.py: pillow('images').open": "bytes in memory",
    "schema/features/video.py: pillow('frames').open": "bytes in memory",
    "tables/media_headers.py: images.pillow('the sizes of images').open": "bytes in memory",
    "tables/media_headers.py: wave.open": "bytes in memory",
    "config.py: form.open": "a source, of a path that is checked",
    "pipeline/__init__.py: section.open": "the same",
    "config.py: source.open": "the same",
    "config.py: one.open": "the same",
    "linting.py: one.open": "the same",
    "writing/sources/tfrecord.py: super().open": "the same",
    "writing/sources/detection.py: super().open": "the same",
    "writing/sources/webdataset.py: tarfile.open": "a tar that open_file opened",
    "locations.py: _Named": "the one that opens",
    "store/remote_transaction.py: (self.remote / FILE).read_bytes": "an object in a store",
    "integrity/repair.py: (transaction.work / f'{shard.file}{INDEX}').read_bytes": "in the partial folder",
    "writing/publication.py: (plan.folder / f'{shard.file}{INDEX}').read_bytes": "the same",
    "remote.py: data.open": "a file that is uploaded",
    "remote.py: file.read_bytes": "the same",
}


@pytest.mark.skipif(not Path("/proc/self/mem").exists(), reason="only Linux has it")
def test_a_failed_read_names_the_file():
    memory = Path("/proc/self/mem")  # of which the first page cannot be read
    with locations.open_file(memory) as file, pytest.raises(OSError, match="Input/output error") as caught:
        file.read(1)
    assert caught.value.filename == str(memory)


@pytest.mark.newest
def test_files_are_opened_for_reading_in_one_place():
    found = set()
    for file in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Call) and reads(node):
                found.add(f"{file.relative_to(PACKAGE)}: {ast.unparse(node.func)}")
    assert found == {*OPENERS}


# What may write files other than by `output_file` and `atomic_write`, and why.
WRITERS = {
    "statistics/diff.py: path.open": "in a temporary folder",
    "viewer/distributions.py: file.write_text": "in `output_file`",
    "integrity/repair.py: (transaction.partial / REPORT_FILE).open": "in the partial folder",
    "integrity/repair.py: (target / name).open": "the same",
    "locations.py: path.open": "flushes a file",
    "reading/corrupt_records.py: copy.open": "in a temporary folder",
    "spark/engine.py: (plan.folder / f'{shard.file}{suffix}').open": "in the partial folder",
    "store/journal.py: self._path.open": "the same",
    "store/key_hashes.py: path.open": "the same",
    "store/shard_file.py: path.open": "the same",
    "store/shard_file.py: self._index.open": "the same",
    "store/staging.py: _stamp_of(path).write_text": "without it, a copy is hashed again",
    "store/staging.py: open": "a .part, which is locked",
    "schema/media/sounds.py: wave.open": "in memory",
    "viewer/media_previews.py: wave.open": "in memory",
    "writing/append.py: (partial / REJECTS_FILE).open": "in the partial folder",
    "writing/rejects.py: path.open": "the same",
    "writing/sorter.py: (folder / run.index_name).open": "the same",
    "writing/sorter.py: (self._plan.folder / name).open": "the same",
    "writing/sorter.py: (self._plan.folder / f'{name}.index').open": "the same",
}
# The names of the temporary files that `output_file` yields.
TEMPORARY = {
    *("cli/check.py: begun.write_text", "inferring/inferred_config.py: fresh.write_text"),
    *(
        "cli/schemas.py: fresh.write_bytes",
        "linting.py: fresh.write_bytes",
        "cli/stats.py: fresh.write_text",
        "integrity/indexing.py: begun.open",
    ),
    *("tables/table_writers.py: path.open", "language.py: begun.write_text"),
    *(
        "locations.py: fresh.write_bytes",
        "training/encoding.py: file.write_text",
        "store/index.py: fresh.open",
        "training/packs.py: fresh.open",
    ),
}


@pytest.mark.newest
def test_single_files_are_written_in_one_place():
    found = set()
    for file in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Call) and writes(node):
                found.add(f"{file.relative_to(PACKAGE)}: {ast.unparse(node.func)}")
    assert found == {*WRITERS, *TEMPORARY}


def writes(call: ast.Call) -> bool:
    """Whether a call opens a file for writing by its name, as far as that can be seen."""
    name = getattr(call.func, "attr", getattr(call.func, "id", ""))
    return name in ("write_text", "write_bytes") or (name == "open" and has_mode(call, "wxa+"))


def has_mode(call: ast.Call, letters: str) -> bool:
    """Whether an argument of `open` has one of the letters of a mode."""
    given = (*call.args, *(key.value for key in call.keywords))
    modes = [one.value for one in given if isinstance(one, ast.Constant)]
    return any(isinstance(mode, str) and len(mode) < 4 and set(mode) & set(letters) for mode in modes)


def reads(call: ast.Call) -> bool:
    """Whether a call opens a file for reading by its name, as far as that can be seen."""
    name = getattr(call.func, "attr", getattr(call.func, "id", ""))
    if name in ("FileIO", "_Named"):
        return True
    if name in ("read_text", "read_bytes"):
        return isinstance(call.func, ast.Attribute) and ast.unparse(call.func.value) != "locations"
    if name != "open" or ast.unparse(call.func) == "os.open":
        return False
    return not has_mode(call, "wxa+")
