"""Exports on a cluster: a folder of files, which together are the file of one machine."""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pyarrow
import pytest
from pyarrow import parquet

import recordspec as rs
from clusters import Elsewhere, Late
from recordspec.errors import Problem, RecordError, RecordspecError, SpecError, StoreError
from recordspec.executors import on_cluster
from recordspec.store import scan, transaction
from recordspec.tables import export as exports
from recordspec.tables.export import Exported, export
from recordspec.tables.export_records import ExportedRecords
from some_records import BLOCKED, example, sequence_example, write

SUFFIXES = ("jsonl", "csv", "parquet")


def export_parts(*arguments: Any, **options: Any) -> Exported:
    with on_cluster(Elsewhere()):
        return export(*arguments, **options)


def joined(folder: Path) -> Any:
    """The rows of all files, in order: of Parquet a table, of others the text, without the heads of CSV."""
    files = sorted(folder.iterdir())
    if folder.suffix == ".parquet":
        return pyarrow.concat_tables(map(parquet.read_table, files)).combine_chunks()
    texts = [file.read_bytes() for file in files]
    if folder.suffix == ".csv":
        heads = {text.split(b"\n")[0] for text in texts}
        assert len(heads) == 1
        texts[1:] = [text.partition(b"\n")[2] for text in texts[1:]]
    return b"".join(texts)


def alone(path: Path) -> Any:
    return parquet.read_table(path).combine_chunks() if path.suffix == ".parquet" else path.read_bytes()


def assert_equal(data: Any, home: Path, suffix: str, **options: Any) -> Exported | None:
    """Exports files in both ways, and compares files or errors."""
    outs = home / f"one.{suffix}", home / f"several.{suffix}"
    found: list[Any] = []
    for way, out in zip((export, export_parts), outs, strict=True):
        try:
            done: Exported | None = way(data, out, force=True, **options)
            assert done is not None
            found.append((done.rows, done.columns, joined(out) if out.is_dir() else alone(out)))
        except RecordspecError as error:
            done = None
            found.append((type(error), str(error)))
    assert found[0] == found[1], found
    assert not [name for name in os.listdir(home) if name.startswith(".")]
    return done


@pytest.fixture
def small_ranges(monkeypatch) -> None:
    monkeypatch.setattr(scan, "_RANGE", 1000)


@pytest.mark.usefixtures("small_ranges")
@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("layout", ["rows", {"blocks": 8}], ids=str)
def test_files_of_ranges_are_the_file_of_one_machine(tmp_path, suffix, layout):
    rows = [{"n": n, "s": [n] * (n % 3 and suffix != "csv"), "name": f"é{n}"} for n in range(200)]
    rs.write(rows, BLOCKED, tmp_path / "data", layout=layout, shards=2)
    columns = ("n", "name") if suffix == "csv" else ()
    done = assert_equal(tmp_path / "data", tmp_path, suffix, columns=columns)
    assert done is not None
    assert done.rows == 200
    names = sorted(os.listdir(done.file))
    assert len(names) > 4
    assert names[0] == f"part-00000-of-{len(names):05}.{suffix}"
    assert done.bytes == sum((Path(done.file) / name).stat().st_size for name in names)
    # `record` numbers rows of blocks from the start of their file
    for where in ("n % 7 = 3", "record = 5 OR record = 90", "n < 0") if suffix != "parquet" else ():
        assert_equal(tmp_path / "data", tmp_path, suffix, columns=columns, where=where)


VALUES: tuple[Any, ...] = ([], [1], [1, 2], [0.5], [b"x"], [b"\xff"], None)


def some_example(chance: random.Random) -> bytes:
    named = {name: chance.choice(VALUES[: chance.choice((3, 3, 3, 7))]) for name in "ab"}
    named = {name: values for name, values in named.items() if values is not None}
    if chance.random() < 0.2:
        return sequence_example({"a": [[1]] * chance.randrange(3)} if chance.random() < 0.5 else {}, **named)
    return example(**named)


@pytest.mark.parametrize("seed", range(40))
def test_columns_of_parts_are_the_columns_of_all_records(tmp_path, seed, monkeypatch):
    chance = random.Random(seed)
    if seed % 2:  # a task has several parts
        monkeypatch.setattr(scan, "groups_by_bytes", lambda tasks, *_: [tasks] if tasks else [])
    for number in range(chance.randint(1, 5)):
        write(tmp_path / f"f{number}", *[some_example(chance) for _ in range(chance.choice((0, 1, 1, 3)))])
    for suffix in SUFFIXES:
        assert_equal(str(tmp_path / "f*"), tmp_path, suffix)
    assert_equal(str(tmp_path / "f*"), tmp_path, "jsonl", columns=("b",))


