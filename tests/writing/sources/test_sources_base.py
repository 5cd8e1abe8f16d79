"""What `Source` and `SourcePart` promise, for every source."""

from __future__ import annotations

import csv
import io
import itertools
import json
import os
import pickle
import tarfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import datasets
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import parquet

import recordspec as rs
from media import image_bytes, sound_bytes
from recordspec.wire.framing import framed
from recordspec.writing.sources import base, rows
from recordspec.writing.sources.base import Source, SourcePart
from recordspec.writing.sources.coco import Coco
from recordspec.writing.sources.csv import Csv
from recordspec.writing.sources.folders import AudioFolder, ImageFolder
from recordspec.writing.sources.jsonl import Jsonl
from recordspec.writing.sources.parquet import Parquet
from recordspec.writing.sources.python_rows import source_of
from recordspec.writing.sources.rows import DictRows
from recordspec.writing.sources.splits import SplitSources
from recordspec.writing.sources.tfrecord import TFRecords
from recordspec.writing.sources.voc import PascalVoc
from recordspec.writing.sources.webdataset import WebDataset

COUNT = 13
TABLE = rs.Schema.loads("schema: s\nfeatures: {n: int64, t: string}")
STORED = "schema: stored\nfeatures: {n: int64, t: string, id: string}"
STEPS = rs.Schema.loads(
    "schema: s\nrecord: sequence_example\ncontext: {id: text}\n"
    "sequence: {n: {kind: fixed_len_sequence, dtype: int64}, t: {kind: var_len, dtype: string}}"
)
IMAGES = rs.Schema.loads(
    "schema: s\nfeatures: {image: {kind: image, shape: [2, 3, 1]}, label: {kind: label, names: [a, b]}}"
)
DETECTION = rs.Schema.loads(
    "schema: s\nfeatures: {image: {kind: image, shape: [2, 3, 1]}, boxes: {kind: box, format: rel_yxyx},"
    " labels: {kind: label, names: [a, b], shape: [null]}}"
)
SOUNDS = rs.Schema.loads(
    "schema: s\nfeatures: {audio: {kind: audio, sample_rate: 8000}, label: {kind: label, names: [a, b]}}"
)


