"""A few rows to look at, as NumPy arrays and lists."""

from __future__ import annotations

import numpy as np
import pytest

import recordspec as rs

SCHEMA = """\
schema: s
features:
  n: int64
  words: {kind: var_len, dtype: string}
  gaps: {kind: sparse, dtype: float32, size: 3}
  mood: {kind: label, names: [calm, glad]}
"""
CONFIG = """\
schema: s.yaml
data: data
write: {shards: 4, layout: LAYOUT, splits: {column: subset}}
read: {batch: 64, shuffle: {buffer: 100000, seed: 1}, balance: mood, cache: cache, repeat: forever}
"""


@pytest.fixture(params=["rows", "{blocks: 16}"], ids=["rows", "blocks"])
def make(tmp_path, request):
    def pipeline(more: str = "") -> rs.Pipeline:
        (tmp_path / "s.yaml").write_text(SCHEMA)
        (tmp_path / "config.yaml").write_text(CONFIG.replace("LAYOUT", request.param) + more)
        made = rs.Pipeline.load(tmp_path / "config.yaml")
        made.build(
            (
                {
                    "n": n,
                    "words": ["w"] * (n % 3),
                    "gaps": ([n % 3], [1.0]),
                    "mood": n // 390,
                    "subset": "few" if n >= 400 else "train",
                }
                for n in range(403)
            ),
            force=True,
        )
        return made

    return pipeline


def test_rows_of_every_shard_are_shown_and_no_buffer_is_filled(make, tmp_path, monkeypatch):
    made = make()
    monkeypatch.setattr("recordspec.reading.memory.available", lambda: 0)
    seen = made.preview("train")
    assert list(seen) == ["n", "words", "gaps", "mood"]
    numbers = seen["n"].tolist()
    assert len(set(numbers)) == 8
    per_shard = made.manifest.shards("train")[0].rows
    first = [shard * per_shard for shard in range(4)]
    if made.manifest.block is None:
        assert numbers == [*first, *(number + 1 for number in first)]
    assert seen["words"] == [[b"w"] * (number % 3) for number in numbers]
    np.testing.assert_array_equal(seen["gaps"], np.eye(3)[np.array(numbers) % 3])
    assert isinstance(seen["mood"], np.ndarray)
    assert not (tmp_path / "cache").exists()
    assert made.preview("train")["n"].tolist() == numbers


def test_fit_map_filter_and_features_are_those_of_the_dataset(make):
    made = make("fit: {inputs: [n, words], targets: mood, pad_to: {words: 2}}\n")
    inputs, moods = made.preview(
        ["train", "few"],
        5,
        map=lambda features: {**features, "n": features["n"] * 1000},
        filter=lambda features: features["n"] >= 390,
    )
    assert inputs["n"].shape == (5,)
    assert min(inputs["n"]) >= 390_000
    assert inputs["words"].shape == (5, 2)
    assert moods.tolist() == [1] * 5
    assert list(make().preview("train", features=["mood"])) == ["mood"]


def test_there_may_be_fewer_rows_or_none(make, tmp_path):
    made = make()
    assert sorted(made.preview("few", 100)["n"].tolist()) == [400, 401, 402]
    with pytest.raises(rs.StoreError) as caught:
        made.preview("train", filter=lambda features: features["n"] < 0)
    assert str(caught.value) == f"`{tmp_path}/data` has no rows to show"
    with pytest.raises(rs.SpecError) as caught:
        made.preview("train", 0)
    assert str(caught.value) == "rows: expected at least 1, got 0"
