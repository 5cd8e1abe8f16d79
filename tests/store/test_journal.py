"""What the journal says is done is trusted as far as its files are there."""

from __future__ import annotations

import json
import os

import pytest
import test_checkpoint
from test_writing_build import files

import recordspec as rs
from recordspec.store.journal import Journal
from recordspec.writing.sources import base

pytestmark = pytest.mark.slow

script, expected, resume = test_checkpoint.script, test_checkpoint.expected, test_checkpoint.resume


@pytest.mark.parametrize(("line", "lost"), [(10, "*.rejects"), (13, "*.keys")])
@pytest.mark.parametrize("cut", [False, True])
def test_files_that_a_power_cut_took_are_made_again(tmp_path, script, resume, expected, line, lost, cut):
    test_checkpoint.make_rows(tmp_path)
    test_checkpoint.run(script, tmp_path, "SIGKILL", line, "1")
    found = list((tmp_path / ".data.partial/work").glob(lost))
    assert found
    for path in found:
        path.write_bytes(b"") if cut else path.unlink()
    resume(tmp_path, jobs=1)
    assert test_checkpoint.finished(tmp_path) == expected


def test_what_comes_after_a_lost_part_is_forgotten(tmp_path, script, monkeypatch):
    """Else nothing that is done from there on would count after another crash."""
    test_checkpoint.make_rows(tmp_path)
    test_checkpoint.run(script, tmp_path, "SIGKILL", 5, "1")
    work = tmp_path / ".data.partial/work"
    next(work.glob("part-00002*.run")).unlink()
    test_checkpoint.run(script, tmp_path, "SIGKILL", 3, "1", "resume")
    entries = list(map(json.loads, (work / "journal.jsonl").read_text().splitlines()))[1:]
    assert [entry["part"]["runs"][0]["name"][:10] for entry in entries] == [
        f"part-{number:05d}" for number in range(5)
    ]
    monkeypatch.setattr(base, "PART_BYTES", test_checkpoint.PART)
    added = []
    monkeypatch.setattr(Journal, "add", lambda self, entry: added.append(next(iter(entry))))
    data = tmp_path / "data"
    rs.write(
        test_checkpoint.source(tmp_path), test_checkpoint.SCHEMA, data, resume=True, **test_checkpoint.OPTIONS
    )
    assert added.count("part") == 3


def test_a_copy_that_was_cut_is_made_again(tmp_path, monkeypatch):
    """Where the file system has no links, shards that stay are copied."""

    def no_links(old, new):
        raise PermissionError(1, "Operation not permitted")

    test_checkpoint.make_rows(tmp_path)
    schema = test_checkpoint.SCHEMA
    options = {"key": "id", "invalid": "quarantine"}
    rs.write([{"id": 10_000, "text": "old"}], schema, tmp_path / "data", **options)
    old = files(tmp_path / "data")["train-00000-of-00001.tfrecord"]
    monkeypatch.setattr(base, "PART_BYTES", test_checkpoint.PART)
    monkeypatch.setattr(os, "link", no_links)
    done = Journal.add
    monkeypatch.setattr(Journal, "add", lambda self, entry: (done(self, entry), interrupt(entry)))
    with pytest.raises(rs.Interrupted):
        rs.write(test_checkpoint.source(tmp_path), schema, tmp_path / "data", append=True, **options)
    (tmp_path / ".data.partial/train-00000-of-00001.tfrecord").write_bytes(old[:10])
    monkeypatch.setattr(Journal, "add", done)
    rs.write(test_checkpoint.source(tmp_path), schema, tmp_path / "data", append=True, resume=True, **options)
    assert files(tmp_path / "data")["train-00000-of-00001.tfrecord"] == old


def interrupt(entry):
    if "shard" in entry:
        raise KeyboardInterrupt


def test_a_line_is_on_the_disk_when_it_was_added(tmp_path, monkeypatch):
    journal, synced, fsync = Journal(tmp_path, {}, "x"), [], os.fsync
    journal.keep(0)
    monkeypatch.setattr(os, "fsync", lambda handle: (synced.append(os.fstat(handle).st_size), fsync(handle)))
    journal.add({"part": 1})
    assert synced == [(tmp_path / "journal.jsonl").stat().st_size]
