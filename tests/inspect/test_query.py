"""Which records of files are meant, by conditions and by numbers, and what their keys are called."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from test_show import BLOCKED, _fill, example, write

import recordspec as rs
from recordspec.errors import RecordError
from recordspec.inspect.info import info
from recordspec.inspect.query import Query
from recordspec.inspect.show import RecordViewer
from recordspec.wire import tfrecord
from recordspec.wire.framing import framed
from recordspec.wire.proto import _classes


def sequence_example(steps: dict, **context) -> bytes:
    made = _classes()["SequenceExample"].FromString(example(**context))
    for key, lists in steps.items():
        many = made.feature_lists.feature_list.add(key=key).value
        for values in lists:
            _fill(many.feature.add(), values)
    return made.SerializeToString()


def found(path: Path, where: str, **how) -> list[int]:
    """The numbers of the records for which a condition holds."""
    return [record["record"] for record in RecordViewer(path, Query(where=where, **how)).head(1000)]


@pytest.fixture(params=[None, 60])
def chunks(request, monkeypatch) -> None:
    """All records at once, or a few: what is found is the same."""
    if request.param is not None:
        monkeypatch.setattr(tfrecord.salvage, "__defaults__", (None, request.param))


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


def test_indices_of_labels_that_have_no_name_are_digits(tmp_path):
    schema = rs.Schema.loads("schema: s\nfeatures: {l: {kind: label, names: [cash, card], shape: [null]}}")
    path = write(
        tmp_path / "f", example(l=[7, 0]), example(l=[0, 7]), example(l=[7]), example(l=[7] + [0] * 17)
    )
    assert found(path, '"cash" in l', spec=schema) == [0, 1, 3]
    assert found(path, '"7" in l', spec=schema) == [0, 1, 2, 3]
    shown = [record["features"]["l"] for record in RecordViewer(path, Query(spec=schema)).head(9)]
    assert shown == [[7, "cash"], ["cash", 7], 7, "<18 integers, the first 7>"]


def test_a_name_of_a_feature_and_of_a_feature_list(tmp_path, chunks):
    lists = [sequence_example({"a": [[n]]}) for n in range(8)]
    path = write(tmp_path / "f", *lists, sequence_example({"a": [[3]]}, a=[7]), example(a=[5]))
    assert found(path, "a == 7") == [7, 8]
    assert found(path, "a == 5") == [5, 9]
    assert found(path, 'feature("sequence/a") == 3') == [3, 8]
    assert found(path, 'missing(a) or missing(feature("sequence/a"))') == [9]
    (first, *_, last) = RecordViewer(path, Query(columns=("sequence/a",))).head(9)
    assert (first["sequence"], last["features"], last["sequence"]) == ({"a": [0]}, {}, {"a": [3]})


def test_no_two_keys_have_one_name(tmp_path):
    schema = rs.Schema.loads("schema: s\nfeatures: {a: {dtype: int64, key: b}}")
    keys = ("a", "a (stored)", "a (stored) (stored)", "b", "c (stored)")
    path = write(tmp_path / "f", example(**{key: [number] for number, key in enumerate(keys)}))
    (shown,) = RecordViewer(path, Query(spec=schema)).head(1)
    assert sorted(shown["features"].values()) == list(range(len(keys)))
    assert (shown["features"]["a"], shown["features"]["a (stored)"]) == (3, 0)


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


def test_what_no_record_has_is_not_told(tmp_path):
    """Neither of records that are no Examples, nor of those that protobuf reads otherwise."""
    again = example(ghost=[b"x"], real=[b"x"]) + example(ghost=[], real=[1])
    path = write(
        tmp_path / "f", example(real=[1]), example(ghost=[1]) + b"\x18\x01", b"\x0a\x0a" + b"\xff" * 9, again
    )
    told = {one.key: one.kinds for one in info(path).features}
    assert told == {"real": {"int64": 2}, "ghost": {"none": 1}}
