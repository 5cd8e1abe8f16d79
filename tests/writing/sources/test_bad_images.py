"""A folder with 20 good images and 9 bad ones: each of these is named, and none of the others is lost."""

from __future__ import annotations

import io
import json
import struct
import zlib

import numpy as np
import pytest
from PIL import Image

import recordspec as rs
from media import image_bytes, photo
from recordspec.store.expand import expand
from shell import run_here

SCHEMA = """
schema: pictures
features:
  image: {kind: image, encoding: jpeg}
  label: {kind: label, names: [a, b]}
"""
CONFIG = """
schema: schema.yaml
data: data
write: {source: {image_folder: raw}, key: path, splits: {train: 3, test: 1}, shards: 1, invalid: quarantine}
"""
GOOD = {f"{label}/{index:02d}.jpg" for label in "ab" for index in range(10)}


def animated() -> bytes:
    frames = [Image.fromarray(np.full((4, 4), value, np.uint8)) for value in (0, 100)]
    stream = io.BytesIO()
    frames[0].save(stream, "gif", save_all=True, append_images=frames[1:])
    return stream.getvalue()


def cmyk() -> bytes:
    stream = io.BytesIO()
    Image.fromarray(photo()).convert("CMYK").save(stream, "jpeg")
    return stream.getvalue()


def oversized() -> bytes:
    """A PNG of one pixel whose header declares 60,000 x 60,000."""
    data = image_bytes(photo()[:1, :1], "png")
    header = b"IHDR" + struct.pack(">II", 60_000, 60_000) + data[24:29]
    return data[:12] + header + struct.pack(">I", zlib.crc32(header)) + data[33:]


JPEG = image_bytes(photo(), "jpeg")
TOO_LARGE = "an image of at most 178,956,970 pixels, got {path}: a PNG image that is too large"
BAD = {
    "a/truncated.jpg": (JPEG[:-20], "an image that decodes, got {path}: a JPEG image: image file is truncated"),
    "a/page.jpg": (b"<!DOCTYPE html><title>404</title>", "an image, got {path}: an HTML page"),
    "a/empty.jpg": (b"", "an image, got {path}: no bytes at all"),
    "a/png.jpg": (image_bytes(photo(), "png"), "jpeg data, got {path}: a PNG image (it is named .jpg; `convert: true` takes it)"),
    "b/cmyk.jpg": (cmyk(), "an image uint8 [null, null, 3], got {path}: mode CMYK"),
    "b/deep.png": (image_bytes(np.ones((3, 3), np.uint16), "png"), "an image uint8 [null, null, 3], got {path}: mode I;16"),
    "b/animated.gif": (animated(), "a single image, got {path}: a GIF image of 2 frames"),
    "b/huge.png": (oversized(), TOO_LARGE),
    "b/zeros.jpg": (bytes(5000), "an image, got {path}: 5,000 zero bytes"),
}  # fmt: skip


@pytest.fixture
def home(tmp_path):
    (tmp_path / "schema.yaml").write_text(SCHEMA)
    (tmp_path / "config.yaml").write_text(CONFIG)
    for name in (*GOOD, *BAD):
        path = tmp_path / "raw" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(BAD[name][0] if name in BAD else JPEG)
    return tmp_path


def test_each_bad_image_is_named_and_no_good_one_is_lost(home, caplog):
    built = run_here("build", home / "config.yaml")
    assert built.returncode == 0
    assert caplog.messages == [f"9 of 29 rows are invalid: see {home}/data/rejects.jsonl"]
    lines = [json.loads(line) for line in (home / "data/rejects.jsonl").read_text().splitlines()]
    assert {line["place"] for line in lines} == {str(home / "raw" / name) for name in BAD}
    for line in lines:
        (problem,) = line["problems"]
        name = line["place"].removeprefix(f"{home}/raw/")
        expected = BAD[name][1].format(path=line["place"])
        assert problem.startswith(f"features.image: expected {expected}"), problem
    assert rs.Manifest.load(home / "data").rejected == 9
    batches = rs.read(expand(home / "data"), rs.Schema.load(home / "schema.yaml"), batch=7)
    labels = [label for batch in batches for label in batch["label"].numpy().tolist()]
    assert (labels.count(0), labels.count(1)) == (10, 10)
    rows = [json.loads(line) for line in built.stdout.splitlines()]
    assert sum(row["rows"] for row in rows) == 20


def test_the_same_rows_have_the_same_bytes_without_the_bad_images(home):
    for name in ("with", "without"):
        pipeline = rs.Pipeline.load(home / "config.yaml")
        pipeline.build(force=True)
        (home / "data").rename(home / name)
        for bad in BAD:
            (home / "raw" / bad).unlink(missing_ok=True)
    for split in ("train", "test"):
        (shard,) = rs.Manifest.load(home / "without").shards(split)
        assert (home / "with" / shard.file).read_bytes() == (home / "without" / shard.file).read_bytes()


def test_without_a_quarantine_the_first_is_an_error_and_nothing_is_published(home):
    text = CONFIG.replace(", invalid: quarantine", "")
    (home / "config.yaml").write_text(text)
    with pytest.raises(rs.RecordError) as caught:
        rs.Pipeline.load(home / "config.yaml").build()
    path = home / "raw/a/empty.jpg"
    expected = f"{path}: features.image: expected an image, got {path}: no bytes at all"
    assert str(caught.value).splitlines()[0] == expected
    assert not (home / "data").exists()


def test_an_image_that_is_too_large_is_inferred_as_one(tmp_path):
    (tmp_path / "huge.png").write_bytes(oversized())
    with pytest.raises(rs.RecordError) as caught:
        rs.infer(tmp_path)
    path = tmp_path / "huge.png"
    assert str(caught.value) == f"{path}: expected {TOO_LARGE.format(path='').replace(' : ', ' ')}"
