"""Names of keys and of classes: as stored, or by a schema, and of no two the same."""

from __future__ import annotations

import pytest

import recordspec as rs
from recordspec.errors import SpecError
from recordspec.tables.export import export
from recordspec.tables.query import Query
from recordspec.tables.show import RecordViewer
from some_records import example, found, sequence_example, write


def test_indices_of_labels_that_have_no_name_are_digits(tmp_path):
    schema = rs.Schema.loads("schema: s\nfeatures: {l: {kind: label, names: [cash, card], shape: [null]}}")
    path = write(
        tmp_path / "f", example(l=[7, 0]), example(l=[0, 7]), example(l=[7]), example(l=[7] + [0] * 17)
    )
    assert found(path, "'cash' IN l", schema=schema) == [0, 1, 3]
    assert found(path, "'7' IN l", schema=schema) == [0, 1, 2, 3]
    shown = [record["features"]["l"] for record in RecordViewer(path, Query(schema=schema)).head(9)]
    assert shown == [[7, "cash"], ["cash", 7], 7, "<18 integers, the first 7>"]


def test_a_name_of_a_feature_and_of_a_feature_list(tmp_path, chunks):
    lists = [sequence_example({"a": [[n]]}) for n in range(8)]
    path = write(tmp_path / "f", *lists, sequence_example({"a": [[3]]}, a=[7]), example(a=[5]))
    assert found(path, "a IN (5, 7)") == [8, 9]
    assert found(path, '"sequence/a" = [3]') == [3, 8]
    assert found(path, '"sequence/a" IS NULL') == [9]
    (first, *_, last) = RecordViewer(path, Query(columns=("sequence/a",))).head(9)
    assert (first["sequence"], last["features"], last["sequence"]) == ({"a": [0]}, {}, {"a": [3]})


def test_no_two_keys_have_one_name(tmp_path):
    schema = rs.Schema.loads("schema: s\nfeatures: {a: {dtype: int64, key: b}}")
    keys = ("a", "a (stored)", "a (stored) (stored)", "b", "c (stored)")
    path = write(tmp_path / "f", example(**{key: [number] for number, key in enumerate(keys)}))
    (shown,) = RecordViewer(path, Query(schema=schema)).head(1)
    assert sorted(shown["features"].values()) == list(range(len(keys)))
    assert (shown["features"]["a"], shown["features"]["a (stored)"]) == (3, 0)


def test_names_that_nobody_knows(data):
    with pytest.raises(SpecError) as error:
        RecordViewer(data, Query(columns=("sid", "many")))
    assert (
        str(error.value) == "columns: expected one of id, text, many, side, got `sid` (did you mean `side`?)"
    )


LABELLED = rs.Schema.loads(
    "schema: s\nfeatures: {side: {kind: label, names: [left, right], key: s}, n: {dtype: int64, key: number}}"
)


@pytest.mark.parametrize("spec", [LABELLED, None], ids=["given", "beside the files"])
@pytest.mark.parametrize(
    ("columns", "where", "text"),
    [
        (("n", "side"), "side = 'right' AND n > 4", '"n","side"\n5,"right"\n7,"right"\n'),
        (("n", "side"), "s = 1 AND number > 4", '"n","side"\n5,"right"\n7,"right"\n'),
        (("number", "s"), "side = 'right' AND n > 4", '"number","s"\n5,1\n7,1\n'),
        ((), "s = 1 AND n > 4", '"n","side"\n5,"right"\n7,"right"\n'),
    ],
)
def test_labels_and_conditions(tmp_path, columns, where, text, spec):
    """A stored key means what is stored, as a column and in a condition."""
    rs.write([{"side": n % 2, "n": n} for n in range(9)], LABELLED, tmp_path / "data", shuffle=None)
    export(tmp_path / "data", tmp_path / "out.csv", columns=columns, where=where, schema=spec)
    assert (tmp_path / "out.csv").read_text() == text


def test_stored_keys_are_names_of_features_first(tmp_path):
    """The keys of the features are each other's names."""
    schema = rs.Schema.loads(
        "schema: s\nfeatures: {a: {kind: label, names: [x, y], key: b}, b: {dtype: int64, key: a}}"
    )
    rs.write([{"a": n % 2, "b": n} for n in range(4)], schema, tmp_path / "data", shuffle=None)
    export(tmp_path / "data", tmp_path / "out.csv", where="a = 'y' AND b > 1")
    assert (tmp_path / "out.csv").read_text() == '"a","b"\n"y",3\n'
    export(tmp_path / "data", tmp_path / "a.csv", columns=("a",), where="b > 1")
    assert (tmp_path / "a.csv").read_text() == '"a"\n"x"\n"y"\n'
