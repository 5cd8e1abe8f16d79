"""What a repair publishes is whole, and says no more than is known, whatever was wrong before."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import recordspec as rs
from frames_by_hand import frame
from recordspec.inspect.repair import Repaired, repair
from recordspec.inspect.tally import Tally
from recordspec.inspect.verify import verify
from recordspec.wire.tfrecord import scan

SCHEMA = rs.Schema.loads("schema: s\nfeatures: {id: int64, kind: {kind: label, names: [a, b]}}")
SHARD = "train-00000-of-00002.tfrecord"


def written(folder: Path, **options: Any) -> Path:
    """A dataset of two shards of 100 rows."""
    rows = [{"id": index, "kind": index % 2} for index in range(200)]
    rs.write(SCHEMA, rows, folder / "data", split="train", shards=2, progress=False, **options)
    return folder / "data"


def edit(path: Path, change: Callable[[list[bytes]], list[bytes]]) -> None:
    """Another order or number of the records of a file, each of them whole."""
    path.write_bytes(b"".join(map(frame, change([record.data for record in scan(path)]))))


def flip(path: Path, at: int) -> None:
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.write_bytes(data)


def say(data: Path, change: Callable[[dict[str, Any]], Any]) -> None:
    """Changes what the manifest says."""
    manifest = json.loads((data / "manifest.json").read_text())
    change(manifest)
    (data / "manifest.json").write_text(json.dumps(manifest))


def tally_of(data: Path) -> Tally:
    """What is read of the first shard."""
    return next(verify(data)).tally


def repaired(data: Path) -> Repaired:
    """What comes of a repair, which is whole in any case."""
    saved = data.parent / "saved"
    done = repair(data, saved, force=True)
    assert [one.problems for one in verify(saved) if not one.whole] == []
    assert (done.manifest is not None) == (saved / "manifest.json").exists()
    return done


OTHERS = {
    "doubled": lambda records: records * 2,
    "one more": lambda records: [records[0], *records],
    "the first is gone": lambda records: records[1:],
    "the last is gone": lambda records: records[:-1],
    "the last comes first": lambda records: [records[-1], *records[:-1]],
}


@pytest.mark.parametrize("change", OTHERS.values(), ids=OTHERS)
def test_nobody_knows_the_rows_of_other_blocks(tmp_path, change):
    data = written(tmp_path, layout={"blocks": 16})
    edit(data / SHARD, change)
    found = tally_of(data)
    assert found.rows_lost == (0 if found.records == 7 else None)
    done = repaired(data)
    reason = "has records of many rows that are not those of its manifest; nobody knows how many"
    assert (done.manifest, done.note) == (None, f"no manifest: {SHARD} {reason}")
    assert [one.rows_lost for one in done.files] == [None, 0]


def test_of_blocks_behind_a_bad_length_nobody_knows_the_rows(tmp_path):
    data = written(tmp_path, layout={"blocks": 16})
    second = [record.offset for record in scan(data / SHARD)][1]
    flip(data / SHARD, second)
    assert tally_of(data).rows_lost == 84
    assert [one.rows_lost for one in repaired(data).files] == [None, 0]


def test_of_blocks_of_which_none_is_left_all_rows_are_lost(tmp_path):
    data = written(tmp_path, layout={"blocks": 16})
    (data / SHARD).write_bytes(b"")
    assert tally_of(data).rows_lost == 100
    done = repaired(data)
    assert [one.rows_lost for one in done.files] == [100, 0]
    assert done.manifest.rows("train") == 100


def test_more_rows_than_the_manifest_counts_are_no_loss(tmp_path):
    data = written(tmp_path)
    say(data, lambda manifest: manifest["splits"]["train"][0].update(rows=7, records=7))
    done = repaired(data)
    assert [one.rows_lost for one in done.files] == [0, 0]
    assert done.manifest.rows("train") == 200
    flip(data / SHARD, 20)
    assert [one.rows_lost for one in repaired(data).files] == [1, 0]


def test_rows_that_no_records_hold_are_not_taken_over(tmp_path):
    data = written(tmp_path)
    say(data, lambda manifest: manifest.update(block=64))
    done = repaired(data)
    reason = f"{SHARD} cannot have 100 rows in 100 records, as that of the files says"
    assert (done.manifest, done.note) == (None, f"no manifest: {reason}")
    assert [one.rows_lost for one in done.files] == [None, None]
