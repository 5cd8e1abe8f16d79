"""Copies of a row without a key are told apart by their number: their splits and their places in the order."""

from __future__ import annotations

import hashlib
import json
import random
from collections import Counter
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

import recordspec as rs
from examples import file_of
from recordspec import RecordError, StoreError
from recordspec.wire.proto import parse_example
from recordspec.wire.tfrecord import scan
from recordspec.writing import build_plan, copies, local, sharding
from recordspec.writing.sources import base
from recordspec.writing.sources.jsonl import Jsonl

SCHEMA = rs.Schema.loads(
    """
schema: passengers
features:
  sex: string
  class: int64
  survived: {kind: label, names: ["no", "yes"]}
"""
)
SPLITS = {"train": 4, "test": 1}
WORD = 1 << 64


def passengers(count: int) -> list[dict]:
    """Rows of three categorical columns: there are but twelve different ones."""
    draw = random.Random(count)
    return [
        {
            "sex": draw.choice(["female", "male"]),
            "class": draw.choice([1, 2, 3]),
            "survived": draw.choices(["no", "yes"], [62, 38])[0],
        }
        for _ in range(count)
    ]


def records(folder: Path, split: str) -> list[bytes]:
    return [bytes(record.data) for file in sorted(folder.glob(f"{split}-*")) for record in scan(file)]


# The rule, once more, by whole numbers of Python.


def mix(word: int) -> int:
    word = (word ^ word >> 30) * 0xBF58476D1CE4E5B9 % WORD
    word = (word ^ word >> 27) * 0x94D049BB133111EB % WORD
    return word ^ word >> 31