def test_two_keys_of_one_name_without_values_are_the_column_of_one_machine(tmp_path):
    write(tmp_path / "f0", example(b=[1]))
    write(tmp_path / "f1", sequence_example({"a": [[], []]}))
    write(tmp_path / "f2", example(a=[]))
    assert assert_equal(str(tmp_path / "f*"), tmp_path, "jsonl") is not None


@pytest.mark.parametrize("suffix", ["jsonl", "parquet"])
def test_bytes_of_one_part_make_a_feature_bytes_in_all(tmp_path, suffix):
    schema = rs.Schema.loads("schema: s\nfeatures: {name: string}")
    for number, name in enumerate((b"a", b"\xff", b"b")):
        write(tmp_path / f"f{number}", example(name=[name]))
    assert assert_equal(str(tmp_path / "f*"), tmp_path, suffix, schema=schema) is not None


def test_a_kind_that_differs_between_parts_is_told_as_within_one(tmp_path):
    write(tmp_path / "f0", example(a=[1]))
    second = write(tmp_path / "f1", example(), example(a=[0.5]))
    with pytest.raises(RecordError) as error:
        export_parts(str(tmp_path / "f*"), tmp_path / "out.jsonl")
    assert str(error.value).startswith(f"{second}: record 1 at byte ")
    assert str(error.value).endswith("a: expected int64, as in records before, got float32")
    assert sorted(os.listdir(tmp_path)) == ["f0", "f1"]


def test_missing_values_of_one_part_are_cells_beside_the_columns_of_others(tmp_path):
    write(tmp_path / "f0", example(a=[1]), example())
    write(tmp_path / "f1", example(b=[2]))
    assert_equal(str(tmp_path / "f*"), tmp_path, "csv")
    assert (tmp_path / "several.csv/part-00000-of-00002.csv").read_text() == '"a","b"\n1,\n,\n'
    assert assert_equal(str(tmp_path / "f*"), tmp_path, "csv", columns=("a",)) is None


def test_only_the_folder_of_an_export_is_replaced(tmp_path):
    write(tmp_path / "f", example(a=[1]))
    out = tmp_path / "out.csv"
    export_parts(tmp_path / "f", out)
    with pytest.raises(StoreError, match=r"^`.*/out.csv` exists: force=True, or --force, replaces it$"):
        export_parts(tmp_path / "f", out)
    (out / "part-00001-of-00002.csv").write_text("of an earlier export")
    export_parts(tmp_path / "f", out, force=True)
    assert os.listdir(out) == ["part-00000-of-00001.csv"]
    assert out.stat().st_mode & 0o777 == 0o777 & ~_umask()
    (out / "mine.txt").write_text("mine")
    with pytest.raises(StoreError, match=r"^`.*/out.csv` is not an export: it has `mine.txt`$"):
        export_parts(tmp_path / "f", out, force=True)
    assert (out / "mine.txt").read_text() == "mine"
    file = tmp_path / "file.csv"
    file.write_text("a file")
    export_parts(tmp_path / "f", file, force=True)
    assert os.listdir(file) == ["part-00000-of-00001.csv"]
    (tmp_path / "link.csv").symlink_to(file)
    export_parts(tmp_path / "f", tmp_path / "link.csv", force=True)
    assert (tmp_path / "link.csv").is_symlink()
    export_parts(tmp_path / "f", tmp_path / ("x" * 247 + ".parquet"))
    assert not [name for name in os.listdir(tmp_path) if name.startswith(".")]


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def test_a_late_attempt_changes_nothing(tmp_path):
    write(tmp_path / "f0", example(a=[1]), example(a=[2]))
    write(tmp_path / "f1", example(a=[1, 2]))
    with on_cluster(Late()):
        export(str(tmp_path / "f*"), tmp_path / "out.jsonl")
    assert joined(tmp_path / "out.jsonl") == b'{"a": [1]}\n{"a": [2]}\n{"a": [1, 2]}\n'
    assert [name for name in os.listdir(tmp_path / "out.jsonl") if name.startswith(".")] == []


