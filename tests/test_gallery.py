"""The gallery: the raw data of each dataset, less of them, are built with its config and read."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
import wave
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
from PIL import Image

import raw
import recordspec as rs

COUNTS = {"digits": 50, "photos": 20, "sounds": 40, "docstrings": 150}


def made(home: Path, name: str) -> rs.Pipeline:
    """A dataset of files, built."""
    raw.DATASETS[name](home / "raw" / name, COUNTS[name])
    pipeline = rs.Pipeline.load(home / f"configs/{name}.yaml")
    pipeline.build()
    return pipeline


def built(home: Path, name: str, rows: list[dict]) -> rs.Pipeline:
    """A dataset whose rows are given in Python."""
    pipeline = rs.Pipeline.load(home / f"configs/{name}.yaml")
    pipeline.build(rows)
    return pipeline


def counts(pipeline: rs.Pipeline) -> dict[str, int]:
    return {split: pipeline.manifest.rows(split) for split in pipeline.manifest.splits}


def stored(pipeline: rs.Pipeline) -> list[dict]:
    """All rows of all splits, as NumPy arrays."""
    files = [str(pipeline.data / f"{split}-*") for split in pipeline.manifest.splits]
    return [row for pattern in files for row in rs.read(pattern, pipeline.schema).as_numpy_iterator()]


def first_batch(pipeline: rs.Pipeline) -> tuple:
    return next(iter(pipeline.dataset("train", shuffle=None)))


@pytest.mark.parametrize("name", COUNTS)
def test_files_are_the_same_on_every_run(name, tmp_path):
    runs = []
    for folder in (tmp_path / "one", tmp_path / "two"):
        rows = raw.DATASETS[name](folder, COUNTS[name])
        assert rows == COUNTS[name] + (name == "photos")
        files = [file for file in folder.rglob("*") if file.is_file()]
        runs.append({file.relative_to(folder): file.read_bytes() for file in files})
    assert runs[0] == runs[1]


def test_docstrings_do_not_depend_on_the_order_of_sets(tmp_path, root):
    tables = []
    for seed in ("1", "2"):
        script = [sys.executable, str(root / "demo/raw.py"), "docstrings", str(tmp_path / seed)]
        run = subprocess.run(
            script, env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True, text=True
        )
        assert run.stdout == f"{tmp_path / seed}: 1,050 rows\n", run.stderr
        tables.append((tmp_path / seed / "docstrings.csv").read_bytes())
    assert tables[0] == tables[1]


@pytest.mark.parametrize("rows", [raw.code_tokens, raw.scattered_digits, raw.moments])
def test_rows_are_the_same_on_every_run(rows):
    one, other = list(rows(6)), list(rows(6))
    assert len(one) == 6
    assert repr(one) == repr(other)


def test_photos(home):
    pipeline = made(home, "photos")
    assert counts(pipeline) == {"train": 17, "test": 3}
    assert pipeline.manifest.labels == {"label": ("china", "flower")}
    assert pipeline.manifest.rejected == 1
    (reject,) = map(json.loads, (pipeline.data / "rejects.jsonl").read_text().splitlines())
    assert (reject["row"], Path(reject["place"]).name) == (20, "cut.jpg")
    images, labels = first_batch(pipeline)
    assert (images.shape, images.dtype) == ((16, 375, 500, 3), tf.uint8)
    assert labels.shape == (16,)
    rows = stored(pipeline)
    assert Counter(row["label"] for row in rows) == {0: 10, 1: 10}
    # one of them is the file's picture: decoders of JPEG differ by a step on average
    file = np.asarray(Image.open(home / "raw/photos/china/003.jpg"), int)
    nearest, second = sorted(np.abs(row["image"] - file).mean() for row in rows)[:2]
    assert nearest < 2 < 20 < second


def test_sounds(home):
    pipeline = made(home, "sounds")
    assert counts(pipeline) == {"train": 34, "test": 6}
    assert pipeline.manifest.labels == {"label": ("noise", "sawtooth", "sine", "square")}
    sounds, labels = first_batch(pipeline)
    assert (sounds.shape[0], sounds.shape[2], sounds.dtype) == (32, 1, tf.float32)
    assert 4000 <= sounds.shape[1] <= 8000  # half a second to a second, the longest of the batch
    assert labels.shape == (32,)
    rows = stored(pipeline)
    assert Counter(row["label"] for row in rows) == dict.fromkeys(range(4), 10)
    found = {np.rint(row["sound"] * 32768).astype("<i2").tobytes() for row in rows}
    assert found == {samples(file) for file in (home / "raw/sounds").rglob("*.wav")}


def samples(path: Path) -> bytes:
    with wave.open(str(path)) as file:
        return file.readframes(file.getnframes())


def test_docstrings(home):
    pipeline = made(home, "docstrings")
    assert sum(counts(pipeline).values()) == 150
    assert pipeline.manifest.labels == {"package": ("numpy", "scipy", "sklearn")}
    texts, packages = first_batch(pipeline)
    assert (texts.shape, texts.dtype) == ((32,), tf.string)
    assert packages.shape == (32,)
    rows = {row["text"].decode(): row["package"] for row in stored(pipeline)}
    assert Counter(rows.values()) == dict.fromkeys(range(3), 50)
    with (home / "raw/docstrings/docstrings.csv").open(newline="", encoding="utf-8") as file:
        table = list(csv.DictReader(file))
    names = pipeline.manifest.labels["package"]
    assert rows == {line["text"]: names.index(line["package"]) for line in table}
    assert all(line["name"].startswith(line["package"]) for line in table)


def test_code_tokens(home):
    given = list(raw.code_tokens(200))
    pipeline = built(home, "code_tokens", given)
    assert sum(counts(pipeline).values()) == 200
    names = ("KEYWORD", "NAME", "NUMBER", "OP", "STRING")
    assert pipeline.manifest.labels == {"kind_of_token": names}
    tokens, kinds, weights = first_batch(pipeline)
    assert tokens.shape == kinds.shape
    assert tokens.shape[0] == 32
    np.testing.assert_array_equal(weights, (tokens.numpy() != b"").astype(np.float32))
    np.testing.assert_array_equal(kinds.numpy() == -1, tokens.numpy() == b"")
    rows = {(row["file"].decode(), row["line"]): row for row in stored(pipeline)}
    assert len(rows) == 200
    for row in given:
        found = rows[row["file"], row["line"]]
        assert 3 <= found["length"] == len(found["token"]) <= 30
        assert [token.decode() for token in found["token"]] == row["token"]
        indices = [names.index(kind) if kind in names else len(names) for kind in row["kind_of_token"]]
        assert found["kind_of_token"].tolist() == indices


def test_scattered_digits(home):
    given = list(raw.scattered_digits(40))
    pipeline = built(home, "scattered_digits", given)
    assert counts(pipeline) == {"train": 35, "test": 5}
    assert pipeline.manifest.labels == {"classes": tuple("0123456789")}
    images, targets = first_batch(pipeline)
    most = targets["classes"].shape[1]
    assert images.shape == (32, 64, 64, 1)
    assert targets["boxes"].shape == (32, most, 4)
    rows = {row["image"].tobytes(): row for row in stored(pipeline)}
    for row in given:
        found = rows[row["image"].tobytes()]
        assert found["boxes"].tolist() == row["boxes"]
        assert [str(digit) for digit in found["classes"]] == row["classes"]


def test_scattered_digits_stand_apart_in_their_boxes():
    from sklearn.datasets import load_digits  # takes 1.5 s

    data = load_digits()
    known = {
        np.rint(image).tobytes(): str(digit) for image, digit in zip(data.images, data.target, strict=True)
    }
    for row in raw.scattered_digits(40):
        assert 1 <= len(row["boxes"]) == len(row["classes"]) <= 8
        covered = np.zeros((64, 64), int)
        for (top, left, bottom, right), digit in zip(row["boxes"], row["classes"], strict=True):
            assert bottom - top == right - left
            assert right - left in (8, 16, 24)
            times = (right - left) // 8
            pixels = row["image"][top:bottom:times, left:right:times]
            assert known[np.rint(pixels * (16 / 255)).tobytes()] == digit
            covered[top:bottom, left:right] += 1
        assert covered.max() == 1
        assert not row["image"][covered == 0].any()


def test_moments(home):
    given = list(raw.moments(40))
    pipeline = built(home, "moments", given)
    assert counts(pipeline) == {"train": 35, "test": 5}
    names = ("midnight", "sunrise", "noon", "sunset")
    assert pipeline.manifest.labels == {"time": names}
    inputs, times = first_batch(pipeline)
    assert {name: value.dtype.name for name, value in inputs.items()} == {
        "image": "uint8",
        "sound": "int16",
        "vector": "float16",
    }
    assert inputs["image"].shape == (16, 32, 48, 3)
    assert times.shape == (16,)
    rows = {row["sound"].tobytes(): row for row in stored(pipeline)}
    assert Counter(row["time"] for row in rows.values()) == dict.fromkeys(range(4), 10)
    for row in given:
        found = rows[row["sound"].tobytes()]
        assert 3 <= len(found["clip"]) <= 5
        assert found["caption"].decode() == row["caption"]
        assert names[found["time"]] == row["time"]
        for name in ("image", "vector", "clip"):
            np.testing.assert_array_equal(found[name], row[name])
            assert found[name].dtype == row[name].dtype
