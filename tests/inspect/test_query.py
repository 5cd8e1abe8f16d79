"""Which records of files are meant, by conditions and by numbers, and what their keys are called."""

from __future__ import annotations

import gzip

import pytest
from some_records import BLOCKED, example, found, sequence_example, write

import recordspec as rs
from recordspec.errors import RecordError
from recordspec.inspect.info import info
from recordspec.inspect.query import Query
from recordspec.inspect.show import RecordViewer
from recordspec.wire.framing import framed


def test_lists_of_several_kinds_under_one_key(tmp_path, chunks):
    path = write(
        tmp_path / "f", example(a=[1]), example(a=[0.5]), example(), example(a=[]), example(a=[b"x"]),
        sequence_example({"s": [[2.5], [7], []]}), sequence_example({"s": []}), sequence_example({"s": [[]]}),
    )  # fmt: skip
    assert found(path, "missing(a)") == [2, 3, 5, 6, 7]
    assert found(path, "not missing(s)") == [5, 6, 7]
    assert found(path, "7 in s and 2.5 in s and len(s) == 3") == [5]
    shown = RecordViewer(path, Query(where="a > 0")).head(9)
    assert [next(shown)["features"], next(shown)["features"]] == [{"a": 1}, {"a": 0.5}]
    with pytest.raises(RecordError) as error:
        next(shown)
    assert str(error.value).endswith(": where: expected two numbers or two texts to compare, got 0 and 'x'")
    assert "record 4 at byte " in str(error.value)


def test_floats_are_compared_as_they_are_not_as_they_are_shown(tmp_path):
    path = write(tmp_path / "f", example(d=[17031839744.0] * 20, x=[17031839744.0], i=[17031839744], y=[0.1]))
    for where in ("x == i", "x == 17031839744", "i in d", "x in d", "17031839744 in d", "y == 0.1"):
        assert found(path, where) == [0]
    assert found(path, "x > i or x < i or 17031840000 in d") == []


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_what_is_behind_a_record_need_not_be_whole(tmp_path, pack):
    data = pack(b"".join(map(framed, [example(a=[1]), example(a=[2])])) + b"cut")
    (tmp_path / "f").write_bytes(data)
    if pack is bytes:
        assert RecordViewer(tmp_path / "f").show(1)["features"] == {"a": 2}
    with pytest.raises(RecordError) as error:
        RecordViewer(tmp_path / "f").show(2)
    assert "record 2 at byte 60: " in str(error.value)


@pytest.mark.parametrize("first", ["b", "r"])
def test_blocks_and_rows_may_be_in_files_beside_each_other(tmp_path, first):
    rows = [{"n": n, "s": [n]} for n in range(9)]
    rs.write(BLOCKED, rows, tmp_path / "b", layout={"blocks": 4})
    rs.write(BLOCKED, rows, tmp_path / "r")
    files = [tmp_path / first, tmp_path / ("r" if first == "b" else "b")]
    look = RecordViewer(files, Query(spec=BLOCKED))
    shown = list(look.head(99))
    assert [one["features"]["n"] for one in shown] == [*range(9), *range(9)]
    assert [look.show(number) for number in range(18)] == shown
    assert len(list(look.sample(99, 1))) == 18
    assert info(files).blocks
