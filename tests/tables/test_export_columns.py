"""Exports of records and under names that are odd: no value is lost, and no file is half of one."""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest
from test_export import read_rows

import recordspec as rs
from recordspec.errors import RecordError, SpecError, StoreError
from recordspec.progress import Progress
from recordspec.tables.export import export
from recordspec.wire.framing import framed
from some_records import example, sequence_example, write


class Meanwhile(Progress):
    """Does something before the records are read once more."""

    def __init__(self, done: Callable[[], object]) -> None:
        super().__init__(show=False)
        self._done = done

    def begin(self, what: str, total: int | None) -> None:
        if what == "again, with final types":
            self._done()


@pytest.mark.usefixtures("small_chunks")
@pytest.mark.parametrize("suffix", ["jsonl", "csv", "parquet"])
@pytest.mark.parametrize(
    "later", [{"a": [5, 6, 7]}, {"a": [1], "b": [b"\xff"]}, {"c": [1]}, {"a": [0.5]}], ids=str
)
def test_files_that_change_while_they_are_read_are_no_export(tmp_path, suffix, later):
    path = write(tmp_path / "f", *[example(a=[1], n=[1])] * 30, example(a=[1], b=[b"x"], n=[1]))

    def grow() -> None:
        with path.open("ab") as file:
            file.write(framed(example(**later)))

    expected = "files that do not change, got other records when they were read again"
    if later == {"a": [0.5]}:
        expected = "int64, as in records before, got float32"
    with pytest.raises((StoreError, RecordError), match=f"expected {expected}$"):
        export(path, tmp_path / f"out.{suffix}", progress=Meanwhile(grow))
    assert os.listdir(tmp_path) == ["f"]


@pytest.mark.usefixtures("small_chunks")
def test_a_late_record_that_the_format_lacks_is_told_as_an_early_one(tmp_path):
    path = write(tmp_path / "f", *[example(a=[1])] * 30, example(a=[1, 2]))
    with pytest.raises(SpecError, match=r"^a: expected one value per record for csv, got a list"):
        export(path, tmp_path / "out.csv", progress=Meanwhile(lambda: pytest.fail("read again in vain")))
    assert os.listdir(tmp_path) == ["f"]


@pytest.mark.parametrize("suffix", ["jsonl", "csv", "parquet"])
def test_records_without_features_are_rows_of_nothing(tmp_path, suffix):
    path = write(tmp_path / "f", *[example()] * 7)
    if suffix == "jsonl":
        assert export(path, tmp_path / "out.jsonl").rows == 7
        assert (tmp_path / "out.jsonl").read_text() == "{}\n" * 7
        return
    with pytest.raises(SpecError) as error:
        export(path, tmp_path / f"out.{suffix}")
    assert (
        str(error.value) == "out: expected features to export, got 7 records without any (jsonl holds them)"
    )
    assert os.listdir(tmp_path) == ["f"]


@pytest.mark.usefixtures("small_chunks")
@pytest.mark.parametrize("padding", [0, 1000])
def test_a_feature_and_a_feature_list_of_one_name(tmp_path, padding):
    both = sequence_example({"a": [[n] for n in range(3)]}, a=[7], p=[b"x" * padding])
    path = write(tmp_path / "f", *[both] * 9, example(a=[8], p=[b""]))
    done = export(path, tmp_path / "out.jsonl", columns=("a", "sequence/a"))
    assert done.columns == ("a", "sequence/a")
    rows = read_rows(tmp_path / "out.jsonl")
    assert rows == [{"a": 7, "sequence/a": [0, 1, 2]}] * 9 + [{"a": 8, "sequence/a": None}]
    assert export(path, tmp_path / "all.jsonl").columns == ("a", "p", "sequence/a")
    assert export(path, tmp_path / "a.csv", columns=("a",)).columns == ("a",)


@pytest.mark.parametrize("chunks", ["small_chunks", None])
def test_two_keys_are_never_one_column(tmp_path, request, chunks):
    if chunks:
        request.getfixturevalue(chunks)
    lists = [sequence_example({"a": [[n]]}) for n in range(20)]
    path = write(tmp_path / "f", *lists, example(a=[]), sequence_example({"a": [[3]]}, a=[7]))
    if chunks:
        with pytest.raises(RecordError) as error:
            export(path, tmp_path / "out.jsonl")
        assert str(error.value) == (
            f"{path}: record 21 at byte {sum(len(framed(one)) for one in (*lists, example(a=[])))}: "
            "a: expected steps of int64, as in records before, got int64 "
            "(`sequence/a` among the columns selects the feature list)"
        )
    else:
        assert export(path, tmp_path / "out.jsonl").columns == ("a", "sequence/a")
    export(path, tmp_path / "out.jsonl", columns=("a", "sequence/a"), force=True)
    assert read_rows(tmp_path / "out.jsonl")[-1] == {"a": 7, "sequence/a": [3]}
    three = write(tmp_path / "g", sequence_example({"a": [[3]]}, **{"a": [1], "sequence/a": [2]}))
    with pytest.raises(RecordError) as error:
        export(three, tmp_path / "no.jsonl")
    assert str(error.value) == (
        f"{three}: record 0 at byte 0: sequence/a: expected int64, as in records before, got steps of int64 "
        "(choose other columns)"
    )


def test_a_key_with_the_name_of_another_feature_may_be_chosen(tmp_path):
    path = write(tmp_path / "f", example(a=[1], b=[2]), example(b=[3]))
    schema = rs.Schema.loads("schema: s\nfeatures: {a: {dtype: int64, key: b}}")
    for columns, row in (
        ((), {"a": 2, "a (stored)": 1}),
        (("a (stored)",), {"a (stored)": 1}),
        (("a (stored)", "a"), {"a": 2, "a (stored)": 1}),
        (("b",), {"b": 2}),
    ):
        done = export(path, tmp_path / "out.jsonl", schema=schema, columns=columns, force=True)
        assert done.columns == (columns or ("a", "a (stored)"))
        assert read_rows(tmp_path / "out.jsonl")[0] == row


@pytest.mark.parametrize("suffix", ["jsonl", "csv", "parquet"])
def test_the_columns_of_no_rows_are_those_of_the_records_that_were_looked_at(tmp_path, suffix):
    path = write(tmp_path / "f", example(b=[1], a=[b"x"]))
    done = export(path, tmp_path / f"out.{suffix}", where="b = 2")
    assert (done.rows, done.columns) == (0, ("a", "b"))
    if suffix == "csv":
        assert (tmp_path / "out.csv").read_text() == '"a","b"\n'


@pytest.mark.parametrize(
    "name", ["\udcff\n.csv", "\udcff\n.parquet", "x" * 243 + ".parquet", "x" * 248 + ".csv"]
)
def test_any_name_that_a_file_can_have(tmp_path, name):
    path = write(tmp_path / "f", example(a=[1]))
    export(path, tmp_path / name)
    assert sorted(os.listdir(tmp_path)) == sorted(["f", name])


def test_what_cannot_be_written_is_named_as_it_was_given(tmp_path):
    path = write(tmp_path / "f", example(a=[1]))
    for out, got in [
        (path / "x.csv", "not a directory"),
        (tmp_path / ("x" * 252 + ".csv"), "file name too long"),
    ]:
        with pytest.raises(StoreError) as error:
            export(path, out)
        assert str(error.value) == f"{out}: cannot write: {got}"
