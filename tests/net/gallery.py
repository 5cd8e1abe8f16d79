"""The datasets of `configs/`, in a few rows with equal bytes on every machine.

Nothing here depends on the version of a package: PNG and WAV files are written byte by byte, the two JPEG
files are kept in `media/`, and no row is drawn from a random generator. An encoder would encode the same
pixels to other bytes from one version to the next.
"""

from __future__ import annotations

import csv
import io
import shutil
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import recordspec as rs

ROOT = Path(__file__).parents[2]
MEDIA = Path(__file__).parent / "media"
SNAPSHOTS = Path(__file__).parent / "snapshots"
NAMES = sorted(path.stem for path in (ROOT / "configs").glob("*.yaml"))

Row = dict[str, Any]


def png(pixels: np.ndarray) -> bytes:
    """A PNG file of uint8 pixels `[h, w, c]`, stored without compression (RFC 1951, 3.2.4)."""
    height, width, channels = pixels.shape
    rows = np.zeros((height, 1 + width * channels), np.uint8)  # each begins with its filter: none
    rows[:, 1:] = pixels.reshape(height, -1)
    data = rows.tobytes()
    stored = b"\x78\x01\x01" + struct.pack("<HH", len(data), len(data) ^ 0xFFFF) + data
    colour = {1: 0, 3: 2}[channels]
    chunks = (
        (b"IHDR", struct.pack(">IIBBBBB", width, height, 8, colour, 0, 0, 0)),
        (b"IDAT", stored + struct.pack(">I", zlib.adler32(data))),
        (b"IEND", b""),
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        for kind, data in chunks
    )


def wav(samples: np.ndarray, rate: int = 8000) -> bytes:
    """A WAV file of int16 samples of one channel."""
    data = samples.astype("<i2").tobytes()
    form = struct.pack("<HHIIHH", 1, 1, rate, 2 * rate, 2, 16)
    return struct.pack("<4sI4s4sI", b"RIFF", 36 + len(data), b"WAVE", b"fmt ", 16) + (
        form + struct.pack("<4sI", b"data", len(data)) + data
    )


def jpeg(name: str, number: int) -> bytes:
    """A file of `media/` with an added comment, so that no two are equal."""
    data = (MEDIA / f"{name}.jpg").read_bytes()
    return data[:2] + b"\xff\xfe\x00\x04" + b"%02d" % number + data[2:]


def home(folder: Path) -> Path:
    """Makes a folder with the schemas, the configs, and the raw data that the configs name."""
    for name in ("schemas", "configs"):
        shutil.copytree(ROOT / name, folder / name)
    for path, data in _raw():
        file = folder / "raw" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)
    return folder


def rows(name: str) -> list[Row] | None:
    """The rows of a dataset; None if its config has a source."""
    return list(_ROWS[name]()) if name in _ROWS else None


def build(folder: Path, name: str, data: str | None = None, **options: Any) -> rs.Manifest:
    """Builds a dataset of `home`, with options of `write` that override its config."""
    pipeline = rs.Pipeline.load(folder / "configs" / f"{name}.yaml")
    source, how = pipeline._to_write(rows(name), None)
    target = pipeline.data if data is None else folder / data
    return rs.write(source, pipeline.schema, target, **{**how, "progress": False, **options})


def _raw() -> Iterator[tuple[str, bytes]]:
    places = np.arange(64).reshape(8, 8, 1)
    for index in range(40):
        pixels = (places * (index + 1) % 256).astype(np.uint8)
        yield f"digits/{index % 10}/{index:04d}.png", png(pixels)
    for name in ("china", "flower"):
        yield from ((f"photos/{name}/{index:03d}.jpg", jpeg(name, index)) for index in range(8))
    yield "photos/flower/cut.jpg", jpeg("flower", 99)[:400]
    yield from ((f"sounds/{name}.wav", data) for name, data in _sounds())
    yield "sounds/sounds.csv", _table([{"path": f"{name}.wav", "label": name[:-2]} for name, _ in _sounds()])
    yield "trips.csv", _table(_trips())
    yield "docstrings/docstrings.csv", _table(_docstrings())


