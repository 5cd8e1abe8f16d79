"""Arrays in `.npy` files, and arrays of several lengths in rows."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import recordspec as rs

ARRAYS = [np.random.default_rng(0).integers(0, 256, (3 + n % 4, 5), np.uint8) for n in range(12)]


@pytest.fixture
def files(tmp_path, monkeypatch) -> list[str]:
    monkeypatch.chdir(tmp_path)
    names = [f"raw/{'ab'[n % 2]}/{n}.npy" for n in range(len(ARRAYS))]
    for name, array in zip(names, ARRAYS, strict=True):
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        np.save(name, array.astype(">u2") if array is ARRAYS[0] else array)
    return names


def built(found: rs.InferredConfig) -> list:
    found.save("c.yaml", data="data", force=True)
    pipeline = rs.Pipeline.load("c.yaml")
    pipeline.build(force=True, progress=False)
    return [row for split in pipeline.manifest.splits for row in pipeline.open(split)]


def test_a_folder_of_arrays_by_class(files):
    found = rs.infer("raw")
    assert found.schema == rs.Schema.loads("""
schema: raw
features:
  tensor: {kind: tensor, dtype: uint16, shape: [null, 5], encoding: raw}
  label: {kind: label, names: [a, b]}
""")
    assert found.notes == (
        "tensor: arrays of uint16 and uint8, stored as uint16",
        "tensor: of different sizes, which `fit` pads to the largest of a batch",
    )
    rows = sorted((int(row["label"]), row["tensor"].tolist()) for row in built(found))
    assert rows == sorted((n % 2, array.tolist()) for n, array in enumerate(ARRAYS))


@pytest.mark.parametrize("suffix", ["csv", "jsonl", "parquet"])
def test_a_column_of_paths_of_arrays(files, suffix):
    frame = pd.DataFrame({"x": files, "n": range(len(files))})
    if suffix == "jsonl":
        text = "".join(json.dumps(row) + "\n" for row in frame.to_dict("records"))
        Path("rows.jsonl").write_text(text)
    else:
        (frame.to_parquet if suffix == "parquet" else frame.to_csv)(f"rows.{suffix}", index=False)
    found = rs.infer(f"rows.{suffix}")
    assert found.notes[0] == "x: paths of .npy files, judged by the first 12"
    for row in built(found):
        np.testing.assert_array_equal(row["x"], ARRAYS[row["n"]])


def test_a_path_or_the_bytes_of_an_array_are_a_value(files):
    schema = rs.Schema.loads("schema: s\nfeatures: {x: {kind: tensor, dtype: uint8, shape: [null, 5]}}")
    for value in (files[1], Path(files[1]), Path(files[1]).read_bytes()):
        (x,) = schema.decode([schema.encode({"x": value})])["x"]
        np.testing.assert_array_equal(x, ARRAYS[1])


def test_a_file_that_is_no_array_of_numbers_is_refused(files):
    schema = rs.Schema.loads("schema: s\nfeatures: {x: {kind: tensor, dtype: uint8, shape: [null, 5]}}")
    np.save("objects.npy", np.array([{}]), allow_pickle=True)
    Path("text.npy").write_text("1 2 3")
    Path("short.npy").write_bytes(Path(files[1]).read_bytes()[:-4])
    cases = {
        "objects.npy": "a whole .npy file of numbers, got objects.npy: Object arrays cannot be loaded",
        "text.npy": "a .npy file, got text.npy: text that begins '1 2 3'",
        "short.npy": "a whole .npy file of numbers, got short.npy: ",
        "gone.npy": "a .npy file at gone.npy, got no such file or directory",
        "raw/a/0.npy": "uint8 [null, 5]",
    }
    for name, expected in cases.items():
        if name == "raw/a/0.npy":
            np.save(name, np.full((1, 5), 300))
            expected = "uint8"
        with pytest.raises(rs.RecordError) as caught:
            schema.encode({"x": name})
        assert f"features.x: expected {expected}" in str(caught.value)
    for name, array in (("0", np.zeros((2, 6), np.uint8)), ("0", np.array(["a"]))):
        np.save(f"raw/a/{name}.npy", array)
        with pytest.raises(rs.RecordError) as caught:
            rs.infer("raw")
        assert str(caught.value) in (
            "raw/a/10.npy: expected an array of shape [null, 6], as raw/a/0.npy, got shape [5, 5] (only the"
            " first size may differ: pad arrays to one shape, or store them flat, with a shape)",
            "raw/a/0.npy: expected a .npy file of numbers, got dtype <U1",
        )


def test_arrays_of_several_lengths_in_rows_keep_their_dtype():
    rows = [{"a": array, "f": array / np.float32(2), "n": n} for n, array in enumerate(ARRAYS)]
    rows[3]["f"] = None
    found = rs.infer(rows)
    assert found.schema == rs.Schema.loads("""
schema: data
features:
  a: {kind: tensor, dtype: uint8, shape: [null, 5], encoding: raw}
  f: {kind: ragged, dtype: float32, shape: [null, 5], missing: empty, description: missing in 1 of 12}
  n: int64
""")
    decoded = found.schema.decode([found.schema.encode(row) for row in rows])
    for row, a, f in zip(rows, decoded["a"], decoded["f"], strict=True):
        np.testing.assert_array_equal(a, row["a"])
        np.testing.assert_array_equal(
            np.asarray(f).reshape(-1, 5), np.zeros((0, 5)) if row["f"] is None else row["f"]
        )


def test_arrays_that_differ_in_several_sizes_are_noted():
    found = rs.infer([{"wide": np.zeros((2, n + 1)), "n": n} for n in range(4)])
    assert found.notes == (
        "wide: arrays that differ in more than their first size (padded to one shape, they are a tensor), which no"
        " feature holds, so it is left out",
    )