def places(given: list[dict], seed: int) -> list[tuple[str, int, bytes]]:
    """The split, the order and the record of each row."""
    seen: Counter[bytes] = Counter()
    found = []
    for row in given:
        record = SCHEMA.encode(row)
        digest, copy = hashlib.blake2b(record, digest_size=16).digest(), seen[record]
        seen[record] += 1
        words = [int.from_bytes(digest[start : start + 8], "big") for start in (0, 8)]
        if copy:
            words = [mix((word + copy * 0x9E3779B97F4A7C15) % WORD) for word in words]
        salt = int.from_bytes(hashlib.blake2b(str(seed).encode(), digest_size=8).digest(), "big")
        found.append(("train" if words[0] < WORD * 4 // 5 else "test", mix(words[1] ^ salt), record))
    return found


@pytest.mark.parametrize("small", [False, True], ids=["in memory", "on disk"])
def test_splits_and_order_follow_the_rule(tmp_path, small, monkeypatch):
    given = passengers(3000)
    how = {"split": SPLITS, "shards": 2}
    if small:
        monkeypatch.setattr(build_plan, "_SMALLEST_BUDGET", 64 << 10)
        how["memory"] = "1B"
    expected = places(given, 7)
    rs.write(given, SCHEMA, tmp_path / "shuffled", shuffle=7, **how)
    rs.write(given, SCHEMA, tmp_path / "in order", **how)
    for split in SPLITS:
        rows = [row for row in expected if row[0] == split]
        assert records(tmp_path / "in order", split) == [record for _, _, record in rows]
        ranked = sorted(rows, key=lambda row: row[1])
        assert records(tmp_path / "shuffled", split) == [record for _, _, record in ranked]


def shares(made: rs.Manifest) -> dict[str, float]:
    return {split: made.label_counts[split]["survived"][1] / made.rows(split) for split in SPLITS}


def test_the_splits_of_few_categories_have_their_weights_and_their_classes(tmp_path):
    made = rs.write(passengers(3000), SCHEMA, tmp_path / "data", split=SPLITS, shuffle=1)
    assert abs(made.rows("test") / 3000 - 0.2) < 0.03
    assert abs(shares(made)["train"] - shares(made)["test"]) < 0.06
    stored = records(tmp_path / "data", "train")
    alike = np.mean([one == other for one, other in pairwise(stored)])
    by_chance = sum((count / len(stored)) ** 2 for count in Counter(stored).values())
    assert abs(alike - by_chance) < 0.04
    # the counts are those of the files
    positive = sum(parse_example(record)["survived"] == [1] for record in stored)
    assert positive == made.label_counts["train"]["survived"][1]


@pytest.mark.parametrize("layout", ["rows", {"blocks": 16}], ids=["rows", "blocks"])
@pytest.mark.parametrize("shuffle", [None, 3])
def test_jobs_and_memory_make_no_difference(tmp_path, layout, shuffle, monkeypatch):
    given = passengers(2000)
    (tmp_path / "rows.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in given))
    how = {"split": SPLITS, "shards": 3, "layout": layout, "shuffle": shuffle}
    made = rs.write(given, SCHEMA, tmp_path / "rows", **how)
    source = Jsonl(files="rows.jsonl").open(tmp_path)
    monkeypatch.setattr(base, "PART_BYTES", 9000)
    assert rs.write(source, SCHEMA, tmp_path / "parts", **how) == made
    monkeypatch.setattr(build_plan, "_SMALLEST_BUDGET", 64 << 10)
    assert rs.write(source, SCHEMA, tmp_path / "small", memory="1B", **how) == made
    assert rs.write(given, SCHEMA, tmp_path / "small rows", memory="1B", **how) == made
    assert rs.write(source, SCHEMA, tmp_path / "jobs", jobs=2, **how) == made
    if shuffle is not None:
        assert rs.write(given[::-1], SCHEMA, tmp_path / "reversed", **how) == made


def test_rows_without_copies_keep_the_hash_of_their_content(tmp_path):
    """Their bytes are those that 1f35623 wrote."""
    given = [{"sex": "female", "class": number, "survived": number % 2} for number in range(200)]
    made = rs.write(given, SCHEMA, tmp_path / "data", split=SPLITS, shuffle=7, shards=1)
    hashes = {split: shards[0].sha256[:16] for split, shards in made.splits.items()}
    assert hashes == {"train": "649ed673684646da", "test": "5efeb72693f72de8"}


def test_a_search_in_ranges_numbers_the_same_copies(tmp_path, monkeypatch):
    how = {"split": SPLITS, "shuffle": 3, "shards": 1}
    made = rs.write(passengers(500), SCHEMA, tmp_path / "once", **how)
    monkeypatch.setattr(copies, "_SEARCH_BYTES", 1 << 24)
    assert rs.write(passengers(500), SCHEMA, tmp_path / "in ranges", **how) == made


def test_an_interrupted_build_moves_the_same_copies(tmp_path, monkeypatch):
    (tmp_path / "rows.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in passengers(1000)))
    source = Jsonl(files="rows.jsonl").open(tmp_path)
    monkeypatch.setattr(base, "PART_BYTES", 9000)
    how = {"split": SPLITS, "shuffle": 3, "shards": 2}
    made = rs.write(source, SCHEMA, tmp_path / "expected", **how)
    monkeypatch.setattr(sharding, "_SHARDS_OF_TASK", 1)
    write_shards, written = local.write_shards, []

    def fails(*arguments):
        written.append(write_shards(*arguments))
        if len(written) == 2:
            raise KeyboardInterrupt
        return written[-1]

    monkeypatch.setattr(local, "write_shards", fails)
    with pytest.raises(KeyboardInterrupt):
        rs.write(source, SCHEMA, tmp_path / "data", **how)
    monkeypatch.setattr(local, "write_shards", write_shards)
    assert rs.write(source, SCHEMA, tmp_path / "data", resume=True, **how) == made


# Options, and datasets that are there already.


def test_copies_stay_together_where_an_option_says_so(tmp_path):
    made = rs.write(
        passengers(3000), SCHEMA, tmp_path / "data", split=SPLITS, shuffle=1, key={"unique": False}
    )
    train, test = (records(tmp_path / "data", split) for split in SPLITS)
    assert not {*train} & {*test}
    assert np.mean([one == other for one, other in pairwise(train)]) < 0.3
    assert made.division == {"splits": {"train": 4.0, "test": 1.0}, "copies": "together"}
    apart = rs.write(passengers(3000), SCHEMA, tmp_path / "apart", split=SPLITS, shuffle=1)
    assert apart.division == {"splits": {"train": 4.0, "test": 1.0}, "copies": "spread"}


def test_copies_are_an_error_where_an_option_says_so(tmp_path):
    given = [*passengers(1), {"sex": "male", "class": 9, "survived": 0}, *passengers(1)]
    with pytest.raises(RecordError) as caught:
        rs.write(given, SCHEMA, tmp_path / "data", key={"unique": True})
    assert str(caught.value) == ("row 2: expected a key that no other row has, got that of row 0")
    assert rs.write(given[:2], SCHEMA, tmp_path / "data", key={"unique": True}).rows("train") == 2
    with pytest.raises(RecordError, match=r"got that of .*/data/train-00000-of-00001\.tfrecord: row 1"):
        rs.write(given[1:2], SCHEMA, tmp_path / "data", key={"unique": True}, append=True)


def test_rows_of_one_key_stay_in_one_split_and_have_places_of_their_own(tmp_path):
    schema = rs.Schema.loads("schema: s\nfeatures: {id: int64, x: int64}")
    given = [{"id": number % 100, "x": number // 200} for number in range(2000)]  # each row twice
    how = {"key": {"names": "id", "unique": False}, "split": SPLITS, "shuffle": 1}
    made = rs.write(given, schema, tmp_path / "data", **how)
    stored = {split: [parse_example(one) for one in records(tmp_path / "data", split)] for split in SPLITS}
    keys = {split: [row["id"][0] for row in rows] for split, rows in stored.items()}
    assert not {*keys["train"]} & {*keys["test"]}
    # as a local build with one row a key divides them
    once = rs.write(given[:100], schema, tmp_path / "once", key="id", split=SPLITS)
    assert {split: once.rows(split) * 20 for split in SPLITS} == {split: made.rows(split) for split in SPLITS}
    assert np.mean([one == other for one, other in pairwise(keys["train"])]) < 0.03
    assert rs.write(given[::-1], schema, tmp_path / "reversed", **how) == made


def test_copies_in_given_splits_are_numbered_in_each(tmp_path):
    given = [{**row, "split": split} for split in ("a", "b") for row in passengers(300)]
    made = rs.write(given, SCHEMA, tmp_path / "data", split={"column": "split"}, shuffle=5)
    assert records(tmp_path / "data", "a") == records(tmp_path / "data", "b")
    assert rs.write(given[::-1], SCHEMA, tmp_path / "reversed", split={"column": "split"}, shuffle=5) == made


def test_appended_rows_are_numbered_from_0(tmp_path):
    how = {"split": SPLITS, "shuffle": 1}
    first = rs.write(passengers(500), SCHEMA, tmp_path / "data", **how)
    grown = rs.write(passengers(500), SCHEMA, tmp_path / "data", append=True, **how)
    for split in SPLITS:
        old, new = grown.shards(split)
        assert (old, new.sha256) == (first.shards(split)[0], old.sha256)
    assert grown.label_counts["test"]["survived"] == tuple(
        2 * count for count in first.label_counts["test"]["survived"]
    )


def test_a_dataset_of_format_1_kept_copies_together(tmp_path):
    how = {"split": SPLITS, "shuffle": 1}
    rs.write(passengers(500), SCHEMA, tmp_path / "data", key={"unique": False}, **how)
    path = tmp_path / "data/manifest.json"
    old = json.loads(path.read_text())
    del old["division"]["copies"], old["sha256"]
    path.write_text(json.dumps({**old, "format": 1}))
    with pytest.raises(StoreError) as caught:
        rs.write(passengers(500), SCHEMA, tmp_path / "data", append=True, **how)
    assert str(caught.value).splitlines()[0] == (
        f'{tmp_path}/data: splits: expected {{"splits": {{"train": 4.0, "test": 1.0}}, "copies": "together"}}, as the'
        ' dataset has it, got {"splits": {"train": 4.0, "test": 1.0}, "copies": "spread"}'
        " (`key: {unique: false}` keeps copies together)"
    )
    # another command may have written its manifest as format 2
    rs.reshard(tmp_path / "data", tmp_path / "shards", shards=1)
    for name in ("data", "shards"):
        grown = rs.write(passengers(500), SCHEMA, tmp_path / name, key={"unique": False}, append=True, **how)
        assert sum(map(grown.rows, SPLITS)) == 1000
        assert grown.division["copies"] == "together"


def test_resharding_with_the_seed_gives_the_order_of_a_build(tmp_path):
    made = rs.write(passengers(500), SCHEMA, tmp_path / "built", shuffle=3, shards=1)
    rs.write(passengers(500), SCHEMA, tmp_path / "data", shards=2)
    again = rs.reshard(tmp_path / "data", tmp_path / "again", shuffle=3, shards=1)
    assert again.splits == made.splits


def test_equal_records_of_no_schema_are_resharded(tmp_path):
    file_of(tmp_path / "a.tfrecord", [b"", b"one", b"one", b"two", b"one"])
    rs.reshard(tmp_path / "a.tfrecord", tmp_path / "data", shuffle=1)
    assert sorted(records(tmp_path / "data", "train")) == [b"", b"one", b"one", b"one", b"two"]


def test_resharding_keeps_the_splits_of_copies(tmp_path):
    made = rs.write(passengers(500), SCHEMA, tmp_path / "data", split=SPLITS)
    again = rs.reshard(tmp_path / "data", tmp_path / "again", shuffle=3, shards=1)
    for split in SPLITS:
        assert Counter(records(tmp_path / "again", split)) == Counter(records(tmp_path / "data", split))
        assert records(tmp_path / "again", split) != records(tmp_path / "data", split)
    assert again.division == made.division