def _sounds() -> Iterator[tuple[str, bytes]]:
    for index in range(24):
        label = ("noise", "sawtooth", "sine", "square")[index % 4]
        yield f"{label}{index:02d}", wav(np.arange(120 + index) * (index + 3) * 97 % 2001 - 1000)


def _table(lines: list[Row]) -> bytes:
    text = io.StringIO(newline="")
    table = csv.DictWriter(text, list(lines[0]))
    table.writeheader()
    table.writerows(lines)
    return text.getvalue().encode()


def _trips() -> list[Row]:
    return [
        {
            "pickup_community_area": 1 + index % 7,
            "fare": 4.25 + index % 13,
            "trip_start_month": 1 + index % 12,
            "trip_start_hour": index % 24,
            "trip_start_day": 1 + index % 7,
            "trip_start_timestamp": 1_400_000_000 + 900 * index,
            "pickup_latitude": 41.5 + index / 128,
            "pickup_longitude": -87.5 - index / 128,
            "dropoff_latitude": "" if index % 9 == 4 else 41.75,
            "dropoff_longitude": "" if index % 9 == 4 else -87.75,
            "trip_miles": index % 11 / 4,
            "pickup_census_tract": "",
            "dropoff_census_tract": "" if index % 3 else 17_031_839_100 + index,
            "payment_type": ("Cash", "Credit Card", "No Charge")[index * index % 3],
            "company": "" if index % 4 else "Taxi, Affiliation & Söhne",
            "trip_seconds": "" if index == 7 else 60 * index,
            "dropoff_community_area": "" if index % 5 == 0 else index % 5,
            "tips": index % 4 / 2,
        }
        for index in range(120)
    ]


def _docstrings() -> list[Row]:
    return [
        {
            "name": f"{package}.part{index}.function",
            "text": f"Gives {index} of what {package} has, “quoted”, or\n{'none ' * (index % 6)}at all.",
            "package": package,
        }
        for index, package in enumerate(("numpy", "scipy", "sklearn") * 12)
    ]


def _code_tokens() -> Iterator[Row]:
    kinds = {"return": "KEYWORD", "(": "OP", ")": "OP", "+": "OP", "'é'": "STRING", "f'": "FSTRING_START"}
    for index in range(60):
        tokens = ["return", f"call{index}", "(", *["x", "+", "1", "'é'", "f'"][: index % 6], ")"]
        yield {
            "file": f"module{index % 3}.py",
            "line": 1 + index // 3,
            "length": len(tokens),
            "token": tokens,
            "kind_of_token": [kinds.get(one, "NUMBER" if one == "1" else "NAME") for one in tokens],
        }


def _movie_ratings() -> Iterator[Row]:
    titles = ("The Shawshank Redemption", "Fight Club", "Amélie", "七人の侍")
    for index in range(60):
        some = index % 5
        row: Row = {
            "Age": 18 + index * 7 % 60,
            "Movie": [titles[(index + step) % 4] for step in range(some)],
            "Movie Ratings": [0.5 * (1 + (index + step) % 10) for step in range(some)],
            "Suggestion": titles[index % 4],
            "Suggestion Purchased": float(index % 3 == 0),
        }
        yield row if index % 4 else row | {"Purchase Price": 9.99}


def _tagged_sentences() -> Iterator[Row]:
    for index in range(60):
        words = [(index * 31 + step * step) % 1000 for step in range(index % 8)]
        yield {"length": len(words), "tokens": words, "labels": [word % 5 for word in words]}


def _scattered_digits() -> Iterator[Row]:
    places = np.arange(64 * 64).reshape(64, 64, 1)
    for index in range(24):
        boxes = [[8 * step, 0, 8 * step + 8, 8 + 8 * (step % 3)] for step in range(1 + index % 4)]
        yield {
            "id": index,
            "image": png((places * (index + 1) % 251).astype(np.uint8)),
            "boxes": boxes,
            "classes": [str((index + step) % 10) for step in range(len(boxes))],
        }


