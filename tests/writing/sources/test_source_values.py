"""Values of all sources: one value has one record, or one message, whatever its source."""

from __future__ import annotations

import base64
import gzip
import io
import json
import tarfile

import datasets
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from in_parts import error_of, records, schema
from pyarrow import parquet

import recordspec as rs
from examples import example
from media import image_bytes, photo, sound_bytes, tone
from recordspec.wire.tfrecord import scan
from recordspec.writing.sources.csv import Csv
from recordspec.writing.sources.jsonl import Jsonl
from recordspec.writing.sources.parquet import Parquet
from recordspec.writing.sources.python_rows import source_of
from recordspec.writing.sources.webdataset import WebDataset
from shell import run_here

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
        "CSV": Csv(files="rows.csv").open(folder),
        "JSONL": Jsonl(files="rows.jsonl").open(folder),
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
    for source in (Jsonl(files="rows.jsonl"), WebDataset(files="rows.tar", columns={"x": "json.x"})):
        (line,) = error_of(source.open(tmp_path / "in"), one)
        assert line.endswith(f"features.x: expected a path in {tmp_path}/in, got `../secret.png`")


NAN, INF = float("nan"), float("inf")
ODD = [
    *(0, 1, -1, 300, 2**24, 2**24 + 1, 2**53 + 1, 2**63 - 1, 2**63, 2**64, -(2**63), 10**30),
    *(1.0, 1.5, -0.0, float(2**24 + 1), 1e300, NAN, INF, -INF, True, False),
    *("", "a", "é", "1", b"x", None),
    *([], [1], [1, 2], [2**24 + 1], [1.5, 2**24 + 1], [1e300, 1.0], [NAN, -0.0], [True], [True, 1]),
    *([1, None], [2**63, 1], [2**64], ["a", ""], ["b", None], [[1], [2]]),
]
NUMBERS = ("int8", "uint8", "int64", "uint64", "float16", "float32", "float64", "bool")
REFUSED = "refused"
# The names of labels: without digits, digits that are indices, and digits that are not.
CLASSES = {"label": ("a", "b", "é"), "digits": ("0", "1", "2"), "ratings": ("a", "b", "1")}


def stored_as(value, dtype: str):
    """What a record holds of one value, by a rule of its own; REFUSED if nothing does.

    A float of any size may lose digits, and an integer none.
    """
    is_bool, is_int = isinstance(value, bool), isinstance(value, int) and not isinstance(value, bool)
    if dtype == "text":
        given = value.encode() if isinstance(value, str) else value
        return given if isinstance(given, bytes) else REFUSED
    if dtype in CLASSES:
        names = CLASSES[dtype]
        indices = [place for place, name in enumerate(names) if value == name]
        if (
            is_int
            and 0 <= value < len(names)
            and not (any(map(str.isdigit, names)) and str(value) != names[value])
        ):
            indices = [value]
        return indices[0] if indices else REFUSED
    if dtype == "bool":
        return int(value) if is_bool or (is_int and value in (0, 1)) else REFUSED
    if "int" in dtype:
        limits = np.iinfo(dtype)
        return value if is_int and int(limits.min) <= value <= int(limits.max) else REFUSED
    if not (is_int or isinstance(value, float)):
        return REFUSED
    with np.errstate(over="ignore"):
        cast = np.array(float(value)).astype(dtype)
    if np.isinf(cast) and value not in (INF, -INF):
        return REFUSED
    return REFUSED if is_int and int(cast) != value else cast


def expected_record(value, dtype: str, *, lists: bool) -> bytes | str:
    """The record, by protobuf."""
    if isinstance(value, list) != lists:
        return REFUSED
    values = [stored_as(one, dtype) for one in (value if lists else [value])]
    if any(isinstance(one, str) for one in values):
        return REFUSED
    if dtype == "text":
        return example({"x": ("bytes", values)})
    if dtype in ("uint64", "float64"):
        return example({"x": ("bytes", [np.array(values, dtype).tobytes()])})
    kind = "float32" if "float" in dtype else "int64"
    return example({"x": (kind, [float(one) if kind == "float32" else int(one) for one in values])})


