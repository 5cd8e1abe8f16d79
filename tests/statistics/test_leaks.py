"""`recordspec leaks`, beside a search in Python (`cli.leaks`)."""

from __future__ import annotations

import json
import random
from collections import Counter
from itertools import combinations

import pytest

import recordspec as rs
from examples import example, file_of
from recordspec.errors import RecordError, SpecError
from recordspec.statistics.leaks import Leak, leaks
from shell import run_here as run

SCHEMA = rs.Schema.loads("schema: s\nfeatures: {n: int64, who: text, tags: {kind: var_len, dtype: int64}}")
PEOPLE = rs.Schema.loads("schema: s\nfeatures: {n: int64, who: text}")


def found_by(splits: dict[str, list], name: str) -> set[tuple]:
    """What Python finds: of two splits the different values in both, of one those beside the first."""
    counts = {split: Counter(values) for split, values in splits.items()}
    both = ((pair, len(counts[pair[0]].keys() & counts[pair[1]].keys())) for pair in combinations(splits, 2))
    alone = (((split,), many.total() - len(many)) for split, many in counts.items())
    return {(name, names, rows) for names, rows in (*both, *alone) if rows}


def told(found: tuple[Leak, ...]) -> set[tuple]:
    return {(leak.by, leak.splits, leak.rows) for leak in found}


@pytest.mark.parametrize("layout", ["rows", {"blocks": 8}])
def test_rows_of_three_splits_are_found_as_python_finds_them(tmp_path, layout):
    rng = random.Random(3)
    splits = {}
    for split in ("one", "three", "two"):
        rows = [
            {"n": rng.randrange(40), "who": rng.choice(["a", "b"]), "tags": [1] * rng.randrange(2)}
            for _ in range(60)
        ]
        splits[split] = rows
        rs.write(rows, SCHEMA, tmp_path / split, layout=layout, shuffle=None)
    sources = {split: tmp_path / split for split in splits}
    content = {split: [json.dumps(row) for row in rows] for split, rows in splits.items()}
    assert told(leaks(sources)) == found_by(content, "content")
    of_two = {split: [(row["n"], row["who"]) for row in rows] for split, rows in splits.items()}
    assert told(leaks(sources, columns=["n", "who"])) == found_by(of_two, "n, who")
    for leak in leaks(sources, columns=["n"]):
        first, second = (list(rs.scan(file).to_table()["n"].to_pylist())[row] for file, row in leak.places)
        assert first == second
        assert leak.places[0] != leak.places[1]


def test_rows_and_blocks_are_compared_as_records(tmp_path):
    rows = [{"n": number, "who": "x", "tags": [1, 2]} for number in range(20)]
    rs.write(rows, SCHEMA, tmp_path / "rows")
    rs.write(rows[5:], SCHEMA, tmp_path / "blocks", layout={"blocks": 4})
    found = leaks({"a": str(tmp_path / "rows"), "b": str(tmp_path / "blocks")})
    assert told(found) == {("content", ("a", "b"), 15)}
    assert not found[0].told_apart


def test_a_key_that_is_in_two_datasets(tmp_path):
    for name, first in (("old", 0), ("new", 7)):
        rows = [{"n": number, "who": name} for number in range(first, first + 10)]
        rs.write(rows, PEOPLE, tmp_path / name, key="n")
    found = leaks({"old": str(tmp_path / "old"), "new": str(tmp_path / "new")})
    assert told(found) == {("key", ("old", "new"), 3)}


def test_copies_that_the_build_told_apart_are_named_as_that(tmp_path):
    rows = [{"n": number % 5, "who": ""} for number in range(200)]
    rs.write(rows, PEOPLE, tmp_path / "spread", split={"test": 20, "train": 80})
    found = leaks({"": str(tmp_path / "spread")})
    assert told(found) == {("content", ("test", "train"), 5), *told(found[1:])}
    assert all(leak.told_apart for leak in found)
    rs.write(rows, PEOPLE, tmp_path / "kept", split={"test": 20, "train": 80}, key={"unique": False})
    found = leaks({"": str(tmp_path / "kept")})
    assert {len(leak.splits) for leak in found} == {1}
    assert sum(leak.rows for leak in found) == 195
    assert not any(leak.told_apart for leak in found)


def test_features_may_have_the_names_of_places_and_lack_values(tmp_path):
    names = ("file", "record", "content", "row", "split")
    records = [example({name: ("int64", [1]) for name in names}), example({"file": ("int64", [1])})]
    file_of(tmp_path / "x", [*records, records[1]])
    (found,) = leaks({"x": str(tmp_path / "x")})
    assert found == Leak(
        by="content", splits=("x",), rows=1, places=((f"{tmp_path}/x", 1), (f"{tmp_path}/x", 2))
    )
    assert told(leaks({"x": str(tmp_path / "x")}, columns=["file"])) == {("file", ("x",), 2)}
    assert leaks({"x": str(tmp_path / "x")}, columns=["content"]) == ()


