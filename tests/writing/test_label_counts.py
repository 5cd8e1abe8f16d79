"""How many rows of each class there are, counted while they are written."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import hypergeom

import recordspec as rs
from examples import sealed
from recordspec.schema import feature_set
from recordspec.store.journal import Journal
from recordspec.writing import label_counts
from recordspec.writing.sources import base
from recordspec.writing.sources.csv import Csv
from shell import run_here

SCHEMA = rs.Schema.loads(
    """\
schema: s
features:
  id: int64
  mood: {kind: label, names: [calm, glad, angry], key: feeling}
  word: {kind: label, names: [a, b], oov: index}
  many: {kind: label, names: [a, b], shape: [null]}
"""
)
MOODS = ["glad", "calm", 2, "calm", "calm"]
SPLITS = {"train": 3, "test": 1}


def rows(count: int, first: int = 0) -> list[dict]:
    return [
        {"id": number, "mood": MOODS[number % 5], "word": "abc"[number % 3], "many": ["b"]}
        for number in range(first, first + count)
    ]


def counted(folder: Path, split: str) -> dict[str, tuple[int, ...]]:
    """The classes of the rows that are in the files."""
    counts = {"mood": [0, 0, 0], "word": [0, 0, 0]}
    for row in rs.read(folder / f"{split}-*", SCHEMA):
        for name, found in counts.items():
            found[int(row[name])] += 1
    return {name: tuple(found) for name, found in counts.items()}


def check(folder: Path, splits: tuple[str, ...] = ("train", "test")) -> rs.Manifest:
    manifest = rs.Manifest.load(folder)
    assert manifest.label_counts == {split: counted(folder, split) for split in splits}
    return manifest


@pytest.mark.parametrize("layout", ["rows", {"blocks": 16}], ids=["rows", "blocks"])
@pytest.mark.parametrize("jobs", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_the_counts_are_those_of_the_rows(tmp_path, layout, jobs):
    options = {"layout": layout, "key": "id", "split": SPLITS, "shuffle": 1, "shards": 2}
    made = rs.write(rows(300), SCHEMA, tmp_path / "data", jobs=jobs, **options)
    assert check(tmp_path / "data") == made
    total = made.class_counts(["train", "test"])
    assert total == {"mood": (180, 60, 60), "word": (100, 100, 100)}
    assert made.class_counts([]) == {}


def test_missing_labels_are_not_counted(tmp_path):
    """Neither a row without the label nor one with -1 counts for a class, of its split or of another."""
    schema = rs.Schema.loads("schema: s\nfeatures: {y: {kind: label, names: [a, b], missing: true}}")
    some = [
        {"on": on, **({} if y is None else {"y": y})} for on in ("train", "test") for y in (1, None, -1, 0, 1)
    ]
    made = rs.write(some, schema, tmp_path / "data", split={"column": "on"})
    assert made.label_counts == {"train": {"y": (1, 2)}, "test": {"y": (1, 2)}}


def test_rows_that_name_their_split_and_rows_that_are_rejected(tmp_path):
    given = [{**row, "subset": "abc"[row["id"] // 100]} for row in rows(300)]
    given[7]["mood"] = "nothing of the sort"
    options = {"split": {"column": "subset"}, "invalid": "quarantine"}
    rs.write(given, SCHEMA, tmp_path / "data", **options)
    manifest = check(tmp_path / "data", ("a", "b", "c"))
    assert manifest.rejected == 1
    assert manifest.label_counts["a"]["mood"] == (60, 20, 19)


def test_a_writer_of_rows_in_their_order_counts_too(tmp_path):
    with rs.ShardedWriter(SCHEMA, tmp_path / "data", shards=1) as writer:
        for row in rows(50):
            writer.write(row)
    assert check(tmp_path / "data", ("train",)).label_counts["train"]["mood"] == (30, 10, 10)


def test_a_split_without_rows_has_none_of_any_class(tmp_path):
    made = rs.write(rows(1), SCHEMA, tmp_path / "data", key="id", split=SPLITS)
    counts = [made.label_counts[split]["mood"] for split in SPLITS]
    assert sorted(counts) == [(0, 0, 0), (0, 1, 0)]


def test_appended_rows_are_counted_with_the_old(tmp_path):
    options = {"key": "id", "split": SPLITS}
    rs.write(rows(100), SCHEMA, tmp_path / "data", **options)
    rs.write(rows(100, 100), SCHEMA, tmp_path / "data", append=True, **options)
    made = check(tmp_path / "data")
    assert made.class_counts(SPLITS)["mood"] == (120, 40, 40)


def test_where_old_rows_were_not_counted_neither_are_all(tmp_path):
    options = {"split": {"column": "subset"}}
    rs.write([{**row, "subset": "a"} for row in rows(10)], SCHEMA, tmp_path / "data", **options)
    path = tmp_path / "data/manifest.json"
    old = json.loads(path.read_text())
    del old["label_counts"]
    path.write_text(sealed(old))
    assert rs.Manifest.load(tmp_path / "data").label_counts == {}
    more = [{**row, "subset": "ab"[row["id"] % 2]} for row in rows(10)]
    made = rs.write(more, SCHEMA, tmp_path / "data", append=True, **options)
    assert list(made.label_counts) == ["b"]
    assert made.class_counts(["a", "b"]) == {}


def test_a_resumed_build_counts_every_row_once(tmp_path, monkeypatch):
    monkeypatch.setattr(base, "PART_BYTES", 500)
    schema = rs.Schema.loads("schema: s\nfeatures: {id: int64, mood: {kind: label, names: [x, y]}}")
    lines = [f"{number},{'x' if number % 3 else 'y'}" for number in range(500)]
    (tmp_path / "rows.csv").write_text("\n".join(["id,mood", *lines]) + "\n")
    add = Journal.add

    def breaking(self, entry):
        add(self, entry)
        if len(list(self._path.read_bytes().splitlines())) == 4:
            raise KeyboardInterrupt

    def build(**how):
        return rs.write(Csv(files="rows.csv").open(tmp_path), schema, tmp_path / "data", key="id", **how)

    monkeypatch.setattr(Journal, "add", breaking)
    with pytest.raises(rs.Interrupted):
        build()
    taken_over = []
    monkeypatch.setattr(Journal, "add", lambda self, entry: (taken_over.append(entry), add(self, entry)))
    made = build(resume=True)
    assert (
        sum(sum(entry["part"]["label_counts"]["train"]["mood"]) for entry in taken_over if "part" in entry)
        < 500
    )
    assert made.label_counts == {"train": {"mood": (333, 167)}}


def test_resharded_rows_keep_the_counts_of_whole_splits(tmp_path):
    options = {"key": "id", "split": SPLITS, "shards": 2}
    old = rs.write(rows(100), SCHEMA, tmp_path / "data", **options)
    rs.reshard(tmp_path / "data", tmp_path / "all", shards=3)
    assert check(tmp_path / "all").label_counts == old.label_counts
    some = [*(tmp_path / "data").glob("test-*"), tmp_path / "data/train-00000-of-00002.tfrecord"]
    rs.reshard(some, tmp_path / "some", shards=1)
    assert check(tmp_path / "some", ("test",)).splits.keys() == {"train", "test"}
    (tmp_path / "data/manifest.json").unlink()
    unknown = rs.reshard(tmp_path / "data", tmp_path / "unknown", schema=SCHEMA, shards=1)
    assert unknown.label_counts == {}


def test_labels_of_very_many_names_are_not_counted(tmp_path, monkeypatch):
    monkeypatch.setattr(feature_set, "_MOST_CLASSES", 2)
    schema = rs.Schema.loads(
        "schema: s\nfeatures: {x: {kind: label, names: [a, b]}, y: {kind: label, names: [a, b, c]}}"
    )
    made = rs.write([{"x": "b", "y": "b"}], schema, tmp_path / "data")
    assert made.label_counts == {"train": {"x": (0, 1)}}


def test_a_label_in_every_step_is_no_class_of_the_row(tmp_path):
    schema = rs.Schema.loads(
        "schema: s\ncontext: {x: {kind: label, names: [a, b]}}\nsequence: {y: {kind: label, names: [a, b]}}"
    )
    made = rs.write([{"x": 1, "y": [0, 1, 1]}, {"x": 1, "y": []}], schema, tmp_path / "data")
    assert made.label_counts == {"train": {"x": (0, 2)}}


# Shares of classes that differ between splits.


def of_counts(**counts: list[int]) -> rs.Manifest:
    return rs.Manifest(
        schema="s",
        fingerprint="f",
        record="example",
        compression="none",
        splits={},
        labels={"mood": ("calm", "glad")},
        label_counts={split: {"mood": tuple(rows)} for split, rows in counts.items()},
    )


@pytest.mark.parametrize(
    ("counts", "text"),
    [
        # 1,300 rows of passengers whose copies were kept together
        (
            {"train": [655, 385], "test": [55, 205]},
            "mood: 63.0% of train are `calm`, and 21.2% of the other rows",
        ),
        ({"train": [6500, 3500], "test": [1300, 700]}, None),
        (
            {"train": [800, 0], "test": [0, 200]},
            "mood: 100.0% of train are `calm`, and 0.0% of the other rows",
        ),
        ({"train": [3, 0], "test": [0, 2]}, None),  # too few to tell
        ({"train": [80, 20]}, None),
        ({"train": [80, 20], "test": [0, 0]}, None),
        ({"train": [80, 0], "test": [20, 0]}, None),
    ],
)
def test_shares_that_chance_does_not_explain_are_reported(counts, text):
    expected = [] if text is None else [f"{text}: more than chance explains (p < 0.0001)"]
    assert list(label_counts.uneven_classes(of_counts(**counts))) == expected


def test_random_splits_are_not_reported():
    """Of 2,000 random divisions, at most 1 in 10,000 may be."""
    draw = np.random.default_rng(0)
    found = 0
    for _ in range(2000):
        rows, share = draw.integers(2, 5000), draw.random()
        test = draw.hypergeometric(int(rows * share), rows - int(rows * share), max(1, rows // 5))
        glad, size = int(rows * share) - test, max(1, rows // 5)
        counts = {"train": [rows - size - glad, glad], "test": [size - test, test]}
        found += len(list(label_counts.uneven_classes(of_counts(**counts))))
    assert found == 0


def test_what_is_reported_has_a_probability_of_less_than_a_10_000th():
    """Of two classes in two splits there are two comparisons: more than expected, or fewer."""
    reported = []
    for glad in range(101):
        manifest = of_counts(train=[700 - (100 - glad), 200 - glad], test=[100 - glad, glad])
        exact = (
            hypergeom.sf(glad - 1, 900, 200, 100)
            if glad > 100 * 2 / 9
            else hypergeom.cdf(glad, 900, 200, 100)
        )
        reported.append(bool(list(label_counts.uneven_classes(manifest))))
        assert reported[-1] == (2 * exact < 1e-4)
    assert (reported.index(False), reported[50:].count(False)) == (8, 0)


def test_the_tail_of_a_hypergeometric_distribution():
    draw = np.random.default_rng(1)
    for _ in range(300):
        total = int(draw.integers(2, 3000))
        marked, drawn = (int(number) for number in draw.integers(1, total + 1, 2))
        found = int(draw.hypergeometric(marked, total - marked, drawn))
        more = found * total >= drawn * marked
        numbers = (total, marked, drawn)
        exact = hypergeom.logsf(found - 1, *numbers) if more else hypergeom.logcdf(found, *numbers)
        assert label_counts.log_tail(found, drawn, marked, total) == pytest.approx(exact, abs=1e-6)
    # of 10,000,000 rows, 1,000 more than half
    assert label_counts.log_tail(500_800, 10**6, 5 * 10**6, 10**7) == pytest.approx(
        hypergeom.logsf(500_799, 10**7, 5 * 10**6, 10**6), rel=1e-3
    )


def test_a_build_prints_the_shares_and_warns(tmp_path, caplog):
    (tmp_path / "schema.yaml").write_text(SCHEMA.dump())
    given = [{**row, "mood": "glad" if row["id"] % 5 else "calm"} for row in rows(500)]
    for split, some in (("train", given[:400]), ("test", [{**row, "mood": "calm"} for row in given[400:]])):
        (tmp_path / f"{split}.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in some))
    (tmp_path / "config.yaml").write_text(
        "schema: schema.yaml\ndata: data\n"
        "write: {source: {train: {jsonl: train.jsonl}, test: {jsonl: test.jsonl}}}\n"
    )
    built = run_here("build", tmp_path / "config.yaml")
    printed = {line["split"]: line["classes"]["mood"] for line in map(json.loads, built.stdout.splitlines())}
    assert printed == {
        "train": {"calm": 80, "glad": 320, "angry": 0},
        "test": {"calm": 100, "glad": 0, "angry": 0},
    }
    assert caplog.messages == [
        "mood: 100.0% of test are `calm`, and 20.0% of the other rows: more than chance explains (p < 0.0001)"
    ]