def cell_of(value) -> str:
    """A value as CSV has it."""
    if isinstance(value, str | bytes):
        return (value if isinstance(value, str) else value.decode()) or '""'
    return "" if value is None else str(value).lower() if isinstance(value, bool) else repr(value)


def european(value) -> str:
    """A cell with a decimal comma, and a point between thousands."""
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}".replace(",", ".")
    return cell_of(value).replace(".", ",") if isinstance(value, float) else cell_of(value)


def in_base64(value: bytes) -> dict[str, str]:
    return {"b64": base64.b64encode(value).decode()}


def sources_of(value, folder) -> dict:
    """One row in every source that can say this value: NumPy and Arrow have one type for all items."""
    kinds = {type(one) for one in value} if isinstance(value, list) else {type(value)}
    found = {"rows": source_of([{"x": value}]), "lists": source_of({"x": [value]})}
    (folder / "rows.jsonl").write_text(json.dumps({"x": value}, default=in_base64))
    found["JSONL"] = Jsonl(files="rows.jsonl").open(folder)
    if not isinstance(value, list):
        (folder / "rows.csv").write_text(f"x,other\n{cell_of(value)},1\n")
        found["CSV"] = Csv(files="rows.csv").open(folder)
        text = f"x;other\n{european(value)};1\n".encode("utf-16")
        (folder / "european.csv.gz").write_bytes(gzip.compress(text))
        found["CSV of Europe"] = Csv(
            files="european.csv.gz", encoding="utf-16", delimiter=";", decimal=",", thousands="."
        ).open(folder)
    if not (isinstance(value, float) and np.isnan(value)):  # which a frame has for missing
        found["pandas"] = source_of(pd.DataFrame({"x": pd.Series([value], dtype=object)}))
    if len(kinds - {type(None)}) > 1:
        return found
    array = None if value is None or type(None) in kinds else np.array([value])
    if array is not None and array.dtype != object and (kinds != {int} or array.dtype.kind in "iu"):
        found["NumPy"] = source_of({"x": array})
        if not isinstance(value, list) and "pandas" in found:
            found["pandas of its dtype"] = source_of(pd.DataFrame({"x": array}))
    try:
        table = pa.table({"x": pa.array([value])})
    except OverflowError:
        if value != 2**63:
            return found
        table = pa.table({"x": pa.array([value], pa.uint64())})
    parquet.write_table(table, folder / "rows.parquet")
    return found | {
        "Arrow": source_of(table),
        "Polars": source_of(pl.from_arrow(table)),
        "Hugging Face": source_of(datasets.Dataset(table)),
        "Parquet": Parquet(files="rows.parquet").open(folder),
    }


@pytest.mark.parametrize("lists", [False, True], ids=["single", "lists"])
def test_a_value_has_one_record_or_one_message_in_every_source(tmp_path, lists):
    shape = ", shape: [null]" if lists else ""
    kinds = {dtype: f"{{kind: tensor, dtype: {dtype}{shape}}}" for dtype in NUMBERS}
    kinds["text"] = "{kind: var_len, dtype: string}" if lists else "string"
    for name, classes in CLASSES.items():
        kinds[name] = f"{{kind: label, names: {json.dumps(classes)}{shape}}}"
    schemas = {dtype: schema(f"x: {options}") for dtype, options in kinds.items()}
    wrong = []
    for value in (one for one in ODD if one is None or isinstance(one, list) == lists):
        sources = sources_of(value, tmp_path)
        for dtype, one in schemas.items():
            expected = expected_record(value, dtype, lists=lists)
            messages = set()
            for name, source in sources.items():
                if name.startswith("CSV") and (lists or not says_the_same(value, dtype)):
                    continue
                found = outcome(source, one)
                if isinstance(found, str) and not name.startswith("CSV"):  # where the value is a text
                    messages.add(found)
                if (REFUSED if isinstance(found, str) else found) != expected:
                    wrong.append((value, dtype, name, found))
            if len(messages) > 1:
                wrong.append((value, dtype, messages))
    assert wrong == []