def _moments() -> Iterator[Row]:
    places = np.arange(32 * 48 * 3).reshape(32, 48, 3)
    for index in range(12):
        frames = [png((places * (index + step + 1) % 241).astype(np.uint8)) for step in range(1 + index % 3)]
        yield {
            "id": index,
            "image": frames[-1],
            "caption": f"The {'moon' if index % 4 else 'sun'} at {index} o'clock",
            "sound": wav(np.arange(200 + index) * 13 % 1999 - 999),
            "vector": np.array([index, index / 2, -1, 0, 0.25, 100], np.float16),
            "clip": frames,
            "time": ("midnight", "sunrise", "noon", "sunset")[index % 4],
        }


_ROWS = {
    "code_tokens": _code_tokens,
    "movie_ratings": _movie_ratings,
    "tagged_sentences": _tagged_sentences,
    "scattered_digits": _scattered_digits,
    "moments": _moments,
}


def prepare(folder: Path) -> Path:
    """Builds every dataset of a `home`, and adds unusual and invalid files to `files/`."""
    for name in NAMES:
        config = folder / "configs" / f"{name}.yaml"
        # the size of a compressed file depends on the version of zlib
        config.write_text(config.read_text().replace("  compression: gzip\n", ""))
        build(folder, name)
    build(folder, "movie_ratings", "data/blocks", layout={"blocks": 7})
    build(folder, "taxi", "data/taxi-100", limit=100)
    build(folder, "digits", "data/digits-30", limit=30)
    files = folder / "files"
    files.mkdir()
    for path in (*MEDIA.glob("*.gz"), *(ROOT / "tests/golden").glob("*s.*")):
        shutil.copy(path, files)
    shutil.copy(ROOT / "tests/golden/tfds/features.json", files)
    shutil.copytree(folder / "data/digits", folder / "data/damaged")
    shard = folder / "data/damaged/train-00000-of-00002.tfrecord"
    whole = shard.read_bytes()
    shard.write_bytes(_flipped(whole, 300))
    for name, data in {
        "crc": _flipped(whole, 300),
        "length": _flipped(whole, int.from_bytes(whole[:8], "little") + 16),
        "cut": whole[:-40],
        "empty": b"",
        "text": b"no records at all\n",
    }.items():
        (files / f"{name}.tfrecord").write_bytes(data)
    for name, text in _SPECS.items():
        (files / name).write_text(text)
    return folder


def _flipped(data: bytes, at: int) -> bytes:
    return data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]


_SPECS = {
    "bad.yaml": """\
schema: bad
record: exampel
features:
  a: {kind: imge, shape: [8, 8, 1]}
  a: int64
  b: {dtype: int46, default: yes}
  c: {kind: label}
  d: {kind: image, shape: [8, null, 2], encoding: jpeg, quality: 101}
""",
    "bad_config.yaml": """\
description: A config with problems.
schema: ../schemas/digits.yaml
data: ../data/digits
write:
  source: {image_folder: ../raw/none, csv: rows.csv}
  key: [path, path]
  splits: {train: 80, te st: -1}
  compresion: gzip
read:
  batch: {size: 0}
fit: {inputs: image, targets: lable}
""",
    "no_rows.yaml": "schema: ../schemas/digits.yaml\ndata: ../data/none\n",
    "no_yaml.yaml": "schema: {a: [\n",
    "numbers.yaml": """\
schema: digits
record: example
features:
  image: {kind: image, shape: [8, 8, 3], encoding: png}
  label: {kind: label, names: ["0", "1", "2", "3", "4"]}
  weight: float32
""",
    "digits_changed.yaml": """\
schema: digits
description: Read otherwise.
record: example
features:
  image: {kind: image, shape: [8, 8, 1], encoding: png, key: picture}
  label: {kind: label, names: ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "x"]}
""",
    "rows.csv": 'id,name,price,new,class\n1,"a, b",1.5,true,x\n2,,2,false,y\n3,"c\n""d""",,true,x\n',
    "bad_rows.csv": "id,petal_length,petal_width,sepal_length,species,note\n1,1.5,x,,setosa,\n1,2,2,2,rose,b\n",
}