def leaks_of(tmp_path, column: str, *splits: list) -> set[tuple]:
    """Of splits `a`, `b` and so on, of which each has such values."""
    sources = {
        name: file_of(tmp_path / name, [example(dict(features)) for features in rows])
        for name, rows in zip("abc", splits, strict=False)
    }
    return told(leaks(sources, columns=[column]))


def test_text_is_compared_with_bytes_as_bytes(tmp_path):
    accent, other, escape = "caf\xe9".encode(), b"\xff", b"\\xFF"
    texts = [[{"s": ("bytes", [one])} for one in some] for some in ([accent, escape], [accent, other])]
    assert leaks_of(tmp_path, "s", *texts) == {("s", ("a", "b"), 1)}
    lists = [[{"s": ("bytes", [one, b"x"])} for one in some] for some in ([accent, escape], [accent, other])]
    assert leaks_of(tmp_path, "s", *lists) == {("s", ("a", "b"), 1)}
    schema = rs.Schema.loads("schema: s\nfeatures: {id: string, n: int64}")
    for name, keys in (("x", [accent, escape]), ("y", [accent, other])):
        rows = [{"id": key, "n": number} for number, key in enumerate([*keys, name])]
        rs.write(rows, schema, tmp_path / name, key="id", shuffle=None)
    found = leaks({name: tmp_path / name for name in "xy"})
    assert told(found) == {("key", ("x", "y"), 1), ("content", ("x", "y"), 1)}


@pytest.mark.parametrize(
    ("first", "second", "got"),
    [
        (("int64", [16777217]), ("float32", [16777216.0]), "int64 in `a` and float in `b`"),
        (("int64", [1]), ("bytes", [b"1"]), "int64 in `a` and large_string in `b`"),
        (("int64", [1]), ("int64", [1, 2]), "int64 in `a` and large_list<item: int64> in `b`"),
    ],
)
def test_values_of_other_types_are_not_compared(tmp_path, first, second, got):
    with pytest.raises(SpecError) as error:
        leaks_of(tmp_path, "x", [{"x": first}], [{"x": second}], [{"x": ("none", [])}])
    expected = "columns: expected `x` of one type in all splits"
    assert str(error.value) == f"{expected}, got {got} (a schema tells what it is)"


def test_names_are_those_of_features_alone(tmp_path):
    """Neither in other case, nor those of the columns that `leaks` adds."""
    for name in ("A", "recordspec_file", "file", "content", "row", 'a"b.c', "value0", "split"):
        rows = [[{"a": ("int64", [n]), name: ("int64", [n % 2])} for n in some] for some in ([0, 1], [3, 5])]
        assert leaks_of(tmp_path, name, *rows) == {(name, ("a", "b"), 1), (name, ("b",), 1)}
        assert leaks_of(tmp_path, "a", *rows) == set()


def test_nan_is_equal_to_nan_and_no_records_have_no_feature(tmp_path):
    rows = [
        [{"x": ("float32", [x])} for x in some] for some in ([float("nan"), 1.0, 0.0], [float("nan"), -0.0])
    ]
    assert leaks_of(tmp_path, "x", *rows, []) == {("x", ("a", "b"), 2)}
    with pytest.raises(SpecError) as error:
        leaks_of(tmp_path, "x", [])
    assert str(error.value) == "columns: expected a feature of `a`, got `x`"


def test_errors_are_those_of_the_files(tmp_path):
    path = file_of(tmp_path / "x", [example({"label": ("int64", [1])})])
    with pytest.raises(SpecError) as error:
        leaks({"a": str(path)}, columns=["lable"])
    assert str(error.value) == "columns: expected a feature of `a`, got `lable` (did you mean `label`?)"
    path.write_bytes(path.read_bytes() * 2 + b"end")
    with pytest.raises(RecordError) as error:
        leaks({"a": str(path)})
    assert "record 2 at byte" in str(error.value)


def test_the_command_tells_what_it_found_by_its_exit_code(tmp_path):
    rows = [{"n": number % 3, "who": "x"} for number in range(6)]
    rs.write(rows, PEOPLE, tmp_path / "data", split={"b": 1}, shuffle=None)
    done = run("leaks", tmp_path / "data", "--columns", "n")
    assert done.returncode == 1
    file = f"{tmp_path}/data/b-00000-of-00001.tfrecord"
    assert json.loads(done.stdout) == {
        "by": "n",
        "splits": ["b"],
        "rows": 3,
        "places": [[file, 0], [file, 3]],
        "told_apart": False,
    }
    done = run("leaks", f"one={tmp_path}/data", "--columns", '"n", who')
    assert done.returncode == 1
    rs.write(rows[:3], PEOPLE, tmp_path / "alone")
    done = run("leaks", tmp_path / "alone")
    assert (done.returncode, done.stdout) == (0, "")