def outcome(source, one) -> bytes | str:
    """The record of the only row, or what the message says of its value."""
    try:
        (record,) = records(source, one)
    except rs.RecordError as error:
        (problem,) = error.problems
        return str(problem.at("")).removeprefix("features.x: ")
    return record


def says_the_same(value, dtype: str) -> bool:
    """Whether a cell of CSV says what the value is, for such a feature: a number is also text, and text a number."""
    if dtype in ("text", "ratings"):
        return isinstance(value, str | bytes)
    if dtype == "label":  # digits are an index there
        return not isinstance(value, float) and value != "1"
    if dtype == "digits":
        return not isinstance(value, float)
    is_whole = isinstance(value, float) and value.is_integer()  # documented: 180.0 is an integer in CSV
    return not isinstance(value, str | bytes) and not (is_whole and dtype in ("bool", *NUMBERS[:4]))


# Three rows of each; a dict has the sources that leave the column out: no feature has its values.
COLUMNS = {
    "ints": [1, 2, 3],
    "large_ints": [2**24 + 1, 2**53 + 1, -(2**63)],
    "floats": [1.5, -0.0, 3.0],
    "large_floats": [1e300, 1.0, -INF],
    "round_floats": [1.5, float(2**24 + 1), 3.0],
    "nan": [NAN, 1.0, 2.0],
    "bools": [True, False, True],
    "texts": ["", "é", "a"],
    "absent_texts": ["a", None, "b"],
    "absent_ints": [1, None, 3],
    "absent_large": [1e300, None, 1.0],
    "absent_bools": [True, None, False],
    "never": [None, None, None],
    "numbers_as_text": ["1e400", "x", "1"],
    "lists": [[1], [2, 3], []],
    "large_in_lists": [[2**24 + 1], [1, 2], []],
    "float64_in_lists": [[1e300], [1.0, 2.0], []],
    "float64_in_pairs": [[1e300, 1.0], [1.0, 2.0], [3.0, 4.0]],
    "nan_in_lists": [[NAN, 1.0], [1.0, 2.0], [3.0, 4.0]],
    "text_lists": [["a", ""], ["b", "c"], ["d", "e"]],
    "bool_lists": [[True], [False], []],
    "gaps_in_lists": [[1, None], [2, 3], [4, 5]],
    "absent_lists": [[1], None, [2]],
    "empty_lists": [[], [], []],
    "dicts": [{"a": 1}] * 3,
}
# What Arrow has no type for, or converts: rows of Python and lines of JSON say it.
MIXED = {
    "floats_and_ints": [1.5, 2**24 + 1, 3.0],
    "pairs_of_floats_and_ints": [[1.5, 2**24 + 1], [1.0, 2.0], [3.0, 4.0]],
    "nested_floats_and_ints": [[[1.5, 2**24 + 1]], [[1, 2]], [[3, 4]]],
    "nested": [[[1, 2], [3, 4]]] * 3,
    "nested_float64": [[[1e300, 2.0]]] * 3,
    "uint64": [2**63, 1, 2],
    "uint64_in_lists": [[2**63, 1], [2], []],
    "uint64_in_pairs": [[1, 2], [2**63, 1], (3, 4)],
    "beyond_uint64": [2**64, 1, 2],
    "beyond_uint64_in_lists": [[2**64], [1], [2]],
    "below_0_and_uint64": [[2**63], [-1], []],
    "bools_and_ints": [True, 1, 0],
    "texts_and_ints": ["a", 1, "b"],
    "lists_of_both": [[1, "a"], [2, "b"], [3, "c"]],
}
LEFT_OUT = {"never", "gaps_in_lists", "empty_lists"}
MIXED_LEFT_OUT = {
    "beyond_uint64",
    "beyond_uint64_in_lists",
    "below_0_and_uint64",
    "bools_and_ints",
    "texts_and_ints",
    "lists_of_both",
}


def plain(row):
    """A row with the member of its object."""
    return row | {"dicts.a": row["dicts"]["a"]}


