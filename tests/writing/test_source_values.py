"""Values of all sources: one value has one record, or one message, whatever its source."""

from __future__ import annotations

import io
import json
import tarfile

import datasets
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from in_parts import error_of, records, schema
from pyarrow import parquet

from media import image_bytes, photo, sound_bytes, tone
from recordspec.writing.sources import source_of
from recordspec.writing.sources.csv import Csv
from recordspec.writing.sources.jsonl import Jsonl
from recordspec.writing.sources.parquet import Parquet
from recordspec.writing.sources.webdataset import WebDataset

PIXELS, SAMPLES = photo(6, 5), tone(0.01)
HTML = b"<html>not found</html>"
# The files, the suffix of each, what they hold, and the message of a file of another type.
MEDIA = {
    "audio": (
        {
            ".wav": sound_bytes(SAMPLES, 8000),
            ".flac": sound_bytes(SAMPLES, 8000, "FLAC"),
            ".aiff": sound_bytes(SAMPLES, 8000, "AIFF", "PCM_16"),
        },
        SAMPLES,
        "expected a sound, got ",
        "sample_rate: 8000, dtype: int16",
    ),
    "image": (
        {f".{one}": image_bytes(PIXELS, one) for one in ("png", "bmp", "tiff")},
        PIXELS,
        "expected an image, got ",
        "shape: [6, 5, 3]",
    ),
}
RAW_HINT = {"audio": " (give raw samples as an array)", "image": " (give raw pixels as an array)"}


def media_sources(folder, kind: str, data: bytes, suffix: str):
    """One row, the file in each of its forms."""
    path = folder / f"x{suffix}"
    path.write_bytes(data)
    (folder / "rows.csv").write_text(f"x\n{path.name}\n")
    (folder / "rows.jsonl").write_text(json.dumps({"x": path.name}))
    with tarfile.open(folder / "rows.tar", "w") as archive:
        info = tarfile.TarInfo("a.x")
        info.size = len(data)
        archive.addfile(info, io.BytesIO(data))
    binary = pa.table({"x": pa.array([data], pa.binary())})
    files = datasets.Features({"x": datasets.Image() if kind == "image" else datasets.Audio()})
    given = datasets.Dataset(pa.table({"x": [{"bytes": data, "path": None}]}).cast(files.arrow_schema))
    parquet.write_table(binary, folder / "binary.parquet")
    given.to_parquet(str(folder / "files.parquet"))
    return {
        "path": source_of([{"x": path}]),
        "bytes": source_of([{"x": data}]),
        "bytearray": source_of({"x": [bytearray(data)]}),
        "file of Hugging Face": source_of([{"x": {"bytes": data, "path": "no/such"}}]),
        "path of Hugging Face": source_of([{"x": {"bytes": None, "path": str(path)}}]),
        "Arrow": source_of(binary),
        "pandas": source_of(binary.to_pandas()),
        "pandas of structs": source_of(pd.DataFrame({"x": [{"bytes": data, "path": None}]})),
        "Hugging Face": source_of(given),
        "CSV": Csv(path="rows.csv").open(folder),
        "JSONL": Jsonl(path="rows.jsonl").open(folder),
        "WebDataset": WebDataset(files="rows.tar").open(folder),
        "Parquet": Parquet(files="binary.parquet").open(folder),
        "Parquet of Hugging Face": Parquet(files="files.parquet").open(folder),
    }


@pytest.mark.parametrize("kind", MEDIA)
def test_a_file_has_one_record_in_every_form(tmp_path, kind):
    files, values, _, options = MEDIA[kind]
    raw = schema(f"x: {{kind: {kind}, {options}, encoding: raw}}")
    encoded = schema(f"x: {{kind: {kind}, {options}}}")
    samples = raw.encode({"x": values})
    assert values.tobytes() in samples
    for suffix, data in files.items():
        for name, source in media_sources(tmp_path, kind, data, suffix).items():
            assert records(source, raw) == [samples], (suffix, name)
            assert records(source, encoded) == [encoded.encode({"x": data})], (suffix, name)
    frames = schema("x: {kind: video, shape: [2, 6, 5, 3], encoding: raw}")
    if kind == "image":
        assert frames.encode({"x": [*files.values()][:2]}) == frames.encode({"x": np.stack([values] * 2)})


@pytest.mark.parametrize("kind", MEDIA)
@pytest.mark.parametrize("encoding", ["raw", ""])
def test_bytes_that_are_no_file_are_refused_in_every_form(tmp_path, kind, encoding):
    _, values, message, options = MEDIA[kind]
    one = schema(f"x: {{kind: {kind}, {options}{', encoding: raw' * bool(encoding)}}}")
    # of the size that raw values have
    for data, got in [(HTML, "an HTML page"), (values.tobytes(), "")]:
        suffix = ""
        for name, source in media_sources(tmp_path, kind, data, suffix).items():
            (line,) = error_of(source, one)
            said = line.partition("features.x: ")[2].replace(f"{tmp_path}/x: ", "")
            assert said.startswith(message + got), name
            assert said.endswith(RAW_HINT[kind] if encoding else said[-1:]), name


def test_arrays_of_tars_are_raw_values(tmp_path):
    one = schema("x: {kind: audio, sample_rate: 8000, dtype: int16, encoding: raw}")
    stream = io.BytesIO()
    np.save(stream, SAMPLES)
    with tarfile.open(tmp_path / "rows.tar", "w") as archive:
        info = tarfile.TarInfo("a.npy")
        info.size = len(stream.getvalue())
        archive.addfile(info, io.BytesIO(stream.getvalue()))
    source = WebDataset(files="rows.tar", columns={"x": "npy"}).open(tmp_path)
    assert records(source, one) == [one.encode({"x": SAMPLES})]


def test_a_path_in_a_tar_or_in_lines_stays_in_the_folder(tmp_path):
    (tmp_path / "in").mkdir()
    (tmp_path / "secret.png").write_bytes(image_bytes(PIXELS, "png"))
    lines = json.dumps({"x": {"bytes": None, "path": "../secret.png"}}).encode()
    (tmp_path / "in/rows.jsonl").write_bytes(lines)
    with tarfile.open(tmp_path / "in/rows.tar", "w") as archive:
        info = tarfile.TarInfo("a.json")
        info.size = len(lines)
        archive.addfile(info, io.BytesIO(lines))
    one = schema("x: {kind: image, shape: [6, 5, 3]}")
    for source in (Jsonl(path="rows.jsonl"), WebDataset(files="rows.tar", columns={"x": "json.x"})):
        (line,) = error_of(source.open(tmp_path / "in"), one)
        assert line.endswith(f"features.x: expected a path in {tmp_path}/in, got `../secret.png`")