@pytest.mark.parametrize("force", [False, True])
def test_files_that_appear_meanwhile_are_kept(tmp_path, force):
    write(tmp_path / "f", example(a=[1]))
    out = tmp_path / "out.csv"

    def appear() -> None:
        out.mkdir(exist_ok=True)
        (out / "mine").write_text("mine")

    with (
        on_cluster(Late(appear)),
        pytest.raises(StoreError, match=r"`.*/out.csv` (exists|is not an export): "),
    ):
        export(tmp_path / "f", out, force=force)
    assert os.listdir(out) == ["mine"]
    assert sorted(os.listdir(tmp_path)) == ["f", "out.csv"]


def test_an_export_without_exchanges_replaces_by_two_renames(tmp_path, monkeypatch):
    write(tmp_path / "f", example(a=[1]))
    out = tmp_path / "out.csv"
    export_parts(tmp_path / "f", out)
    write(tmp_path / "f", example(a=[2]))
    monkeypatch.setattr(exports, "exchange", lambda fresh, target: False)
    export_parts(tmp_path / "f", out, force=True)
    assert joined(out) == b'"a"\n2\n'
    # a second rename that fails restores the folder
    monkeypatch.setattr(exports, "exchange", lambda fresh, target: bool(shutil.rmtree(fresh)))
    with pytest.raises(StoreError, match=r"out.csv: cannot write: no such file or directory"):
        export_parts(tmp_path / "f", out, force=True)
    assert joined(out) == b'"a"\n2\n'
    assert sorted(os.listdir(tmp_path)) == ["f", "out.csv"]


def test_a_folder_into_which_a_task_still_writes_is_deleted(tmp_path, monkeypatch):
    write(tmp_path / "f0", example(a=[1]))
    write(tmp_path / "f1", example(a=[0.5]))
    rmdir, left = os.rmdir, iter("ab")

    def written_to(path: Any, **options: Any) -> None:
        for name in left:
            (next(tmp_path.glob(".out*")) / name).write_text("late")
            break
        rmdir(path, **options)

    monkeypatch.setattr(os, "rmdir", written_to)
    with pytest.raises(RecordError, match="expected int64"):
        export_parts(str(tmp_path / "f*"), tmp_path / "out.csv")
    assert sorted(os.listdir(tmp_path)) == ["f0", "f1"]


def test_a_mount_point_is_refused_before_records_are_read(tmp_path, monkeypatch):
    (tmp_path / "out.csv").mkdir()
    monkeypatch.setattr(transaction, "_is_mount_point", lambda folder: folder.name == "out.csv")
    with pytest.raises(StoreError, match=r"out.csv` is a mount point, .* cannot be replaced: write into a"):
        export_parts(tmp_path / "f", tmp_path / "out.csv", force=True)


def test_a_broken_link_is_not_replaced(tmp_path):
    write(tmp_path / "f", example(a=[1]))
    (tmp_path / "out.csv").symlink_to(tmp_path / "gone")
    with pytest.raises(StoreError, match=r"out.csv` exists"):
        export_parts(tmp_path / "f", tmp_path / "out.csv")
    assert sorted(os.listdir(tmp_path)) == ["f", "out.csv"]


def test_the_order_of_names_is_that_of_parts(tmp_path, monkeypatch):
    schema = rs.Schema.loads("schema: s\nfeatures: {id: int64}")
    rs.write([{"id": n} for n in range(3)], schema, tmp_path / "data", progress=False)
    parts = ExportedRecords.ranges
    monkeypatch.setattr(ExportedRecords, "ranges", lambda *files: [*parts(*files)] * 100_001)
    named: list[str] = []

    class Named(Elsewhere):
        def map(self, function: Any, tasks: Iterable[Any]) -> Iterator[Any]:
            for _, several in tasks:
                named.extend(path.name for _, path, _ in several)
            if named:
                raise StoreError(Problem(expected="names", got="these"))
            return iter(())

    with on_cluster(Named()), pytest.raises(StoreError, match="names"):
        export(tmp_path / "data", tmp_path / "out.jsonl")
    assert len(named) == 100_001
    assert named == sorted(named)


def test_options_that_a_cluster_lacks_are_named(tmp_path):
    write(tmp_path / "f", example(a=[1]))
    with pytest.raises(SpecError) as error:
        export_parts(tmp_path / "f", tmp_path / "out.csv", limit=3)
    assert (
        str(error.value)
        == "limit: expected none with Spark, got 3 (without Spark, one machine reads only these records)"
    )
    with pytest.raises(SpecError, match=r"^out: expected a name that ends in one of "):
        export_parts(tmp_path / "f", tmp_path / "out.txt")
    assert os.listdir(tmp_path) == ["f"]