def test_what_is_inferred_of_rows_in_memory_writes_these_rows(tmp_path):
    table = pa.table(COLUMNS)
    rows = table.to_pylist()
    every = COLUMNS | MIXED
    for form, given, left_out in [
        ("rows", [dict(zip(every, row, strict=True)) for row in zip(*every.values(), strict=True)], LEFT_OUT | MIXED_LEFT_OUT),
        ("rows without null", [{name: one for name, one in row.items() if one is not None} for row in rows], LEFT_OUT - {"never"}),
        ("lists", dict(every), LEFT_OUT | MIXED_LEFT_OUT),
        ("Arrow", table, LEFT_OUT),
        ("batch", table.to_batches()[0], LEFT_OUT),
        ("arrays", {name: table[name] for name in COLUMNS}, LEFT_OUT),
        ("NumPy", {name: np.array(COLUMNS[name]) for name in ("ints", "large_floats", "nan", "texts", "float64_in_pairs")}, set()),
        ("pandas", pd.DataFrame({name: pd.Series(values, dtype=object) for name, values in every.items()}), LEFT_OUT | MIXED_LEFT_OUT),
        ("Polars", pl.from_arrow(table), LEFT_OUT),
        ("Hugging Face", datasets.Dataset(table), LEFT_OUT),
        ("stream", datasets.Dataset(table).to_iterable_dataset(), LEFT_OUT),
        ("transformed", datasets.Dataset(table).with_transform(lambda batch: batch), LEFT_OUT),
        ("splits", datasets.DatasetDict(train=datasets.Dataset(table)), LEFT_OUT),
    ]:  # fmt: skip
        found = rs.infer(given)
        assert set(found.left_out) == left_out, form
        rs.write(given, found, tmp_path / "data", force=True, key=None)
        rs.write(given, found.schema, tmp_path / "ignored", ignore=found.left_out, force=True, key=None)
        (shard,), (other,) = (list((tmp_path / one).glob("train-*")) for one in ("data", "ignored"))
        assert shard.read_bytes() == other.read_bytes()
        if form == "rows":
            expected = [
                found.schema.encode({name: plain(row)[name] for name in found.schema.names}) for row in given
            ]
            assert [record.data for record in scan(shard)] == expected
        if left_out:
            with pytest.raises(
                (rs.SpecError, rs.RecordError), match=r"expected names of `data`, got `(never|gaps_in_lists)`"
            ):
                rs.write(given, found.schema, tmp_path / "data", force=True)


@pytest.mark.parametrize("suffix", ["csv", "jsonl", "parquet"])
def test_a_config_that_is_inferred_builds(tmp_path, suffix):
    path = tmp_path / f"rows.{suffix}"
    if suffix == "parquet":
        parquet.write_table(pa.table(COLUMNS), path)
        names = COLUMNS.keys() - LEFT_OUT - {"dicts"} | {"dicts.a"}
    elif suffix == "jsonl":
        columns = COLUMNS | MIXED
        rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
        path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
        names = columns.keys() - LEFT_OUT - MIXED_LEFT_OUT - {"dicts"} | {"dicts.a"}
    else:
        columns = {name: values for name, values in COLUMNS.items() if type(values[0]) not in (list, dict)}
        columns |= {
            "floats_and_ints": [1.5, 2**24 + 1, 3],
            "floats_and_large_ints": [1.5, 2**53 + 1, 3],
            "floats_and_powers": [1.5, 2**64, 3],
            "uint64": [2**63, 1, 2],
            "beyond_float64": ["1e400", "1.5", "1"],
            "long": ["1" * 41, "2", "0.5"],
            "longer": ["1" * 401, "2", "0.5"],
            "with_zeros": ["1.0", "", "17031840300.0"],
        }
        lines = [
            columns,
            *zip(*([cell_of(one) for one in values] for values in columns.values()), strict=True),
        ]
        path.write_text("".join(",".join(line) + "\n" for line in lines))
        names = columns.keys() - {"never"}
    for command in (["infer", path.name, "--out", "s.yaml", "--config", "c.yaml"], ["build", "c.yaml"]):
        done = run_here(*command, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
    assert rs.Schema.load(tmp_path / "s.yaml").names.keys() == names
    assert sum(json.loads(line)["rows"] for line in done.stdout.splitlines()) == 3
