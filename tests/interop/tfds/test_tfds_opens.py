"""TFDS itself opens the datasets that are described for it, and gives the tensors that we give.

Where TFDS is not installed, the files that it wrote must do: see tests/golden/tfds.
"""

from __future__ import annotations

import pytest
from test_tfds_exporter import EXAMPLES, plain

import recordspec as rs
from recordspec.interop import tfds
from recordspec.wire.tfrecord import scan

theirs = pytest.importorskip("tensorflow_datasets", reason="TFDS is not installed")

# Said by the bytes alone: TFDS gives these, undecoded, or as many values as there are.
AS_STORED = ("audio", "image", "video", "var_len", "fixed_len_sequence")


def opened(folder, split="train") -> list[dict]:
    """The rows of a split, in the order of its shards."""
    builder = theirs.builder_from_directory(str(folder))
    config = theirs.ReadConfig(interleave_cycle_length=1)
    return [
        {name: plain(value) for name, value in row.items()}
        for row in builder.as_dataset(split=split, read_config=config)
    ]


@pytest.mark.parametrize("case", EXAMPLES, ids=str)
def test_tfds_gives_the_tensors_that_we_give(case, tmp_path):
    """Exported features are equal; of noted ones, the stored bytes or the unpadded values."""
    folder = tmp_path / "data"
    rs.write(case.rows, case.schema, folder)
    try:
        notes = rs.export(folder, as_="tfds").notes
    except rs.SpecError as error:
        pytest.skip(str(error))
    (shard,) = rs.Manifest.load(folder).shards("train")
    records = [record.data for record in scan(folder / shard.file)]
    back, _ = tfds.load(folder)
    values = [value for row in opened(folder) for value in row.values()]
    ours = [plain(case.schema.decode(record)[case.feature.name]) for record in records]
    if values != ours:
        assert notes
        assert case.feature.kind in AS_STORED
        (name,) = back.outputs
        assert values == [plain(back.decode(record)[name]) for record in records]


def test_splits_shards_and_names(tmp_path):
    schema = rs.Schema.loads(
        "schema: my pets\nversion: 3\ndescription: Cats and dogs.\n"
        "features: {id: int64, a/b: {kind: label, names: [cat, dog], oov: index, description: which}}"
    )
    rows = [{"id": number, "a/b": number % 3} for number in range(50)]
    rs.write(rows, schema, tmp_path / "data", split={"train": 8, "fold-0": 2}, shards=3)
    rs.export(tmp_path / "data", as_="tfds")
    info = theirs.builder_from_directory(str(tmp_path / "data")).info
    assert (info.full_name, info.description) == ("my pets/3.0.0", "Cats and dogs.")
    assert info.features["a/b"].names == ["cat", "dog", "<oov>"]
    assert info.features["a/b"].doc.desc == "which"
    manifest = rs.Manifest.load(tmp_path / "data")
    assert {name: split.num_examples for name, split in info.splits.items()} == {
        split: manifest.rows(split) for split in manifest.splits
    }
    assert {name: split.num_shards for name, split in info.splits.items()} == {"train": 3, "fold-0": 3}
    for split in manifest.splits:
        batches = rs.read(f"{tmp_path}/data/{split}-*", schema, batch=100)
        ours = [
            dict(zip(batch, row, strict=True))
            for batch in batches
            for row in zip(*map(plain, batch.values()), strict=True)
        ]
        assert opened(tmp_path / "data", split) == ours
