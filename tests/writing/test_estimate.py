"""`Pipeline.estimate`, what `recordspec build --dry-run` prints: told from a sample, and close to what is built."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import recordspec as rs
from recordspec.writing import estimate as estimates
from recordspec.writing.sources import base

CONFIG = """\
schema: ../schemas/s.yaml
data: ../data/s
write:
  source: {csv: ../raw/rows.csv}
  splits: {train: 3, test: 1}
  shards: {size: 100KiB}
  key: id
"""


@pytest.fixture
def pipeline(tmp_path) -> rs.Pipeline:
    for folder in ("schemas", "configs", "raw"):
        (tmp_path / folder).mkdir()
    (tmp_path / "schemas/s.yaml").write_text("schema: s\nfeatures: {id: int64, text: string}")
    (tmp_path / "configs/s.yaml").write_text(CONFIG)
    rows = "".join(f"{number},{'x' * (1 + number % 50)}\n" for number in range(20_000))
    (tmp_path / "raw/rows.csv").write_text("id,text\n" + rows)
    return rs.Pipeline.load(tmp_path / "configs/s.yaml")


def test_an_estimate_is_close_to_what_is_built(pipeline):
    estimate = pipeline.estimate()
    assert not Path(pipeline.data).exists()
    manifest = pipeline.build()
    assert (estimate.rows, estimate.about, estimate.sampled) == (20_000, False, 2000)
    for split, (shards, rows, size) in estimate.splits.items():
        assert rows == pytest.approx(manifest.rows(split), rel=0.05)
        assert size == pytest.approx(manifest.bytes(split), rel=0.05)
        assert abs(shards - len(manifest.shards(split))) <= 1
    assert estimate.disk == 2 * sum(size for _, _, size in estimate.splits.values())
    assert estimate.memory == 512 << 20


@pytest.mark.parametrize("stored", ["compression: gzip", "layout: {blocks: 64}"])
def test_shards_and_disk_are_told_from_rows_before_they_are_stored(pipeline, tmp_path, stored):
    plain = pipeline.estimate()
    config = tmp_path / "configs/s.yaml"
    config.write_text(CONFIG + f"  {stored}\n")
    pipeline = rs.Pipeline.load(config)
    estimate, manifest = pipeline.estimate(), pipeline.build()
    sizes = {split: size for split, (_, _, size) in estimate.splits.items()}
    assert {split: size for split, (*size, _) in estimate.splits.items()} == {
        split: size for split, (*size, _) in plain.splits.items()
    }
    assert sizes == {split: pytest.approx(manifest.bytes(split), rel=0.15) for split in manifest.splits}
    assert estimate.disk - sum(sizes.values()) == pytest.approx(plain.disk / 2, abs=2)


def test_rows_that_come_one_by_one_are_counted_if_they_have_a_length(pipeline):
    rows = [{"id": number, "text": "x"} for number in range(5000)]
    for given, limit, expected in [
        (rows, None, (5000, False)),
        (rows, 3000, (3000, False)),
        (iter(rows), None, (2000, True)),
        (iter(rows), 3000, (3000, True)),
        (iter(rows[:1000]), None, (1000, False)),
    ]:
        estimate = pipeline.estimate(given, limit=limit)
        assert (estimate.rows, estimate.about) == expected


def test_of_a_large_source_the_first_parts_tell_how_many_rows_there_are(pipeline, monkeypatch):
    monkeypatch.setattr(base, "PART_BYTES", 20_000)
    monkeypatch.setattr(estimates, "_PARTS", 3)
    estimate = pipeline.estimate(memory="2GiB")
    assert estimate.about
    assert estimate.rows == pytest.approx(20_000, rel=0.1)
    assert estimate.memory == 2 << 30


@pytest.mark.parametrize(("limit", "rows"), [(100, 100), (5000, 5000)])
def test_a_limit_limits_the_plan(pipeline, limit, rows):
    estimate = pipeline.estimate(limit=limit)
    assert estimate.rows == rows
    assert sum(count for _, count, _ in estimate.splits.values()) == rows


def test_a_row_that_does_not_fit_is_told_before_anything_is_built(pipeline, tmp_path):
    (tmp_path / "raw/rows.csv").write_text("id,text\n1,a\nx,b\n")
    with pytest.raises(rs.RecordError, match=r"rows.csv:3: features.id: expected int64, got `x`"):
        pipeline.estimate()
    assert sorted(os.listdir(tmp_path)) == ["configs", "raw", "schemas"]


@pytest.mark.parametrize(
    ("invalid", "how", "said"),
    [
        (2, "quarantine", "2 of 60 sampled rows are invalid"),
        (
            20,
            "quarantine",
            "20 of 60 sampled rows are invalid, more than are allowed (max_invalid: auto, 5% but at least 10)",
        ),
        (20, "{max_invalid: null}", "20 of 60 sampled rows are invalid"),
        (0, "quarantine", None),
    ],
)
def test_invalid_rows_of_the_sample_are_told_once(pipeline, tmp_path, caplog, invalid, how, said):
    """Without their list, which is deleted with the sample."""
    rows = "".join(f"{'x' if number < invalid else number},a\n" for number in range(60))
    (tmp_path / "raw/rows.csv").write_text("id,text\n" + rows)
    config = tmp_path / "configs/s.yaml"
    config.write_text(CONFIG + f"  invalid: {how}\n")
    estimate = rs.Pipeline.load(config).estimate()
    assert (estimate.sampled, sum(rows for _, rows, _ in estimate.splits.values())) == (60, 60 - invalid)
    assert caplog.messages == ([] if said is None else [said])


def test_the_old_name_is_told(pipeline):
    with pytest.raises(AttributeError) as error:
        _ = pipeline.plan
    assert str(error.value) == "'Pipeline' object has no attribute 'plan': it is `estimate` now"