@dataclass(frozen=True)
class Case:
    """A source and what is known of it.

    Attributes:
        name: of the case.
        write: writes its files into a folder, the rows from one number on.
        open: the source, of the files in a folder.
        places: of its rows, in a folder.
        schema: of its rows.
        extra: the name of a column that no feature takes.
        once: whether the rows can be read once only.
    """

    name: str
    write: Callable[[Path, int], Any]
    open: Callable[[Path], Source]
    places: Callable[[Path], list[str]]
    schema: rs.Schema = TABLE
    extra: str = "id"
    once: bool = False

    def __str__(self) -> str:
        return self.name

    def parts(self, source: Source) -> list[SourcePart]:
        return list(source.parts(self.schema, (self.extra,)))

    def found(self, part: SourcePart) -> list[tuple[bytes, Any, str]]:
        """Each row of a part: its record, its value of `extra`, and its place."""
        return [(record, value, part.place(row)) for row, (record, value) in enumerate(self._rows(part))]

    def _rows(self, part: SourcePart) -> Iterator[tuple[bytes, Any]]:
        for batch in part.batches(self.schema, (self.extra,)):
            # in two pieces: a batch gives any of its rows
            for start, stop in itertools.pairwise(sorted({0, batch.rows // 3, batch.rows})):
                columns = batch.part(start, stop).values
                values = columns[self.extra]
                records = self.schema.encode_batch(
                    {name: columns[name] for name in self.schema.names}, stop - start
                )
                yield from zip(map(bytes, records), map(_plain, values), strict=True)


def _plain(value: Any) -> Any:
    if hasattr(value, "as_py"):
        value = value.as_py()
    return value.decode() if isinstance(value, bytes) else value


def row(index: int) -> dict[str, Any]:
    # some have line breaks and quotes, which CSV puts into quotes
    text = 'a "b"\nc' if index % 3 == 0 else f"text {index}"
    return {"n": index, "t": text, "id": f"key{index}"}


def table(first: int = 0) -> list[dict[str, Any]]:
    return [row(index) for index in range(first, first + COUNT)]


def columns(first: int = 0) -> dict[str, list[Any]]:
    return {name: [row[name] for row in table(first)] for name in ("n", "t", "id")}


def numbered(folder: Path) -> list[str]:
    return [f"row {index}" for index in range(COUNT)]


def write_csv(folder: Path, first: int) -> None:
    lines = [f'{one["n"]},"{one["t"].replace(chr(34), chr(34) * 2)}",{one["id"]}\n' for one in table(first)]
    lines.insert(2, "\n")  # no row
    (folder / "rows.csv").write_text("n,t,id\n" + "".join(lines))


def csv_places(folder: Path) -> list[str]:
    """The lines on which rows begin."""
    line, lines = 2, []
    for index, one in enumerate(table()):
        line += index == 2  # the line without a row
        lines.append(line)
        line += 1 + one["t"].count("\n")
    return [f"{folder}/rows.csv:{line}" for line in lines]


def write_jsonl(folder: Path, first: int) -> None:
    lines = [json.dumps(one) + "\n" for one in table(first)]
    lines.insert(3, " \n")
    (folder / "rows.jsonl").write_text("".join(lines))


def write_two_csv(folder: Path, first: int) -> None:
    """Each with its own header."""
    for name, header, part in (("a", "n,t,id", slice(0, 8)), ("b", "id,n,t", slice(8, None))):
        lines = [[str(one[column]) for column in header.split(",")] for one in table(first)[part]]
        with (folder / f"{name}.csv").open("w", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows([header.split(","), *lines])


def two_csv_places(folder: Path) -> list[str]:
    places = []
    for name, part in (("a", slice(0, 8)), ("b", slice(8, None))):
        line = 2
        for one in table()[part]:
            places.append(f"{folder}/{name}.csv:{line}")
            line += 1 + one["t"].count("\n")
    return places


def write_two_jsonl(folder: Path, first: int) -> None:
    for name, part in (("a", slice(0, 8)), ("b", slice(8, None))):
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(one) + "\n" for one in table(first)[part]))


def two_jsonl_places(folder: Path) -> list[str]:
    return [f"{folder}/{'ab'[index >= 8]}.jsonl:{1 + index - 8 * (index >= 8)}" for index in range(COUNT)]


def write_steps(folder: Path, first: int) -> None:
    for name, part in (("a", slice(0, 8)), ("b", slice(8, None))):
        rows = [{"id": one["id"], "n": [one["n"]] * 2, "t": [[one["t"]], []]} for one in table(first)[part]]
        (folder / f"{name}.tfrecord").write_bytes(b"".join(framed(STEPS.encode(one)) for one in rows))


def steps_places(folder: Path) -> list[str]:
    places = []
    for name, part in (("a", slice(0, 8)), ("b", slice(8, None))):
        offset = 0
        for number, one in enumerate(table()[part]):
            places.append(f"{folder}/{name}.tfrecord: record {number} at byte {offset:,}")
            row = {"id": one["id"], "n": [one["n"]] * 2, "t": [[one["t"]], []]}
            offset += len(framed(STEPS.encode(row)))
    return places


def write_parquet(folder: Path, first: int) -> None:
    for name, part in (("a", slice(0, 8)), ("b", slice(8, None))):
        parquet.write_table(pa.Table.from_pylist(table(first)[part]), folder / f"{name}.parquet", 3)


def write_tfrecord(folder: Path, first: int) -> None:
    (folder / "stored.yaml").write_text(STORED)
    stored = rs.Schema.loads(STORED)
    for name, part in (("a", slice(0, 8)), ("b", slice(8, None))):
        records = [framed(stored.encode(one)) for one in table(first)[part]]
        (folder / f"{name}.tfrecord").write_bytes(b"".join(records))


def tfrecord_places(folder: Path) -> list[str]:
    stored, places = rs.Schema.loads(STORED), []
    for name, part in (("a", slice(0, 8)), ("b", slice(8, None))):
        offset = 0
        for number, one in enumerate(table()[part]):
            places.append(f"{folder}/{name}.tfrecord: record {number} at byte {offset:,}")
            offset += len(framed(stored.encode(one)))
    return places


def write_folder(make: Callable[[int], bytes], suffix: str) -> Callable[[Path, int], None]:
    def write(folder: Path, first: int) -> None:
        for index in range(COUNT):
            path = folder / "media" / ("a" if index < 5 else "b") / f"{index:02d}{suffix}"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(make(first + index))

    return write


def media_places(suffix: str) -> Callable[[Path], list[str]]:
    return lambda folder: [
        f"{folder}/media/{'a' if index < 5 else 'b'}/{index:02d}{suffix}" for index in range(COUNT)
    ]


def write_coco(folder: Path, first: int) -> None:
    """Images of which some have no object."""
    write_folder(lambda index: image_bytes(np.full((2, 3, 1), index, np.uint8), "png"), ".png")(folder, first)
    names = [os.path.relpath(path, folder / "media") for path in sorted((folder / "media").rglob("*.png"))]
    size = {"width": 3, "height": 2}
    annotated = {
        "images": [{"id": at, "file_name": name, **size} for at, name in enumerate(names)],
        "categories": [{"id": 7, "name": "a"}, {"id": 3, "name": "b"}],
        "annotations": [
            {"id": at, "image_id": at // 2 * 2, "category_id": 3, "bbox": [0, 1, 2, 1]} for at in range(COUNT)
        ],
    }
    (folder / "instances.json").write_text(json.dumps(annotated))


def write_voc(folder: Path, first: int) -> None:
    write_folder(lambda index: image_bytes(np.full((2, 3, 1), index, np.uint8), "png"), ".png")(folder, first)
    for number, path in enumerate(sorted((folder / "media").rglob("*.png"))):
        box = "<bndbox><xmin>0</xmin><ymin>1</ymin><xmax>2</xmax><ymax>2</ymax></bndbox>"
        path.with_suffix(".xml").write_text(
            f"<annotation><filename>{path.relative_to(folder / 'media')}</filename>"
            "<size><width>3</width><height>2</height></size>"
            + f"<object><name>b</name>{box}</object>" * (number % 3)
            + "</annotation>"
        )


FILES = [
    Case("csv", write_csv, lambda folder: Csv(files="rows.csv").open(folder), csv_places),
    Case(
        "jsonl",
        write_jsonl,
        lambda folder: Jsonl(files="rows.jsonl").open(folder),
        lambda folder: [f"{folder}/rows.jsonl:{1 + index + (index > 2)}" for index in range(COUNT)],
    ),
    Case(
        "parquet",
        write_parquet,
        lambda folder: Parquet(files=".").open(folder),
        lambda folder: [
            f"{folder}/{'ab'[index >= 8]}.parquet: row {index - 8 * (index >= 8)}" for index in range(COUNT)
        ],
    ),
    Case(
        "tfrecord",
        write_tfrecord,
        lambda folder: TFRecords(files="*.tfrecord", schema="stored.yaml").open(folder),
        tfrecord_places,
    ),
    Case(
        "several csv",
        write_two_csv,
        lambda folder: Csv(files=("a.csv", "b.csv")).open(folder),
        two_csv_places,
    ),
    Case(
        "jsonl of a pattern",
        write_two_jsonl,
        lambda folder: Jsonl(files="*.jsonl").open(folder),
        two_jsonl_places,
    ),
    Case(
        "splits",
        write_two_jsonl,
        lambda folder: SplitSources(
            sources={name: Jsonl(files=f"{name}.jsonl").open(folder) for name in "ab"}, column="split"
        ),
        two_jsonl_places,
    ),
    Case(
        "sequence examples",
        write_steps,
        lambda folder: TFRecords(files=("a.tfrecord", "b.tfrecord")).open(folder),
        steps_places,
        schema=STEPS,
    ),
    Case(
        "image_folder",
        write_folder(lambda index: image_bytes(np.full((2, 3, 1), index, np.uint8), "png"), ".png"),
        lambda folder: ImageFolder(folder="media").open(folder),
        media_places(".png"),
        schema=IMAGES,
        extra="path",
    ),
    Case(
        "audio_folder",
        write_folder(lambda index: sound_bytes(np.full((8, 1), index, np.int16), 8000), ".wav"),
        lambda folder: AudioFolder(folder="media").open(folder),
        media_places(".wav"),
        schema=SOUNDS,
        extra="path",
    ),
]

TARS = {"a": slice(0, 5), "b": slice(5, 9), "c": slice(9, None)}


def write_tars(folder: Path, first: int) -> None:
    for name, part in TARS.items():
        with tarfile.open(folder / f"{name}.tar", "w") as tar:
            for at, one in list(enumerate(table(first)))[part]:
                members = {"n": str(one["n"]), "txt": one["t"], "id": one["id"]}
                for extension, text in members.items():
                    info = tarfile.TarInfo(f"x/{at:03d}.{extension}")
                    info.size = len(text)
                    tar.addfile(info, io.BytesIO(text.encode()))


def tar_places(folder: Path) -> list[str]:
    return [
        f"{folder}/{name}.tar: x/{at:03d}" for name, part in TARS.items() for at in list(range(COUNT))[part]
    ]


FILES += [
    Case(
        "webdataset",
        write_tars,
        lambda folder: WebDataset(files="*.tar", columns={"t": "text;txt"}).open(folder),
        tar_places,
    ),
    Case(
        "coco",
        write_coco,
        lambda folder: Coco(annotations="instances.json", images="media", columns={"path": "file_name"}).open(
            folder
        ),
        media_places(".png"),
        schema=DETECTION,
        extra="path",
    ),
    Case(
        "voc",
        write_voc,
        lambda folder: PascalVoc(annotations="media", columns={"path": "file_name"}).open(folder),
        lambda folder: [place.replace(".png", ".xml") for place in media_places(".png")(folder)],
        schema=DETECTION,
        extra="path",
    ),
]

# Those that name their files.
LISTED = ("coco", "csv", "jsonl", "several csv", "splits", "sequence examples")


def given(name: str, rows: Callable[[], Any], *, once: bool = False) -> Case:
    """A source of rows in memory."""
    return Case(name, lambda folder, first: None, lambda folder: source_of(rows()), numbered, once=once)


def hugging_face() -> Any:
    """A part of a larger one, in another order."""
    given = [{"n": -1, "t": "none", "id": "none"}, *reversed(table())]
    return datasets.Dataset.from_list(given).select(range(COUNT, 0, -1))


def dataset() -> Any:
    import tensorflow as tf

    return tf.data.Dataset.from_tensor_slices(columns())


MEMORY = [
    given("a list of dicts", table),
    given("a dict of lists", columns),
    given("a dict of arrays", lambda: columns() | {"n": np.arange(COUNT)}),
    given("a pandas frame", lambda: pd.DataFrame(columns())),
    given("a Polars frame", lambda: pl.DataFrame(columns())),
    given("an Arrow table", lambda: pa.table(columns())),
    given("an Arrow record batch", lambda: pa.RecordBatch.from_pylist(table())),
    given(
        "an Arrow reader",
        lambda: pa.Table.from_pylist(table()).to_reader(max_chunksize=3),
        once=True,
    ),
    given("a generator", lambda: iter(table()), once=True),
    given("a tf.data.Dataset", dataset),
    given("a Dataset of Hugging Face", hugging_face),
    given("an IterableDataset", lambda: hugging_face().to_iterable_dataset(num_shards=3)),
    given(
        "an IterableDataset without features",
        lambda: datasets.IterableDataset.from_generator(lambda: iter(table())),
    ),
]

ALL = pytest.mark.parametrize("case", [*FILES, *MEMORY], ids=str)


@pytest.fixture
def written(case, tmp_path) -> Path:
    case.write(tmp_path, 0)
    return tmp_path


@pytest.fixture
def small_parts(monkeypatch) -> None:
    """A few rows fill several parts."""
    monkeypatch.setattr(base, "PART_BYTES", 100)
    monkeypatch.setattr(rows, "_PACKED_BYTES", 100)


@ALL
def test_a_row_has_its_record_and_its_place(case, written, small_parts):
    source = case.open(written)
    found = [one for part in case.parts(source) for one in case.found(part)]
    assert [place for _, _, place in found] == case.places(written)
    assert source.rows in (COUNT, None)
    if case.schema is TABLE:
        records = [TABLE.encode({"n": one["n"], "t": one["t"]}) for one in table()]
        assert [(record, value) for record, value, _ in found] == [
            (record, one["id"]) for record, one in zip(records, table(), strict=True)
        ]
    elif case.schema is STEPS:
        assert [value for _, value, _ in found] == [one["id"] for one in table()]
    else:
        assert [value for _, value, _ in found] == [
            os.path.relpath(place, written / "media").replace(".xml", ".png")
            for place in case.places(written)
        ]


@ALL
def test_many_parts_have_the_rows_of_one(case, written, monkeypatch):
    whole = case.parts(case.open(written))
    assert len(whole) == max(1, len(case.open(written).paths) if case in FILES else 1)  # one a file
    expected = [one for part in whole for one in case.found(part)]
    monkeypatch.setattr(base, "PART_BYTES", 100)
    monkeypatch.setattr(rows, "_PACKED_BYTES", 100)
    parts = case.parts(case.open(written))
    assert len(parts) > 2
    assert [one for part in parts for one in case.found(part)] == expected


@ALL
def test_parts_pickle(case, written, small_parts):
    for part in case.parts(case.open(written)):
        assert isinstance(part, SourcePart)
        sent = pickle.loads(pickle.dumps(part))
        assert case.found(sent) == case.found(part)
        # one that has been read, and has looked for places, travels as well
        assert case.found(pickle.loads(pickle.dumps(part))) == case.found(part)


@ALL
def test_places_are_found_in_any_order(case, written, small_parts):
    for part in case.parts(case.open(written)):
        count = len(case.found(part))
        expected = [part.place(number) for number in range(count)]
        assert [part.place(number) for number in reversed(range(count))] == expected[::-1]


@pytest.mark.parametrize("case", [one for one in (*FILES, *MEMORY) if not one.once], ids=str)
def test_parts_are_the_same_each_time(case, written, small_parts):
    source = case.open(written)
    first, again, other = case.parts(source), case.parts(source), case.parts(case.open(written))
    found = [case.found(part) for part in first]
    assert found == [case.found(part) for part in again] == [case.found(part) for part in other]
    # one part is read twice
    assert found == [case.found(part) for part in first]


@pytest.mark.parametrize("case", [one for one in MEMORY if one.once], ids=str)
def test_what_is_read_once_has_no_second_time(case, tmp_path):
    source = case.open(tmp_path)
    assert sum(len(case.found(part)) for part in case.parts(source)) == COUNT
    if isinstance(source, DictRows):
        assert case.parts(source) == []
        return
    with pytest.raises(rs.SpecError) as caught:
        case.parts(source)
    assert str(caught.value) == (
        "rows: expected a reader from its start, got one at its end (give another, or the table)"
    )


@pytest.mark.parametrize("case", MEMORY, ids=str)
def test_rows_in_memory_have_no_identity(case, tmp_path):
    source = case.open(tmp_path)
    assert source.identity() is None


@pytest.mark.parametrize("case", FILES, ids=str)
def test_identity_changes_with_the_files(case, written):
    known = case.open(written).identity()
    assert json.loads(json.dumps(known)) == known
    assert case.open(written).identity() == known
    files = sorted(path for path in written.rglob("*") if path.is_file())
    for path in files:
        before, times = path.read_bytes(), path.stat()
        path.write_bytes(before + b"\n")  # of another size, at the same time
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
        assert case.open(written).identity() != known, path
        path.write_bytes(before)  # of the same size, a nanosecond later
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns + 1))
        assert case.open(written).identity() != known, path
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
        assert case.open(written).identity() == known, path


@pytest.mark.parametrize("case", [one for one in FILES if one.name not in LISTED], ids=str)
def test_identity_changes_with_a_file_more_or_less(case, written):
    known = case.open(written).identity()
    last = Path(case.places(written)[-1].partition(":")[0])
    more = last.with_name(f"zz{last.suffix}")
    more.write_bytes(last.read_bytes())
    assert case.open(written).identity() != known
    more.unlink()
    assert case.open(written).identity() == known
    last.unlink()
    assert case.open(written).identity() != known


@pytest.mark.parametrize("case", FILES, ids=str)
def test_a_source_that_is_open_sees_that_a_file_changed(case, written):
    source = case.open(written)
    known = source.identity()
    case.write(written, 5)
    path = Path(case.places(written)[0].partition(": ")[0].partition(":")[0])
    os.utime(path, ns=(0, 1))
    assert source.identity() != known
